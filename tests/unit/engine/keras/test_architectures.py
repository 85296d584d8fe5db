"""Networks of papers: what their layers are, and how their outputs are spread under the prior."""

from functools import cache, partial

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.keras.describing import is_kinked
from tfbnn.engine.starts.check import draw_prior
from tfbnn.networks import fully_connected, residual_convolutional
from tfbnn.priors import Normal
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.model_spec import ModelSpec

PRIOR = {"readout/kernel": Normal(1.0), "kernel": Normal(1.5), "bias": Normal(0.1)}
NUM_DRAWS = 400


@cache
def spec_of(make, *arguments, **named):
    """The spec of a network in the ntk scaling, without transforms."""
    settings = {"parameterization": "ntk", "x_transform": None, "y_transform": None}
    return tfbnn.BayesianModel(make(*arguments, **named), prior=PRIOR, **settings).spec


def names(model):
    """Paths of the weights of a model."""
    return [variable.path for variable in model.trainable_variables]


def kernels(model):
    """Shapes of all kernels of a model, by layer."""
    found = {one.path: tuple(one.shape) for one in model.trainable_variables}
    return {
        path.removesuffix("/kernel"): shape for path, shape in found.items() if "kernel" in path
    }


def test_a_fully_connected_network_is_a_perceptron():
    spec = spec_of(fully_connected, 3, 2, width=5, depth=2)
    assert type(spec) is ModelSpec and spec.layer_sizes == (3, 5, 5, 2)
    assert [prior.kernel.scale for prior in spec.priors] == [1.5, 1.5, 1.0]
    image = fully_connected((2, 3, 1), 2, width=5, depth=1)
    assert image.input_shape == (None, 2, 3, 1)
    assert kernels(image) == {"hidden_1": (6, 5), "readout": (5, 2)}


def test_the_layers_of_a_residual_network():
    model = residual_convolutional((8, 6, 2), 3, channels=(4, 8), num_blocks=2)
    assert kernels(model) == {
        "stem": (3, 3, 2, 4),
        "group_1_block_1_first": (3, 3, 4, 4),
        "group_1_block_1_second": (3, 3, 4, 4),
        "group_1_block_2_first": (3, 3, 4, 4),
        "group_1_block_2_second": (3, 3, 4, 4),
        "group_2_block_1_shortcut": (1, 1, 4, 8),
        "group_2_block_1_first": (3, 3, 4, 8),
        "group_2_block_1_second": (3, 3, 8, 8),
        "group_2_block_2_first": (3, 3, 8, 8),
        "group_2_block_2_second": (3, 3, 8, 8),
        "readout": (8, 3),
    }
    assert model.get_layer("group_1_block_2_sum").output.shape == (None, 8, 6, 4)
    assert model.get_layer("group_2_block_2_sum").output.shape == (None, 4, 3, 8)
    flattened = residual_convolutional(
        (8, 6, 2), 3, channels=(4,), stem_strides=2, pooling="flatten"
    )
    assert kernels(flattened)["readout"] == (4 * 3 * 4, 3)
    same = residual_convolutional((8, 6, 2), 3, channels=(4, 8), num_blocks=2)
    assert names(same) == names(model)


def test_residual_sums_weigh_all_blocks_alike():
    """Where every block gives its own number the last sum has each of them with the same weight."""
    model = residual_convolutional((2, 2, 1), 1, channels=(1,), num_blocks=3)
    for variable in model.trainable_variables:
        variable.assign(np.zeros(variable.shape))
    for block, value in enumerate([1.0, 10.0, 100.0], start=1):
        model.get_layer(f"group_1_block_{block}_second").bias.assign([value])
    model.get_layer("stem").bias.assign([1000.0])
    inside = keras.Model(model.input, model.get_layer("group_1_block_3_sum").output)
    np.testing.assert_allclose(inside(np.zeros((1, 2, 2, 1))), 1111.0 / np.sqrt(4.0), rtol=1e-6)


@pytest.mark.parametrize(
    "make, shape, sizes",
    [
        (fully_connected, (4,), [{"width": width} for width in (16, 128)]),
        pytest.param(
            residual_convolutional,
            (4, 4, 1),
            [dict(channels=(width,), stem_strides=2, pooling="flatten") for width in (8, 32)],
            marks=pytest.mark.statistics,  # 10 s
        ),
    ],
)
def test_the_spread_of_outputs_does_not_depend_on_the_width(make, shape, sizes):
    """Of two outputs at one row, over 400 networks drawn by the prior.

    The networks are independent, and outputs of wide ones normal: the variance of 800 numbers is known
    to 5 %, and to about 10 % where the tails of narrow ones are heavier. 40 % is three to four errors of
    a difference, so a false alarm comes once in a few hundred seeds; this one is fixed. A scaling that
    forgot the width would be off by a factor of 4 or more.
    """
    x = np.ones((int(np.prod(shape)), 1))
    variances = []
    for size in sizes:
        spec = spec_of(make, shape, 2, **size)
        theta = tf.constant(draw_prior(spec, 1, NUM_DRAWS))
        outputs = compiled(partial(network_outputs, spec), jit_compile=False)
        variances.append(outputs(theta, tf.constant(x, spec.dtype)).numpy().var())
    assert 0.2 < variances[0] < 5.0
    np.testing.assert_allclose(variances[1], variances[0], rtol=0.4)


