"""Networks of papers as Keras models that are built, and that `BayesianModel` samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import sqrt
from typing import Any

from tfbnn.data.validation import check_choice, check_integer
from tfbnn.engine.basis.libraries import keras

_POOLINGS = ("average", "flatten")


def fully_connected(
    input_shape: int | Sequence[int],
    num_outputs: int,
    *,
    width: int = 256,
    depth: int = 3,
    activation: Any = "gelu",
) -> Any:
    """A perceptron of equal hidden layers, as a Keras model.

    Without an image to flatten it is a plain stack, which `BayesianModel` makes a `BayesianMLP`.

    Args:
        input_shape: Shape of one row, or its number of inputs; images are flattened.
        num_outputs: Outputs of the readout, a Dense layer "readout" without an activation.
        width: Units of each hidden layer; default 256.
        depth: Hidden layers; default 3, as in the reference.
        activation: As Keras takes it; default "gelu", as in the reference.

    Returns:
        A built keras.Model; layers are named "hidden_1", "hidden_2", .. and "readout".

    Raises:
        ImportError: Where Keras is not installed.
        TypeError, ValueError: For sizes that are no positive integers, and an activation that Keras
            does not know.

    References:
        Hron, Novak, Pennington and Sohl-Dickstein 2022, arXiv:2206.07673, section 4.2.1.

    Example:
        prior = {"readout/kernel": Normal(1.0), "kernel": Normal(1.5), "bias": Normal(0.1)}
        model = tfbnn.BayesianModel(fully_connected(64, 10, width=512),
                                    prior=prior, parameterization="ntk")
    """
    shape = _shape([input_shape] if not isinstance(input_shape, Sequence) else input_shape)
    num_outputs = check_integer("num_outputs", num_outputs, minimum=1)
    width = check_integer("width", width, minimum=1)
    depth = check_integer("depth", depth, minimum=1)
    layers = keras.layers
    row = keras.Input(shape)
    hidden = layers.Flatten(name="flat")(row) if len(shape) > 1 else row
    for index in range(depth):
        hidden = layers.Dense(width, activation=activation, name=f"hidden_{index + 1}")(hidden)
    readout = layers.Dense(num_outputs, name="readout")(hidden)
    return keras.Model(row, readout, name="fully_connected")


def residual_convolutional(
    input_shape: Sequence[int],
    num_outputs: int,
    *,
    channels: Sequence[int] = (16, 32, 64),
    num_blocks: int = 1,
    kernel_size: int = 3,
    stem_strides: int = 1,
    pooling: str = "average",
    activation: Any = "gelu",
) -> Any:
    """A residual convolutional network without normalisation, as a Keras model.

    A convolution, the stem, then groups of residual blocks, then the readout. A block adds
    conv(activation(conv(activation(h)))) to h; the first of each group but the first halves the
    image, and where shapes differ, h goes through a convolution of its own with a kernel of 1. Sums
    are weighted so that layers keep their variance under a prior whose scale is one over the root mean
    square of the activation: 1.5 for "gelu". Before the k-th sum h is multiplied by sqrt(k / (k + 1))
    and what is added by sqrt(1 / (k + 1)), so that all blocks have the same part in the last.

    Args:
        input_shape: (height, width, channels) of one image.
        num_outputs: Outputs of the readout, a Dense layer "readout" without an activation.
        channels: Of the groups; default (16, 32, 64). In the reference 128, 256, 512.
        num_blocks: Residual blocks of each group; default 1. In the reference 3, for 20 layers.
        kernel_size: Edge of the kernels; default 3.
        stem_strides: Strides of the stem; default 1. 2 makes all that follows four times as fast.
        pooling: "average" (default, as in the reference): the readout has a feature for each of the
            last channels, its mean over the image. "flatten": one for each channel and pixel.
        activation: As Keras takes it; default "gelu", as in the reference.

    Returns:
        A built keras.Model; layers are named "stem", "group_1_block_1_first", .. "_second" and
        "_shortcut", and "readout".

    Raises:
        ImportError: Where Keras is not installed.
        TypeError, ValueError: For sizes that are no positive integers, another pooling, and an
            activation that Keras does not know.

    References:
        Hron, Novak, Pennington and Sohl-Dickstein 2022, arXiv:2206.07673, section 4.2.2, which has
        the wide residual networks of Zagoruyko and Komodakis 2016, arXiv:1605.07146, with the sums
        of Shao, Hu, Wang, Xue and Raj 2020, "Is normalization indispensable for training deep neural
        networks?".

    Example:
        network = residual_convolutional((8, 8, 1), 10, channels=(64,))
        prior = {"readout/kernel": Normal(1.0), "kernel": Normal(1.5), "bias": Normal(0.1)}
        model = tfbnn.BayesianModel(network, prior=prior, parameterization="ntk",
                                    likelihood=tfbnn.likelihoods.Gaussian(0.1))
    """
    shape = _shape(input_shape)
    if len(shape) != 3:
        raise ValueError(
            f"input_shape must be (height, width, channels) of an image, received {input_shape!r}. "
            "Give images of one colour the shape (height, width, 1)."
        )
    num_outputs = check_integer("num_outputs", num_outputs, minimum=1)
    widths = [check_integer("channels", one, minimum=1) for one in _several("channels", channels)]
    num_blocks = check_integer("num_blocks", num_blocks, minimum=1)
    kernel_size = check_integer("kernel_size", kernel_size, minimum=1)
    stem_strides = check_integer("stem_strides", stem_strides, minimum=1)
    check_choice("pooling", pooling, _POOLINGS)
    layers, numbers = keras.layers, count(1)
    image = keras.Input(shape)
    hidden = layers.Conv2D(
        widths[0], kernel_size, strides=stem_strides, padding="same", name="stem"
    )(image)
    for group, width in enumerate(widths, start=1):
        for block in range(1, num_blocks + 1):
            halves = group > 1 and block == 1
            name = f"group_{group}_block_{block}"
            hidden = _block(hidden, name, next(numbers), width, kernel_size, halves, activation)
    hidden = layers.Activation(activation, name="last_activation")(hidden)
    if pooling == "average":
        hidden = layers.GlobalAveragePooling2D(name="average")(hidden)
    else:
        hidden = layers.Flatten(name="flat")(hidden)
    readout = layers.Dense(num_outputs, name="readout")(hidden)
    return keras.Model(image, readout, name="residual_convolutional")


def _block(
    hidden: Any,
    name: str,
    number: int,
    width: int,
    kernel_size: int,
    halves: bool,
    activation: Any,
) -> Any:
    """Return the output of the residual block with this number among all blocks, counted from 1."""
    layers, strides = keras.layers, 2 if halves else 1

    def convolution(edge: int, role: str, strides: int = 1) -> Any:
        return layers.Conv2D(width, edge, strides=strides, padding="same", name=f"{name}_{role}")

    def active(hidden: Any) -> Any:
        return layers.Activation(activation)(hidden)

    inner = active(hidden)
    if halves or hidden.shape[-1] != width:
        hidden = convolution(1, "shortcut", strides)(inner)
    inner = convolution(kernel_size, "first", strides)(inner)
    inner = convolution(kernel_size, "second")(active(inner))
    kept = layers.Rescaling(sqrt(number / (number + 1)))(hidden)
    added = layers.Rescaling(sqrt(1 / (number + 1)))(inner)
    return layers.Add(name=f"{name}_sum")([kept, added])


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of one row."""
    return tuple(
        check_integer("input_shape", size, minimum=1) for size in _several("input_shape", value)
    )


def _several(name: str, value: Any) -> Sequence[Any]:
    """A sequence that holds something."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name} must be a sequence of integers, received {name}={value!r}.")
    if not value:
        raise ValueError(f"{name} must hold at least one integer, received {name}={value!r}.")
    return value
