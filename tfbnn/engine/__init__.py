"""The upper floor: everything that needs TensorFlow. Nothing outside this folder imports it."""

import os

# TensorFlow prints its build flags and missing GPU libraries to standard error on import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

# TensorFloat-32 keeps 10 bits of a product's factors: far too few for acceptance ratios.
tf.config.experimental.enable_tensor_float_32_execution(False)
