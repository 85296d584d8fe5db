"""Small Keras models, one of each kind that papers use, with rows that they take.

Importing this needs Keras.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import keras
import numpy as np
from keras import layers

import tfbnn
from tests.support import small_runs
from tfbnn.kernels import HMC

# Short fits of them.
RUN = small_runs.RUN | dict(
    kernel=HMC(num_leapfrog_steps=2), num_results=10, num_burnin_steps=10, jit_compile=False
)


@keras.saving.register_keras_serializable("tests")
class Residual(keras.Model):
    """A residual block in a class of its own, as no config of Keras' own kinds describes it."""

    def __init__(self, width=4, **named):
        super().__init__(**named)
        self.width = width
        self.inner, self.outer = layers.Dense(width, activation="tanh"), layers.Dense(width)
        self.last = layers.Dense(1)

    def call(self, x):
        hidden = self.outer(self.inner(x))
        return self.last(hidden + self.inner(x))

    def get_config(self):
        return {**super().get_config(), "width": self.width}


def dense():
    return keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(4, activation="tanh"),
            layers.Dense(4),
            layers.Activation("relu"),
            layers.Dropout(0.5),
            layers.Dense(1),
        ],
        name="stack",
    )


def subclassed():
    model = Residual(name="residual")
    model(np.zeros((2, 3), "float32"))
    return model


def batch_norm():
    model = keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(4, name="first"),
            layers.BatchNormalization(name="normal"),
            layers.Activation("tanh"),
            layers.Dense(1, name="last"),
        ],
        name="normalised",
    )
    generator = np.random.default_rng(1)
    model.get_layer("normal").moving_mean.assign(generator.normal(size=4))
    model.get_layer("normal").moving_variance.assign(generator.uniform(0.5, 2.0, size=4))
    return model


def convolutional():
    image = keras.Input((6, 6, 1))
    hidden = layers.Conv2D(4, 3, padding="same", name="stem")(image)
    block = layers.GroupNormalization(2, name="normal")(hidden)
    block = layers.Conv2D(4, 3, padding="same", activation="swish", name="inside")(block)
    hidden = layers.AveragePooling2D(2)(hidden + block)
    hidden = layers.Dropout(0.5, name="drop")(layers.Flatten()(hidden))
    return keras.Model(image, layers.Dense(3, name="last")(hidden), name="digits")


def attention():
    words = keras.Input((4, 3))
    hidden = layers.MultiHeadAttention(2, 2, name="heads")(words, words)
    hidden = layers.LayerNormalization(name="normal")(layers.Add()([words, hidden]))
    return keras.Model(words, layers.Dense(1, name="last")(layers.Flatten()(hidden)), name="words")


def recurrent():
    words = keras.Input((4, 2))
    return keras.Model(
        words, layers.Dense(1, name="last")(layers.LSTM(3, name="lstm")(words)), name="series"
    )


class Kind(NamedTuple):
    """An architecture, the shape of its rows, and the likelihood of what it gives."""

    make: Callable[[], keras.Model]
    shape: tuple[int, ...]
    likelihood: object = tfbnn.likelihoods.Gaussian("learned")

    def rows(self, num_rows=24):
        """Inputs [N, *shape], and targets that depend on them."""
        generator = np.random.default_rng(3)
        x = generator.normal(size=(num_rows, *self.shape))
        signal = x.reshape(num_rows, -1)[:, 0]
        if self.likelihood.has_classes:
            return x, np.digitize(signal, [-0.4, 0.4])
        return x, np.sin(signal) + 0.1 * generator.normal(size=num_rows)

    def model(self, **settings):
        """A BayesianModel of it, not fitted yet."""
        return tfbnn.BayesianModel.from_spec(_spec(self, **settings))


@cache
def _spec(kind, **settings):
    """One for all tests that ask for the same, as it takes a second or two to make."""
    return tfbnn.BayesianModel(kind.make(), **({"likelihood": kind.likelihood} | settings)).spec


KINDS = {
    "dense": Kind(dense, (3,)),
    "subclassed": Kind(subclassed, (3,)),
    "batch norm": Kind(batch_norm, (3,)),
    "residual convolutional": Kind(convolutional, (6, 6, 1), tfbnn.likelihoods.Categorical()),
    "attention": Kind(attention, (4, 3)),
    "recurrent": Kind(recurrent, (4, 2)),
}
