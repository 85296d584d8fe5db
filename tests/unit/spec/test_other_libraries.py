"""Dtypes and activation functions of other libraries are understood by their names, or refused."""

from functools import partial

import numpy as np
import pytest

import tfbnn
from tfbnn.spec.activations import ACTIVATIONS, activation_name
from tfbnn.spec.network_spec import dtype_name


def function_of(module, name):
    """A function that says that it is of a library, as far as anybody looks."""

    def function(x):
        raise AssertionError("it is not called")

    function.__module__, function.__name__ = module, name
    return function


class DType:
    """A dtype that has a name, as TensorFlow's dtypes have."""

    def __init__(self, name):
        self.name = name


@pytest.mark.parametrize(
    "given", ["float64", np.float64, np.dtype("float64"), float, DType("float64")]
)
def test_dtypes_are_understood(given):
    assert dtype_name(given) == "float64"
    assert tfbnn.BayesianMLP([2, 3, 1], dtype=given).spec.dtype == "float64"


@pytest.mark.parametrize("given", [DType("bfloat16"), np.float16, np.int64, "float"])
def test_dtypes_that_nothing_is_sampled_in_are_refused(given):
    with pytest.raises(ValueError, match=r"dtype must be one of \['float32', 'float64'\]"):
        tfbnn.BayesianMLP([2, 3, 1], dtype=given)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (np.tanh, "tanh"),
        (np.sin, "sin"),
        (function_of("tensorflow.python.ops.math_ops", "sigmoid"), "sigmoid"),
        (function_of("keras.src.activations.activations", "linear"), "identity"),
        (function_of("keras.src.activations.activations", "leaky_relu"), "leaky_relu"),
        ("linear", "identity"),
        ("tanh", "tanh"),
    ],
)
def test_activations_are_understood(given, name):
    assert activation_name(given) == name
    assert tfbnn.BayesianMLP([2, 3, 1], activation=given).spec.activations == (name,)
    several = tfbnn.BayesianMLP([2, 3, 3, 1], activation=[given, "elu"])
    assert several.spec.activations == (name, "elu")


class ReLU:
    """A layer."""

    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    "given",
    [function_of("__main__", "relu"), function_of("torch.nn.functional", "relu"), ReLU(), ReLU],
)
def test_others_are_refused_with_the_name_to_use(given):
    with pytest.raises(TypeError, match=r"activation must be one of .*Did you mean 'relu'\?$"):
        tfbnn.BayesianMLP([2, 3, 1], activation=given)


@pytest.mark.parametrize("given", [np.sinh, np.identity, partial(np.maximum, 0), 3])
def test_what_has_no_name_here_is_refused(given):
    with pytest.raises(TypeError, match="activation must be one of"):
        tfbnn.BayesianMLP([2, 3, 1], activation=given)


@pytest.mark.tensorflow
def test_those_of_tensorflow_and_keras_are_the_same_functions():
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    assert dtype_name(tf.float64) == "float64" and dtype_name(tf.bfloat16) == "bfloat16"
    x = np.linspace(-5.0, 5.0, 101).astype(np.float32)
    modules = (tf.nn, tf.math, tf, keras.activations, keras.ops)
    found = [getattr(module, name, None) for module in modules for name in (*ACTIVATIONS, "linear")]
    others = [keras.ops.gelu, keras.ops.identity]  # an approximation by default, a matrix
    functions = [function for function in found if function not in (None, *others)]
    assert len(functions) > 25 and list(map(activation_name, others)) == others
    for function in functions:
        expected = ACTIVATIONS[activation_name(function)].numpy(x)
        np.testing.assert_allclose(np.asarray(function(x)), expected, rtol=1e-5, atol=1e-6)
