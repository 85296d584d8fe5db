"""SMMALA: its metrics, its ratio by SciPy, and fits."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbnn
from tests.support import reference
from tests.support.kernels.cases import CASES, SkewedTarget, build, record, target_of
from tests.support.kernels.checks import MANIFOLD, gradient, log_density
from tests.support.linear import (
    RUN,
    START,
    check_moments,
    linear_model,
    linear_rows,
    short_fit,
)
from tests.support.marks import statistics_but
from tests.support.specs import setting
from tfbnn.engine.basis.compile import compiled, num_traces
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.engine.kernels.smmala import cholesky_metric, softabs, softabs_metric
from tfbnn.kernels import SMMALA
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import HierarchicalNormal

# Likelihoods, priors and parameterisations that differ most; a kink has no second derivatives.
MODELS = ["student_t", "heteroscedastic", "categorical_ntk", "mixed_priors"]


def numpy_softabs(hessian, alpha):
    values, vectors = np.linalg.eigh(hessian)
    return (vectors * (values / np.tanh(alpha * values))[..., None, :]) @ np.swapaxes(
        vectors, -1, -2
    )


def symmetric(generator, shape):
    matrix = generator.normal(size=shape)
    return matrix + np.swapaxes(matrix, -1, -2)


class TestSoftAbs:
    """A3."""

    @pytest.mark.parametrize("alpha", [1.0, 1e3, 1e6])
    def test_values(self, alpha):
        sizes = np.array([1e-300, 1e-12, 1e-9, 1e-4, 0.1, 1.0, 1e6, 1e300])
        values = np.concatenate([-sizes, [0.0], sizes])
        found = softabs(tf.constant(values), alpha).numpy()
        scaled = alpha * sizes.astype(np.longdouble)
        expected = np.asarray(scaled / np.tanh(scaled) / alpha, np.float64)
        expected = np.concatenate([expected, [1 / alpha], expected])
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert np.all(found >= (1 - 1e-15) / alpha)

    def test_the_limit_at_zero_is_reached_smoothly(self):
        values = np.linspace(-3e-4, 3e-4, 2001)
        found = softabs(tf.constant(values), 1.0).numpy() - 1.0
        np.testing.assert_allclose(found, values**2 / 3, rtol=1e-6, atol=1e-15)

    @pytest.mark.parametrize(
        "jit_compile, tolerance", statistics_but([(False, 1e-12)], [(False, 1e-12), (True, 1e-6)])
    )
    def test_metric(self, jit_compile, tolerance):
        generator = np.random.default_rng(0)
        hessian = symmetric(generator, (4, 5, 5))
        basis = np.linalg.qr(generator.normal(size=(5, 5)))[0]
        hessian[1] = (basis * [2.0, 2.0, 2.0, -2.0, -2.0]) @ basis.T  # repeated eigenvalues
        hessian[2] = (basis * [1e6, -1e6, 1.0, 1e-12, -1e-12]) @ basis.T
        function = compiled(lambda h: softabs_metric(h, 10.0), jit_compile=jit_compile)
        metric = function(tf.constant(hessian))
        check_metric(metric, numpy_softabs(hessian, 10.0), tolerance)


def check_metric(metric, expected, tolerance):
    """Its factors, their inverse and the determinant against a matrix [C, P, P]."""
    root, inverse = metric.root.numpy(), metric.inverse_root.numpy()
    size = np.abs(expected).max(axis=(1, 2))[:, None, None]
    np.testing.assert_allclose(
        root @ np.swapaxes(root, 1, 2) / size, expected / size, atol=tolerance
    )
    identity = np.broadcast_to(np.eye(root.shape[-1]), root.shape)
    np.testing.assert_allclose(np.swapaxes(inverse, 1, 2) @ root, identity, atol=1e-11)
    # Exactness rests on the determinant being that of the factors that are used.
    found = 2 * np.linalg.slogdet(root)[1]
    np.testing.assert_allclose(metric.log_det, found, rtol=1e-12, atol=1e-10)


class TestMetricTensor:
    def test_cholesky(self):
        matrix = symmetric(np.random.default_rng(1), (3, 4, 4))
        matrix = matrix @ matrix + 1e-3 * np.eye(4)
        check_metric(cholesky_metric(tf.constant(matrix)), matrix, 1e-13)

    def test_products(self):
        generator = np.random.default_rng(2)
        matrix = symmetric(generator, (3, 4, 4))
        vector = generator.normal(size=(3, 4))
        metric = softabs_metric(tf.constant(matrix), 3.0)
        dense = numpy_softabs(matrix, 3.0)
        raised = np.linalg.solve(dense, vector[..., None])[..., 0]
        np.testing.assert_allclose(metric.raised(tf.constant(vector)), raised, rtol=1e-10)
        squares = np.einsum("ci,cij,cj->c", vector, dense, vector)
        np.testing.assert_allclose(metric.squared_length(tf.constant(vector)), squares, rtol=1e-10)
        spread = metric.spread(tf.constant(vector)).numpy()
        np.testing.assert_allclose(
            np.einsum("ci,cij,cj->c", spread, dense, spread), (vector**2).sum(-1), rtol=1e-10
        )

    def test_nearly_singular_matrices_are_factorised(self):
        """Lines of rounding errors only: without damping every other one of these fails."""
        generator = np.random.default_rng(3)
        lines = generator.normal(size=(200, 30, 2)) * 10.0 ** generator.uniform(-3, 3, (200, 30, 1))
        matrix = lines @ np.swapaxes(lines, 1, 2)
        metric = cholesky_metric(tf.constant(matrix))
        assert np.all(np.isfinite(metric.log_det)) and np.all(np.isfinite(metric.inverse_root))
        assert np.isnan(tf.linalg.cholesky(matrix).numpy()).any()

    @pytest.mark.parametrize("make", [cholesky_metric, lambda m: softabs_metric(m, 1.0)])
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_a_matrix_that_is_not_finite_concerns_its_chain_only(self, make, bad):
        matrix = np.stack([2.0 * np.eye(3)] * 3)
        good = make(tf.constant(matrix))
        matrix[1, 0, 2] = bad
        metric = make(tf.constant(matrix))
        np.testing.assert_array_equal(np.isnan(metric.log_det), [False, True, False])
        np.testing.assert_array_equal(metric.root.numpy()[[0, 2]], good.root.numpy()[[0, 2]])
        assert np.all(np.isfinite(metric.root)) and np.all(np.isfinite(metric.inverse_root))


def target_at(spec, data, theta, temperatures=(1.0,)):
    """The Target of a run whose coordinates are those of theta [R, P]."""
    from tfbnn.engine.density.linear_map import as_tensors, scaling_map
    from tfbnn.engine.density.potential import Potential

    linear_map = as_tensors(scaling_map(1.0, theta))
    return Target(Potential(spec), data, linear_map, tf.zeros([1]), temperatures)


@pytest.mark.parametrize("name", statistics_but(["mixed_priors"], MODELS))
class TestDerivatives:
    def test_hessian_is_that_of_the_numpy_density(self, name):
        """On rungs that temper the likelihood alone."""
        spec, data, theta = setting(name)
        generator, step, rungs = np.random.default_rng(5), 1e-3, (0.0, 0.25, 1.0)
        networks = np.stack([theta] * len(rungs))
        target = target_at(spec, data, networks, temperatures=rungs)
        x, y = data.rows().x.numpy().T, data.rows().y.numpy().T

        def density(theta):
            log_likelihood = reference.log_likelihood(spec, theta, x, y)
            return reference.log_prior(spec, theta) + np.array(rungs) * log_likelihood

        found = target.hessian(tf.constant(networks)).numpy()
        np.testing.assert_array_equal(found, np.swapaxes(found, 1, 2))
        for _ in range(8):
            a, b = step * generator.normal(size=(2, len(theta)))
            corners = density(theta + a + b) - density(theta + a - b)
            corners -= density(theta - a + b) - density(theta - a - b)
            for corner, matrix in zip(corners, found):
                scale = np.abs(a) @ np.abs(matrix) @ np.abs(b)
                assert abs(corner / 4 - a @ matrix @ b) < 3e-4 * scale

    def test_gauss_newton_of_a_batch_is_that_of_each_network(self, name):
        spec, data, theta = setting(name, with_row_noise=name in ("student_t", "heteroscedastic"))
        theta = np.stack([theta, 0.5 * theta])
        found = target_at(spec, data, theta).gauss_newton(tf.constant(theta))
        expected = [gauss_newton_matrix(spec, chain, data) for chain in theta]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def metric_of(name, target, z):
    """The metric [C, 3, 3] of a case, by NumPy."""
    settings = CASES[name].settings
    if settings.metric == "gauss_newton":
        return target.gauss_newton(tf.constant(z)).numpy()
    return numpy_softabs(-target.hessian(tf.constant(z)).numpy(), settings.softabs_alpha)


def log_proposal(name, target, there, here):
    """log q(there | here) by SciPy [C]."""
    h = CASES[name].settings.step_size
    covariances = np.linalg.inv(metric_of(name, target, here))
    means = here + 0.5 * h * np.einsum("cij,cj->ci", covariances, gradient(target, here))
    return np.array(
        [
            stats.multivariate_normal.logpdf(end, mean, h * 0.5 * (covariance + covariance.T))
            for end, mean, covariance in zip(there, means, covariances)
        ]
    )


@pytest.mark.parametrize("name", statistics_but(["smmala gauss_newton"], MANIFOLD))
class TestKernel:
    def test_ratio(self, name):
        """A7, with the normal densities of SciPy."""
        target = target_of(CASES[name])
        for step in record(name)[::8]:
            here, there = step.start, step.after.proposed_state.numpy()
            expected = log_density(target, there) - log_density(target, here)
            expected += log_proposal(name, target, here, there)
            expected -= log_proposal(name, target, there, here)
            np.testing.assert_allclose(step.after.log_accept_ratio, expected, rtol=1e-9, atol=1e-9)

    def test_cached_metric_is_the_state_s(self, name):
        """A9: of accepted and of rejected states."""
        target = target_of(CASES[name])
        for step in record(name)[::4]:
            cached = step.after.accepted_results.metric
            check_metric(cached, metric_of(name, target, step.end), 1e-11)

    def test_a_proposal_whose_metric_is_not_finite_is_rejected(self, name):
        class Walled(SkewedTarget):
            def hessian(self, z):
                return self._walled(z, super().hessian(z))

            def gauss_newton(self, z):
                return self._walled(z, super().gauss_newton(z))

            def _walled(self, z, matrix):
                return tf.where(z[:, :1, None] > 0.5, tf.constant(np.nan, z.dtype), matrix)

        target = Walled()
        z = target.draw(np.random.default_rng(7), 2000)
        z = tf.constant(z[z[:, 0] < 0.4])
        kernel, _ = build(CASES[name].settings, target, len(z))
        new, results = kernel.one_step(z, kernel.bootstrap_results(z), seed=[1, 2])
        behind = results.proposed_state[:, 0] > 0.5
        assert np.mean(behind) > 0.05 and np.max(new[:, 0]) <= 0.5
        assert np.all(results.log_accept_ratio[behind] == -np.inf)
        accepted = CASES[name].settings.statistics(results).acceptance_rate
        assert np.all(np.isfinite(accepted)) and np.mean(accepted) > 0.4


@pytest.mark.statistics
@pytest.mark.parametrize(
    "metric", ["softabs", pytest.param("gauss_newton", marks=pytest.mark.slow)]
)
def test_adapts_and_samples_the_linear_posterior(metric):
    """Within 4.5 MCSE of the closed form; h is of order 1 whatever the scales of the weights."""
    x, y = linear_rows()
    model = linear_model()
    options = RUN | dict(num_results=1500, num_burnin_steps=300, pretraining=START)
    run = model.fit_posterior(x, y, kernel=SMMALA(metric=metric), **options)
    check_moments(model.posterior.draws, x, y)
    assert np.all((run.acceptance_rate > 0.6) & (run.acceptance_rate < 0.85))
    assert np.all((run.step_size > 0.5) & (run.step_size < 4))
    assert run.geometry.startswith("identity: the metric")
    assert "preconditioner='identity'" in run.kernel
    assert np.all(model.posterior.sample_stats["n_steps"] == 1)


@pytest.mark.statistics
@pytest.mark.parametrize("metric", ["gauss_newton"])
def test_learned_scales_of_noise_and_prior(metric):
    """Also without XLA."""
    model = tfbnn.BayesianMLP(
        [2, 1], prior=HierarchicalNormal(), likelihood=Gaussian("learned"), dtype="float32"
    )
    options = dict(num_results=300, num_burnin_steps=300, jit_compile=False, pretraining=START)
    run = short_fit(model, *linear_rows(), kernel=SMMALA(metric=metric), **options)
    assert np.all((run.acceptance_rate > 0.5) & (run.acceptance_rate < 0.9))
    assert run.num_divergent.sum() < 30
    _, y = linear_rows()
    scale = np.exp(np.median(model.posterior.log_noise_scale)) * np.std(y)
    assert 0.35 < scale < 0.7
    assert np.all(np.ptp(model.posterior.draws, axis=1) > 0.1)


class TestRefusals:
    @pytest.mark.parametrize("metric", ["softabs", "gauss_newton"])
    def test_more_parameters_than_memory(self, metric):
        model, traces = (
            tfbnn.BayesianMLP([5, 100, 100, 1], prior=tfbnn.priors.Normal(1.0)),
            num_traces(),
        )
        x, y = np.random.default_rng(0).normal(size=(10, 5)), np.arange(10.0)
        with pytest.raises(ValueError, match=r"1e\+09 bytes per chain.*for P = 10802 and 10 rows"):
            short_fit(model, x, y, kernel=SMMALA(metric=metric))
        assert num_traces() == traces

    def test_more_rows_than_memory(self):
        """Rows are looked at in blocks: no number of them is too large, but one block may be."""
        spec = tfbnn.BayesianMLP([5, 20, 20, 1], prior=tfbnn.priors.Normal(1.0)).spec
        assert SMMALA().resolve(spec, 10**6)[0].preconditioner == "identity"
        wide = tfbnn.BayesianMLP([5, 300, 1], prior=tfbnn.priors.Normal(1.0)).spec
        assert SMMALA().resolve(wide, 10)[0].metric == "softabs"
        with pytest.raises(ValueError, match="P = 2102 and 64 rows at once"):
            SMMALA().resolve(wide, 11746)
        assert SMMALA(metric="gauss_newton").resolve(wide, 11746)[0].metric == "gauss_newton"

    @pytest.mark.parametrize("metric", ["softabs", "gauss_newton"])
    def test_a_start_whose_metric_is_not_finite(self, metric, monkeypatch):
        nothing = tf.fill([1, 3, 3], tf.constant(np.nan, tf.float64))
        name = {"softabs": "hessian"}.get(metric, metric)
        monkeypatch.setattr(Target, name, lambda self, z: nothing)
        with pytest.raises(tfbnn.StartError, match=f"{metric} metric .* chain 0 starts"):
            short_fit(linear_model(), *linear_rows(), kernel=SMMALA(metric=metric))


def test_first_step_size_follows_from_the_dimension_alone():
    found = SMMALA().first_step_size(np.array([1e-4, 2.0], np.float32), 27)
    np.testing.assert_allclose(found, 1.65**2 / 3, rtol=1e-6)
    assert found.dtype == np.float32


def test_a_dearer_metric_is_expected_to_take_longer():
    from tfbnn.kernels import MALA
    from tfbnn.run.cost import estimated_seconds

    spec = tfbnn.BayesianMLP([5, 20, 1], prior=tfbnn.priors.Normal(1.0)).spec
    seconds = [estimated_seconds(spec, kernel, 5000, 1000) for kernel in (MALA(), SMMALA())]
    assert seconds[1] > seconds[0]
