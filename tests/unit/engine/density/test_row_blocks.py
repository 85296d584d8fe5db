"""Rows in blocks, in pieces and in arrays of a few lengths: every row counts once, and sums stay what they are."""

import time

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tfbnn
from tests.support.builders import config_of_run, plain_spec
from tests.support.engine_checks import blocks_of, check_blocks, small_blocks
from tests.support.marks import statistics_but
from tests.support.specs import CONTRASTING_CASES, build, random_rows, setting
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density import data as rows_module
from tfbnn.engine.density import gauss_newton
from tfbnn.engine.density.data import all_of, make_data, num_pieces, padded_length
from tfbnn.engine.density.linear_map import as_tensors, scaling_map
from tfbnn.engine.density.potential import Potential, hessian
from tfbnn.engine.density.row_blocks import rows_per_block, sum_over_rows
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.engine.sampling import program as program_module
from tfbnn.engine.starts.check import with_residual_noise
from tfbnn.kernels import HMC, Repriorised
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Uniform

NUM_ROWS = 70
FEW = [("gaussian_learned", True), ("categorical", False), ("ard_ntk", False)]


@given(st.integers(1, 10**7))
def test_lengths_are_few_and_a_little_larger(num_rows):
    length = padded_length(num_rows)
    share = 4 if num_rows < 512 else 8
    assert num_rows <= length < num_rows + max(16, num_rows / share)
    assert padded_length(length) == length


def test_an_octave_has_eight_lengths_or_four():
    assert len({padded_length(num_rows) for num_rows in range(1025, 2049)}) == 8
    assert len({padded_length(num_rows) for num_rows in range(129, 257)}) == 4


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 150), st.integers(1, 60))
def test_every_row_counts_in_one_block(num_rows, length):
    numbers = np.arange(float(num_rows))[:, None]
    data, found = make_data(numbers, numbers, None, "float64"), []
    for block in blocks_of(data, length):
        assert block.length == data.even_length(length) <= max(length, 16)
        found.extend(block.x[0].numpy()[block.counts.numpy()])
    assert sorted(found) == list(range(num_rows))


@pytest.mark.parametrize(("name", "with_row_noise"), statistics_but(FEW, CONTRASTING_CASES))
def test_density_and_gradient_are_those_of_all_rows(name, with_row_noise):
    check_blocks(name, with_row_noise=with_row_noise)
    if name == "gaussian_learned":
        check_blocks(name, "float32", 1e-6)


@pytest.mark.parametrize(
    ("num_networks", "jit_compile"), statistics_but([(1, False)], [(1, False), (3, True)])
)
def test_compiled_loops_have_the_values_of_eager_ones(num_networks, jit_compile):
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    theta = tf.constant(np.tile(theta, (num_networks, 1)))
    potential = Potential(spec)
    expected = potential.value_and_gradient(theta, data)
    with small_blocks():
        found = compiled(
            lambda *given: potential.value_and_gradient(*given), jit_compile=jit_compile
        )(theta, data)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_networks_with_rows_of_their_own():
    spec, generator = build("gaussian_learned"), np.random.default_rng(3)
    rows = [random_rows(spec, generator, NUM_ROWS)[:2] for _ in range(3)]
    theta = tf.constant(generator.normal(size=(3, spec.layout.num_parameters)))
    x, y = (tf.constant(np.stack([one[part].T for one in rows])) for part in (0, 1))
    with small_blocks():
        value, gradient = Potential(spec).value_and_gradient(theta, all_of(x, y, None))
    for index, one in enumerate(rows):
        alone = make_data(*one, None, "float64")
        expected = Potential(spec).value_and_gradient(theta[index : index + 1], alone)
        np.testing.assert_allclose(value[index], expected[0][0], rtol=1e-12)
        np.testing.assert_allclose(gradient[index], expected[1][0], rtol=1e-10)


