"""Networks of papers, as built Keras models for `BayesianModel(keras_model)`."""

from tfbnn.engine.keras.architectures import fully_connected, residual_convolutional

__all__ = ["fully_connected", "residual_convolutional"]
