"""Sums over very many rows, piece by piece: which rows, that they are the same sums, and who makes them."""

import time

import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tests.support.builders import config_of_run
from tests.support.engine_checks import small_blocks
from tests.support.specs import setting
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density import data as rows_module
from tfbnn.engine.density.data import make_data, num_pieces
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.sampling import program as program_module
from tfbnn.kernels import HMC, Repriorised

NUM_ROWS = 70
PLAIN = HMC(step_size=0.01, num_leapfrog_steps=4, preconditioner="identity")


def test_rows_are_in_pieces_from_some_hundred_thousand_on():
    asked = [(2**18, True), (2**18 - 1, True), (2**18, False)]
    assert [num_pieces(*each) for each in asked] == [16, 1, 1]
    column = np.zeros((64, 1))
    data = make_data(column, column, None, "float32")
    assert data.num_pieces == 1
    data = data._replace(num_pieces=16)
    assert data.cast("float64").num_pieces == 16
    assert data.rows().num_pieces == data.block(tf.constant(1), 16).num_pieces == 1


@pytest.mark.parametrize(
    ("kernel", "first", "last"),
    [(HMC(), 30, 50), pytest.param(Repriorised(HMC()), 30, 50, marks=pytest.mark.statistics)],
)
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


@pytest.mark.statistics
def test_a_program_of_xla_has_none():
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    function = compiled(lambda *given: Potential(spec).value_and_gradient(*given), jit_compile=True)
    theta = tf.constant(theta[None])
    in_pieces, whole = (function(theta, data._replace(num_pieces=count)) for count in (3, 1))
    for one, other in zip(in_pieces, whole):
        np.testing.assert_array_equal(one, other)


def draws(**settings):
    """Of a short run in float64."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(NUM_ROWS, 2))
    model = tfbnn.BayesianMLP([2, 3, 1], dtype="float64")
    model.fit_posterior(
        x, x[:, 0], kernel=PLAIN, num_chains=2, num_burnin_steps=2, num_results=3, until=None,
        pretraining=None, calibrate=False, verbose=0, seed=3, **settings,
    )  # fmt: skip
    return model.posterior.draws


@pytest.mark.statistics
def test_chains_in_pieces_are_those_without_xla_but_for_rounding(monkeypatch):
    """XLA has random numbers of its own, which it does not make where it compiles the pieces alone."""
    whole = draws(jit_compile=False)
    monkeypatch.setattr(rows_module, "_ROWS_IN_PIECES", 1)
    in_pieces = draws(jit_compile=True)
    np.testing.assert_allclose(in_pieces, whole, rtol=1e-9)
    assert not np.array_equal(in_pieces, whole)


@pytest.mark.parametrize(
    ("kernel", "jit_compile", "expected"),
    [(PLAIN, True, True), (PLAIN, False, False)],
)
def test_who_has_pieces_and_takes_turns(monkeypatch, kernel, jit_compile, expected):
    """Not what XLA is not to compile; and then a chain group has a core and needs no turn."""
    monkeypatch.setattr(rows_module, "_ROWS_IN_PIECES", 1)
    spec, data, _ = setting("gaussian_learned", rows=NUM_ROWS)
    rows = np.zeros((NUM_ROWS, 1))
    sampling = {"num_chains": 2, "num_results": 1, "num_burnin_steps": 1, "seed": 0}
    config = config_of_run(spec, rows, rows, **sampling, jit_compile=jit_compile)
    settings, _ = kernel.resolve(spec, NUM_ROWS)
    plan = program_module.plan_chains(settings, config)
    program = program_module.make_program(settings, config, data, plan)
    assert hasattr(program.turn, "locked") is expected


@pytest.mark.statistics
def test_no_block_runs_beside_another_one_in_pieces(monkeypatch):
    running, most = [], []

    class Watched(program_module.Program):
        """Its blocks say how many run."""

        def __init__(self, **fields):
            real = fields.pop("block")

            def block(*given):
                running.append(given)
                most.append(len(running))
                time.sleep(0.01)  # for the other group to come, if it may
                made = real(*given)
                running.pop()
                return made

            super().__init__(block=block, **fields)

    monkeypatch.setattr(program_module, "Program", Watched)
    monkeypatch.setattr(rows_module, "_ROWS_IN_PIECES", 1)
    draws(jit_compile=True)
    assert len(most) > 2 and max(most) == 1
