"""Rows in blocks and in arrays of a few lengths: every row counts once, and sums stay what they are."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import plain_spec
from tests.support.engine_checks import blocks_of, check_blocks, check_density, small_blocks
from tests.support.marks import statistics_but
from tests.support.specs import CONTRASTING_CASES, build, random_rows, setting
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density import gauss_newton
from tfbnn.engine.density.data import all_of, make_data, padded_length
from tfbnn.engine.density.linear_map import as_tensors, scaling_map
from tfbnn.engine.density.potential import Potential, hessian
from tfbnn.engine.density.row_blocks import rows_per_block, sum_over_rows
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.engine.starts.check import with_residual_noise
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


def test_density_and_gradient_are_those_of_all_rows_in_float32():
    check_blocks("gaussian_learned", "float32", 1e-6)


@pytest.mark.parametrize(
    ("num_networks", "jit_compile"), statistics_but([(1, False)], [(1, False), (3, True)])
)
def test_compiled_loops_have_the_values_of_eager_ones(num_networks, jit_compile):
    spec, data, theta = setting("gaussian_learned", rows=NUM_ROWS)
    theta = tf.constant(np.tile(theta, (num_networks, 1)))
    potential = Potential(spec)
    expected = potential.value_and_gradient(theta, data)
    with small_blocks():
        function = compiled(
            lambda *given: potential.value_and_gradient(*given), jit_compile=jit_compile
        )
        found = function(theta, data)
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
    functions = (
        lambda: gauss_newton.gauss_newton_matrix(spec, theta, data),
        lambda: gauss_newton.gauss_newton_diagonal(spec, theta, data),
        lambda: gauss_newton.scaled_jacobian(spec, theta, data),
    )
    whole = [function() for function in functions]
    assert len(whole[-1]) == NUM_ROWS * spec.layer_sizes[-1]
    monkeypatch.setattr(gauss_newton, "_BLOCK_ROWS", 16)
    for function, expected in zip(functions[:2], whole):
        np.testing.assert_allclose(function(), expected, rtol=1e-10, atol=1e-10)
    lines = functions[2]()
    np.testing.assert_allclose(lines.T @ lines, whole[2].T @ whole[2], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["gaussian_learned", "categorical"])
def test_sums_over_blocks_are_those_of_numpy(name):
    with small_blocks():
        check_density(name, num_rows=NUM_ROWS, num_networks=1)


def test_terms_that_are_summed_already_are_refused():
    theta, data = setting("gaussian_learned", rows=NUM_ROWS)[2:0:-1]

    def summed(theta, rows):
        return tf.zeros(theta.shape[:1])

    with pytest.raises(ValueError, match=r"one term per row, \[1, 80\], received \[1\].*new_like"):
        sum_over_rows(summed, tf.constant(theta[None]), data, 512)


@pytest.mark.parametrize(
    ("which", "jit_compile"),
    statistics_but(
        [("gauss_newton", False)], [("gauss_newton", False), ("hessian", False), ("hessian", True)]
    ),
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
