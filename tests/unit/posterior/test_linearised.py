"""Draws around a mode predict what the network linearised in its weights does, and nothing else."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.linearised import LABEL, finite_differences, linearised_ensemble
from tests.support.predictions import each_configuration
from tfbnn.cli import main
from tfbnn.likelihoods import Bernoulli, Categorical
from tfbnn.posterior.forward import network_outputs
from tfbnn.priors import HierarchicalNormal
from tfbnn.storage.format import schema
from tfbnn.storage.model.contents import from_arrays, to_arrays

NTK = {"parameterization": "ntk", "prior": HierarchicalNormal()}


@pytest.fixture
def ensemble():
    return linearised_ensemble(layer_sizes=(2, 5, 1))


@pytest.fixture
def model(ensemble):
    return tfbnn.BayesianMLP.from_ensemble(ensemble)


def quietly(function, *arguments, **settings):
    """Call a function and return its result, without the warning that nothing was sampled."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The draws of this model are not sampled")
        return function(*arguments, **settings)


def inputs(ensemble, count=9):
    return np.random.default_rng(5).normal(size=(count, ensemble.spec.num_inputs))


@each_configuration
def test_draws_predict_the_derivative_in_the_weights(configuration):
    ensemble = linearised_ensemble(**configuration)
    x = inputs(ensemble)
    expected = finite_differences(ensemble, x)
    np.testing.assert_allclose(network_outputs(ensemble, x), expected, rtol=1e-7, atol=1e-7)


def test_many_draws_are_those_of_a_few(monkeypatch):
    ensemble = linearised_ensemble(num_results=50)
    x = inputs(ensemble)
    expected = network_outputs(ensemble, x)
    monkeypatch.setattr("tfbnn.posterior.forward._HIDDEN_VALUES", 200)
    np.testing.assert_array_equal(network_outputs(ensemble, x), expected)


def test_a_scale_far_away_overflows_nowhere():
    """Its exponential would, and with it the draws as networks."""
    ensemble = linearised_ensemble(dtype="float32", **NTK)
    draws = np.array(ensemble.draws)
    draws[..., ensemble.spec.layout.num_weights + 1 :] += 1000.0
    outputs = network_outputs(replace(ensemble, draws=draws), inputs(ensemble))
    assert np.isfinite(outputs).all()


@pytest.mark.parametrize("likelihood, width", [(Categorical(), 3), (Bernoulli(), 1)])
def test_probabilities_are_averaged_over_linear_logits(likelihood, width):
    ensemble = linearised_ensemble(layer_sizes=(2, 4, width), likelihood=likelihood)
    model, x = tfbnn.BayesianMLP.from_ensemble(ensemble), inputs(ensemble)
    logits = finite_differences(ensemble, ensemble.x_pipeline.forward(x)).swapaxes(1, 2)
    if width > 1:
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        expected = odds / odds.sum(axis=-1, keepdims=True)
    else:
        expected = 1.0 / (1.0 + np.exp(-logits))
    mean, stddev = quietly(model.predict, x).columns
    np.testing.assert_allclose(mean, expected.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(stddev, expected.std(axis=0), rtol=1e-5, atol=1e-9)


def test_draws_have_the_noise_that_was_drawn(model, ensemble):
    x = inputs(ensemble)
    quiet, noisy = (
        quietly(model.predict, x, include_noise=noise, space="transformed").stddev
        for noise in (False, True)
    )
    noise = np.sqrt(np.mean(np.exp(2 * ensemble.log_noise_scale)))
    np.testing.assert_allclose(noisy, np.hypot(quiet, noise), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_file_predicts_the_same(tmp_path, dtype):
    ensemble = linearised_ensemble(dtype=dtype, **NTK)
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    x, y = make_rows(9, 2, 1)
    quietly(model.save, tmp_path / "bnn.h5")
    loaded = tfbnn.load(tmp_path / "bnn.h5")
    np.testing.assert_array_equal(loaded._ensemble.mode, ensemble.mode)
    for method, rows in (("predict_draws", (x,)), ("evaluate", (x, y))):
        before, after = (quietly(getattr(one, method), *rows) for one in (model, loaded))
        np.testing.assert_equal(after, before)


def test_importance_is_that_of_its_predictions(model):
    x, y = make_rows(30, 2, 1)
    found = quietly(model.importance, x, y)
    expected = quietly(model.evaluate, x, y)["log_predictive_density_transformed"]
    assert found.log_predictive_density == pytest.approx(expected)


def test_the_model_says_which_baseline_it_is(model, tmp_path, capsys):
    x, y = make_rows(9, 2, 1)
    with pytest.warns(UserWarning, match=f"not sampled.*{LABEL}"):
        model.predict(x)
    model.save(tmp_path / "bnn.h5")  # once is enough
    assert np.isnan(model.evaluate(x, y)["n_effective"])
    with pytest.raises(ValueError, match=LABEL):
        model.diagnose()
    assert main(["info", str(tmp_path / "bnn.h5"), "--trusted"]) == 0
    shown = capsys.readouterr().out
    assert f"not sampled, {LABEL}" in shown


ROWS = make_rows(9, 2, 1)
REFUSED = {
    "compress": lambda model, path: model.compress(num_draws=3),
    "stack_chains": lambda model, path: model.stack_chains(*ROWS),
    "predict_gradient": lambda model, path: model.predict_gradient(ROWS[0]),
    "to_onnx": lambda model, path: model.to_onnx(path),
    "to_savedmodel": lambda model, path: model.to_savedmodel(path),
    "to_arviz": lambda model, path: model._ensemble.to_arviz(),
    "This": lambda model, path: model._ensemble.effective_weights,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_takes_draws_for_networks_refuses(model, tmp_path, what):
    path = tmp_path / "export"
    with pytest.raises(ValueError, match=f"{what} needs draws that are networks.*{LABEL}"):
        quietly(REFUSED[what], model, path)
    assert not path.exists()


# Files that contradict themselves.


def without_label(arrays):
    text = arrays[schema.METADATA].tobytes().replace(f'"{LABEL}"'.encode(), b"null")
    return {schema.METADATA: np.frombuffer(text, np.uint8)}


def with_two_chains(arrays):
    of_draws = [schema.THETA, *(f"{schema.SAMPLE_STATS}/{name}" for name in schema.STATISTICS)]
    changed = {name: np.concatenate([arrays[name]] * 2) for name in of_draws}
    return changed | {schema.CHAIN_WEIGHTS: np.full(2, 0.5)}


def with_readouts(arrays):
    return {schema.READOUTS["mean"]: np.zeros((1, 7, 6))}


def with_mode(change):
    return lambda arrays: {schema.MODE: change(np.array(arrays[schema.MODE]))}


CONTRADICTIONS = {
    "of a posterior": (without_label, "posterior/mode goes with the draws of one normal"),
    "of two chains": (with_two_chains, "posterior/mode goes with"),
    "with readouts": (with_readouts, "posterior/mode goes with"),
    "too short": (with_mode(lambda mode: mode[:-1]), "posterior/mode must have the shape"),
    "of single precision": (with_mode(lambda mode: mode.astype("<f4")), "must be float64"),
    "not finite": (with_mode(lambda mode: mode / 0.0), "posterior/mode must be finite"),
}


@pytest.mark.parametrize("edit, message", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_a_mode_that_contradicts_its_file_is_refused(ensemble, edit, message):
    arrays = to_arrays(ensemble)
    from_arrays(arrays)
    with pytest.raises(tfbnn.ModelFileError, match=message):
        from_arrays(arrays | edit(arrays))
