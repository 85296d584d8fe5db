"""Derived inputs and targets, and networks of errors: in Python, in folders, at points out of SLHA and of tables."""

import numpy as np
import pytest

from tests.support.builders import synthetic_ensemble
from tests.support.cross_sections import MASS, NEUTRALINOS, SPECTRUM
from tfbnn.fit.model import BayesianMLP
from tfbnn.hep import CrossSectionPredictor, Process, write_processes

DERIVED = {"z": "N11**2 - NMIX:1:2", "N11": "NMIX 1 1", "log_m": "log10(abs(MASS:1000022))"}
POINTS = {"N11": [1.75, 0.5], "NMIX:1:2": [0.2, 0.1], "MASS:1000022": [-2.5, 3.0]}
X = np.column_stack([np.log10([2.5, 3.0]), [1.75**2 - 0.2, 0.15]])


def model(*names, seed=0):
    settings = {"y_transform": ["log10", "standardize"], "seed": seed, "vector_target": True}
    return BayesianMLP.from_ensemble(synthetic_ensemble(feature_names=names or None, **settings))


def process(**changes):
    settings = {"pids": NEUTRALINOS, "unit": "fb", "energy": 13000, "inputs": DERIVED}
    return Process(**{"model": model("log_m", "z")} | settings | changes)


def predictor_of(tmp_path, one):
    write_processes(tmp_path, [one])
    return CrossSectionPredictor(tmp_path)


def medians(one, x):
    return one.model.predict(x, include_noise=True, quantiles=[0.5]).columns.quantiles[0, :, 0]


def test_inputs_are_computed_from_parameters(tmp_path):
    one = process()
    assert one.features == ("log_m", "z")
    predictor = predictor_of(tmp_path, one)
    assert predictor.processes[NEUTRALINOS].inputs == one.inputs
    assert [*predictor.places] == ["MASS:1000022", "NMIX:1:2", "N11"]
    expected = medians(one, X)
    found = predictor.predict(POINTS)
    np.testing.assert_allclose(found.central[:, 0], expected, rtol=1e-12)
    predictor.import_slha_string(SPECTRUM)
    assert predictor.get_xsection(NEUTRALINOS)["central"] == pytest.approx(expected[0])
    predictor.set_parameters({name: values[1] for name, values in POINTS.items()})
    assert predictor.get_xsection(NEUTRALINOS)["central"] == pytest.approx(expected[1])


def test_a_place_may_go_by_another_name(tmp_path):
    first = process()
    second = process(pids=(1, 2), inputs=DERIVED | {"N11": "NMIX 1 1", "m": MASS, "log_m": "log10(abs(m))"})  # fmt: skip
    write_processes(tmp_path, [first, second])
    predictor = CrossSectionPredictor(tmp_path)
    points = {("m" if name == "MASS:1000022" else name): POINTS[name] for name in POINTS}
    found = predictor.predict(points)
    np.testing.assert_array_equal(found.central[:, 0], found.central[:, 1])
    predictor.set_parameters({name: values[0] for name, values in points.items()})
    assert predictor.get_xsections()[1, 2]["central"] == pytest.approx(found.central[0, 0])
    as_written = {"NMIX:1:1": points.pop("N11"), **points}
    np.testing.assert_array_equal(predictor.predict(as_written).central, found.central)
    predictor.set_parameters({name: values[1] for name, values in as_written.items()})
    assert predictor.parameters["N11"] == 0.5 and "NMIX:1:1" not in predictor.parameters


def test_a_model_without_names_takes_inputs_that_no_other_uses():
    inputs = {"N11": "NMIX 1 1", "z": "N11**2", "m": "abs(MASS:1000022)"}
    assert process(model=model(), inputs=inputs).features == ("z", "m")


