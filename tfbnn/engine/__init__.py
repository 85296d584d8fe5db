"""The upper floor: everything that needs TensorFlow. Nothing outside this folder imports it."""
