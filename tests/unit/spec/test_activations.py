"""The activation functions agree between NumPy and TensorFlow and are what their names say."""

import numpy as np
import pytest
from scipy import special

from tfbnn.spec.activations import ACTIVATIONS

FORMULAS = {
    "tanh": np.tanh,
    "sigmoid": special.expit,
    "relu": lambda x: np.maximum(x, 0.0),
    "leaky_relu": lambda x: np.where(x < 0, 0.2 * x, x),
    "leaky_relu_0.01": lambda x: np.where(x < 0, 0.01 * x, x),
    "elu": lambda x: np.where(x < 0, np.exp(x) - 1.0, x),
    # Klambauer et al. 2017, arXiv:1706.02515, section 2.
    "selu": lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(x), x),
    "softplus": lambda x: np.log(1.0 + np.exp(x)),
    "gelu": lambda x: 0.5 * x * (1.0 + special.erf(x / np.sqrt(2.0))),
    "swish": lambda x: x / (1.0 + np.exp(-x)),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "sin": np.sin,
    "cos": np.cos,
    "erf": special.erf,
    "identity": lambda x: x,
}
POINTS = np.linspace(-8.0, 8.0, 801)

each_activation = pytest.mark.parametrize("name", sorted(ACTIVATIONS))
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def test_the_documented_names_are_there():
    assert set(ACTIVATIONS) == set(FORMULAS)


@each_activation
def test_numpy_agrees_with_the_formula(name):
    # The formulas above cancel near zero, at 1e-16 of one.
    np.testing.assert_allclose(
        ACTIVATIONS[name].numpy(POINTS), FORMULAS[name](POINTS), rtol=1e-13, atol=1e-14
    )


@pytest.mark.tensorflow
@each_activation
@each_dtype
def test_values_and_derivatives_are_those_of_tensorflow(name, dtype):
    tf = pytest.importorskip("tensorflow")
    x = tf.constant(POINTS.astype(dtype))  # zero, where the kinks are, is one of them
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = ACTIVATIONS[name].tensorflow(tf, x)
    eps = np.finfo(dtype).eps
    # A few roundings in either library, of intermediate results of size one where it saturates.
    np.testing.assert_allclose(
        ACTIVATIONS[name].numpy(x.numpy()), value, rtol=16 * eps, atol=16 * eps
    )
    slope = ACTIVATIONS[name].derivative(x.numpy())
    np.testing.assert_allclose(slope, tape.gradient(value, x), rtol=32 * eps, atol=32 * eps)


@each_dtype
def test_arrays_of_any_size_keep_dtype_and_shape_in_silence_and_the_input_too(dtype):
    """Unless it is where the result goes; warnings are errors in these tests."""
    given = np.array([[-1e30, -1e4, -100.0, -0.7], [0.3, 100.0, 1e4, 1e30]], dtype)
    for activation in ACTIVATIONS.values():
        x = given.copy()
        value, slope = activation.numpy(x), activation.derivative(x)
        for found in (value, slope):
            assert (found.dtype, found.shape) == (x.dtype, x.shape) and np.isfinite(found).all()
        np.testing.assert_array_equal(x, given)
        assert activation.numpy(x, out=x) is x
        np.testing.assert_array_equal(x, value)


@each_activation
def test_smooth_says_whether_the_derivative_is_continuous(name):
    step = 1e-6
    left, middle, right = ACTIVATIONS[name].numpy(np.array([-step, 0.0, step]))
    jump = abs((right - middle) - (middle - left)) / step
    # A smooth function's one-sided slopes differ by about step; the kinks here jump by over 0.7.
    assert (jump < 1e-4) == ACTIVATIONS[name].smooth
