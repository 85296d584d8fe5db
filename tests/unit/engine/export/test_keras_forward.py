"""The program that predicts with a Keras model is tried before anything is sampled."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tfbnn
from tfbnn.engine.export import tensorflow_forward
from tfbnn.engine.keras.keras_network import network_of


class Compiled(layers.Layer):
    """A layer that TensorFlow refuses in a program, once it is told to."""

    refuses = False

    def call(self, x):
        if self.refuses and x.shape[0] is None:
            raise NotImplementedError("Fusion is not implemented: [BiasAdd,Add]\nand so on")
        return x


def test_a_model_that_could_not_predict_is_refused_before_it_is_sampled(monkeypatch):
    row = keras.Input((2,))
    model = tfbnn.BayesianModel(keras.Model(row, layers.Dense(1)(Compiled()(row))))
    network_of(model.spec, "float32")
    monkeypatch.setattr(Compiled, "refuses", True)
    fits = (
        lambda: model.fit_posterior(np.eye(5, 2), np.arange(5.0)),
        lambda: tfbnn.BayesianModel.from_spec(model.spec),
    )
    for fit in fits:
        with pytest.raises(ValueError, match=r"program that predicts .*\[BiasAdd,Add\]"):
            fit()


def test_a_lack_of_memory_is_no_fault_of_a_layer():
    with pytest.raises(tf.errors.ResourceExhaustedError), tensorflow_forward._explained(Exception):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
