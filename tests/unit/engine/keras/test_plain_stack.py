"""Stacks of Dense layers are perceptrons, and what only looks like one is not."""

import keras
import numpy as np
import pytest
from keras import layers

import tfbnn
from tests.support.keras_models import KINDS
from tfbnn.engine.keras.spec_of_model import plain_stack
from tfbnn.priors import ARD, HalfNormal, HierarchicalNormal, LayerPrior, Normal
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.model_spec import ModelSpec


def sequential(*inside, shape=(3,)):
    return keras.Sequential([keras.Input(shape), *inside])


def graph(end):
    start = keras.Input((3,))
    return keras.Model(start, end(start))


def with_operation(operation):
    """Operations of Keras that are no layers; some do nothing to most rows."""
    return graph(lambda x: layers.Dense(1)(operation(x, layers.Dense(4, activation="tanh")(x))))


def shared():
    layer = layers.Dense(3, activation="tanh")
    return graph(lambda x: layers.Dense(1)(layer(layer(x))))


def frozen(part=lambda layer: layer):
    model = sequential(layers.Dense(2), layers.Dense(1))
    part(model.layers[0]).trainable = False
    return model


def test_a_stack_is_a_perceptron_with_its_defaults():
    spec = KINDS["dense"].model().spec
    assert spec == tfbnn.BayesianMLP([3, 4, 4, 1], activation=["tanh", "relu"]).spec
    assert isinstance(spec.priors[0].kernel, ARD)


def test_functional_models_are_recognised_too():
    model = graph(lambda x: layers.Dense(1)(layers.Dense(4, activation="swish")(x)))
    assert plain_stack(model) == ([3, 4, 1], ["silu"])


OTHERS = {
    "half of a layer frozen": lambda: frozen(lambda layer: layer.kernel),
    "clipped": lambda: graph(lambda x: keras.ops.clip(layers.Dense(1)(x), -50.0, 50.0)),
    "clipped inside": lambda: with_operation(lambda _, hidden: keras.ops.minimum(hidden, 5.0)),
    "joined": lambda: with_operation(lambda *both: keras.ops.concatenate(both, axis=-1)),
    "some columns": lambda: with_operation(lambda start, _: start[:, :2]),
    "shared": shared,
    "skipping": lambda: graph(lambda x: layers.Dense(1)(x + layers.Dense(3)(x))),
    "frozen": frozen,
    "no bias": lambda: sequential(layers.Dense(2, use_bias=False), layers.Dense(1)),
    "ends in an activation": lambda: sequential(layers.Dense(1, activation="tanh")),
    "another slope": lambda: sequential(layers.Dense(2), layers.LeakyReLU(0.3), layers.Dense(1)),
    "an own activation": lambda: sequential(layers.Dense(2, activation="mish"), layers.Dense(1)),
    "normalised": KINDS["batch norm"].make,
    "subclassed": KINDS["subclassed"].make,
    "images": lambda: sequential(layers.Flatten(), layers.Dense(1), shape=(2, 2)),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_what_is_no_plain_stack_is_none(make):
    assert plain_stack(make()) is None


@pytest.mark.parametrize("name", dir(keras.activations))
def test_an_activation_that_is_recognised_is_the_one_of_that_name(name):
    function = getattr(keras.activations, name)
    stack = callable(function) and plain_stack(
        sequential(layers.Dense(2), layers.Activation(function), layers.Dense(1))
    )
    assert stack or name not in ACTIVATIONS
    if stack:
        x = np.linspace(-4.0, 4.0, 41)
        ours = ACTIVATIONS[stack[1][0]].numpy(x)
        np.testing.assert_allclose(function(x), ours, rtol=1e-6, atol=1e-6)


def test_patterns_become_priors_of_layers():
    model = KINDS["dense"].make()
    first = model.layers[0].kernel.path
    spec = tfbnn.BayesianModel(
        model, prior={first: Normal(0.3), "bias": Normal(2.0)}, parameterization="ntk"
    ).spec
    default = HierarchicalNormal(HalfNormal(1.0))
    others = LayerPrior(default, Normal(2.0))
    assert isinstance(spec, ModelSpec)
    assert spec.priors == (LayerPrior(Normal(0.3), Normal(2.0)), others, others)


def test_with_a_fixed_weight_a_stack_stays_a_keras_model():
    model = sequential(layers.Dense(2, name="one"), layers.Dense(1, name="two"))
    spec = tfbnn.BayesianModel(model, prior={"*one/kernel": "fixed"}).spec
    assert [one.path.split("/", 1)[1] for one in spec.frozen] == ["one/kernel"]
    np.testing.assert_array_equal(spec.frozen[0].array, model.layers[0].kernel.numpy())
    assert len(spec.sampled) == 3
