"""The reparametrised potentials: their maps, densities, gradients, and what they make of prior draws."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from scipy import stats

from tests.support.builders import plain_spec
from tests.support.engine_checks import small_blocks
from tests.support.kernels.invariance import ALARM, WINDOW
from tests.support.kernels.joint_readouts import CASES, JOINT, joint_draws, joint_p
from tests.support.marks import statistics_but
from tests.support.readouts import CONJUGATE, OTHERS, build, with_padding
from tfbnn import kernels
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density import conjugate
from tfbnn.engine.density.data import all_of
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.linear_map import as_tensors, scaling_map
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.regression import ReadoutRegression, num_features, readout_span
from tfbnn.engine.density.reparametrisation import Collapsed, RepriorisedPotential
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.engine.starts.check import draw_prior
from tfbnn.likelihoods import Gaussian


def complete(potential, coordinates, data, normals=None):
    return potential.complete(tf.constant(coordinates), normals, data)[0].numpy()


def numeric(function, point, step=1e-6):
    """Derivatives at [P] of function: [N, P] -> [N, ...] by central differences: [P, ...]."""
    shifts = step * np.eye(len(point))
    above, below = np.split(function(np.concatenate([point + shifts, point - shifts])), 2)
    return (above - below) / (2 * step)


# Every model with more rows than features, and some with fewer, whose formulas differ by the space alone.
MODELS = {**CONJUGATE, **OTHERS}
FEATURES, DATA = 15, 4
IN_DATA_SPACE = ["two learned", "per row", "ARD", "ntk hierarchical"]
# Models between others that are like them in each respect.
BETWEEN = ["two outputs", "per output", "ntk", "ntk ARD", "bernoulli", "two scales"]


def of_each(features, data):
    """(Model, number of rows) of these models; without BETWEEN in the default run."""
    cases = [*((name, FEATURES) for name in features), *((name, DATA) for name in data)]
    kept = [case for case in cases if case[0] not in BETWEEN]
    return pytest.mark.parametrize(("name", "num_rows"), statistics_but(kept, cases))


class TestRepriorised:
    @of_each(MODELS, [*IN_DATA_SPACE, "student", "categorical"])
    def test_map_density_and_gradient(self, name, num_rows):
        """The density is the posterior times the determinant, which is found by numbers."""
        potential, data, theta = build(num_rows, **MODELS[name])
        phi = potential.coordinates(theta, data)
        span = readout_span(potential.spec)
        assert np.all(np.abs(phi - theta)[:, span].max(axis=1) > 1e-3)
        others = np.delete(theta - phi, np.r_[span], axis=1)
        np.testing.assert_array_equal(others, 0.0)
        np.testing.assert_allclose(complete(potential, phi, data), theta, atol=1e-9)
        jacobian = numeric(lambda points: complete(potential, points, data), phi[0])
        expected = Potential(potential.spec).log_prob(tf.constant(theta[:1]), data)
        found = potential.log_prob(tf.constant(phi[:1]), data)
        np.testing.assert_allclose(found, expected + np.linalg.slogdet(jacobian)[1], atol=1e-6)
        _, gradient = potential.value_and_gradient(tf.constant(phi), data)
        expected = numeric(lambda p: potential.log_prob(tf.constant(p), data), phi[0])
        np.testing.assert_allclose(gradient[0], expected, rtol=1e-6, atol=1e-6)


@of_each(CONJUGATE, IN_DATA_SPACE)
class TestCollapsed:
    def test_density_leaves_out_the_readout_given_the_rest(self, name, num_rows):
        """log p(rest) = log p(all) - log p(readout | rest), with the latter by SciPy; and its gradient."""
        repriorised, data, theta = build(num_rows, **CONJUGATE[name])
        spec, span = repriorised.spec, readout_span(repriorised.spec)
        potential = Collapsed(spec, keep_factor=True)
        coordinates = potential.coordinates(theta, data)
        normals = tf.zeros([3, potential.num_normals], tf.float64)
        _, found = potential.complete(tf.constant(coordinates), normals, data)
        mean = found["readout_mean"].numpy().reshape(3, num_features(spec), -1)
        readout = theta[:, span].reshape(mean.shape)
        size = mean.shape[1]
        conditional = 0.0
        for output in range(mean.shape[2]):
            group = output if found["readout_factor"].shape[1] > 1 else 0
            factor = np.zeros((size, size))
            factor[np.triu_indices(size)] = found["readout_factor"][0, group]
            law = stats.multivariate_normal(mean[0, :, output], factor @ factor.T)
            conditional += law.logpdf(readout[0, :, output])
        joint = Potential(spec).log_prob(tf.constant(theta), data)[0]
        value, gradient = potential.value_and_gradient(tf.constant(coordinates), data)
        np.testing.assert_allclose(value[0], joint - conditional, atol=1e-7)
        assert all(values.dtype == spec.dtype for values in found.values())
        expected = numeric(lambda p: potential.log_prob(tf.constant(p), data), coordinates[0])
        np.testing.assert_allclose(gradient[0], expected, rtol=1e-6, atol=1e-6)

    def test_readouts_come_with_the_mean_of_the_map(self, name, num_rows):
        """The completed readout is the one that the map of `Repriorised` makes."""
        repriorised, data, theta = build(num_rows, **CONJUGATE[name])
        potential, phi = Collapsed(repriorised.spec), repriorised.coordinates(theta, data)
        normals = tf.constant(phi[:, readout_span(potential.spec)])
        found = complete(potential, potential.coordinates(theta, data), data, normals)
        np.testing.assert_allclose(found, theta, atol=1e-9)


@pytest.mark.parametrize("num_rows", [4, 6, 15])
def test_both_spaces_have_one_law(num_rows):
    """Mean, covariance, log determinant and density by either form, and by dense formulas."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(2, 6, num_rows)) * np.array([0.1, 1, 10, 1, 3, 0.01])[:, None]
    y = generator.normal(size=(2, 3, num_rows))
    normal = np.tile(np.eye(6), (2, 1, 1))
    covariance = np.linalg.inv(np.eye(6) + x @ np.swapaxes(x, 1, 2))
    mean = covariance @ x @ np.swapaxes(y, 1, 2)
    marginal = [
        stats.multivariate_normal(np.zeros(num_rows), np.eye(num_rows) + a.T @ a).logpdf(b).sum()
        for a, b in zip(x, y)
    ]
    x, y = tf.constant(x), tf.constant(y)
    for posterior in (
        conjugate.in_feature_space(*conjugate.products(x, y)),
        conjugate.in_data_space(x, y),
    ):
        squares = tf.reduce_sum(conjugate.residuals(posterior, x, y) ** 2, [-2, -1])
        density = conjugate.log_marginal(posterior, squares, num_rows)
        np.testing.assert_allclose(density, marginal, rtol=1e-10)
        centre, log_det = conjugate.draw(posterior, tf.zeros([2, 6, 3], tf.float64))
        np.testing.assert_allclose(centre, mean, atol=1e-10)
        deviation = posterior.root_times(tf.constant(normal)).numpy()
        np.testing.assert_allclose(deviation @ np.swapaxes(deviation, 1, 2), covariance, atol=1e-10)
        np.testing.assert_allclose(log_det, 3 * 0.5 * np.linalg.slogdet(covariance)[1], rtol=1e-10)


