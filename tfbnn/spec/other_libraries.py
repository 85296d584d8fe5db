"""Names of dtypes, and of activation functions of NumPy, TensorFlow and Keras, which are not imported."""

from typing import Any

import numpy as np

from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.system.words import name_of


def dtype_name(dtype: Any) -> Any:
    """Return the name of a dtype of NumPy or TensorFlow; all else is given back as it is."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    try:
        return np.dtype(dtype).name
    except TypeError:
        return getattr(dtype, "name", dtype)


def activation_name(activation: Any) -> Any:
    """Return the name of an activation function of NumPy, TensorFlow or Keras; all else is given back as it is.

    A function of the user's own is not understood, whatever it is called: predictions compute
    activations with NumPy, exports with the operations of their formats.
    """
    name = name_of(activation)
    name = "identity" if name == "linear" else name
    if isinstance(activation, str):
        return name
    # Functions of NumPy that are written in C say by their class alone where they are from.
    place = getattr(activation, "__module__", None) or type(activation).__module__
    # keras.ops has another formula by default, and both have a matrix.
    is_unlike = name in ("gelu", "identity") and place.startswith(("keras.src.ops", "numpy"))
    is_known = name in ACTIVATIONS and place.startswith(("tensorflow", "keras", "numpy"))
    return name if is_known and not is_unlike else activation
