"""`model.log_prob_function`: the sampled density for other samplers."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbnn
from tests.support.builders import make_rows
from tests.support.keras_models import KINDS
from tfbnn.likelihoods import Gaussian

X, Y = make_rows(40, 2, 1)
SETTINGS = dict(x_transform=None, y_transform=None, prior=tfbnn.priors.HierarchicalNormal())
RANDOM = np.random.default_rng(1)


def model_of(dtype="float64", **settings):
    return tfbnn.BayesianMLP([2, 4, 1], dtype=dtype, **(SETTINGS | settings))


def positions(model, count=3, dtype=None):
    size = model.spec.num_parameters
    return RANDOM.normal(size=(count, size)).astype(dtype or model.spec.dtype)


@pytest.mark.parametrize("row_noise", [None, 0.3])
def test_it_is_log_prob_with_its_gradient(row_noise):
    model = model_of(likelihood=Gaussian("learned" if row_noise is None else 1.0))
    noise = None if row_noise is None else np.full(Y.shape, row_noise)
    theta = positions(model)
    log_prob = model.log_prob_function(X, Y, noise_scale=noise)
    points = tf.constant(theta)
    with tf.GradientTape() as tape:
        tape.watch(points)
        value = log_prob(points)
    expected = model.log_prob(theta, X, Y, noise_scale=noise)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    gradient, step = tape.gradient(value, points).numpy(), 1e-6
    shifts = step * np.eye(theta.shape[1])
    ends = [
        model.log_prob(theta[:, None] + sign * shifts, X, Y, noise_scale=noise) for sign in (1, -1)
    ]
    slope = (ends[0] - ends[1]) / (2.0 * step)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-5)


def test_layers_that_are_not_sampled_do_not_stop_it():
    kind = KINDS["batch norm"]
    model = kind.model(likelihood=Gaussian(1.0), dtype="float64", **SETTINGS)
    x, y = kind.rows()
    points = tf.constant(positions(model, count=1))
    with tf.GradientTape() as tape:
        tape.watch(points)
        value = model.log_prob_function(x, y)(points)
    np.testing.assert_allclose(value, model.log_prob(points.numpy(), x, y))
    assert np.all(np.isfinite(tape.gradient(value, points)))


def test_it_has_the_dtype_that_it_is_given_and_float64_sums():
    model = model_of("float32")
    log_prob = model.log_prob_function(X, Y)
    theta = positions(model)
    narrow, wide = log_prob(tf.constant(theta)), log_prob(tf.constant(theta, tf.float64))
    assert (narrow.dtype, wide.dtype) == (tf.float32, tf.float64)
    np.testing.assert_allclose(narrow, wide, rtol=1e-5)


def test_parameters_of_another_model_are_refused():
    model = model_of()
    log_prob = model.log_prob_function(X, Y)
    for theta in (positions(model)[:, 1:], positions(model)[0]):
        with pytest.raises(ValueError, match=r"theta must have shape \[C, "):
            log_prob(tf.constant(theta))


@pytest.mark.statistics
@pytest.mark.parametrize("jit_compile", [False, True])
def test_another_sampler_takes_it_compiled(jit_compile):
    model = model_of(prior=tfbnn.priors.Normal(1.0))
    kernel = tfp.mcmc.HamiltonianMonteCarlo(
        model.log_prob_function(X, Y), step_size=0.02, num_leapfrog_steps=3
    )

    @tf.function(autograph=False, jit_compile=jit_compile)
    def chain(state):
        return tfp.mcmc.sample_chain(
            5, state, kernel=kernel, trace_fn=lambda _, results: results.is_accepted, seed=[1, 2]
        )

    draws, accepted = chain(tf.constant(0.3 * positions(model)))
    assert draws.shape == (5, 3, model.spec.num_parameters) and accepted.numpy().any()


@pytest.mark.statistics
def test_tfbnn_samples_it_as_fit_posterior_does():
    model = model_of()
    numbers = dict(num_results=20, num_burnin_steps=0, verbose=0, jit_compile=False)
    kernel = tfbnn.kernels.HMC(num_leapfrog_steps=3, step_size=0.02, preconditioner="identity")
    start = 0.3 * positions(model, count=1)
    with pytest.warns(tfbnn.ConvergenceWarning):
        run = tfbnn.sample(model.log_prob_function(X, Y), start, kernel, **numbers)
    with pytest.warns(tfbnn.ConvergenceWarning):
        model.fit_posterior(X, Y, kernel=kernel, num_chains=1, initial_state=start, **numbers)
    np.testing.assert_allclose(run.draws, model.posterior.draws, rtol=1e-9)


def test_transforms_have_to_be_fitted_first():
    with pytest.raises(tfbnn.NotFittedError, match="learns its mean and scale"):
        tfbnn.BayesianMLP([2, 4, 1]).log_prob_function(X, Y)
