"""One column of a user's table, of numbers or not, and the inputs that it becomes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.data.bad_rows import BadRowError
from tfbnn.data.frames import listed
from tfbnn.data.validation import as_float_array
from tfbnn.system.arrays import Array
from tfbnn.system.words import did_you_mean

NUMBERS, FLAGS, TEXTS = "numbers", "flags", "texts"
# A column with more values names rows, or holds numbers that were read as text.
MOST_VALUES = 100

_FLAGS = {"false": 0, "true": 1, "0": 0, "1": 1}
# What pandas has for missing values besides None and NaN; nobody imports it here.
_MISSING_TYPES = {"NAType", "NaTType"}


@dataclass(frozen=True)
class Column:
    """One column of the user's table, and what the network gets of it.

    Attributes:
        name: Its name.
        kind: NUMBERS, FLAGS or TEXTS.
        values: Of TEXTS the values that were there in the fit, sorted; else none.
    """

    name: str
    kind: str = NUMBERS
    values: tuple[str, ...] = ()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of its inputs: "colour=red", or that of the column."""
        if self.kind != TEXTS:
            return (self.name,)
        shown = self.values[1:] if len(self.values) == 2 else self.values
        return tuple(f"{self.name}={value}" for value in shown)

    @property
    def words(self) -> tuple[str, ...]:
        """What it may hold: of FLAGS both of them, of NUMBERS nothing."""
        return ("False", "True") if self.kind == FLAGS else self.values

    @property
    def codes(self) -> Array:
        """The inputs [number of words, number of inputs] that each of its `words` becomes."""
        return self.encoded(np.array(self.words, dtype=object), "words")

    def __str__(self) -> str:
        """The column with its values, for people."""
        known = {NUMBERS: "", FLAGS: " (true or false)", TEXTS: f" ({', '.join(self.values)})"}
        return self.name + known[self.kind]

    @property
    def brief(self) -> str:
        """The same with the number of its values."""
        return f"{self.name} ({len(self.values)} values)" if self.kind == TEXTS else str(self)

    def encoded(self, entries: Array, argument: str) -> Array:
        """Its inputs [N, number of them], float64.

        Args:
            entries: Of the column [N].
            argument: What the user calls the table, for messages.

        Raises:
            TypeError: For text among NUMBERS.
            BadRowError: For a value that was not there in the fit, or is missing.
        """
        what = f"column {self.name!r} of {argument}"
        if self.kind == NUMBERS:
            if entries.dtype.kind == "b":
                entries = entries.astype(np.float64)
            return as_float_array(entries, what)[:, None]
        words = words_of(entries, what, argument)
        known = _FLAGS if self.kind == FLAGS else dict(zip(self.values, range(len(self.values))))
        if self.kind == FLAGS:
            words = [word.casefold() for word in words]
        places = np.array([known.get(word, -1) for word in words], int)
        if (places < 0).any():
            self._refuse(int(np.argmax(places < 0)), entries, what, argument)
        if self.kind == FLAGS or len(self.values) == 2:
            return places[:, None].astype(np.float64)
        inputs: Array = np.eye(len(self.values))[places]
        return inputs

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "values": list(self.values)}

    @classmethod
    def from_json(cls, entry: Any) -> Column:
        """What `to_json` wrote; TypeError or ValueError for anything else."""
        if not isinstance(entry, dict) or set(entry) != {"name", "kind", "values"}:
            raise TypeError(
                f"coding must have columns of name, kind and values, found {entry!r:.99}."
            )
        name, kind, values = entry["name"], entry["kind"], entry["values"]
        texts = [name, *values] if isinstance(values, list) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"coding must have a text for each name and value, found {entry!r:.99}."
            )
        if kind not in (NUMBERS, FLAGS, TEXTS) or (kind == TEXTS) != bool(values):
            raise ValueError(
                f"coding must say which values each column of texts has, found {entry!r:.99}."
            )
        if len(set(values)) < len(values) or len(values) > MOST_VALUES:
            raise ValueError(
                f"coding must have up to {MOST_VALUES} different values, found {entry!r:.99}."
            )
        if any(value != value.strip() or not value for value in values):
            raise ValueError(
                f"coding must have no empty values and no blanks around, found {entry!r:.99}."
            )
        return cls(name, kind, tuple(values))

    def _refuse(self, row: int, entries: Array, what: str, argument: str) -> None:
        entry = entries[row]
        entry = entry.item() if isinstance(entry, np.generic) else entry
        near = did_you_mean(_text(entry), self.words).strip()
        advice = "Nothing was learned of it: leave these rows out, or fit with some that have it."
        found = (
            f"{what} must hold what it held in the fit, {listed(self.words)}, received {entry!r}"
        )
        raise BadRowError(argument, found, f"{near} {advice}".strip(), row)


def words_of(entries: Array, what: str, argument: str) -> list[str]:
    """The entries of a column [N] as text, without blanks around; BadRowError for a missing one."""
    words = []
    for row, entry in enumerate(entries.tolist()):
        word = "" if is_missing(entry) else _text(entry)
        if not word or word.casefold() == "nan":  # which NaN becomes that was made text
            found = f"{what} must have a value in every row, received {entry!r}"
            raise BadRowError(argument, found, "Drop or repair these rows.", row)
        words.append(word)
    return words


def _text(entry: Any) -> str:
    """An entry as text; whole numbers as integers, as pandas makes 2016.0 of 2016 beside a NaN."""
    if isinstance(entry, (float, np.floating)) and float(entry).is_integer():
        entry = int(entry)
    return str(entry).strip()


def is_missing(entry: Any) -> bool:
    if isinstance(entry, (float, np.floating)):
        return math.isnan(entry)
    return entry is None or type(entry).__name__ in _MISSING_TYPES