def test_the_readout_is_found():
    spec = spec_of(
        residual_convolutional, (4, 4, 1), 1, channels=(8,), stem_strides=2, pooling="flatten"
    )
    assert type(spec) is KerasSpec
    assert spec.readout.slot.num_inputs == 2 * 2 * 8 and spec.readout.prior.kernel.scale == 1.0
    assert spec.gauss_newton_obstacle is None and spec.facts.is_smooth


def test_max_pooling_has_kinks():
    """A layer on the largest of four pixels; HMC aims at the acceptance for kinks."""
    image, layers = keras.Input((2, 2, 1)), keras.layers
    hidden = layers.Flatten()(layers.MaxPooling2D(2)(image))
    spec = spec_of(lambda: keras.Model(image, layers.Dense(1, name="readout")(hidden)))
    assert not spec.facts.is_smooth
    assert tfbnn.kernels.HMC().accept_target(spec)[1] == "default for ReLU-like activations"
    theta = draw_prior(spec, 1, 3)
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(spec.dtype)
    found = network_outputs(spec, tf.constant(theta), tf.constant(x))[:, 0]
    expected = theta[:, :1] * x.max(axis=0)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-4)  # without the bias


@pytest.mark.parametrize(
    ("operation", "is_smooth"),
    [
        (keras.ops.relu, False),
        (lambda hidden: keras.ops.clip(hidden, -1.0, 1.0), False),
        (lambda hidden: keras.ops.max(hidden, axis=1, keepdims=True), False),
        (keras.ops.tanh, True),
        (lambda hidden: hidden[:, :2] * 2.0, True),
    ],
    ids=["relu", "clip", "max", "tanh", "part"],
)
def test_operations_that_are_no_layers_have_kinks_too(operation, is_smooth):
    row, layers = keras.Input((3,)), keras.layers
    last = layers.Dense(1, name="readout")(operation(layers.Dense(4)(row)))
    assert spec_of(lambda: keras.Model(row, last)).facts.is_smooth == is_smooth


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in ACTIVATIONS if hasattr(keras.activations, name)),
        *("hard_tanh", "hard_silu", "soft_shrink", "softsign", "sparse_plus", "sparse_sigmoid"),
    ],
)
def test_a_network_of_keras_has_kinks_where_its_activations_have(name):
    """Slopes of the function itself, of either side of the points where those of Keras may jump."""
    function = getattr(keras.activations, name)
    step, ends = 1e-3, np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])
    left, middle, right = (np.array(function(ends + shift)) for shift in (-step, 0.0, step))
    jump = np.abs((right - middle) - (middle - left)).max() / step
    assert is_kinked(keras.layers.Activation(function)) == (jump > 0.05)


@pytest.mark.parametrize(
    "make, error, what",
    [
        (lambda: fully_connected(0, 1), ValueError, "input_shape must be at least 1"),
        (lambda: fully_connected("4", 1), TypeError, "input_shape must be a sequence"),
        (lambda: fully_connected((), 1), ValueError, "input_shape must hold at least one"),
        (lambda: fully_connected(4, 1, depth=0), ValueError, "depth must be at least 1"),
        (lambda: fully_connected(4, 1.5), TypeError, "num_outputs must be an integer"),
        (lambda: fully_connected(4, 1, activation="gello"), ValueError, "gello"),
        (lambda: residual_convolutional((8, 8), 1), ValueError, "height, width, channels"),
        (lambda: residual_convolutional((8, 8, 1), 1, channels=8), TypeError, "channels must be a"),
        (lambda: residual_convolutional((8, 8, 1), 1, channels=[0]), ValueError, "channels must"),
        (
            lambda: residual_convolutional((8, 8, 1), 1, pooling="max"),
            ValueError,
            "pooling must be one of",
        ),
        (
            lambda: residual_convolutional((8, 8, 1), 1, stem_strides=0),
            ValueError,
            "stem_strides must be at least 1",
        ),
    ],
)
def test_other_sizes_are_refused(make, error, what):
    with pytest.raises(error, match=what):
        make()
