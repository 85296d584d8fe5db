"""Models, draws and predictions describe themselves, at a prompt and in notebooks."""

from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import synthetic_ensemble
from tests.support.pages import Found
from tfbnn.posterior.basins.basins import Basins
from tfbnn.posterior.calibration.calibration import Calibration
from tfbnn.posterior.fit_checking import diagnose_ensemble
from tfbnn.posterior.prediction_frame import Prediction
from tfbnn.posterior.provenance import Provenance
from tfbnn.posterior.relevance import Relevance
from tfbnn.posterior.stacking import Stacking


def tags(page):
    """Check that the elements of a page nest as they should and return their tags."""
    found = Found(page)
    assert not found.faults
    return {tag for tag, _ in found.elements}


def line(ensemble, **changes):
    return repr(tfbnn.BayesianMLP.from_ensemble(replace(ensemble, **changes)))


def test_a_model_says_what_it_is_and_whether_it_is_fitted():
    model = tfbnn.BayesianMLP([5, 20, 20, 1], activation=["tanh", "relu"])
    assert repr(model) == "<BayesianMLP 5-20-20-1, tanh, relu, Gaussian: not fitted>"
    assert repr(tfbnn.BayesianMLP([5, 1])) == "<BayesianMLP 5-1, Gaussian: not fitted>"
    ensemble = synthetic_ensemble((2, 5, 1), num_chains=4)
    assert line(ensemble) == "<BayesianMLP 2-5-1, tanh, Gaussian: 4 x 15 draws>"


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"provenance": Provenance().stating(not_sampled="fit_map: 1")}, ": not sampled, fit_map: 1>"),
        ({"chain_weights": np.array([0.9, 0.1])}, "2 x 15 draws, chains weighted>"),
        ({"draws": np.zeros((2, 1, 22))}, "2 x 1 draw>"),
    ],
)  # fmt: skip
def test_what_has_to_be_known_of_the_draws_is_said(changes, words):
    assert line(synthetic_ensemble(), **changes).endswith(words)


def test_a_coarsened_posterior_says_so():
    ensemble = synthetic_ensemble()
    spec = replace(ensemble.spec, likelihood_power=0.1)
    assert line(ensemble, spec=spec).endswith("2 x 15 draws, likelihood to the power 0.1>")


def test_notebooks_show_the_table_of_layers_folded():
    page = tfbnn.BayesianMLP([2, 3, 1])._repr_html_()
    assert tags(page) == {"div", "b", "details", "summary", "pre"}
    assert "dense_2" in page and "color" not in page


def test_what_a_file_says_does_not_act_as_html():
    provenance = Provenance().stating(not_sampled="<script>alert(1)</script>")
    ensemble = replace(synthetic_ensemble(), provenance=provenance)
    page = tfbnn.BayesianMLP.from_ensemble(ensemble)._repr_html_()
    assert "script" not in tags(page) and "&lt;script&gt;" in page


def test_draws_and_diagnoses_show_no_arrays():
    ensemble = synthetic_ensemble()
    assert repr(ensemble).startswith("<Ensemble: theta [2, 15, 22], lp, acceptance_rate")
    diagnosis = diagnose_ensemble(ensemble)
    assert repr(diagnosis) == f"<Diagnosis: {diagnosis.headline}>"
    assert "reference outputs" in diagnosis._repr_html_()


def test_what_methods_find_is_told_in_a_line_or_a_table():
    weights = np.array([0.75, 0.25])
    found = Stacking("stacking on validation rows", 40, -1.0, -0.9, weights)
    assert repr(found) == "<Stacking: weights 0.750 0.250, stacking on validation rows>"
    scales = np.array([1.0, 0.2])
    table = repr(Relevance(("mass", "mix"), scales, scales, scales, True))
    assert table.splitlines()[1].startswith("mass ") and "array" not in table
    shares = np.full((3, 1), 0.683)
    found = Calibration("loo", None, 300, np.empty((0, 1)), (), shares, shares)
    assert repr(found).startswith("<Calibration: by 300 rows of the fit, each left out in turn; b")


def test_predictions_show_some_numbers_and_only_what_is_there():
    mean = np.linspace(0.0, 1.0, 1000)
    text = repr(Prediction(mean, mean**2))
    first, second, _ = text.splitlines()
    assert first == "Prediction of 1000 rows" and "quantiles" not in text
    said = " ".join(second.split())
    assert said == "mean [1000] 0, 0.001001, 0.002002, 0.003003, 0.004004, ..."
    assert repr(Prediction(mean[:1], mean[:1], trust=np.array([1]))).endswith(" [1]            1")


def test_predictions_of_many_targets_take_a_line_each():
    values = np.ones((200, 7))
    text = repr(Prediction(values, values, np.ones((3, 200, 7)), np.ones(200, int)))
    assert len(text.splitlines()) == 5 and max(map(len, text.splitlines())) < 80


def test_basins_are_told_by_their_report():
    one, two = np.ones(1), np.array([0.5, 0.5])
    found = Basins(np.zeros(2, int), one, one, np.ones((1, 200, 1)), two)
    assert repr(found) == found.report() and len(repr(found).splitlines()) < 8
