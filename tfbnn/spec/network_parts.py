"""Parts of network descriptions: facts about the layers, and the variables of a Keras model."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.validation import check_choice, check_integer
from tfbnn.spec.priors import WeightPrior, array_of, text_of
from tfbnn.spec.settings_json import ADDED
from tfbnn.system.arrays import Array

# A file that declares more was not written by tfbnn.
MOST_NUMBERS, MOST_VARIABLES = 2**30, 10_000
_MOST_AXES, _LONGEST_TEXT = 8, 1000
_FROZEN_DTYPES = ("float32", "float64", "int32", "int64", "uint8", "uint32", "bool")


@dataclass(frozen=True, kw_only=True)
class NetworkFacts:
    """Sizes and other facts of a network.

    Attributes:
        input_shape: Shape of one input row.
        num_outputs: Number of outputs per row.
        num_units: Number of values that all its layers give per row.
        widest: Largest number of values that one layer takes or gives.
        num_products: Approximate number of products of all its layers per row.
        is_smooth: Whether all its layers have a continuous gradient.
        no_jacobian: Reason why there are no derivatives of every row's outputs, or None.
        num_words: Number of words that inputs may number, if an Embedding receives them; else None.
    """

    input_shape: tuple[int, ...]
    num_outputs: int
    num_units: int
    widest: int
    num_products: int
    is_smooth: bool
    no_jacobian: str | None
    num_words: int | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        _check_shape("input_shape", self.input_shape)
        for name in ("num_outputs", "num_units", "widest", "num_products", "num_words"):
            if name != "num_words" or self.num_words is not None:
                _check_count(name, getattr(self, name), minimum=1)
        _check_text("a fact", self.no_jacobian or "")
        if not isinstance(self.is_smooth, bool):
            raise TypeError(f"is_smooth must be true or false, found {self.is_smooth!r:.99}")


@dataclass(frozen=True, kw_only=True)
class KerasFacts(NetworkFacts):
    """Facts about a Keras model that are known without Keras.

    Attributes besides those of `NetworkFacts`:
        title: Kind and name, such as "Functional 'digits'".
        keras_version: Version of Keras with which the model was described.
        readout: Index, among the sampled variables, of the kernel of a last Dense layer without
            activation; its bias is next. None if there is no such layer.
        random_layers: Names of layers that are random in training, and off here.
        custom: Where user-defined classes are defined, each as "module:name".
    """

    title: str
    keras_version: str
    readout: int | None
    random_layers: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.readout is not None:
            _check_count("readout", self.readout, minimum=0)
        for texts in (self.custom, self.random_layers):
            if not isinstance(texts, tuple) or len(texts) > MOST_VARIABLES:
                raise TypeError(f"expected at most {MOST_VARIABLES} names, found {texts!r:.99}")
        for text in (*self.custom, *self.random_layers, self.title, self.keras_version):
            _check_text("a fact", text)


@dataclass(frozen=True)
class Place:
    """Path, index and shape of a variable of a Keras model.

    Attributes:
        path: Its name in the model, such as "dense/kernel".
        index: Its index among the model's variables.
        shape: Shape of its weights.
    """

    path: str
    index: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class SampledVariable(Place):
    """A variable that is sampled.

    Attributes besides those of `Place`:
        fan_in: Number of inputs that a unit sums with these weights; 1 if it is no kernel.
        prior: Prior of its weights.
    """

    fan_in: int
    prior: WeightPrior

    def __post_init__(self) -> None:
        _check_variable(self)
        _check_count("fan_in", self.fan_in, minimum=1)
        if not isinstance(self.prior, WeightPrior):
            raise TypeError(f"a variable must have a prior of weights, found {self.prior!r:.99}")


@dataclass(frozen=True)
class FrozenVariable(Place):
    """A variable that keeps its value: weights that are not sampled, or state.

    Attributes besides those of `Place`:
        dtype: Name of its dtype.
        values: Its numbers as text, see `text_of`.
    """

    dtype: str
    values: str

    def __post_init__(self) -> None:
        _check_variable(self)
        if not np.isfinite(self.array.astype(np.float64)).all():
            raise ValueError(f"{self.path!r:.99} must be finite")

    @classmethod
    def of(cls, path: str, index: int, array: Array) -> FrozenVariable:
        """Build the variable from an array of its values."""
        return cls(path, index, array.shape, array.dtype.name, text_of(array))

    @property
    def array(self) -> Array:
        """Values of the variable.

        Raises:
            ValueError: If they do not fit its shape.
        """
        dtype = check_choice("dtype", self.dtype, _FROZEN_DTYPES)
        try:
            return array_of(self.values, self.shape, dtype)
        except ValueError as error:
            raise ValueError(f"the values of {self.path!r:.99}: {error}") from error


def _check_variable(variable: Place) -> None:
    _check_text("path", variable.path)
    _check_count("index", variable.index, minimum=0)
    _check_shape("shape", variable.shape)


def _check_shape(name: str, shape: Any) -> None:
    if not isinstance(shape, tuple) or len(shape) > _MOST_AXES:
        raise TypeError(f"{name} must be a list of at most {_MOST_AXES} sizes, found {shape!r:.99}")
    for size in shape:
        _check_count(name, size, minimum=1)
    _check_count(name, prod(shape), minimum=1)


def _check_count(name: str, value: Any, minimum: int) -> None:
    if check_integer(name, value, minimum=minimum) > MOST_NUMBERS:
        raise ValueError(f"{name} must be at most {MOST_NUMBERS}, found {value}")


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise TypeError(f"{name} must be a text of up to {_LONGEST_TEXT}, found {value!r:.99}")
