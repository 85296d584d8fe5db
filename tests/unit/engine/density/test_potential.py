"""The one density: against independent NumPy code, its gradient, and everyone who uses it."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tests.support.engine_checks import check_density
from tests.support.marks import statistics_but
from tests.support.specs import CASES, CONTRASTING, MODELS, build, random_rows
from tfbnn import likelihoods, priors

# Noise per row is the likelihood's alone: models that differ in their priors do without.
PRIORS = ["laplace", "located", "uniform", "mixed_priors", "hierarchical", "hierarchical_ntk"]
PRIORS += ["ard", "ard_ntk", "ntk", "linear"]


def terms(spec, theta, x, y, row_noise):
    """As `log_prob_terms` has them, without a program that would be called once."""
    import tensorflow as tf

    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.density.potential import Potential

    potential, theta = Potential(spec), tf.constant(theta, spec.dtype)
    data = make_data(x, y, row_noise, spec.dtype)
    return {
        "log_prior": potential.log_prior(theta).numpy(),
        "log_likelihood": potential.log_likelihood(theta, data).numpy(),
    }


@pytest.mark.parametrize(
    "name, with_row_noise",
    [(name, noise) for name, noise in CASES if not noise or name not in PRIORS],
)
def test_density_equals_numpy(name, with_row_noise):
    check_density(name, with_row_noise=with_row_noise)


@pytest.mark.parametrize("name", statistics_but(["gaussian_learned", "ard_ntk"], CONTRASTING))
def test_density_equals_numpy_in_float32(name):
    check_density(name, "float32", 1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_gradient_equals_central_differences(name):
    import tensorflow as tf

    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.density.potential import Potential

    spec, generator = build(name), np.random.default_rng(2)
    x, y, noise = random_rows(spec, generator)
    data = make_data(x, y, noise, spec.dtype)
    theta = generator.normal(size=spec.layout.num_parameters)
    _, gradient = Potential(spec).value_and_gradient(tf.constant(theta[None]), data)
    step = 1e-5 * np.eye(len(theta))
    both = terms(spec, np.concatenate([theta + step, theta - step]), x, y, noise)
    value = both["log_prior"] + both["log_likelihood"]
    numeric = (value[: len(theta)] - value[len(theta) :]) / 2e-5
    np.testing.assert_allclose(gradient[0], numeric, rtol=1e-6, atol=1e-6)


def test_uniform_prior_is_minus_infinity_outside_its_box():
    spec = build("uniform")
    theta = np.zeros((1, spec.layout.num_parameters))
    theta[0, 3] = 5.5
    assert terms(spec, theta, np.zeros((1, 2)), np.zeros((1, 1)), None)["log_prior"][0] == -np.inf


def test_prior_scales_are_those_of_the_coordinates():
    from tfbnn.engine.density.potential import Potential
    from tfbnn.engine.density.reparametrisation import Collapsed, RepriorisedPotential

    first = {"kernel": priors.Normal([[0.1, 0.2]]), "bias": priors.HierarchicalNormal()}
    last = {"kernel": priors.Normal(0.5), "bias": priors.Normal(3.0)}
    spec = plain_spec([1, 2, 1], prior=[first, last])
    # Two kernels and biases, the noise scale, and the scale of the first bias.
    earlier, readout, scales = [0.1, 0.2, 1, 1], [0.5, 0.5, 3], [1, 1]
    np.testing.assert_array_equal(Potential(spec).prior_scales, [*earlier, *readout, *scales])
    np.testing.assert_array_equal(
        RepriorisedPotential(spec).prior_scales, [*earlier, 1, 1, 1, *scales]
    )
    np.testing.assert_array_equal(Collapsed(spec).prior_scales, [*earlier, *scales])
    ntk = plain_spec([1, 2, 1], prior=priors.Normal(0.5), parameterization="ntk")
    np.testing.assert_array_equal(Potential(ntk).prior_scales, np.ones(8))


def test_extreme_outputs_stay_finite():
    spec = build("heteroscedastic")
    x, y = np.full((2, 2), 1.0), np.zeros((2, 2))
    theta = np.zeros((2, spec.layout.num_parameters))
    theta[0, -2:], theta[1, -2:] = 800.0, -300.0  # softplus(-300) = 5e-131
    values = terms(spec, theta, x, y, None)["log_likelihood"]
    assert np.isfinite(values).all()


def test_standard_and_ntk_are_the_same_model_in_function_space():
    """Moving the factor from the network into the prior changes theta, not f or p(f)."""
    sizes, sigma_w, sigma_b = [3, 16, 8, 1], 1.5, 0.5
    ntk = plain_spec(
        sizes,
        prior={"kernel": priors.Normal(sigma_w), "bias": priors.Normal(sigma_b)},
        likelihood=likelihoods.Gaussian(0.1),
        parameterization="ntk",
    )
    standard = plain_spec(
        sizes,
        prior=[
            {"kernel": priors.Normal(sigma_w / np.sqrt(n)), "bias": priors.Normal(sigma_b)}
            for n in sizes[:-1]
        ],
        likelihood=likelihoods.Gaussian(0.1),
    )
    generator = np.random.default_rng(3)
    theta = generator.normal(size=(20, ntk.layout.num_parameters))
    factor = np.ones(ntk.layout.num_parameters)
    for kernel, bias in ntk.layout.layers:
        factor[kernel.weights] = sigma_w / np.sqrt(kernel.shape[0])
        factor[bias.weights] = sigma_b
    x, y = generator.normal(size=(9, 3)), generator.normal(size=(9, 1))
    unscaled, scaled = terms(ntk, theta, x, y, None), terms(standard, theta * factor, x, y, None)
    np.testing.assert_allclose(unscaled["log_likelihood"], scaled["log_likelihood"], rtol=1e-12)
    jacobian = np.log(factor).sum()
    np.testing.assert_allclose(unscaled["log_prior"], scaled["log_prior"] + jacobian, rtol=1e-12)


@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_prior_draws_follow_the_prior(parameterization):
    """The log prior of draws has the mean that the prior's entropy demands."""
    from tfbnn.engine.starts.check import draw_prior

    spec = plain_spec(
        [2, 6, 1],
        prior={"kernel": priors.Laplace(0.3), "bias": priors.Normal(2.0)},
        likelihood=likelihoods.Gaussian("learned", scale_prior=priors.LogNormal(-2.0, 0.5)),
        parameterization=parameterization,
    )
    draws = draw_prior(spec, seed=5, num_chains=4000)
    value = terms(spec, draws, np.zeros((1, 2)), np.zeros((1, 1)), None)["log_prior"]
    laplace, normal = (1.0, 1.0) if parameterization == "ntk" else (0.3, 2.0)
    entropy = 18 * (1 + np.log(2 * laplace)) + 7 * 0.5 * np.log(2 * np.pi * np.e * normal**2)
    entropy += 0.5 * np.log(2 * np.pi * np.e * 0.5**2)
    assert abs(value.mean() + entropy) < 5 * value.std() / np.sqrt(len(value))


