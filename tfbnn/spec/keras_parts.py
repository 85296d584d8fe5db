"""What the description of a Keras model consists of: its variables, and facts about its layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfbnn.data.validation import check_choice
from tfbnn.spec.network_facts import NetworkFacts, check_count, check_shape, check_text
from tfbnn.spec.priors import WeightPrior, array_of, text_of
from tfbnn.system.arrays import Array

# A file that asks for more is not one of ours.
MOST_VARIABLES = 10_000
_FROZEN_DTYPES = ("float32", "float64", "int32", "int64", "uint8", "uint32", "bool")


@dataclass(frozen=True)
class SampledVariable:
    """A variable that is sampled.

    Attributes:
        path: Its name in the model, such as "dense/kernel".
        index: Its place among the model's variables.
        shape: Of its weights.
        fan_in: Numbers that a unit adds up with these weights; 1 of what is no kernel.
        prior: Of its weights.
    """

    path: str
    index: int
    shape: tuple[int, ...]
    fan_in: int
    prior: WeightPrior

    def __post_init__(self) -> None:
        _check_place(self)
        check_count("fan_in", self.fan_in, minimum=1)
        if not isinstance(self.prior, WeightPrior):
            raise TypeError(f"a variable must have a prior of weights, found {self.prior!r:.99}")


@dataclass(frozen=True)
class FrozenVariable:
    """A variable that keeps its value: weights that are not sampled, and state.

    Attributes:
        path, index, shape: As of a SampledVariable.
        dtype: Name of its dtype.
        values: `text_of` its numbers.
    """

    path: str
    index: int
    shape: tuple[int, ...]
    dtype: str
    values: str

    def __post_init__(self) -> None:
        _check_place(self)
        if not np.isfinite(self.array.astype(np.float64)).all():
            raise ValueError(f"{self.path!r:.99} must be finite")

    @classmethod
    def of(cls, path: str, index: int, array: Array) -> FrozenVariable:
        """The variable with these values."""
        return cls(path, index, array.shape, array.dtype.name, text_of(array))

    @property
    def array(self) -> Array:
        """Its values.

        Raises:
            ValueError: Where they are not those of its shape.
        """
        dtype = check_choice("dtype", self.dtype, _FROZEN_DTYPES)
        try:
            return array_of(self.values, self.shape, dtype)
        except ValueError as error:
            raise ValueError(f"the values of {self.path!r:.99}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class KerasFacts(NetworkFacts):
    """What is known of a Keras model without Keras.

    Attributes besides those of `NetworkFacts`:
        title: Kind and name, such as "Functional 'digits'".
        keras_version: Of the Keras that it was described with.
        readout: Place among the sampled variables of the kernel of a last Dense layer without
            activation, whose bias is next; None where there is none.
        random_layers: Names of layers that are random in training, and off here.
        custom: Where the classes are defined that are not Keras' own, "module:name" each.
    """

    title: str
    keras_version: str
    readout: int | None
    random_layers: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.readout is not None:
            check_count("readout", self.readout, minimum=0)
        for texts in (self.custom, self.random_layers):
            if not isinstance(texts, tuple) or len(texts) > MOST_VARIABLES:
                raise TypeError(f"expected at most {MOST_VARIABLES} names, found {texts!r:.99}")
        for text in (*self.custom, *self.random_layers, self.title, self.keras_version):
            check_text("a fact", text)


def _check_place(variable: SampledVariable | FrozenVariable) -> None:
    check_text("path", variable.path)
    check_count("index", variable.index, minimum=0)
    check_shape("shape", variable.shape)
