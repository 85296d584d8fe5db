"""Rows that calibrate judge by halves, each by the calibration of the other."""

import numpy as np

from tests.support.builders import synthetic_ensemble
from tfbnn.posterior.calibration.calibrating import calibration_of_moments
from tfbnn.posterior.calibration.left_out import halves
from tfbnn.spec.rows import NetworkRows


def test_rows_of_one_label_stay_in_one_half():
    labels = np.repeat(np.arange(30), [1, 2, 3] * 10)
    found = halves(len(labels), labels)
    assert set(found) == {0, 1} and len(set(zip(labels, found))) == 30
    np.testing.assert_array_equal(found, halves(len(labels), labels))
    assert abs(halves(101).sum() - 50) <= 1


def test_each_half_is_judged_by_the_calibration_of_the_other():
    """Where the halves need other bars, those of both together would hold."""
    ensemble = synthetic_ensemble()
    spread = np.ones((400, 1))
    scores = np.random.default_rng(5).normal(size=(400, 1))

    def checked(scores):
        rows = NetworkRows(np.zeros((400, 2)), scores, None)
        return calibration_of_moments(
            ensemble, rows, np.zeros_like(spread), spread, None, "loo"
        ).checked

    found = checked(scores)
    assert found.ok and found.is_calibrated and found.num_rows == 400
    assert found.source == "rows of the fit, each left out"
    scores[:, 0] += 6.0 * halves(400)
    assert checked(scores).ok is False
