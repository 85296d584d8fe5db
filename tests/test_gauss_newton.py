"""The Gauss-Newton matrix against autodiff, the whitening it gives, and Levenberg-Marquardt."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from test_potential import MODELS, build, random_rows

import tfbnn
from tfbnn.engine.gauss_newton import gauss_newton_matrix, prior_curvature
from tfbnn.engine.linear_map import whitening_map
from tfbnn.engine.network import network_outputs
from tfbnn.engine.newton import polish
from tfbnn.engine.potential import Potential, make_data
from tfbnn.kernels import HMC
from tfbnn.likelihoods import Gaussian

SMOOTH = [name for name in MODELS if name != "uniform"]


def setting(name, with_row_noise=False, rows=11):
    spec, generator = build(name), np.random.default_rng(21)
    x, y, noise = random_rows(spec, generator, rows)
    data = make_data(x, y, noise if with_row_noise else None, spec.dtype)
    return spec, data, 0.7 * generator.normal(size=spec.layout.num_parameters)


def hessian(function, theta):
    theta = tf.constant(theta[None])
    with tf.GradientTape() as outer:
        outer.watch(theta)
        with tf.GradientTape() as inner:
            inner.watch(theta)
            value = function(theta)
        gradient = inner.gradient(value, theta)
    return outer.jacobian(gradient, theta)[0, :, 0].numpy()


def test_linear_network_has_the_exact_hessian():
    """With a fixed scale the potential is quadratic: Gauss-Newton is its Hessian."""
    spec, data, theta = setting("linear")
    spec = dataclasses.replace(spec, likelihood=Gaussian(0.3))
    theta = theta[: spec.layout.num_parameters]
    exact = -hessian(lambda t: Potential(spec).log_prob(t, data), theta)
    np.testing.assert_allclose(gauss_newton_matrix(spec, theta, data), exact, rtol=1e-10)


@pytest.mark.parametrize("with_row_noise", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_weights_block_is_the_fisher_information(name, with_row_noise):
    """Average the outer products of scores over targets simulated from the network."""
    spec, data, theta = setting(name, with_row_noise, rows=3)
    found = gauss_newton_matrix(spec, theta, data)
    generator = np.random.default_rng(22)
    outputs = network_outputs(spec, tf.constant(theta[None]), data.x).numpy()
    log_noise = theta[None, spec.layout.log_noise_scale]
    noise = None if data.row_noise is None else data.row_noise.numpy().T
    scale = spec.likelihood.scale(np.moveaxis(outputs, 1, 2), log_noise, noise)
    location = spec.likelihood.location(np.moveaxis(outputs, 1, 2))
    draws = 60_000
    level = generator.uniform(size=(draws, *location.shape[1:]))
    y = location + np.broadcast_to(scale, location.shape) * spec.likelihood.noise_quantile(level)
    y = tf.constant(np.moveaxis(y, 1, 2))
    repeated = tf.constant(np.repeat(theta[None], draws, axis=0))
    _, score = _likelihood_score(spec, repeated, data._replace(y=y))
    fisher = score.T @ score / draws
    found -= np.diag(prior_curvature(spec, theta))
    spread = np.sqrt(np.diag(found)[:, None] * np.diag(found)[None]) + 1e-12
    # Scores of sampled prior scales vanish in the likelihood (standard) or follow the weights (ntk).
    assert np.abs((found - fisher) / spread).max() < 0.08


def _likelihood_score(spec, theta, data):
    with tf.GradientTape() as tape:
        tape.watch(theta)
        value = Potential(spec).log_likelihood(theta, data)
    return value, tape.gradient(value, theta).numpy()


@pytest.mark.parametrize("name", SMOOTH)
def test_positive_definite(name):
    spec, data, theta = setting(name)
    assert np.linalg.eigvalsh(gauss_newton_matrix(spec, theta, data)).min() > 0


def test_blocks_add_up(monkeypatch):
    from tfbnn.engine import gauss_newton

    spec, data, theta = setting("ntk", rows=23)
    whole = gauss_newton_matrix(spec, theta, data)
    monkeypatch.setattr(gauss_newton, "_BLOCK_ROWS", 5)
    np.testing.assert_allclose(gauss_newton_matrix(spec, theta, data), whole, rtol=1e-12)


def test_whitening_makes_the_curvature_the_identity():
    spec, data, theta = setting("ntk")
    curvature = gauss_newton_matrix(spec, theta, data)
    linear_map = whitening_map(theta[None], curvature[None])
    matrix = linear_map.matrix[0]
    np.testing.assert_allclose(matrix @ curvature @ matrix, np.eye(len(theta)), atol=1e-8)
    z = np.random.default_rng(23).normal(size=(1, len(theta)))
    np.testing.assert_allclose(linear_map.inverse(linear_map.forward(z)), z, atol=1e-8)
    pulled = linear_map.pull_back(theta[None])
    np.testing.assert_allclose(pulled[0], matrix.T @ theta, atol=1e-10)


def test_whitening_copes_with_directions_nothing_determines():
    linear_map = whitening_map(np.zeros((1, 2)), np.diag([0.0, 4.0])[None])
    assert np.all(np.isfinite(linear_map.matrix)) and np.all(np.isfinite(linear_map.inverse_matrix))


class TestLevenbergMarquardt:
    def rows(self, num_rows=80):
        generator = np.random.default_rng(24)
        x = generator.normal(size=(num_rows, 2))
        return x, np.sin(2 * x[:, :1]) * x[:, 1:] + 0.01 * generator.normal(size=(num_rows, 1))

    @pytest.mark.parametrize("name", ["gaussian_learned", "student_t", "hierarchical_ntk"])
    def test_approaches_a_stationary_point_of_the_weights(self, name):
        """The gradient, in units of the curvature, shrinks at least twentyfold."""
        spec, generator = build(name), np.random.default_rng(25)
        data = make_data(*self.rows(), None, spec.dtype)
        theta = 0.5 * generator.normal(size=spec.layout.num_parameters)
        result = polish(spec, theta, data, 100, False, lambda *_: False)
        assert result.log_prob[-1] > result.log_prob[0] + 20
        assert self.slope(spec, data, result.theta) < 0.05 * self.slope(spec, data, theta)

    def slope(self, spec, data, theta):
        _, gradient = Potential(spec).value_and_gradient(tf.constant(theta[None]), data)
        curvature = np.diag(gauss_newton_matrix(spec, theta, data))
        weights = slice(0, spec.layout.num_weights)
        return np.abs(gradient[0] / np.sqrt(curvature))[weights].max()

    def test_noise_scale_survives_more_parameters_than_rows(self):
        """Without the effective number of parameters the scale would fall to zero."""
        spec = tfbnn.BayesianMLP(
            [2, 30, 1], x_transform=None, y_transform=None, dtype="float64"
        ).spec
        data = make_data(*self.rows(40), None, spec.dtype)
        theta = np.random.default_rng(26).normal(size=spec.layout.num_parameters)
        result = polish(spec, theta, data, 100, False, lambda *_: False)
        assert 1e-3 < np.exp(result.theta[-1]) < 0.5
        assert 0 < result.effective_parameters < 40

    def test_stops_when_asked(self):
        spec = build("gaussian_learned")
        data = make_data(*self.rows(), None, spec.dtype)
        theta = np.random.default_rng(27).normal(size=spec.layout.num_parameters)
        result = polish(spec, theta, data, 100, False, lambda iteration, _: iteration == 2)
        assert len(result.log_prob) == 3

    def test_through_the_public_interface(self):
        x, y = self.rows()
        model = tfbnn.BayesianMLP([2, 8, 1])
        options = dict(
            kernel=HMC(num_leapfrog_steps=8, preconditioner="gauss_newton"),
            num_chains=2,
            num_results=30,
            num_burnin_steps=60,
            verbose=0,
        )
        adam = tfbnn.Pretraining(epochs=200, batch_size=None, learning_rate=0.02)
        plain = model.fit_posterior(x, y, pretraining=adam, **options)
        polished = model.fit_posterior(
            x, y, pretraining=dataclasses.replace(adam, newton_iterations=60), **options
        )
        assert np.all(polished.start_log_prob > plain.start_log_prob + 20)
        assert "Levenberg-Marquardt" in polished.report()
        # In whitened coordinates the step is of order one over the fourth root of P.
        assert polished.step_size.min() > 0.02

    def test_sampled_prior_scales_stay_at_their_draw(self):
        """Without ntk the density is unbounded as a prior scale and its weights shrink together."""
        spec, generator = build("hierarchical"), np.random.default_rng(28)
        data = make_data(*self.rows(), None, spec.dtype)
        theta = 0.5 * generator.normal(size=spec.layout.num_parameters)
        result = polish(spec, theta, data, 50, False, lambda *_: False)
        scales = slice(spec.layout.log_noise_scale.stop, None)
        np.testing.assert_array_equal(result.theta[scales], theta[scales])
        model = tfbnn.BayesianMLP([2, 8, 8, 1], prior=tfbnn.priors.HierarchicalNormal())
        model.fit_posterior(
            *self.rows(),
            kernel=HMC(num_leapfrog_steps=1, step_size=1e-6, preconditioner="identity"),
            num_chains=2,
            num_results=1,
            num_burnin_steps=0,
            pretraining=tfbnn.Pretraining(epochs=1000, batch_size=None, learning_rate=0.02),
            verbose=0,
        )
        assert model.posterior.draws[..., model.spec.layout.log_noise_scale.stop :].min() > -5.0

    def test_too_many_parameters_for_whitening_are_refused(self):
        x = np.zeros((4, 2)) + np.arange(4)[:, None]
        model = tfbnn.BayesianMLP([2, 1001, 1])
        with pytest.raises(ValueError, match="gauss_newton.*GB"):
            model.fit_posterior(
                x, x[:, 0], kernel=HMC(preconditioner="gauss_newton"), pretraining=None, verbose=0
            )
