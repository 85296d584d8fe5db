"""Facts about a network that decide how it is sampled, whatever computes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from tfbnn.data.validation import check_integer
from tfbnn.spec.settings_json import ADDED

# A file that asks for more is not one of ours.
MOST_NUMBERS = 2**30
_MOST_AXES, _LONGEST_TEXT = 8, 1000


@dataclass(frozen=True, kw_only=True)
class NetworkFacts:
    """Sizes and kind of a network.

    Attributes:
        input_shape: Of one row.
        num_outputs: Numbers that it gives for a row.
        num_units: Numbers that all its layers give for a row.
        widest: The most numbers that one of them takes or gives.
        num_products: Products of all its layers for a row, about.
        is_smooth: Whether all its layers have a continuous gradient.
        no_jacobian: Why there are no derivatives of every row's outputs, or None.
        num_words: How many words inputs may number, where an Embedding receives them; else None.
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
        check_shape("input_shape", self.input_shape)
        for name in ("num_outputs", "num_units", "widest", "num_products", "num_words"):
            if name != "num_words" or self.num_words is not None:
                check_count(name, getattr(self, name), minimum=1)
        check_text("a fact", self.no_jacobian or "")
        if not isinstance(self.is_smooth, bool):
            raise TypeError(f"is_smooth must be true or false, found {self.is_smooth!r:.99}")


def check_shape(name: str, shape: Any) -> None:
    if not isinstance(shape, tuple) or len(shape) > _MOST_AXES:
        raise TypeError(f"{name} must be a list of at most {_MOST_AXES} sizes, found {shape!r:.99}")
    for size in shape:
        check_count(name, size, minimum=1)
    check_count(name, prod(shape), minimum=1)


def check_count(name: str, value: Any, minimum: int) -> None:
    if check_integer(name, value, minimum=minimum) > MOST_NUMBERS:
        raise ValueError(f"{name} must be at most {MOST_NUMBERS}, found {value}")


def check_text(name: str, value: Any) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise TypeError(f"{name} must be a text of up to {_LONGEST_TEXT}, found {value!r:.99}")
