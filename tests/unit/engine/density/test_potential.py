"""The one density and its network: against independent NumPy code, its gradient, and everyone who uses it."""

import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tests.support.builders import make_rows, plain_spec, synthetic_ensemble
from tests.support.engine_checks import check_density
from tests.support.kernels.joint_models import engine_target
from tests.support.marks import statistics_but
from tests.support.shapes import METHODS, holding
from tests.support.specs import CASES, CONTRASTING, MODELS, build, random_rows, setting
from tfbnn import likelihoods, priors
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density import value_and_gradient as kernels_function
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.reparametrisation import Collapsed, RepriorisedPotential
from tfbnn.engine.starts.adam import make_adam_steps, start_adam
from tfbnn.engine.starts.check import draw_prior
from tfbnn.posterior import forward
from tfbnn.spec.activations import ACTIVATIONS

# Noise per row is the likelihood's alone: models that differ in their priors do without.
PRIORS = ["laplace", "located", "uniform", "mixed_priors", "hierarchical", "hierarchical_ntk"]
PRIORS += ["ard", "ard_ntk", "ntk", "linear"]


def terms(spec, theta, x, y, row_noise):
    """(Log prior, log likelihood), without a program that would be called once."""
    potential, theta = Potential(spec), tf.constant(theta, spec.dtype)
    data = make_data(x, y, row_noise, spec.dtype)
    return potential.log_prior(theta).numpy(), potential.log_likelihood(theta, data).numpy()


@pytest.mark.parametrize(
    "name, with_row_noise",
    [(name, noise) for name, noise in CASES if not noise or name not in PRIORS],
)
def test_density_equals_numpy(name, with_row_noise):
    check_density(name, with_row_noise=with_row_noise)


@pytest.mark.parametrize("name", statistics_but(["gaussian_learned", "ard_ntk"], CONTRASTING))
def test_density_equals_numpy_in_float32(name):
    check_density(name, "float32", 1e-4)


def test_float32_keeps_acceptance_with_many_rows_and_small_noise():
    """10^4 rows, noise 0.01: energy differences agree with float64 to a few hundredths.

    The kernel sees the density relative to its value at the start; without that, float32
    would resolve it no better than 0.004 here, and its sum no better than 0.5.
    """
    generator = np.random.default_rng(8)
    x = generator.normal(size=(10_000, 2))
    y = np.tanh(x @ [[1.0], [-0.5]]) + 0.01 * generator.normal(size=(10_000, 1))
    theta = 0.003 * generator.normal(size=(40, 18))
    theta[:, [0, 4, 12]] += [1.0, -0.5, 1.0]  # the first hidden unit is the truth
    theta[:, -1] = np.log(0.01)
    values = {}
    for dtype in ("float32", "float64"):
        potential = Potential(build("gaussian_learned", dtype))
        data = make_data(x, y, None, dtype)
        value = potential.log_prob(tf.constant(theta, dtype), data)
        values[dtype] = tf.cast(value - value[0], dtype).numpy().astype(np.float64)
    assert np.ptp(values["float64"]) > 1000
    np.testing.assert_allclose(values["float32"], values["float64"], rtol=1e-4, atol=0.02)


@pytest.mark.parametrize("name", MODELS)
def test_gradient_equals_central_differences(name):
    spec, generator = build(name), np.random.default_rng(2)
    x, y, noise = random_rows(spec, generator)
    data = make_data(x, y, noise, spec.dtype)
    theta = generator.normal(size=spec.layout.num_parameters)
    _, gradient = Potential(spec).value_and_gradient(tf.constant(theta[None]), data)
    step = 1e-5 * np.eye(len(theta))
    value = sum(terms(spec, np.concatenate([theta + step, theta - step]), x, y, noise))
    numeric = (value[: len(theta)] - value[len(theta) :]) / 2e-5
    np.testing.assert_allclose(gradient[0], numeric, rtol=1e-6, atol=1e-6)


def test_uniform_prior_is_minus_infinity_outside_its_box():
    spec = build("uniform")
    theta = np.zeros((1, spec.layout.num_parameters))
    theta[0, 3] = 5.5
    assert terms(spec, theta, np.zeros((1, 2)), np.zeros((1, 1)), None)[0] == [-np.inf]


def test_prior_scales_are_those_of_the_coordinates():
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
    assert np.isfinite(terms(spec, theta, x, y, None)[1]).all()


def test_standard_and_ntk_are_the_same_model_in_function_space():
    """Moving the factor from the network into the prior changes theta, not f or p(f)."""
    sizes, sigma_w, sigma_b = [3, 16, 8, 1], 1.5, 0.5
    one, *others = (
        {"kernel": priors.Normal(sigma), "bias": priors.Normal(sigma_b)}
        for sigma in (sigma_w, *(sigma_w / np.sqrt(sizes[:-1])))
    )
    noise = likelihoods.Gaussian(0.1)
    ntk = plain_spec(sizes, prior=one, likelihood=noise, parameterization="ntk")
    standard = plain_spec(sizes, prior=others, likelihood=noise)
    generator = np.random.default_rng(3)
    theta = generator.normal(size=(20, ntk.layout.num_parameters))
    factor = np.ones(ntk.layout.num_parameters)
    for kernel, bias in ntk.layout.layers:
        factor[kernel.weights] = sigma_w / np.sqrt(kernel.shape[0])
        factor[bias.weights] = sigma_b
    x, y = generator.normal(size=(9, 3)), generator.normal(size=(9, 1))
    (prior, likelihood), scaled = (
        terms(spec, point, x, y, None) for spec, point in ((ntk, theta), (standard, theta * factor))
    )
    np.testing.assert_allclose(likelihood, scaled[1], rtol=1e-12)
    np.testing.assert_allclose(prior, scaled[0] + np.log(factor).sum(), rtol=1e-12)


