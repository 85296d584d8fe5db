"""The readout's regression by blocks of rows: the same as of all rows at once, and as by NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.builders import plain_spec
from tests.support.engine_checks import small_blocks
from tests.support.marks import statistics_but
from tests.support.readouts import CONJUGATE, OTHERS, build, with_padding
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density.data import all_of
from tfbnn.engine.density.regression import ReadoutRegression
from tfbnn.engine.density.reparametrisation import Collapsed
from tfbnn.engine.starts.check import draw_prior
from tfbnn.likelihoods import Gaussian

NUM_ROWS = 19
MODELS = {**CONJUGATE, **OTHERS}
# Of the default run.
FEW = ["two learned", "per row", "ARD", "ntk hierarchical", "student", "categorical"]
# Of densities and of gradients, whose terms cancel.
TOLERANCES = {"float32": (1e-6, 1e-5), "float64": (1e-10, 1e-10)}


def models(name, dtype="float64"):
    """Yields (potential, Data, coordinates [3, number of them]) of each potential for the model."""
    repriorised, data, theta = build(NUM_ROWS, dtype=dtype, **MODELS[name])
    theta = theta.astype(dtype)
    potentials = [repriorised]
    if name in CONJUGATE:
        potentials.append(Collapsed(repriorised.spec, keep_factor=True))
    for potential in potentials:
        yield potential, data, potential.coordinates(theta, data)


def assert_equal(found, expected, tolerance=1e-10):
    """Within the tolerance, relative to the largest entry."""
    for left, right in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=tolerance * np.abs(right).max())


@pytest.mark.parametrize(
    "name, dtype",
    statistics_but(
        [(name, "float64") for name in FEW],
        [*((name, "float64") for name in MODELS), ("two learned", "float32")],
    ),
)
def test_density_and_gradient_are_those_of_all_rows_at_once(name, dtype):
    of_density, of_gradient = TOLERANCES[dtype]
    for potential, data, point in models(name, dtype):
        point = tf.constant(point)
        expected, by_point = potential.value_and_gradient(point, data)
        with small_blocks(16):
            value, gradient = potential.value_and_gradient(point, with_padding(data))
            again = potential.log_prob(point, with_padding(data))
        assert_equal([value, again], [expected, expected], of_density)
        assert_equal(gradient, by_point, of_gradient)


@pytest.mark.parametrize(
    ("name", "jit_compile"),
    statistics_but([("two learned", False)], [("two learned", False), ("regularised", True)]),
)
def test_compiled_programs_have_the_same_loops(name, jit_compile):
    potential, data, point = next(models(name))
    expected = potential.value_and_gradient(tf.constant(point), data)
    with small_blocks(16):
        function = compiled(potential.value_and_gradient, jit_compile=jit_compile)
        assert_equal(function(tf.constant(point), with_padding(data)), expected)


@pytest.mark.parametrize("name", ["two learned", "per row", "student", "categorical"])
def test_draws_and_coordinates_are_those_of_all_rows_at_once(name):
    for potential, data, point in models(name):
        point, normals = tf.constant(point), tf.ones([3, potential.num_normals], tf.float64)
        theta, found = potential.complete(point, normals, data)
        with small_blocks(16):
            blocks = potential.complete(point, normals, with_padding(data))
            assert_equal(blocks, (theta, found))
            again = potential.coordinates(theta.numpy(), with_padding(data))
        assert_equal(again, potential.coordinates(theta.numpy(), data))


def test_small_noise_in_float32():
    """Noise of a thousandth: squares of the residuals are a millionth of those of the targets."""
    spec = plain_spec([1, 8, 1], likelihood=Gaussian(1e-3), dtype="float32")
    theta, generator = draw_prior(spec, 5, 1).astype("float32"), np.random.default_rng(9)
    x = generator.uniform(-2.0, 2.0, size=10_000).astype("float32")
    hidden = np.tanh(theta[0, :8, None].astype("float64") * x + theta[0, 8:16, None])
    features = np.concatenate([hidden, np.ones((1, len(x)))]) / 1e-3
    y = theta[0, 16:25] @ features + generator.normal(size=len(x))
    y = (1e-3 * y).astype("float32")
    gram = np.eye(9) + features @ features.T
    mean = np.linalg.solve(gram, features @ (y / 1e-3))
    squares = np.sum((y / 1e-3 - mean @ features) ** 2) + mean @ mean
    determinant = np.linalg.slogdet(gram)[1] + 2.0 * len(x) * np.log(2.0 * np.pi * 1e-6) / 2.0
    data = all_of(tf.constant(x[None]), tf.constant(y[None]), None)
    with small_blocks(256):
        value = ReadoutRegression(spec, data).log_marginal_and_gradient(tf.constant(theta))[0]
    np.testing.assert_allclose(value[0], -0.5 * (squares + determinant), rtol=1e-6)


def test_data_space_has_nothing_of_the_size_of_features_squared(monkeypatch):
    """Zeros to add products of features to took 40 GiB of a width of 16 384."""
    spec = plain_spec([1, 50, 1], likelihood=Gaussian(0.1))
    x, sizes, zeros = tf.constant(np.linspace(-1.0, 1.0, 5)[None], spec.dtype), [], tf.zeros

    def counting(shape, *args, **kwargs):
        sizes.append(np.prod(shape))
        return zeros(shape, *args, **kwargs)

    monkeypatch.setattr(tf, "zeros", counting)
    theta = tf.constant(draw_prior(spec, 2, 1))
    features, targets = ReadoutRegression(spec, all_of(x, x, None)).statistics(theta)
    assert features.shape == [1, 1, 51, 5]
    assert targets.shape == [1, 1, 1, 5] and max(sizes, default=0) < 51**2
