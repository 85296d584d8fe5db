"""The one table of activation functions.

Each entry holds the NumPy function used for prediction, the TensorFlow function used for sampling
(given the module, so that this file imports none of it), and whether its derivative is continuous.
For a network with a kinked activation the leapfrog error is of first order, and a lower acceptance
rate is optimal (Dinh, Ho and Nguyen, NeurIPS 2024, arXiv:2410.22065).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["ACTIVATIONS", "Activation"]

# Slopes and constants as TensorFlow has them; SELU: Klambauer et al. 2017, arXiv:1706.02515.
_LEAKY_SLOPE = 0.2
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


@dataclass(frozen=True)
class Activation:
    """One activation function on both floors.

    Attributes:
        numpy: Array -> array of the same shape and dtype. It may overwrite its argument, which
            saves prediction from allocating memory.
        tensorflow: (tensorflow module, tensor) -> tensor of the same shape and dtype.
        smooth: Whether the first derivative is continuous.
    """

    numpy: Callable
    tensorflow: Callable
    smooth: bool


def _sigmoid(x):
    # Through tanh: no overflow on either side.
    x *= x.dtype.type(0.5)
    np.tanh(x, out=x)
    x += x.dtype.type(1)
    x *= x.dtype.type(0.5)
    return x


def _elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _selu(x):
    negative = x.dtype.type(_SELU_ALPHA) * np.expm1(np.minimum(x, 0))
    return x.dtype.type(_SELU_SCALE) * np.where(x > 0, x, negative)


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu(x):
    from scipy.special import ndtr

    return x * ndtr(x)


def _gelu_tensorflow(tf, x):
    # tf.nn.gelu rounds its constant to float32, which leaves an error of 5e-9 in float64.
    return 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))


_SWISH = Activation(lambda x: x * _sigmoid(x.copy()), lambda tf, x: x * tf.sigmoid(x), smooth=True)

ACTIVATIONS = {
    "tanh": Activation(lambda x: np.tanh(x, out=x), lambda tf, x: tf.tanh(x), smooth=True),
    "sigmoid": Activation(_sigmoid, lambda tf, x: tf.sigmoid(x), smooth=True),
    "relu": Activation(
        lambda x: np.maximum(x, 0, out=x), lambda tf, x: tf.nn.relu(x), smooth=False
    ),
    "leaky_relu": Activation(
        lambda x: np.maximum(x, x.dtype.type(_LEAKY_SLOPE) * x),
        # tf.nn.leaky_relu keeps its slope in float32.
        lambda tf, x: tf.maximum(x, _LEAKY_SLOPE * x),
        smooth=False,
    ),
    "elu": Activation(_elu, lambda tf, x: tf.nn.elu(x), smooth=True),
    "selu": Activation(_selu, lambda tf, x: tf.nn.selu(x), smooth=False),
    "softplus": Activation(_softplus, lambda tf, x: tf.nn.softplus(x), smooth=True),
    "gelu": Activation(_gelu, _gelu_tensorflow, smooth=True),
    "swish": _SWISH,
    "silu": _SWISH,
    "sin": Activation(lambda x: np.sin(x, out=x), lambda tf, x: tf.sin(x), smooth=True),
    "identity": Activation(lambda x: x, lambda tf, x: x, smooth=True),
}