@pytest.mark.parametrize(
    "argument, change, message",
    [
        ("inputs", {"N12": "NMIX 1 2"}, "N12 are used neither by the model"),
        ("inputs", {"z": "N1l**2"}, "uses 'N1l', which is no input. Did you mean 'N11'"),
        ("inputs", {"z": "y", "y": "z"}, "z, y are made of each other"),
        ("inputs", {"z": "z"}, "made of each other"),
        ("inputs", {"z": "open('x')"}, "neither an SLHA place.*nor an expression"),
        ("inputs", {"MASS:3": "MASS 4"}, "printable without ':', received 'MASS:3'"),
        ("inputs", {"z\n": "MASS 4"}, "Names of inputs must be printable"),
        ("inputs", {"N11": "2", "z": "N11", "log_m": "1"}, "an input at an SLHA place"),
        ("inputs", {f"a{n}": "MASS 4" for n in range(201)}, "There can be at most 200 inputs"),
        ("target", "NLO / LO", "one name that is not"),
        ("target", "abs(NLO)", "no inverse"),
        ("target", "N11", "one name"),
        ("errors", {"pdf": model("log_m", "y")}, "inputs must name"),
        ("errors", {"pdf": (model("log_m", "z"), 0.1)}, "the error 'pdf'"),
        ("errors", {"pdf\nBLOCK MASS": 0.1}, "Names of errors must be printable"),
    ],
)
def test_inputs_targets_and_networks_of_errors_are_checked(argument, change, message):
    change = DERIVED | change if argument == "inputs" else change
    with pytest.raises((TypeError, ValueError), match=message):
        process(**{argument: change})


def test_points_without_a_finite_input_are_named(tmp_path):
    predictor = predictor_of(tmp_path, process())
    with pytest.raises(ValueError, match="log_m = .* is not finite at point 1 .* MASS:1000022 = 0"):
        predictor.predict(POINTS | {"MASS:1000022": [1.0, 0.0]})


def test_points_without_a_finite_input_of_an_error_are_named(tmp_path):
    inputs = DERIVED | {"log_n": "log10(N11)"}
    predictor = predictor_of(
        tmp_path, process(inputs=inputs, errors={"pdf": model("log_m", "log_n")})
    )
    with pytest.raises(ValueError, match="log_n = .* is not finite at point 1 .* N11 = -1"):
        predictor.predict(POINTS | {"N11": [1.0, -1.0]})


@pytest.mark.parametrize(
    "target, of",
    [("K", lambda t: t), ("NLO / LO", lambda t: 7 * t), ("log10(NLO/LO)", lambda t: 7 * 10**t)],
)
def test_targets_are_solved_for_the_cross_section(tmp_path, target, of):
    lo = {"LO": "LOXSEC 1", "N11": "NMIX 1 1"} if "LO" in target else {}
    predictor = predictor_of(tmp_path, process(target=target, inputs=DERIVED | lo))
    (one,) = predictor.processes.values()
    assert (one.target is None) == (target == "K")
    found = predictor.predict(POINTS | {"LO": [7.0, 7.0]})
    np.testing.assert_allclose(found.central[:, 0], of(medians(one, X)), rtol=1e-12)
    assert (found.err_down > 0).all() and (found.err_up > 0).all()
    if lo:
        with pytest.raises(ValueError, match="gives no cross section at point 1"):
            predictor.predict(POINTS | {"LO": [7.0, -7.0]})


def test_networks_predict_errors_of_points(tmp_path):
    down, up = model("z", "log_m", seed=1), model("log_m", "z", seed=2)
    errors = {"scale": 0.1, "pdf": down, "alpha_s": (down, up)}
    predictor = predictor_of(tmp_path, process(errors=errors))
    assert len([*tmp_path.glob("*.h5")]) == 3
    found = predictor.predict(POINTS)
    sides = [
        one.predict(x, include_noise=False, quantiles=[0.5]).columns.quantiles[0, :, 0]
        for one, x in ((down, X[:, ::-1]), (up, X))
    ]
    (relative,) = found.relative_errors
    np.testing.assert_allclose(relative["pdf"], np.column_stack([sides[0], sides[0]]), rtol=1e-12)
    np.testing.assert_allclose(relative["alpha_s"], np.column_stack(sides), rtol=1e-12)
    total = np.sqrt(0.1**2 + sides[0] ** 2 + sides[1] ** 2)
    np.testing.assert_allclose(found.other_up[:, 0], found.central[:, 0] * total, rtol=1e-12)
    mine = predictor.predict(POINTS, errors={"pdf": 0.0, "alpha_s": (0.0, 0.0)})
    assert {name: one.shape for name, one in mine.relative_errors[0].items()} == dict.fromkeys(errors, (2, 2))  # fmt: skip
    np.testing.assert_allclose(mine.other_up, 0.1 * found.central, rtol=1e-12)
