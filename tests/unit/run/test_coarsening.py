"""The coarsening curve out of the draws of a ladder: which powers mix, and what they score."""

import numpy as np
import pytest

from tests.support.builders import make_rows, synthetic_ensemble
from tfbnn import BayesianMLP
from tfbnn.diagnostics.statistics import rhat
from tfbnn.likelihoods import Categorical
from tfbnn.run.coarsening import Coarsening, Rungs

TEMPERATURES = (0.0, 0.01, 0.1, 0.5)
X, Y = make_rows(12, 2, 1, seed=4)


def ladder(apart, **settings):
    """Rungs whose chains are `apart` [m] from each other, in one bias of the readout."""
    ensemble = synthetic_ensemble(num_chains=2, num_results=60, **settings)
    draws = np.repeat(ensemble.draws[:, :, None], len(apart), axis=2)
    place = ensemble.spec.layout.layers[-1].bias.start
    draws[1, :, :, place] += np.array(apart, draws.dtype)
    return Rungs(TEMPERATURES, draws, ensemble)


@pytest.mark.parametrize(
    "apart, power", [((0, 0, 0, 9), 0.1), ((0, 9, 9, 9), None), ((0, 0, 9, 0), 0.01)]
)
def test_the_largest_power_that_mixes(apart, power):
    found = ladder(apart).coarsening(X, Y, None)
    np.testing.assert_array_equal(found.powers, TEMPERATURES[1:])
    assert found.rhat.shape == (3, 10, 1)
    np.testing.assert_array_equal(found.share_mixed > 0.9, np.array(apart[1:]) == 0)
    assert found.largest_power == power
    last = found.summary().splitlines()[-1]
    assert (f"likelihood_power={power}" if power else "at none of the powers") in last
    assert len(found.summary().splitlines()) == 1 + 3 + 1


def test_scores_and_rhat_are_those_of_a_fit_with_the_power():
    rungs = ladder((0, 0, 0.4, 0.8))
    found = rungs.coarsening(X, Y, None)
    for rung, ensemble in enumerate(rungs.ensembles()):
        assert ensemble.spec.likelihood_power == TEMPERATURES[rung + 1]
        model = BayesianMLP.from_ensemble(ensemble)
        np.testing.assert_array_equal(ensemble.draws, rungs.draws[:, :, rung + 1])
        scores = model.evaluate(X, Y)
        for name in ("rmse", "log_predictive_density", "rmse_transformed", "pull_width"):
            assert found.scores[name][rung] == pytest.approx(scores[name], rel=1e-12)
        inputs = ensemble.x_reference
        draws = model.predict_draws(inputs, space="transformed").reshape(2, 60, len(inputs), 1)
        np.testing.assert_allclose(found.rhat[rung], rhat(draws), rtol=1e-5)
    assert found.num_rows == 12


def test_classes_have_an_accuracy():
    rungs = ladder((0, 0, 0, 0), layer_sizes=(2, 5, 3), likelihood=Categorical(), y_transform=None)
    found = rungs.coarsening(X, np.arange(12) % 3, None)
    assert found.scores["accuracy"].shape == (3,) and "accuracy" in found.summary()


def test_what_is_unknown_does_not_mix():
    rhats = np.full((2, 20, 1), 1.0)
    rhats[0, 0], rhats[1, :2] = np.nan, np.nan
    found = Coarsening(np.array([0.1, 1.0]), rhats, {}, 5)
    assert found.share_mixed.tolist() == [0.95, 0.9] and found.largest_power == 0.1
    assert found.rhat_q95.tolist() == [1.0, np.inf]
