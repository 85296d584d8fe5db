"""Draws from normals between two limits, however far out, and the mass there."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from tests.support.marks import statistics_but
from tfbnn.engine.kernels import truncated_mala

LIMITS = [(-1, 2), (-np.inf, np.inf), (3, 5), (30, 31), (-300, -299), (-np.inf, -20), (-40, 40)]


@cache
def compiled(name, jit_compile):
    """One of the functions of the module, traced once for all limits."""
    function = getattr(truncated_mala, name)
    traced = tf.function(function, jit_compile=jit_compile, autograph=False)
    return lambda *arguments: traced(*map(tf.constant, arguments))


@pytest.mark.parametrize("low, high", LIMITS)
@pytest.mark.parametrize("jit_compile", statistics_but([False], [False, True]))
def test_draws_have_the_law_and_the_mass(low, high, jit_compile):
    uniform = np.random.default_rng(0).uniform(size=2000)
    limits = [np.full(2000, float(limit)) for limit in (low, high)]
    z = compiled("quantile", jit_compile)(uniform, *limits).numpy()
    mass = compiled("log_mass", jit_compile)(*limits).numpy()[0]
    assert np.all((z >= low) & (z <= high))
    if low > -high:
        z, low, high = -z, -high, -low
    expected = special.log_ndtr(high) + np.log1p(
        -np.exp(special.log_ndtr(low) - special.log_ndtr(high))
    )
    np.testing.assert_allclose(mass, expected, rtol=1e-8, atol=1e-12)
    shares = np.exp(special.log_ndtr(z) - mass) - np.exp(special.log_ndtr(low) - mass)
    assert stats.kstest(shares, "uniform").pvalue > 1e-6
