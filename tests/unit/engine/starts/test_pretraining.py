"""Pretraining: what it gains, where chains start, early stopping, learned scales."""

import dataclasses

import numpy as np
import pytest

import tfbnn
from tests.support import reference
from tests.support.builders import plain_spec
from tests.support.small_runs import X, Y, small_model
from tests.support.starts import SEARCHES, fit_starts, search
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts.adam import make_adam_steps, start_adam
from tfbnn.engine.starts.check import with_residual_noise
from tfbnn.spec.rows import NetworkRows

SPEC = plain_spec([2, 8, 1], dtype="float32")


def rows():
    generator = np.random.default_rng(12)
    x = generator.normal(size=(64, 2))
    return x, x[:, 0] * x[:, 1] + 0.05 * generator.normal(size=64)


def found(**settings):
    """Theta [3, P] of a search that all rows judge."""
    x, y = rows()
    table = NetworkRows(x, y[:, None], None)
    return search(table, SPEC, num_chains=3, share=0.0, **settings).theta


@pytest.fixture(scope="module")
def searched():
    """Return what ADAM alone finds on all rows at once, as there are fewer than 1000."""
    return found(epochs=100, batch_size=1000, learning_rate=0.02)


def log_prob(theta):
    x, y = rows()
    data = make_data(x, y[:, None], None, SPEC.dtype)
    return Potential(SPEC).log_prob(tf.constant(theta), data).numpy()


def test_raises_the_log_density(searched):
    assert np.all(log_prob(searched) > log_prob(found()) + 50)


def test_chains_start_apart(searched):
    assert np.abs(searched[0] - searched[1]).max() > 0.1


@pytest.mark.statistics
def test_early_stopping_goes_back_to_the_best_epoch():
    generator = np.random.default_rng(13)
    x = generator.normal(size=(20, 2))
    y = generator.normal(size=20)  # nothing to learn: the validation score soon falls
    validation = (generator.normal(size=(50, 2)), generator.normal(size=50))
    model = tfbnn.BayesianMLP([2, 30, 1], prior=tfbnn.priors.Normal(1.0))
    stopped = tfbnn.Pretraining(epochs=2000, batch_size=None, learning_rate=0.02, early_stopping=30)
    run = fit_starts(model, x, y, pretraining=stopped, validation_data=validation)
    early = model.evaluate(*validation)["log_predictive_density"]
    whole = dataclasses.replace(stopped, early_stopping=None, newton_iterations=0)
    fit_starts(model, x, y, pretraining=whole, validation_data=validation)
    assert early > model.evaluate(*validation)["log_predictive_density"] + 0.5
    assert " 2000 epochs" not in run.report(details=True)


@pytest.mark.statistics
def test_how_many_epochs_a_call_makes_changes_no_start(monkeypatch):
    found = []
    for most in (1, 7):
        monkeypatch.setattr("tfbnn.engine.starts.pretraining._MOST_LOOKS", most)
        model = small_model()
        run = fit_starts(model, X, Y, **SEARCHES["early stopping"])
        found.append((model.posterior.draws.tobytes(), run.pretraining))
    assert found[0] == found[1]


def test_learned_scale_starts_from_the_residuals(searched):
    x, y = rows()
    residual = [reference.outputs(SPEC, theta, x)[:, 0] - y for theta in searched.astype(float)]
    scale = np.sqrt(np.mean(np.square(residual), axis=1))
    np.testing.assert_allclose(np.exp(searched[:, -1]), scale, rtol=1e-4)


def test_adam_counts_rows_as_often_as_they_stand_for():
    """Its first moment after one step is a tenth of the gradient.

    Of batches; of all rows at once in tests/unit/engine/density/test_potential.py.
    """
    spec, generator = plain_spec([2, 3, 1]), np.random.default_rng(1)
    x, y, weights = generator.normal(size=(4, 2)), np.ones((4, 1)), np.array([1.0, 2.0, 5.0, 0.5])
    data = make_data(x, y, None, spec.dtype, weights)
    theta = generator.normal(size=(2, spec.num_parameters))
    batches = np.array([[0, 2], [3, 1]], np.int32)
    steps = make_adam_steps(spec, 0.1, "constant", 2, 1, False)
    control = tf.constant([0, 1, 1, 1])
    state, _ = steps(start_adam(theta), data, tf.constant(batches[None]), control)
    for chain, batch in enumerate(batches):
        rows = make_data(x[batch], y[batch], None, spec.dtype, weights[batch] * 4 / len(batch))
        point = tf.constant(theta[chain][None])
        _, gradient = Potential(spec).value_and_gradient(point, rows)
        np.testing.assert_allclose(state.mean[chain], -0.1 * gradient[0], rtol=1e-9)


def test_noise_is_that_of_all_rows_that_a_row_stands_for():
    spec, generator = plain_spec([2, 3, 1]), np.random.default_rng(1)
    x, y, weights = generator.normal(size=(3, 2)), generator.normal(size=(3, 1)), np.arange(1, 4)
    theta = generator.normal(size=(2, spec.num_parameters))
    found = with_residual_noise(spec, theta, make_data(x, y, None, spec.dtype, weights))
    often = make_data(np.repeat(x, weights, 0), np.repeat(y, weights, 0), None, spec.dtype)
    np.testing.assert_allclose(found, with_residual_noise(spec, theta, often))