class TestOneDensity:
    """Pretraining, kernels and `model.log_prob` use the same density and the same sign."""

    def test_sampled_log_density_is_log_prob(self, tiny_model, tiny_data):
        posterior = tiny_model.posterior
        found = tiny_model.log_prob(posterior.draws, *tiny_data)
        np.testing.assert_allclose(found, posterior.sample_stats["lp"], rtol=0, atol=2e-3)

    def test_terms_add_up(self, tiny_model, tiny_data):
        theta = tiny_model.posterior.draws[0, 0]
        found = tiny_model.log_prob(theta, *tiny_data, return_terms=True)
        assert found["log_prob"] == found["log_prior"] + found["log_likelihood"]
        assert np.ndim(found["log_prob"]) == 0

    def test_full_batch_step_follows_its_gradient(self):
        """The first step of ADAM is learning_rate * sign(gradient of log_prob), rows as they count."""
        import tensorflow as tf

        from tfbnn.engine.density.data import make_data
        from tfbnn.engine.density.potential import Potential
        from tfbnn.engine.starts.adam import make_adam_steps, start_adam

        spec, generator = build("mixed_priors"), np.random.default_rng(4)
        rows = random_rows(spec, generator)
        data = make_data(*rows, spec.dtype, generator.uniform(0.5, 5.0, len(rows[0])))
        theta = tf.constant(generator.normal(size=(3, spec.layout.num_parameters)))
        settings = tfbnn.Pretraining(epochs=1, batch_size=None, learning_rate=1e-3)
        steps = make_adam_steps(spec, settings.learning_rate, "constant", None, 1, False)
        control = tf.constant([0, 1, 1, 1])
        state, _ = steps(start_adam(theta), data, tf.zeros([0, 3, 0], tf.int32), control)
        _, gradient = Potential(spec).value_and_gradient(theta, data)
        gradient = gradient.numpy()
        gradient[:, spec.layout.log_noise_scale.stop :] = 0.0  # sampled prior scales stay
        expected = 1e-3 * np.sign(gradient)
        np.testing.assert_allclose(state.theta - theta, expected, rtol=1e-3, atol=1e-9)
        # The first moment is a tenth of the gradient, of minus the density, which a sign would not show.
        np.testing.assert_allclose(state.mean, -0.1 * gradient, rtol=1e-9, atol=1e-12)
