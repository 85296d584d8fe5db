"""The one table of activation functions.

Each entry holds the NumPy function used for prediction, the TensorFlow function used for sampling
(given the module, so that this file imports none of it), and whether its derivative is continuous.
For a network with a kinked activation the leapfrog error is of first order, and a lower acceptance
rate is optimal (Dinh, Ho and Nguyen, NeurIPS 2024, arXiv:2410.22065).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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
        numpy: (array, out=None) -> array of the same shape and dtype, like a ufunc; `out` may be
            the array itself, which saves prediction from allocating memory.
        tensorflow: (tensorflow module, tensor) -> tensor of the same shape and dtype.
        smooth: Whether the first derivative is continuous.
    """

    numpy: Callable
    tensorflow: Callable
    smooth: bool


def _sigmoid(x, out=None):
    # Through tanh: no overflow on either side.
    half = x.dtype.type(0.5)
    result = np.tanh(half * x, out=out)
    result += 1
    result *= half
    return result


def _leaky_relu(x, out=None):
    return np.maximum(x, x.dtype.type(_LEAKY_SLOPE) * x, out=out)


def _elu(x, out=None):
    return np.add(np.maximum(x, 0), np.expm1(np.minimum(x, 0)), out=out)


def _selu(x, out=None):
    negative = x.dtype.type(_SELU_ALPHA) * np.expm1(np.minimum(x, 0))
    return np.multiply(x.dtype.type(_SELU_SCALE), np.maximum(x, 0) + negative, out=out)


def _softplus(x, out=None):
    return np.add(np.maximum(x, 0), np.log1p(np.exp(-np.abs(x))), out=out)


def _gelu(x, out=None):
    from scipy.special import ndtr

    return np.multiply(x, ndtr(x), out=out)


def _swish(x, out=None):
    return np.multiply(x, _sigmoid(x), out=out)


def _gelu_tensorflow(tf, x):
    # tf.nn.gelu rounds its constant to float32, which leaves an error of 5e-9 in float64.
    return 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))


_SWISH = Activation(_swish, lambda tf, x: x * tf.sigmoid(x), smooth=True)

ACTIVATIONS = {
    "tanh": Activation(np.tanh, lambda tf, x: tf.tanh(x), smooth=True),
    "sigmoid": Activation(_sigmoid, lambda tf, x: tf.sigmoid(x), smooth=True),
    "relu": Activation(partial(np.maximum, 0), lambda tf, x: tf.nn.relu(x), smooth=False),
    "leaky_relu": Activation(
        _leaky_relu,
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
    "sin": Activation(np.sin, lambda tf, x: tf.sin(x), smooth=True),
    "identity": Activation(np.positive, lambda tf, x: x, smooth=True),
}
