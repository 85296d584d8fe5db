"""One column of a user's table, of numbers or not, and the inputs that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfbnn.data.bad_rows import BadRowError
from tfbnn.data.frames import listed
from tfbnn.data.numbers import is_missing
from tfbnn.data.validation import FILL_ADVICE, as_float_array
from tfbnn.system.arrays import Array
from tfbnn.system.words import did_you_mean

NUMBERS, FLAGS, TEXTS = "numbers", "flags", "texts"
# A column with more values names rows, or holds numbers that were read as text.
MOST_VALUES = 100

_FLAGS = {"false": 0, "true": 1, "0": 0, "1": 1}
# The category, and the flag, of rows where a value is missing.
MISSING = "missing"


@dataclass(frozen=True)
class Column:
    """One column of the user's table, and what the network gets of it.

    Attributes:
        name: Its name.
        kind: NUMBERS, FLAGS or TEXTS.
        values: Of TEXTS the values that were there in the fit, sorted; else none.
        fill: What stands for a missing value: of TEXTS the category MISSING, which is one of its
            values; else a number, with a second input that is 1 where it stands. None: it may not
            be missing, as it never was in the fit.
    """

    name: str
    kind: str = NUMBERS
    values: tuple[str, ...] = ()
    fill: float | str | None = None

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of its inputs: "colour=red", or that of the column, and "age=missing" of its flag."""
        if self.kind != TEXTS:
            return (self.name,) if self.fill is None else (self.name, f"{self.name}={MISSING}")
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
        may_lack = self.kind != TEXTS and self.fill is not None
        return self.name + known[self.kind] + (f" (or {MISSING})" if may_lack else "")

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
        if self.fill is not None and self.kind != TEXTS:
            if entries.dtype.kind in "Mm":
                as_float_array(entries, what)  # which says what to do about dates
            lacks = lacking(entries)
            entries = entries.astype(object) if self.kind == FLAGS else entries  # maybe texts
            filled = np.where(lacks, self.fill, entries)
            return np.column_stack([replace(self, fill=None).encoded(filled, argument), lacks])
        if self.kind == NUMBERS:
            if entries.dtype.kind == "b":
                entries = entries.astype(np.float64)
            return as_float_array(entries, what)[:, None]
        words = words_of(entries, what, argument, self.fill)
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
        fill = {} if self.fill is None else {"fill": self.fill}
        return {"name": self.name, "kind": self.kind, "values": list(self.values)} | fill

    @classmethod
    def from_json(cls, entry: Any) -> Column:
        """What `to_json` wrote; TypeError or ValueError for anything else."""
        if not isinstance(entry, dict) or set(entry) - {"fill"} != {"name", "kind", "values"}:
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
        if len(set(values)) < len(values) or len(values) > MOST_VALUES + ("fill" in entry):
            raise ValueError(
                f"coding must have up to {MOST_VALUES} different values, found {entry!r:.99}."
            )
        if any(value != value.strip() or not value for value in values):
            raise ValueError(
                f"coding must have no empty values and no blanks around, found {entry!r:.99}."
            )
        fill = entry.get("fill")
        if kind == TEXTS:
            is_sound = fill == MISSING and MISSING in values
        else:
            is_sound = isinstance(fill, (int, float)) and bool(np.isfinite(fill))
        if "fill" in entry and not is_sound:
            raise ValueError(
                f"coding must have a number, or the category {MISSING!r}, for missing values, found "
                f"{entry!r:.99}."
            )
        return cls(name, kind, tuple(values), fill)

    def _refuse(self, row: int, entries: Array, what: str, argument: str) -> None:
        entry = entries[row]
        entry = entry.item() if isinstance(entry, np.generic) else entry
        near = did_you_mean(_text(entry), self.words).strip()
        advice = "Nothing was learned of it: leave these rows out, or fit with some that have it."
        found = (
            f"{what} must hold what it held in the fit, {listed(self.words)}, received {entry!r}"
        )
        raise BadRowError(argument, found, f"{near} {advice}".strip(), row)


def words_of(entries: Array, what: str, argument: str, fill: Any = None) -> list[str]:
    """The entries of a column [N] as text, without blanks around.

    Args:
        entries: The entries.
        what, argument: What messages call the column and the table.
        fill: What stands for a missing entry; None: BadRowError.
    """
    words = [word or fill for word in _words(entries)]
    if None in words:
        row = words.index(None)
        found = f"{what} must have a value in every row, received {entries.tolist()[row]!r}"
        raise BadRowError(argument, found, FILL_ADVICE, row)
    return words


def lacking(entries: Array) -> Array:
    """Find missing values among the entries of a column [N]: a mask."""
    if entries.dtype.kind in "OUT":
        return np.array([not word for word in _words(entries)], bool)
    gaps: Array = np.isnan(entries) if entries.dtype.kind == "f" else np.zeros(len(entries), bool)
    return gaps


def _words(entries: Array) -> list[str]:
    """The entries as text, "" for missing ones: also for "nan", which NaN becomes that was made text."""
    words = ("" if is_missing(entry) else _text(entry) for entry in entries.tolist())
    return ["" if word.casefold() == "nan" else word for word in words]


def _text(entry: Any) -> str:
    """An entry as text; whole numbers as integers, as pandas makes 2016.0 of 2016 beside a NaN."""
    if isinstance(entry, (float, np.floating)) and float(entry).is_integer():
        entry = int(entry)
    return str(entry).strip()