@pytest.mark.parametrize("num_rows", [4, 15])
def test_a_large_regulariser_is_the_identity(num_rows):
    potential, data, theta = build(num_rows, regulariser=1e12, parameterization="ntk")
    phi = potential.coordinates(theta, data)
    np.testing.assert_allclose(phi, theta, atol=1e-9)
    expected = Potential(potential.spec).log_prob(tf.constant(theta), data)
    np.testing.assert_allclose(potential.log_prob(tf.constant(phi), data), expected, atol=1e-7)


@pytest.mark.parametrize(
    "name",
    statistics_but(
        ["two learned", "ntk hierarchical"],
        ["learned", "two learned", "hierarchical", "ntk hierarchical"],
    ),
)
def test_curvature_whitens_the_collapsed_density(name):
    """The Schur complement is the Gauss-Newton matrix of a network whose readout is its mean."""
    potential, data, theta = build(15, **CONJUGATE[name])
    collapsed = Collapsed(potential.spec)
    curvature = collapsed.curvature(collapsed.coordinates(theta, data)[0], data)
    assert np.all(np.linalg.eigvalsh(curvature) > 0)
    full = potential.curvature(potential.coordinates(theta, data)[0], data)
    others, span = collapsed.in_theta, readout_span(potential.spec)
    np.testing.assert_allclose(full[np.ix_(others, others)], curvature, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(full[span], np.eye(len(full))[span])
    # Inverse of the joint curvature, restricted to the rest, at the readout's mean.
    mean, _ = collapsed.complete(
        tf.constant(collapsed.coordinates(theta[:1], data)),
        tf.zeros([1, collapsed.num_normals], tf.float64),
        data,
    )
    inverse = np.linalg.inv(gauss_newton_matrix(potential.spec, mean[0].numpy(), data))
    np.testing.assert_allclose(
        inverse[np.ix_(others, others)], np.linalg.inv(curvature), rtol=1e-6, atol=1e-9
    )


def test_the_readout_becomes_standard_normal():
    """Joint draws of weights and rows: phi of the readout is N(0, I) and knows nothing of the rest."""
    theta, data = joint_draws()
    phi = RepriorisedPotential(JOINT).coordinates(theta, data)
    readout, rest = phi[:, 4:7], np.delete(phi, [4, 5, 6], axis=1)
    p = [stats.kstest(column, "norm").pvalue for column in readout.T]
    p.append(stats.kstest((readout**2).sum(axis=1), "chi2", args=(3,)).pvalue)
    p += [stats.spearmanr(a, b).pvalue for a in readout.T for b in rest.T]
    p += [stats.spearmanr(a**2, np.abs(b)).pvalue for a in readout.T for b in rest.T]
    p += [stats.spearmanr(readout[:, i], readout[:, j]).pvalue for i, j in ((0, 1), (0, 2), (1, 2))]
    assert len(p) * min(p) > 1e-4
    # The power of the test: the weights themselves know of the rest.
    assert (
        stats.spearmanr(np.abs(theta[:, 6]), np.abs(data.y.numpy().mean(axis=(1, 2)))).pvalue < 1e-9
    )


@pytest.mark.statistics
@pytest.mark.parametrize("name", CASES)
def test_joint_draws_are_left_as_they_are(name):
    """Layer B: transitions in the new coordinates, from joint draws, keep their law."""
    smallest, acceptance = joint_p(name)
    assert WINDOW[0] < acceptance < WINDOW[1], "outside this window the test has no power"
    assert smallest > ALARM


def small_noise_target(settings, dtype, num_chains):
    """(Target, starts [num_chains, n]) on 10 000 rows with noise 0.01, starts at the truth."""
    spec = plain_spec([1, 8, 1], likelihood=Gaussian(0.01), parameterization="ntk", dtype=dtype)
    theta, generator = draw_prior(spec, 5, 1), np.random.default_rng(9)
    x = generator.uniform(-2.0, 2.0, size=(1, 10_000))
    hidden = np.tanh(theta[0, :8, None] * x + theta[0, 8:16, None])
    y = theta[:, 16:24] @ hidden / 8**0.5 + theta[0, 24]
    y += 0.01 * generator.normal(size=y.shape)
    data = all_of(tf.constant(x, dtype), tf.constant(y, dtype), None)
    potential = settings.potential(spec)
    start = np.repeat(potential.coordinates(theta, data), num_chains, axis=0)
    linear_map = as_tensors(scaling_map(1.0, start))
    reference = potential.log_prob(tf.constant(start), data)
    return Target(potential, data, linear_map, reference, temperatures=(1.0,)), start


def leapfrog_acceptance(target, z, momentum, step, num_steps):
    """Acceptance probabilities [C] of leapfrog trajectories, all in the dtype of z."""
    value_and_gradient = tf.function(partial(tfp.math.value_and_gradient, target), autograph=False)
    start, gradient = value_and_gradient(tf.constant(z))
    first = momentum
    for _ in range(num_steps):
        momentum = momentum + 0.5 * step * gradient
        z = z + step * momentum
        value, gradient = value_and_gradient(z)
        momentum = momentum + 0.5 * step * gradient
    change = value - start + 0.5 * tf.reduce_sum(first**2 - momentum**2, axis=1)
    return np.exp(np.minimum(change.numpy().astype(np.float64), 0.0))


@pytest.mark.statistics
@pytest.mark.parametrize("collapse", statistics_but([True], [False, True]))
def test_float32_loses_no_acceptance_to_rounding(collapse):
    """The same trajectories in float32 and float64: mean acceptance within 0.02."""
    settings, found = kernels.Repriorised(collapse_readout=collapse), {}
    for dtype in ("float64", "float32"):
        target, start = small_noise_target(settings, dtype, num_chains=16)
        momentum = np.random.default_rng(10).normal(size=start.shape).astype(dtype)
        found[dtype] = leapfrog_acceptance(target, start, momentum, np.asarray(0.02, dtype), 10)
    assert 0.7 < found["float64"].mean() < 0.95, "outside this window the test has no power"
    assert abs(found["float32"].mean() - found["float64"].mean()) < 0.02


# The regression of the readout by blocks of rows.

NUM_ROWS = 19
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
