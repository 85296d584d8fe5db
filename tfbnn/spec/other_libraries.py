"""Names for what other libraries hand over: their dtypes and activation functions.

None of them is imported: whoever passes such a thing has done so.
"""

from typing import Any

import numpy as np

from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.system.words import name_of

# Where a function of a known name is the one of `ACTIVATIONS`.
_LIBRARIES = {"jax", "keras", "numpy", "tensorflow", "tf_keras", "torch"}
# What Keras calls otherwise.
_OTHER_NAMES = {"linear": "identity"}
# Their leaky ReLU has another slope than TensorFlow's.
_LEAKY_BY_A_HUNDREDTH = ("jax", "torch")
# Where a name is something else: another formula by default, a matrix.
_UNLIKE = {
    "gelu": ("jax", "keras.src.ops"),
    "identity": ("jax._src.numpy", "jax.numpy", "keras.src.ops", "numpy"),
}


def dtype_name(dtype: Any) -> Any:
    """The name of a dtype of NumPy, TensorFlow, JAX or PyTorch; all else is given back as it is."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    try:
        return np.dtype(dtype).name
    except TypeError:
        pass
    if type(dtype).__name__.lower() != "dtype":
        return dtype
    # TensorFlow's have a name, PyTorch's only the text "torch.float64".
    return str(getattr(dtype, "name", dtype)).rpartition(".")[2]


def activation_name(activation: Any) -> Any:
    """The name of an activation function of another library; all else is given back as it is.

    A function of the user's own is not understood, whatever it is called: predictions compute
    activations with NumPy, exports with the operations of their formats.
    """
    name = _OTHER_NAMES.get(name_of(activation), name_of(activation))
    if isinstance(activation, str):
        return name
    # Those of NumPy and PyTorch that are written in C say where they are from by their class only.
    place = getattr(activation, "__module__", None) or type(activation).__module__
    if name == "leaky_relu" and place.startswith(_LEAKY_BY_A_HUNDREDTH):
        name = "leaky_relu_0.01"
    is_like = name in ACTIVATIONS and not place.startswith(_UNLIKE.get(name, ()))
    return name if is_like and place.partition(".")[0] in _LIBRARIES else activation
