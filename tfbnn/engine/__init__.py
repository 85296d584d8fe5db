"""The upper floor: everything that needs TensorFlow. Nothing outside this folder imports it."""

import os

# TensorFlow prints its build flags and missing GPU libraries to standard error on import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
