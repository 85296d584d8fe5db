"""The density inside TFP's leapfrog integrator: reversible, of second order, the same under XLA."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_probability.python.mcmc.internal.leapfrog_integrator import SimpleLeapfrogIntegrator

from tests.support.marks import statistics_but
from tests.support.specs import build, random_rows
from tfbnn.engine.density.data import Data, make_data
from tfbnn.engine.density.potential import Potential

# Of positions after a trajectory there and back.
TOLERANCES = {"float64": 1e-10, "float32": 1e-4}


class Start(NamedTuple):
    potential: Potential
    data: Data
    theta: tf.Tensor
    momentum: tf.Tensor


def start(name, dtype="float64", chains=20, rows=11):
    spec, generator = build(name, dtype), np.random.default_rng(6)
    data = make_data(*random_rows(spec, generator, rows)[:2], None, dtype)
    shape = (chains, spec.layout.num_parameters)
    theta = tf.constant(0.5 * generator.normal(size=shape), dtype)
    return Start(Potential(spec), data, theta, tf.constant(generator.normal(size=shape), dtype))


@cache
def integrator(name, dtype="float64", jit_compile=False):
    """TFP's integrator on a model's potential: (theta, momentum, step size, number of steps) ->
    theta, momentum, log density and gradient at the end of a trajectory.
    """
    potential, data, *_ = start(name, dtype)

    def run(theta, momentum, step_size, num_steps):
        leapfrog = SimpleLeapfrogIntegrator(
            lambda t: tf.cast(potential.log_prob(t, data), t.dtype), [step_size], num_steps
        )
        (momentum,), (theta,), value, (gradient,) = leapfrog([momentum], [theta])
        return theta, momentum, value, gradient

    compiled = tf.function(run, jit_compile=jit_compile, autograph=False)
    return lambda theta, momentum, step_size, num_steps: compiled(
        theta, momentum, tf.constant(step_size, dtype), tf.constant(num_steps)
    )


CASES = [("gaussian_learned", "float64"), ("ntk", "float32"), ("ntk", "float64")]


@pytest.mark.parametrize(("name", "dtype"), statistics_but(CASES[:1], CASES))
def test_reversible(name, dtype):
    _, _, theta, momentum = start(name, dtype)
    run = integrator(name, dtype)
    end, final, *_ = run(theta, momentum, 0.01, 20)
    back, _, *_ = run(end, -final, 0.01, 20)
    np.testing.assert_allclose(back, theta, atol=TOLERANCES[dtype])


def test_energy_error_is_of_second_order():
    potential, data, theta, momentum = start("gaussian_learned")

    def energy_error(step, num_steps):
        before = potential.log_prob(theta, data) - 0.5 * tf.reduce_sum(momentum**2, -1)
        _, final, value, _ = integrator("gaussian_learned")(theta, momentum, step, num_steps)
        return np.abs(value - 0.5 * tf.reduce_sum(final**2, -1) - before)

    ratio = energy_error(0.004, 25) / energy_error(0.002, 50)
    assert 3.5 < np.median(ratio) < 4.5


@pytest.mark.statistics
def test_xla_and_graph_agree():
    name = "student_t"
    _, _, theta, momentum = start(name)
    both = (integrator(name, jit_compile=jit)(theta, momentum, 0.01, 10) for jit in (True, False))
    for one, other in zip(*both):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_float32_keeps_acceptance_with_many_rows_and_small_noise():
    """10^4 rows, noise 0.01: energy differences agree with float64 to a few hundredths.

    The kernel sees the density relative to its value at the start; without that, float32
    would resolve it no better than 0.004 here, and its sum no better than 0.5.
    """
    generator = np.random.default_rng(8)
    x = generator.normal(size=(10_000, 2))
    y = np.tanh(x @ [[1.0], [-0.5]]) + 0.01 * generator.normal(size=(10_000, 1))
    theta = 0.003 * generator.normal(size=(40, 18))
    theta[:, [0, 4, 12]] += [1.0, -0.5, 1.0]  # the first hidden unit is the truth
    theta[:, -1] = np.log(0.01)
    values = {}
    for dtype in ("float32", "float64"):
        potential = Potential(build("gaussian_learned", dtype))
        data = make_data(x, y, None, dtype)
        value = potential.log_prob(tf.constant(theta, dtype), data)
        values[dtype] = tf.cast(value - value[0], dtype).numpy().astype(np.float64)
    assert np.ptp(values["float64"]) > 1000
    np.testing.assert_allclose(values["float32"], values["float64"], rtol=1e-4, atol=0.02)
