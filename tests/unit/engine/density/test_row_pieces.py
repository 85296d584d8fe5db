"""Sums over very many rows, piece by piece: which rows, that they are the same sums, and who makes them."""

import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tests.support.engine_checks import small_blocks
from tests.support.specs import setting
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density import data as rows_module
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.running import driver
from tfbnn.kernels import HMC, Repriorised

NUM_ROWS = 70


def test_rows_are_in_pieces_from_some_hundred_thousand_on():
    column = np.zeros((2**18, 1))
    many, few = (make_data(array, array, None, "float32") for array in (column, column[1:]))
    assert (many.num_pieces, few.num_pieces) == (16, 1)
    assert many.cast("float64").num_pieces == 16
    assert many.rows().num_pieces == many.block(tf.constant(1), 1024).num_pieces == 1


@pytest.mark.parametrize("kernel", [HMC(), Repriorised(HMC())])
@pytest.mark.parametrize(("first", "last"), [(0, NUM_ROWS), (30, 50)])
def test_their_sum_is_that_of_all_rows(kernel, first, last):
    """Also where only some rows count, so that whole pieces do not."""
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    theta = tf.constant(np.tile(theta, (2, 1)))
    data = data._replace(first=tf.constant(first), last=tf.constant(last))
    potential = kernel.potential(spec)
    expected = potential.value_and_gradient(theta, data.rows())
    with small_blocks(16):
        function = compiled(lambda *given: potential.value_and_gradient(*given), jit_compile=False)
        found = function(theta, data._replace(num_pieces=3))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_a_program_of_xla_has_none():
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    function = compiled(lambda *given: Potential(spec).value_and_gradient(*given), jit_compile=True)
    theta = tf.constant(theta[None])
    in_pieces, whole = (function(theta, data._replace(num_pieces=count)) for count in (3, 1))
    for one, other in zip(in_pieces, whole):
        np.testing.assert_array_equal(one, other)


def draws(**settings):
    """Of a short run of HMC in float64."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(NUM_ROWS, 2))
    model = tfbnn.BayesianMLP([2, 3, 1], dtype="float64")
    kernel = HMC(step_size=0.01, num_leapfrog_steps=4, preconditioner="identity")
    model.fit_posterior(
        x, x[:, 0], kernel=kernel, num_chains=2, num_burnin_steps=2, num_results=3, until=None,
        pretraining=None, calibrate=False, verbose=0, seed=3, **settings,
    )  # fmt: skip
    return model.posterior.draws


def test_chains_in_pieces_are_those_without_xla_but_for_rounding(monkeypatch):
    """XLA has random numbers of its own, which it does not make where it compiles the pieces alone."""
    whole = draws(jit_compile=False)
    monkeypatch.setattr(rows_module, "_ROWS_IN_PIECES", 1)
    in_pieces = draws(jit_compile=True)
    np.testing.assert_allclose(in_pieces, whole, rtol=1e-9)
    assert not np.array_equal(in_pieces, whole)
    np.testing.assert_array_equal(draws(jit_compile=False), whole)


def test_only_chains_in_pieces_keep_all_cores(monkeypatch):
    """So that no two of them run at once."""
    kept = []

    def watch(lanes, *rest):
        kept.append(lanes[0].program.keeps_all_cores)
        return run_lanes(lanes, *rest)

    run_lanes = driver.run_lanes
    monkeypatch.setattr(driver, "run_lanes", watch)
    draws(jit_compile=True)
    monkeypatch.setattr(rows_module, "_ROWS_IN_PIECES", 1)
    draws(jit_compile=True)
    assert kept == [False, True]
