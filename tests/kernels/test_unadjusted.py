"""The bias of unadjusted samplers, and the energy error that tells it: on normal densities."""

import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tests.support.kernels.cases import build
from tfbnn.engine.kernels.transition import ERROR_TARGET, energy_variance_of
from tfbnn.kernels import Microcanonical, UnderdampedLangevin

tf.get_logger().setLevel("ERROR")
SIZE, BIAS = 40, 0.1
UNADJUSTED = {"adjusted": False, "bias_tolerance": BIAS}


def log_prob(z):
    return -0.5 * tf.reduce_sum(z**2, axis=-1)


@pytest.mark.parametrize("bias", [0.01, 0.3])
def test_energy_error_is_the_one_of_this_bias(bias):
    """One step from draws of the law that the kernel leaves as it is; 1.6e5 numbers."""
    step_size = 2.0 * (bias / (1.0 + bias)) ** 0.5
    settings = UnderdampedLangevin(step_size=step_size, adjusted=False)
    kernel, step = build(settings, log_prob, 4000, step_size)
    z = tf.constant((1.0 + bias) ** 0.5 * np.random.default_rng(1).normal(size=(4000, SIZE)))
    results = kernel.bootstrap_results(z)
    results = settings.prepare(results, step, [1, 2], tf.constant(False))
    _, results = kernel.one_step(z, results, seed=[3, 4])
    error = np.mean(results.log_accept_ratio**2) / SIZE
    np.testing.assert_allclose(error, energy_variance_of(bias), rtol=0.1)
    told = UnderdampedLangevin(adjusted=False, bias_tolerance=bias).statistics(results)
    assert abs(np.mean(told.acceptance_rate) - ERROR_TARGET) < 0.02


def test_published_energy_variance_stands_for_a_bias_of_a_twentieth():
    assert energy_variance_of(0.0513) == pytest.approx(5e-4, rel=0.03)
    settings = Microcanonical(adjusted=False)
    assert settings.aimed_energy_variance == settings.energy_variance == 5e-4
    assert Microcanonical(**UNADJUSTED).aimed_energy_variance == energy_variance_of(BIAS)


@pytest.mark.parametrize("kind", [UnderdampedLangevin, Microcanonical])
def test_report_says_how_large_the_bias_may_be(kind):
    assert "of variances by 0.1 of themselves" in kind(**UNADJUSTED).bias_note
    assert "of themselves" not in kind(adjusted=False).bias_note
    assert kind(adjusted=True).bias_note is None


@pytest.mark.statistics
@pytest.mark.parametrize("kind", [UnderdampedLangevin, Microcanonical])
def test_draws_have_the_bias_that_is_allowed(kind):
    """Sample a normal density of one variance; its mean over 40 parameters has an error of 0.01."""
    kernel = kind(preconditioner="identity", **UNADJUSTED)
    samples = tfbnn.sample(
        log_prob,
        np.random.default_rng(3).normal(size=(8, SIZE)),
        kernel=kernel,
        num_burnin_steps=1000,
        num_results=4000,
        verbose=0,
    )
    variance = samples.draws.reshape(-1, SIZE).var(axis=0).mean()
    assert 0.5 * BIAS < variance - 1.0 < 1.3 * BIAS
