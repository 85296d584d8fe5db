"""Many points at once: the numbers of one by one, errors of other origin, columns by name."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.cross_sections import CHARGINO, NEUTRALINOS
from tfbnn import BayesianMLP
from tfbnn.data.table import Table
from tfbnn.exceptions import DataWarning
from tfbnn.hep import CrossSectionPredictor, Process, write_processes
from tfbnn.hep.errors import PointError

NAMES = ("m_c", "n11", "m")
POINTS = dict(zip(NAMES, make_rows(30, 3, 1)[0].T))


def one_by_one(predictor, pids):
    found = []
    for row in zip(*POINTS.values()):
        predictor.set_parameters(dict(zip(NAMES, row)))
        result = predictor.get_xsection(pids)
        found.append([*result.values()])
    return np.array(found)


def test_many_points_are_what_each_is_alone(predictor):
    found = predictor.predict(POINTS)
    assert found.pids == (NEUTRALINOS, CHARGINO) and len(found) == 30
    for index, pids in enumerate(found.pids):
        parts = (found.central, found.err_down, found.err_up, found.trust)
        together = np.column_stack([part[:, index] for part in parts])
        np.testing.assert_allclose(together, one_by_one(predictor, pids), rtol=1e-6)


def test_one_process_needs_its_own_inputs_only(predictor):
    found = predictor.predict({"m": [1.0, 2.0], "n11": [1.0, 3.0]}, processes=[NEUTRALINOS[::-1]])
    assert found.pids == (NEUTRALINOS,) and found.central.shape == (2, 1)
    with pytest.raises(ValueError, match=r"no column m_c \(MASS 1000024\)"):
        predictor.predict({"m": [1.0], "n11": [1.0]})


def test_frames_and_dicts_are_alike(predictor):
    table = Table(("other", *NAMES), np.column_stack([np.zeros(30), *POINTS.values()]))
    frame, expected = pd.DataFrame(table.values, columns=table.columns), predictor.predict(POINTS)
    for found in (predictor.predict(table), predictor.predict(frame)):
        for name in ("central", "err_up", "trust"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    point = predictor.predict({name: values[0] for name, values in POINTS.items()})
    np.testing.assert_allclose(point.central, expected.central[:1], rtol=1e-6)


def test_an_error_at_a_point_comes_back_from_other_processes(predictor):
    with pytest.raises(PointError) as raised:
        predictor.predict(POINTS, errors={"pdf": np.full(30, -0.1)})
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value) and again.points[0] == 0


def test_rows_in_another_order_are_refused(predictor):
    frame = pd.DataFrame(POINTS)
    with pytest.raises(ValueError, match="error 'pdf' has the index of points in another order"):
        predictor.predict(frame, errors={"pdf": frame["m"].abs()[::-1]})
    with pytest.raises(ValueError, match="n11 has the index of m in another order"):
        predictor.predict({**frame, "m": frame["m"][::-1]})


def test_masses_below_zero_are_told_where_the_fit_had_none(processes, tmp_path):
    ensemble = synthetic_ensemble(feature_names=("m", "n11"))
    seen = ensemble.training_inputs
    absolute = replace(seen, low=ensemble.x_pipeline.forward(np.zeros((1, 2)))[0])
    model = BayesianMLP.from_ensemble(replace(ensemble, training_inputs=absolute))
    process = Process(**vars(processes[0]) | {"model": model})
    write_processes(tmp_path / "absolute", [process])
    predictor = CrossSectionPredictor(tmp_path / "absolute")
    with pytest.warns(DataWarning, match=r"m \(MASS 1000022\) is negative.*pass abs\(m\)") as said:
        predictor.predict({"m": [1.0, -2.0], "n11": [-1.0, 1.0]})
    assert len(said) == 1 and said[0].filename == __file__
    predictor.set_parameters({"m": -2.0, "n11": 1.0})
    with pytest.warns(DataWarning, match="abs") as said:
        predictor.get_xsection(NEUTRALINOS)
    assert said[0].filename == __file__


def test_errors_of_cross_sections_below_zero_are_not_below_zero(processes, tmp_path):
    """On a linear scale a network may say so."""
    ensemble = synthetic_ensemble(feature_names=("m", "n11"), y_transform=None)
    model = BayesianMLP.from_ensemble(ensemble)
    write_processes(tmp_path / "linear", [Process(**vars(processes[0]) | {"model": model})])
    points = {"m": np.linspace(-90.0, 90.0, 19), "n11": np.zeros(19)}
    found = CrossSectionPredictor(tmp_path / "linear").predict(points, errors={"scale": 0.1})
    assert found.central.min() < 0 < found.central.max()
    np.testing.assert_allclose(found.other_down, 0.1 * np.abs(found.central))


@pytest.mark.parametrize(
    "points, errors, error, message",
    [
        (np.ones((2, 3)), None, TypeError, "data frame or a dict"),
        ({"m": [1.0], "n11": [1.0, 2.0], "m_c": [1.0]}, None, ValueError, r"n11 \[2\]"),
        ({name: [[1.0]] for name in NAMES}, None, ValueError, "one number per point"),
        ({"m": [np.nan], "n11": [1.0], "m_c": [1.0]}, None, ValueError, "must be finite"),
        (POINTS, {"pdf": np.ones(29)}, ValueError, r"shape \[30\] or \[30, 2\]"),
        (POINTS, {"pdf": -np.ones(30)}, ValueError, "at point 0"),
        (POINTS, {"pdf": -0.1}, ValueError, ">= 0"),
        (POINTS, {"pdf": (0.1, 0.1, 0.1)}, ValueError, "down, up"),
        (POINTS, {1: 0.1}, TypeError, "dict name"),
        (POINTS, [0.1], TypeError, "dict name"),
    ],
)
def test_points_and_errors_that_are_none(predictor, points, errors, error, message):
    with pytest.raises(error, match=message):
        predictor.predict(points, errors=errors)


# ----------------------------------------------------------------------------------------
# Errors of other origin.
# ----------------------------------------------------------------------------------------


@pytest.fixture
def uncertain(tmp_path, processes):
    """The folder with errors of other origin of its first process."""
    errors = {"scale": 0.3, "pdf": (0.4, 0.0)}
    first = Process(**vars(processes[0]) | {"errors": errors})
    write_processes(tmp_path / "uncertain", [first, processes[1]])
    return tmp_path / "uncertain"


def test_errors_of_other_origin_stand_apart_and_add_in_quadrature(uncertain, predictor):
    found, plain = CrossSectionPredictor(uncertain).predict(POINTS), predictor.predict(POINTS)
    np.testing.assert_array_equal(found.err_up, plain.err_up)
    np.testing.assert_allclose(found.other_down[:, 0], 0.5 * found.central[:, 0])
    np.testing.assert_allclose(found.other_up[:, 0], 0.3 * found.central[:, 0])
    assert (found.other_down[:, 1] == 0).all()
    np.testing.assert_allclose(found.total_down**2, found.err_down**2 + found.other_down**2)
    np.testing.assert_array_equal(found.total_up[:, 1], plain.err_up[:, 1])


def test_errors_of_points_take_the_place_of_those_of_the_folder(uncertain):
    each = np.linspace(0.0, 1.0, 30)
    sides = np.column_stack([each, 2 * each])
    predictor = CrossSectionPredictor(uncertain)
    found = predictor.predict(POINTS, errors={"pdf": 0.0, "scale": each, "alphas": sides})
    np.testing.assert_allclose(found.other_down, np.sqrt(2) * each[:, None] * found.central)
    np.testing.assert_allclose(found.other_up, np.sqrt(5) * each[:, None] * found.central)


def test_one_point_has_them_where_that_was_asked_for(uncertain, predictor):
    point = {"m": 1.0, "n11": 1.0, "m_c": 1.0}
    predictor.set_parameters(point)
    plain = predictor.get_xsection(NEUTRALINOS)
    silent, asked = (CrossSectionPredictor(uncertain, other_errors=on) for on in (False, True))
    for each in (silent, asked):
        each.set_parameters(point)
    assert silent.get_xsection(NEUTRALINOS) == plain
    found = asked.get_xsection(NEUTRALINOS)
    assert found["central"] == plain["central"]
    assert found["network_err_up"] == plain["tot_err_up"]
    assert found["other_err_up"] == pytest.approx(0.3 * found["central"])
    total = np.hypot(found["network_err_up"], found["other_err_up"])
    assert found["tot_err_up"] == pytest.approx(total)


# ----------------------------------------------------------------------------------------
# The present point.
# ----------------------------------------------------------------------------------------


@pytest.fixture
def rows_of_mixings(tmp_path, processes):
    """A predictor whose two inputs are a row of a mixing matrix."""
    inputs = {"m": ("NMIX", 1, 1), "n11": ("NMIX", 1, 2)}
    write_processes(tmp_path / "mixings", [Process(**vars(processes[0]) | {"inputs": inputs})])
    return CrossSectionPredictor(tmp_path / "mixings")


def test_half_a_row_of_mixings_of_an_earlier_point_is_told(rows_of_mixings):
    rows_of_mixings.set_parameters({"m": 1.0})
    rows_of_mixings.set_parameters({"m": 0.5, "n11": 0.5})
    with pytest.warns(DataWarning, match="n11 keep their earlier values"):
        rows_of_mixings.set_parameters({"m": 0.6})


def test_what_was_set_before_can_be_forgotten(rows_of_mixings, predictor):
    rows_of_mixings.set_parameters({"m": 0.5, "n11": 0.5})
    rows_of_mixings.set_parameters({"m": 0.6}, keep=False)
    with pytest.raises(ValueError, match=r"needs n11 \(NMIX 1 2\), not set yet"):
        rows_of_mixings.get_xsection(NEUTRALINOS)
    predictor.set_parameters({"m": 1.0, "n11": 1.0})
    with pytest.raises(ValueError, match="Known"):
        predictor.set_parameters({"x": 1.0}, keep=False)
    assert predictor.parameters == {"m": 1.0, "n11": 1.0}  # as a refusal leaves them


def test_only_the_processes_that_are_asked_for_are_read(folder, processes):
    (folder / next(folder.glob("-1000024*")).name).write_bytes(b"nobody reads it")
    predictor = CrossSectionPredictor(folder, processes=[NEUTRALINOS[::-1]])
    assert list(predictor.processes) == [NEUTRALINOS]
    with pytest.raises(ValueError, match=r"no process \(1, 2\). Known: \(1000022, 1000023\)"):
        CrossSectionPredictor(folder, processes=[(2, 1)])


@pytest.mark.processes
def test_many_processes_of_a_computer_read_one_folder_while_it_is_replaced(folder, processes):
    """Read the folder as ranks of MPI do."""
    code = """
import sys
from tfbnn.hep import CrossSectionPredictor
for _ in range(5):
    predictor = CrossSectionPredictor(sys.argv[1])
    predictor.set_parameters({"m": 1.0, "n11": 1.0, "m_c": 1.0})
    found = predictor.get_xsections()
print(found)
"""
    command = [sys.executable, "-c", code, str(folder)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    while any(rank.poll() is None for rank in ranks):
        write_processes(folder, processes)
    outputs = {rank.communicate()[0] for rank in ranks}
    assert [rank.returncode for rank in ranks] == [0] * 3
    predictor = CrossSectionPredictor(folder)
    predictor.set_parameters({"m": 1.0, "n11": 1.0, "m_c": 1.0})
    assert outputs == {f"{predictor.get_xsections()}\n"}
