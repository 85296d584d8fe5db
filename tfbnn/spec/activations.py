"""Table of activation functions.

Each entry holds the NumPy function used for prediction and its derivative, the TensorFlow function
used for sampling, the operations of an ONNX file, and whether the derivative is continuous. The
TensorFlow function takes the module as an argument, so that this file does not import it. For a
network with a kinked activation the leapfrog error is of first order, and a lower acceptance rate
is optimal (Dinh, Ho and Nguyen, NeurIPS 2024, arXiv:2410.22065).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.transforms import Operation
from tfbnn.data.validation import check_choice
from tfbnn.spec.distributions import normal_cdf
from tfbnn.system.arrays import Array
from tfbnn.system.words import name_of

# Constants as in TensorFlow; SELU: Klambauer et al. 2017, arXiv:1706.02515.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805
# Further out the normal density is zero in float64.
_DENSITY_ENDS = 40.0
# TensorProto.FLOAT of the ONNX standard.
_ONNX_FLOAT = 1


class Activation(NamedTuple):
    """An activation function for NumPy, TensorFlow and ONNX.

    Attributes:
        numpy: (array, out=None) -> array of the same shape and dtype, like a ufunc; `out` may be
            the array itself, which saves prediction from allocating memory.
        derivative: array -> its derivative there, of the same shape and dtype; at a kink the value
            that TensorFlow uses.
        tensorflow: (tensorflow module, tensor) -> tensor of the same shape and dtype.
        onnx: (op, name of a tensor) -> name of the result, where op(kind, *inputs) adds an
            operation of the ONNX standard and takes numbers as inputs too. Operations that runtimes
            have for float32 alone (Elu, Selu, Softplus) are composed of others.
        smooth: Whether the first derivative is continuous; default True.
        odd: Whether f(-x) = -f(x), so that a unit with all its signs flipped is the same unit;
            default False.
    """

    numpy: Callable[..., Array]
    derivative: Callable[[Array], Array]
    tensorflow: Callable[[Any, Any], Any]
    onnx: Callable[[Operation, str], str]
    smooth: bool = True
    odd: bool = False


def _sigmoid(x: Array, *, out: Array | None = None) -> Array:
    # Through tanh: no overflow on either side.
    half = x.dtype.type(0.5)
    result: Array = np.tanh(half * x, out=out)
    result += 1
    result *= half
    return result


def _elu(x: Array, *, out: Array | None = None) -> Array:
    return np.add(np.maximum(x, 0), np.expm1(np.minimum(x, 0)), out=out)


def _selu(x: Array, *, out: Array | None = None) -> Array:
    negative = x.dtype.type(_SELU_ALPHA) * np.expm1(np.minimum(x, 0))
    scale = x.dtype.type(_SELU_SCALE)
    return np.multiply(scale, np.maximum(x, 0) + negative, out=out)


def _softplus(x: Array, *, out: Array | None = None) -> Array:
    return np.add(np.maximum(x, 0), np.log1p(np.exp(-np.abs(x))), out=out)


def _gelu(x: Array, *, out: Array | None = None) -> Array:
    return np.multiply(x, normal_cdf(x), out=out, dtype=x.dtype, casting="same_kind")


def _erf(x: Array, *, out: Array | None = None) -> Array:
    found = 2.0 * normal_cdf(2.0**0.5 * x) - 1.0
    return np.add(found, 0.0, out=out, dtype=x.dtype, casting="same_kind")


def _swish(x: Array, *, out: Array | None = None) -> Array:
    return np.multiply(x, _sigmoid(x), out=out)


def _tanh_slope(x: Array) -> Array:
    return 1 - np.tanh(x) ** 2


def _sigmoid_slope(x: Array) -> Array:
    value = _sigmoid(x)
    return value * (1 - value)


def _relu_slope(x: Array) -> Array:
    return (x > 0).astype(x.dtype)


def _elu_slope(x: Array) -> Array:
    return np.exp(np.minimum(x, 0))


def _selu_slope(x: Array) -> Array:
    factor = np.where(x < 0, x.dtype.type(_SELU_ALPHA) * np.exp(np.minimum(x, 0)), x.dtype.type(1))
    return x.dtype.type(_SELU_SCALE) * factor


def _gelu_slope(x: Array) -> Array:
    near = np.clip(x, -_DENSITY_ENDS, _DENSITY_ENDS)  # its square overflows further out
    density = np.exp(-0.5 * near**2) * x.dtype.type((2.0 * np.pi) ** -0.5)
    return (normal_cdf(x) + near * density).astype(x.dtype)


def _erf_slope(x: Array) -> Array:
    near = np.clip(x, -_DENSITY_ENDS, _DENSITY_ENDS)
    return (x.dtype.type(2.0 * np.pi**-0.5) * np.exp(-(near**2))).astype(x.dtype)


def _swish_slope(x: Array) -> Array:
    value = _sigmoid(x)
    return value + x * (value * (1 - value))


def _gelu_tensorflow(tf: Any, x: Any) -> Any:
    # tf.nn.gelu rounds its constant to float32, which leaves an error of 5e-9 in float64.
    return 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))


def _elu_onnx(op: Operation, x: str) -> str:
    return op("Add", op("Max", x, 0.0), _expm1_of_negative_onnx(op, x))


def _selu_onnx(op: Operation, x: str) -> str:
    # The sum comes last: onnxruntime rounds a factor before a matrix product to float32.
    positive = op("Mul", op("Max", x, 0.0), _SELU_SCALE)
    return op("Add", positive, op("Mul", _expm1_of_negative_onnx(op, x), _SELU_SCALE * _SELU_ALPHA))


def _expm1_of_negative_onnx(op: Operation, x: str) -> str:
    return op("Sub", op("Exp", op("Min", x, 0.0)), 1.0)


def _softplus_onnx(op: Operation, x: str) -> str:
    tail = op("Log", op("Add", op("Exp", op("Neg", op("Abs", x))), 1.0))
    return op("Add", op("Max", x, 0.0), tail)


def _gelu_onnx(op: Operation, x: str) -> str:
    erf = _erf_onnx(op, op("Mul", x, 0.5**0.5))
    return op("Mul", op("Mul", x, 0.5), op("Add", erf, 1.0))


def _erf_onnx(op: Operation, x: str) -> str:
    # onnxruntime has Erf for float32 alone: 6e-8 of error in a float64 network.
    return op("CastLike", op("Erf", op("Cast", x, to=_ONNX_FLOAT)), x)


def _leaky_relu(slope: float) -> Activation:
    """Return the leaky ReLU with a slope between 0 and 1 for negative inputs."""

    def of_numpy(x: Array, *, out: Array | None = None) -> Array:
        return np.maximum(x, x.dtype.type(slope) * x, out=out)

    def derivative(x: Array) -> Array:
        return np.where(x < 0, x.dtype.type(slope), x.dtype.type(1))

    return Activation(
        of_numpy,
        derivative,
        # tf.nn.leaky_relu keeps its slope in float32.
        lambda tf, x: tf.maximum(x, slope * x),
        lambda op, x: op("Max", x, op("Mul", x, slope)),
        smooth=False,
    )


_SWISH = Activation(
    _swish,
    _swish_slope,
    lambda tf, x: x * tf.sigmoid(x),
    lambda op, x: op("Mul", x, op("Sigmoid", x)),
)

ACTIVATIONS = {
    "tanh": Activation(
        np.tanh, _tanh_slope, lambda tf, x: tf.tanh(x), lambda op, x: op("Tanh", x), odd=True
    ),
    "sigmoid": Activation(
        _sigmoid, _sigmoid_slope, lambda tf, x: tf.sigmoid(x), lambda op, x: op("Sigmoid", x)
    ),
    "relu": Activation(
        partial(np.maximum, 0),
        _relu_slope,
        lambda tf, x: tf.nn.relu(x),
        lambda op, x: op("Relu", x),
        smooth=False,
    ),
    # The default slope of TensorFlow, and that of PyTorch and JAX.
    "leaky_relu": _leaky_relu(0.2),
    "leaky_relu_0.01": _leaky_relu(0.01),
    "elu": Activation(_elu, _elu_slope, lambda tf, x: tf.nn.elu(x), _elu_onnx),
    "selu": Activation(_selu, _selu_slope, lambda tf, x: tf.nn.selu(x), _selu_onnx, smooth=False),
    "softplus": Activation(_softplus, _sigmoid, lambda tf, x: tf.nn.softplus(x), _softplus_onnx),
    "gelu": Activation(_gelu, _gelu_slope, _gelu_tensorflow, _gelu_onnx),
    "swish": _SWISH,
    "silu": _SWISH,
    "sin": Activation(
        np.sin, np.cos, lambda tf, x: tf.sin(x), lambda op, x: op("Sin", x), odd=True
    ),
    "cos": Activation(
        np.cos,
        lambda x: -np.sin(x),
        lambda tf, x: tf.cos(x),
        # onnxruntime has Cos for float32 alone.
        lambda op, x: op("Sin", op("Add", x, 0.5 * np.pi)),
    ),
    "erf": Activation(_erf, _erf_slope, lambda tf, x: tf.math.erf(x), _erf_onnx, odd=True),
    "identity": Activation(
        np.positive, np.ones_like, lambda tf, x: x, lambda op, x: op("Identity", x), odd=True
    ),
}


def activation_name(activation: Any) -> Any:
    """Return the name of an activation function of NumPy, TensorFlow or Keras.

    Other values are returned unchanged. A user's own function is not recognised, whatever its name:
    predictions compute activations with NumPy, and exports with the operations of their formats.
    """
    name = name_of(activation)
    name = "identity" if name == "linear" else name
    if isinstance(activation, str):
        return name
    # NumPy functions written in C have no module of their own, but their class has.
    module = getattr(activation, "__module__", None) or type(activation).__module__
    # gelu of keras.ops has another formula by default; identity of keras.ops and NumPy is a matrix.
    is_unlike = name in ("gelu", "identity") and module.startswith(("keras.src.ops", "numpy"))
    is_known = name in ACTIVATIONS and module.startswith(("tensorflow", "keras", "numpy"))
    return name if is_known and not is_unlike else activation


def activations_of(activation: Any, num_hidden: int) -> tuple[str, ...]:
    """Return the activation name of each hidden layer, from one name for all or a list.

    Raises:
        TypeError, ValueError: For unknown names, or a list of another length.
    """
    if not isinstance(activation, (list, tuple)):
        return (_activation(activation),) * num_hidden
    if len(activation) != num_hidden:
        raise ValueError(
            f"activation must be one name or {num_hidden}, one per hidden layer, received "
            f"{len(activation)}."
        )
    return tuple(map(_activation, activation))


def _activation(activation: Any) -> str:
    return check_choice("activation", activation_name(activation), ACTIVATIONS)