@pytest.mark.parametrize("name", statistics_but(["heteroscedastic"], ["heteroscedastic", "ntk"]))
def test_curvature_is_that_of_all_rows(name, monkeypatch):
    spec, data, theta = setting(name, rows=NUM_ROWS)

    def found():
        lines = gauss_newton.scaled_jacobian(spec, theta, data)
        diagonal = gauss_newton.gauss_newton_diagonal(spec, theta, data)
        return gauss_newton.gauss_newton_matrix(spec, theta, data), diagonal, lines.T @ lines

    whole = found()
    assert len(gauss_newton.scaled_jacobian(spec, theta, data)) == NUM_ROWS * spec.layer_sizes[-1]
    monkeypatch.setattr(gauss_newton, "_BLOCK_ROWS", 16)
    for one, other in zip(found(), whole):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_terms_that_are_summed_already_are_refused():
    theta, data = setting("gaussian_learned", rows=NUM_ROWS)[2:0:-1]

    def summed(theta, rows):
        return tf.zeros(theta.shape[:1])

    with pytest.raises(ValueError, match=r"one term per row, \[1, 80\], received \[1\].*new_like"):
        sum_over_rows(summed, tf.constant(theta[None]), data, 512)


@pytest.mark.parametrize(
    ("which", "jit_compile"),
    statistics_but([("gauss_newton", False)], [("gauss_newton", False), ("hessian", True)]),
)
def test_metrics_are_those_of_all_rows(which, jit_compile, monkeypatch):
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    z = tf.constant(np.stack([theta, 0.5 * theta]))
    linear_map = as_tensors(scaling_map(1.0, z.numpy()))

    def matrices(z):
        target = Target(Potential(spec), data, linear_map, tf.zeros([2], tf.float64), (1.0,))
        return getattr(target, which)(z)

    expected = matrices(z)
    monkeypatch.setattr(gauss_newton, "_BLOCK_ROWS", 16)
    with small_blocks():
        found = compiled(matrices, jit_compile=jit_compile)(z)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_flat_prior_has_no_curvature():
    spec = plain_spec([1, 2, 1], prior=Uniform(-3.0, 3.0), likelihood=Gaussian(0.3))
    z = tf.constant(np.full((1, 7), 0.2))
    np.testing.assert_array_equal(hessian(Potential(spec).log_prior, z), np.zeros((1, 7, 7)))


def test_residual_noise_is_that_of_all_rows():
    spec, data, theta = setting("gaussian_two_learned", with_row_noise=True, rows=NUM_ROWS)
    expected = with_residual_noise(spec, theta[None], data)
    with small_blocks():
        np.testing.assert_allclose(with_residual_noise(spec, theta[None], data), expected)


def test_one_program_serves_many_numbers_of_rows():
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    function = compiled(Potential(spec).log_likelihood, jit_compile=False)
    for num_rows in range(65, 81):
        rows = random_rows(spec, np.random.default_rng(0), num_rows)[:2]
        function(tf.constant(theta[None]), make_data(*rows, None, spec.dtype))
    assert function.experimental_get_tracing_count() == 1


def test_the_rule_of_the_table():
    """Networks of 4 units, whose number stands for the width."""
    spec = build("gaussian_learned")
    found = {4 * count: rows_per_block(spec, count) for count in (1, 16, 32, 128, 512, 2048, 10**6)}
    assert list(found.values()) == [16384, 16384, 4096, 256, 256, 128, 64]


# Pieces, which are sums of programs of their own.

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
    "kernel", [HMC(), pytest.param(Repriorised(HMC()), marks=pytest.mark.statistics)]
)
def test_their_sum_is_that_of_all_rows(kernel):
    """Also where only some rows count, so that whole pieces do not."""
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    theta = tf.constant(np.tile(theta, (2, 1)))
    data = data._replace(first=tf.constant(30), last=tf.constant(50))
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
    """The draws of a short run in float64."""
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


@pytest.mark.parametrize("jit_compile", [True, False])
def test_who_has_pieces_and_takes_turns(monkeypatch, jit_compile):
    """Not what XLA is not to compile; and then a chain group has a core and needs no turn."""
    monkeypatch.setattr(rows_module, "_ROWS_IN_PIECES", 1)
    spec, data, _ = setting("gaussian_learned", rows=NUM_ROWS)
    rows = np.zeros((NUM_ROWS, 1))
    sampling = {"num_chains": 2, "num_results": 1, "num_burnin_steps": 1, "seed": 0}
    config = config_of_run(spec, rows, rows, **sampling, jit_compile=jit_compile)
    settings, _ = PLAIN.resolve(spec, NUM_ROWS)
    plan = program_module.plan_chains(settings, config)
    program = program_module.make_program(settings, config, data, plan)
    assert hasattr(program.turn, "locked") is jit_compile


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
