"""What the description of a Keras model consists of: its variables, and facts about its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.validation import check_choice, check_integer
from tfbnn.spec.priors import WeightPrior, array_of, text_of
from tfbnn.spec.settings_json import ADDED, settings_from_json
from tfbnn.system.arrays import Array

# A file that asks for more is not one of ours.
MOST_NUMBERS = 2**30
_MOST_VARIABLES, _MOST_AXES, _LONGEST_TEXT = 10_000, 8, 1000
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

    @classmethod
    def from_json(cls, entry: dict[str, Any], registry: Mapping[str, type]) -> SampledVariable:
        """What `settings_to_json` wrote, validated; priors by their names in a registry."""
        check_keys(entry, cls)
        prior = settings_from_json(entry["prior"], registry)
        if not isinstance(prior, WeightPrior):
            raise TypeError(
                f"a variable must have a prior of weights, found {entry['prior']!r:.99}"
            )
        fan_in = _count("fan_in", entry["fan_in"], minimum=1)
        return cls(*_place(entry), fan_in, prior)


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

    @classmethod
    def of(cls, path: str, index: int, array: Array) -> FrozenVariable:
        """The variable with these values."""
        return cls(path, index, array.shape, array.dtype.name, text_of(array))

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> FrozenVariable:
        """What `settings_to_json` wrote, validated."""
        check_keys(entry, cls)
        dtype, values = entry["dtype"], entry["values"]
        if not (isinstance(dtype, str) and isinstance(values, str)):
            raise TypeError("dtype and values of a frozen variable must be texts")
        variable = cls(*_place(entry), dtype, values)
        if not np.isfinite(variable.array.astype(np.float64)).all():
            raise ValueError(f"{variable.path!r:.99} must be finite")
        return variable

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


@dataclass(frozen=True)
class KerasFacts:
    """What is known of a Keras model without Keras.

    Attributes:
        title: Kind and name, such as "Functional 'digits'".
        input_shape: Of one row.
        num_outputs: Numbers that it gives for a row.
        num_units: Numbers that all its layers give for a row.
        widest: The most numbers that one of them takes or gives.
        num_products: Products of all its layers for a row, about.
        is_smooth: Whether all its layers have a continuous gradient.
        readout: Place among the sampled variables of the kernel of a last Dense layer without
            activation, whose bias is next; None where there is none.
        no_jacobian: Why there are no derivatives of every row's outputs, or None.
        keras_version: Of the Keras that it was described with.
        random_layers: Names of layers that are random in training, and off here.
        custom: Where the classes are defined that are not Keras' own, "module:name" each.
        num_words: How many words inputs may number, where an Embedding receives them; else None.
    """

    title: str
    keras_version: str
    input_shape: tuple[int, ...]
    num_outputs: int
    num_units: int
    widest: int
    num_products: int
    is_smooth: bool
    readout: int | None
    no_jacobian: str | None
    random_layers: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()
    num_words: int | None = field(default=None, metadata=ADDED)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> KerasFacts:
        """What `settings_to_json` wrote, validated."""
        if isinstance(entry, dict):  # earlier files do not say
            entry = {"num_words": None, **entry}
        check_keys(entry, cls)
        facts: dict[str, Any] = {key: value for key, value in entry.items() if key != "name"}
        for key in ("num_outputs", "num_units", "widest", "num_products"):
            facts[key] = _count(key, facts[key], minimum=1)
        facts["input_shape"] = _shape("input_shape", facts["input_shape"])
        for key, least in (("readout", 0), ("num_words", 1)):
            if facts[key] is not None:
                facts[key] = _count(key, facts[key], minimum=least)
        for key in ("title", "keras_version"):
            facts[key] = _text(key, facts[key])
        if facts["no_jacobian"] is not None:
            facts["no_jacobian"] = _text("no_jacobian", facts["no_jacobian"])
        for key in ("custom", "random_layers"):
            facts[key] = tuple(_text(key, name) for name in listed(key, facts[key]))
        if not isinstance(facts["is_smooth"], bool):
            raise TypeError(f"is_smooth must be true or false, found {facts['is_smooth']!r:.99}")
        return cls(**facts)


def _place(entry: dict[str, Any]) -> tuple[str, int, tuple[int, ...]]:
    index = _count("index", entry["index"], minimum=0)
    return _text("path", entry["path"]), index, _shape("shape", entry["shape"])


def check_keys(entry: Any, kind: type, but: Sequence[str] = ()) -> None:
    """Refuses what is not the JSON of such settings, in which some fields are not."""
    keys = {"name", *(field.name for field in fields(kind))} - {*but}
    if not isinstance(entry, dict) or set(entry) != keys or entry["name"] != kind.__name__:
        raise ValueError(f"expected a {kind.__name__}, found {entry!r:.200}")


def listed(name: str, entries: Any) -> list[Any]:
    """A list of what a model has some of, or a TypeError."""
    if not isinstance(entries, list) or len(entries) > _MOST_VARIABLES:
        raise TypeError(f"{name} must be a list of at most {_MOST_VARIABLES} variables")
    return entries


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise TypeError(f"{name} must be a list of at most {_MOST_AXES} sizes, found {shape!r:.99}")
    sizes = tuple(_count(name, size, minimum=1) for size in shape)
    if prod(sizes) > MOST_NUMBERS:
        raise ValueError(f"{name} must have at most {MOST_NUMBERS} entries, found {sizes}")
    return sizes


def _count(name: str, value: Any, minimum: int) -> int:
    number = check_integer(name, value, minimum=minimum)
    if number > MOST_NUMBERS:
        raise ValueError(f"{name} must be at most {MOST_NUMBERS}, found {number}")
    return number


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise TypeError(f"{name} must be a text of up to {_LONGEST_TEXT}, found {value!r:.99}")
    return value
