"""Cross sections by process: units, quantiles, and what a scan gets wrong."""

import numpy as np
import pytest

import tfbnn
from tests.support.cross_sections import CHARGINO, MASS, MIXING, NEUTRALINOS, SPECTRUM
from tfbnn import BayesianMLP
from tfbnn.hep import Process
from tfbnn.likelihoods import Bernoulli


def expected(process, x, factor, include_noise):
    settings = {"include_noise": include_noise, "quantiles": [0.16, 0.5, 0.84]}
    prediction = process.model.predict([x], return_trust=True, **settings)
    low, middle, high = factor * prediction.columns.quantiles[:, 0, 0]
    return {
        "central": middle,
        "tot_err_down": middle - low,
        "tot_err_up": high - middle,
        "trust_level": prediction.trust[0],
    }


def test_results_are_quantiles_in_fb(predictor, processes):
    predictor.import_slha_string(SPECTRUM)
    found = predictor.get_xsection(NEUTRALINOS)
    assert found == pytest.approx(expected(processes[0], [-2.5, 1.75], 1.0, True))
    assert all(type(value) is float for value in list(found.values())[:3])
    assert type(found["trust_level"]) is int
    assert 0 < found["tot_err_down"] < found["tot_err_up"]  # of a positive quantity


def test_picobarn_become_femtobarn_and_noise_stays_out(predictor, processes):
    predictor.import_slha_string(SPECTRUM)
    found = predictor.get_xsection(list(CHARGINO))
    assert found == pytest.approx(expected(processes[1], [-2.5, 4.0], 1000.0, False))


def test_all_processes_at_once(predictor):
    predictor.import_slha_string(SPECTRUM)
    both = (NEUTRALINOS, CHARGINO)
    assert predictor.get_xsections() == {pids: predictor.get_xsection(pids) for pids in both}
    # The order of the particles does not matter.
    codes = tuple(np.array(NEUTRALINOS[::-1]))
    assert predictor.get_xsection(codes) == predictor.get_xsection(NEUTRALINOS)


def test_parameters_by_name_are_those_from_slha(predictor, tmp_path):
    (tmp_path / "point.slha").write_text(f"# Mühlleitner\n{SPECTRUM}", encoding="latin-1")
    predictor.import_slha(tmp_path / "point.slha")
    from_slha = predictor.get_xsections()
    predictor.set_parameters({"m": 0.0, "n11": 0.0, "m_c": 4})
    assert predictor.get_xsections() != from_slha
    predictor.set_parameters({"m": np.float64(-2.5), "n11": 1.75})
    assert predictor.get_xsections() == from_slha


def test_the_energy_that_gambit_sets_is_held_against_the_process(predictor):
    predictor.set_parameters({"energy": 13000})
    predictor.import_slha_string(SPECTRUM)
    predictor.get_xsection(NEUTRALINOS)
    with pytest.raises(ValueError, match="is at 8000 GeV, the parameter energy is 13000 GeV"):
        predictor.get_xsection(CHARGINO)


def test_an_unknown_process_lists_the_known_ones(predictor):
    with pytest.raises(ValueError, match=r"no process \(1, 2\). Known: \(1000022, 1000023\), \(-"):
        predictor.get_xsection((2, 1))
    with pytest.raises(ValueError, match="at least one process"):
        predictor.predict({}, processes=[])


@pytest.mark.parametrize("pids", [1000022, (1000022,), (1.5, 2.0), "ab"])
def test_particles_are_two_integers(predictor, pids):
    with pytest.raises(TypeError, match="two PDG codes"):
        predictor.get_xsection(pids)


def test_inputs_that_are_not_set_are_named_with_their_place(predictor):
    predictor.set_parameters({"m": 1.0})
    with pytest.raises(ValueError, match=r"needs n11 \(NMIX 1 1\), not set yet"):
        predictor.get_xsection(NEUTRALINOS)


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        ({"m": 1.0, "N11": 1.0}, ValueError, "the input 'N11'. Known: energy, m, n11, m_c"),
        ({"m": 1.0, "n11": float("nan")}, ValueError, "n11 must be finite"),
        ({"m": "1"}, TypeError, "m must be a number"),
        ([("m", 1.0)], TypeError, "parameters must be a dict"),
    ],
)
def test_bad_parameters_change_nothing(predictor, parameters, error, message):
    with pytest.raises(error, match=message):
        predictor.set_parameters(parameters)
    assert predictor.parameters == {}


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"unit": "nb"}, ValueError, "unit must be one of"),
        ({"energy": 0}, ValueError, "energy must be > 0"),
        ({"energy": 13}, ValueError, "which is 0.013 TeV. For 13 TeV pass 13000"),
        ({"errors": {"scale": -0.1}}, ValueError, "must be >= 0"),
        ({"errors": [0.1]}, TypeError, "errors must be a dict"),
        ({"calculation": 1}, TypeError, "must be a Calculation"),
        ({"citation": None}, TypeError, "citation must be text"),
        ({"doi": "doi:10.1000/182"}, ValueError, "doi must be like '10.1000/182'"),
        ({"pids": (1,)}, TypeError, "two PDG codes"),
        ({"inputs": {"m": MASS}}, ValueError, r"the 2 inputs of the model, \['m', 'n11'\]"),
        ({"inputs": {"m": MASS, "n11": "NMIX one"}}, ValueError, "neither an SLHA place"),
        ({"inputs": {"m": MASS, "n11": ("NMIX", "one")}}, TypeError, "an SLHA place must"),
        ({"model": "model.h5"}, TypeError, "model must be a BayesianMLP"),
        ({"model": BayesianMLP([2, 1])}, tfbnn.NotFittedError, "fit_posterior"),
        ({"include_noise": 1}, TypeError, "include_noise must be True or False"),
        ({"description": None}, TypeError, "description must be text"),
    ],
)
def test_processes_are_checked(processes, change, error, message):
    with pytest.raises(error, match=f"(?i){message}"):
        Process(**vars(processes[0]) | change)


def test_models_that_are_not_cross_sections_are_refused(processes, synthetic_ensemble):
    known = vars(processes[1])
    for settings in ({"layer_sizes": (2, 3, 2)}, {"likelihood": Bernoulli()}):
        model = BayesianMLP.from_ensemble(synthetic_ensemble(**settings))
        with pytest.raises(ValueError, match="one target"):
            Process(**known | {"model": model})
    with pytest.raises(ValueError, match="include_noise=False"):
        Process(**known | {"include_noise": True})
    with pytest.raises(ValueError, match="'energy'"):
        Process(**known | {"inputs": {"energy": MASS, "m": MIXING}})