@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_prior_draws_follow_the_prior(parameterization):
    """The log prior of draws has the mean that the prior's entropy demands."""
    spec = plain_spec(
        [2, 6, 1],
        prior={"kernel": priors.Laplace(0.3), "bias": priors.Normal(2.0)},
        likelihood=likelihoods.Gaussian("learned", scale_prior=priors.LogNormal(-2.0, 0.5)),
        parameterization=parameterization,
    )
    draws = draw_prior(spec, seed=5, num_chains=4000)
    value, _ = terms(spec, draws, np.zeros((1, 2)), np.zeros((1, 1)), None)
    laplace, normal = (1.0, 1.0) if parameterization == "ntk" else (0.3, 2.0)
    entropy = 18 * (1 + np.log(2 * laplace)) + 7 * 0.5 * np.log(2 * np.pi * np.e * normal**2)
    entropy += 0.5 * np.log(2 * np.pi * np.e * 0.5**2)
    assert abs(value.mean() + entropy) < 5 * value.std() / np.sqrt(len(value))


class TestOneDensity:
    """Pretraining, kernels and `model.log_prob` use the same density and the same sign."""

    def test_terms_add_up(self):
        model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble())
        theta, rows = model.posterior.draws[0, 0], make_rows(9, 2, 1)
        found = model.log_prob(theta, *rows, return_terms=True)
        assert found["log_prob"] == found["log_prior"] + found["log_likelihood"]
        assert np.ndim(found["log_prob"]) == 0 and found["log_prob"] == model.log_prob(theta, *rows)

    def test_full_batch_step_follows_its_gradient(self):
        """The first step of ADAM is learning_rate * sign(gradient of log_prob), rows as they count."""
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


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_numpy_and_tensorflow_networks_agree(dtype, tolerance, parameterization):
    x = np.random.default_rng(14).normal(size=(17, 3))
    settings = dict(dtype=dtype, parameterization=parameterization, num_results=5)
    settings["prior"] = priors.HierarchicalNormal()
    for name in ACTIVATIONS:
        ensemble = synthetic_ensemble((3, 9, 7, 2), activation=name, **settings)
        theta = tf.constant(ensemble.draws.reshape(10, -1))
        found = network_outputs(ensemble.spec, theta, tf.constant(x.T, dtype))
        expected = forward.network_outputs(ensemble, x)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=tolerance * scale, err_msg=name)


def test_the_densities_are_held():
    for cls in (Potential, RepriorisedPotential):
        for name in METHODS.keys() & vars(cls).keys():
            assert hasattr(getattr(cls, name), "__wrapped__"), name


def test_what_is_not_as_promised_is_refused():
    potential, x = Potential(plain_spec([2, 3, 1])), np.zeros((4, 2))
    data = make_data(x, x[:, :1], None, "float32")
    theta = tf.zeros([5, potential.spec.num_parameters])
    value, gradient = potential.value_and_gradient(theta, data)
    assert value.shape == [5] and gradient.dtype == tf.float32
    with pytest.raises(TypeError, match=r"\(theta\) has shape \[14\], not \[C, P\]"):
        potential.log_prob(theta[0], data)
    argument, results = METHODS["value_and_gradient"]
    for found in [(value[:2], gradient), (value, gradient[:, :2]), (value, value[:, None])]:
        with pytest.raises(TypeError, match="has shape"):
            holding(lambda theta, found=found: found, argument, results)(theta)
    with pytest.raises(TypeError, match="returns <dtype: 'float32'>, not float64"):
        holding(lambda theta: (tf.cast(value, tf.float32), gradient), argument, results)(theta)


def test_a_start_takes_the_compiled_function_and_programs_the_pure_one(monkeypatch):
    spec, data, theta = setting("gaussian_learned")
    z, target = tf.constant(np.stack([theta, 0.5 * theta])), engine_target(spec, data, 2)
    expected = Potential(spec).value_and_gradient(z, data)

    def taped(z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = target(z)
        return value, tape.gradient(value, z)

    asked, original = [], kernels_function.compiled_value_and_gradient

    def spy(potential):
        asked.append(potential)
        return original(potential)

    monkeypatch.setattr(kernels_function, "compiled_value_and_gradient", spy)
    for function, times in ((taped, 1), (compiled(taped, jit_compile=False), 0)):
        asked.clear()
        for one, other in zip(function(z), expected):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        assert len(asked) == times
