"""Chains that start at the weights of a Keras model compute what it computes."""

import numpy as np
import pytest

import tfbnn
from tests.support.entries import fake_fit
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.network import network_outputs
from tfbnn.fit.given import given_starts
from tfbnn.priors import Normal
from tfbnn.run.options import Sampling
from tfbnn.spec.rows import NetworkRows

pytestmark = pytest.mark.tensorflow

keras = pytest.importorskip("keras")
NO_TRANSFORMS = dict(x_transform=None, y_transform=None)
SETTINGS = {
    "auto": NO_TRANSFORMS,
    "standard": NO_TRANSFORMS | dict(prior=Normal(0.5), parameterization="standard"),
}


def stack(width=4, *inside, **settings):
    first = keras.layers.Dense(width, activation="tanh", **settings)
    layers = [keras.Input((2,)), first, *inside, keras.layers.Dense(1)]
    return keras.Sequential(layers, name="net")


def normalised(**settings):
    return stack(4, keras.layers.BatchNormalization(name="normal"), **settings)


def rows(model, noise=0.25):
    x = np.random.default_rng(0).normal(size=(400, 2))
    y = model(x.astype("float32")).numpy()
    return NetworkRows(x, y + noise * np.random.default_rng(1).normal(size=y.shape), None)


def started(spec, model, data, num_chains=3):
    return given_starts(spec, model, Sampling(num_chains=num_chains), data)


@pytest.mark.parametrize("make", [stack, normalised])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_network_is_the_model_and_the_noise_that_of_its_residuals(make, settings):
    model = make()
    for one in model.trainable_variables:
        if one.path.endswith("bias"):
            one.assign(0.1 * np.arange(1, 1 + one.shape[0]))
    spec = tfbnn.BayesianModel(model, **settings).spec
    data = rows(model)
    theta, text, *_ = started(spec, model, data)
    assert theta.shape[0] == 3 and np.all(theta == theta[0]) and "'net'" in text
    found = network_outputs(spec, *map(tf.constant, (theta[:1], data.x.T.astype("float32"))))[0]
    expected = model(data.x.astype("float32")).numpy().T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    noise = np.exp(theta[0, spec.layout.log_noise_scale])
    np.testing.assert_allclose(noise, np.std(data.y - expected.T), rtol=0.01)


def test_scales_of_priors_are_those_of_the_weights():
    model = stack()
    model.layers[0].kernel.assign(np.full((2, 4), 0.5))
    spec = tfbnn.BayesianModel(model, **NO_TRANSFORMS).spec
    theta = started(spec, model, rows(model)).theta[0]
    (_, weights, scales), *_ = spec.weight_groups()
    np.testing.assert_allclose(np.exp(theta[scales]), 0.5 * 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(theta[weights], 1.0, rtol=1e-6)


def refused(spec, model, data=None):
    with pytest.raises(ValueError, match="^initial_state must") as error:
        started(spec, model, data or rows(stack()))
    return str(error.value)


def test_another_model_is_refused():
    spec = tfbnn.BayesianModel(stack(), **NO_TRANSFORMS).spec
    assert "[2, 4, 1] with ['tanh'" in refused(spec, stack(5))
    assert "'net', which differs" in refused(spec, normalised())
    spec = tfbnn.BayesianModel(normalised(), **NO_TRANSFORMS).spec
    assert "'net', which differs" in refused(spec, normalised(trainable=False))
    later = normalised()
    later.get_layer("normal").moving_mean.assign(np.ones(4))
    words = "normal/moving_mean', which is not sampled: make BayesianModel anew"
    assert words in refused(spec, later)


def test_weights_for_rows_of_another_scale_are_refused():
    model = stack()
    spec = tfbnn.BayesianModel(model, y_transform="standardize").spec
    data = rows(model, noise=0.0)
    assert "make both transforms None" in refused(spec, model, data._replace(y=data.y + 50.0))
    started(spec, model, data._replace(y=data.y + 1.5 * data.y.std()))  # weak, but on their scale


def test_a_fit_starts_there(engine):
    model = stack()
    data = rows(model)
    sampled = tfbnn.BayesianModel(model, **NO_TRANSFORMS)
    kernel = tfbnn.kernels.RandomWalkMetropolis()
    run = fake_fit(sampled, data.x, data.y, initial_state=model, kernel=kernel, jit_compile=False)
    given = engine.calls[-1][1][0].initial_state
    np.testing.assert_array_equal(given.theta, started(sampled.spec, model, data, 2).theta)
    assert "the weights of the Keras model 'net'" in run.report(details=True)
