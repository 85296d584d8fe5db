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
def test_numpy_agrees_with_tensorflow(name, dtype):
    tf = pytest.importorskip("tensorflow")
    x = POINTS.astype(dtype)
    found, expected = ACTIVATIONS[name].numpy(x), ACTIVATIONS[name].tensorflow(tf, tf.constant(x))
    # A few roundings in either library, of intermediate results of size one where it saturates.
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, rtol=16 * eps, atol=16 * eps)


@pytest.mark.tensorflow
@each_activation
@each_dtype
def test_the_derivative_is_the_one_of_tensorflow(name, dtype):
    tf = pytest.importorskip("tensorflow")
    x = tf.constant(POINTS.astype(dtype))  # zero, where the kinks are, is one of them
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = ACTIVATIONS[name].tensorflow(tf, x)
    found, eps = ACTIVATIONS[name].derivative(x.numpy()), np.finfo(dtype).eps
    assert found.dtype == dtype
    np.testing.assert_allclose(found, tape.gradient(value, x), rtol=32 * eps, atol=32 * eps)


@each_dtype
def test_the_derivative_is_finite_in_silence_everywhere(dtype):
    for name in ACTIVATIONS:
        x = np.array([[-1e30, -1e4, -100.0], [100.0, 1e4, 1e30]], dtype)
        slope = ACTIVATIONS[name].derivative(x)
        assert slope.shape == x.shape and slope.dtype == x.dtype
        assert np.isfinite(slope).all()


@each_dtype
def test_dtype_and_shape_are_kept_and_the_input_too(dtype):
    for name in ACTIVATIONS:
        x = np.linspace(-2, 2, 12, dtype=dtype).reshape(3, 4)
        before = x.copy()
        result = ACTIVATIONS[name].numpy(x)
        assert result.dtype == x.dtype and result.shape == x.shape
        np.testing.assert_array_equal(x, before)


@each_dtype
def test_the_result_may_take_the_place_of_the_input(dtype):
    for name in ACTIVATIONS:
        inputs = POINTS.astype(dtype)
        expected = ACTIVATIONS[name].numpy(inputs)
        assert ACTIVATIONS[name].numpy(inputs, out=inputs) is inputs
        np.testing.assert_array_equal(inputs, expected)


@each_dtype
def test_large_arguments_give_finite_values_in_silence(dtype):
    for name in ACTIVATIONS:
        x = np.array([-1e30, -1e4, -100.0, 0.0, 100.0, 1e4, 1e30], dtype)
        assert np.isfinite(ACTIVATIONS[name].numpy(x)).all()  # warnings are errors in these tests


@each_activation
def test_smooth_says_whether_the_derivative_is_continuous(name):
    step = 1e-6
    left, middle, right = ACTIVATIONS[name].numpy(np.array([-step, 0.0, step]))
    jump = abs((right - middle) - (middle - left)) / step
    # A smooth function's one-sided slopes differ by about step; the kinks here jump by over 0.7.
    assert (jump < 1e-4) == ACTIVATIONS[name].smooth
