"""Tables in memory, with named columns of numbers, text, flags and labels; and read requests."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath
from tfbnn.system.words import did_you_mean

Names = Sequence[str]
TEXT_ADVICE = (
    "the column holds no numbers. Text can be a feature, and class labels in a fit with --likelihood "
    "categorical or bernoulli"
)


def column_indices(
    names: Names, columns: Names, source: StrPath, kind: str = "columns"
) -> list[int]:
    """Return the indices of the named columns of a table, in one pass over its columns.

    Raises:
        ValueError: If a column is missing or occurs twice.
    """
    indices = {column: index for index, column in enumerate(columns)}
    missing = [name for name in names if name not in indices]
    if missing:
        raise ValueError(
            f"{source} has no column {', '.join(missing)}; its {kind} are {', '.join(columns)}."
            f"{did_you_mean(missing[0], columns)} Rename the columns or choose others."
        )
    if len(indices) < len(columns):
        count = Counter(columns)
        for name in names:
            if count[name] > 1:
                raise ValueError(
                    f"{source} has {count[name]} columns {name or '(without a name)'}; "
                    "keep only one."
                )
    return [indices[name] for name in names]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns, of finite numbers unless text was requested; missing numbers are NaN.

    A table can be passed wherever tfbnn takes a data frame: it has `columns`, and NumPy converts it
    to its values. So `model.fit_posterior(table.select(names), ...)` remembers the names.

    Attributes:
        columns: Column names, M of them.
        values: Array [N, M], float64; of objects if some columns are among `words`.
        source: Where it was read, for messages.
        texts: Columns of labels as they are written, dict name -> array [N] of text, integers or
            booleans.
        lines: Line of each row in a text file [N], from 1; in other files its number, from 0; or
            None.
        unit: What `lines` counts: "line" or "row".
        left_out: Names of columns of the file without numbers or without a name.
        words: Names of columns that hold text or flags, as they are written, or integers.
        categories: Names among `words` that are coded even if they look like numbers.
    """

    columns: tuple[str, ...]
    values: Array
    source: str = "the table"
    texts: Mapping[str, Array] = field(default_factory=dict)
    lines: Array | None = None
    unit: str = "line"
    left_out: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, Array], categories: Collection[str] = (), **others: Any
    ) -> "Table":
        """Build a Table from arrays [N] by name; text, flags and categories are its `words`."""
        words = frozenset(
            name
            for name, array in columns.items()
            if array.dtype.kind in "bUO" or name in categories
        )
        shape = len(next(iter(columns.values()), ())), len(columns)
        values = np.empty(shape, object if words else np.float64)
        for index, array in enumerate(columns.values()):
            values[:, index] = array
        coded = words & frozenset(categories)
        return cls(tuple(columns), values, words=words, categories=coded, **others)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def select(self, names: Names) -> "Table":
        """Return the table with only these columns, in this order.

        Raises:
            ValueError: If a column does not exist.
        """
        self._refuse([name for name in names if name in self.left_out])
        kind = "columns" if self.words else "columns of numbers"
        indices = column_indices(names, self.columns, self.source, kind=kind)
        values = self.values.take(indices, axis=1)
        words = self.words & set(names)
        values = values if words else values.astype(np.float64, copy=False)
        return replace(self, columns=tuple(names), values=values, words=words)

    def renamed(self, names: Names) -> "Table":
        """Return the table with these names of its columns, in their order."""
        new = dict(zip(self.columns, names))
        words, categories = (
            frozenset(new[name] for name in found & new.keys())
            for found in (self.words, self.categories)
        )
        return replace(self, columns=tuple(names), words=words, categories=categories)

    def numbers(self, names: Names) -> Array:
        """Return these columns as numbers [N, len(names)], float64.

        Raises:
            ValueError: If a column does not exist, or holds no numbers.
        """
        self._refuse([name for name in names if name in self.words])
        return self.select(names).values

    def column(self, name: str) -> Array:
        """Return the entries of one column [N]."""
        return self.select([name]).values[:, 0]

    __getitem__ = select  # as in data frames

    def labels(self, names: Names) -> Array:
        """Return these columns as labels [N, K]: as they are written, or else as numbers.

        Columns of text and flags that were read as features are text here.

        Raises:
            ValueError: If a column does not exist.
        """
        words = {name: self.column(name).astype(str) for name in names if name in self.words}
        written = {**words, **self.texts}
        if all(name in written for name in names):
            return np.column_stack([written[name] for name in names])
        return self.numbers(names)

    def _refuse(self, names: Names) -> None:
        """Refuse the named columns, which hold no numbers."""
        for name in names:
            raise ValueError(f"{self.source}, column {name}: expected numbers, but {TEXT_ADVICE}.")

    def line_of(self, row: int) -> str | None:
        """Return where a row was read, for messages, or None if that is not known."""
        return None if self.lines is None else f"{self.source}, {self.unit} {self.lines[row]}"

    def take(self, rows: Array | slice) -> "Table":
        """Return the table with only these rows: indices, a mask or a slice."""
        return replace(
            self,
            values=self.values[rows],
            texts={name: column[rows] for name, column in self.texts.items()},
            lines=None if self.lines is None else self.lines[rows],
        )


# Names of the columns to read, or a function that picks them from the available ones; None for all.
Choice = Names | Callable[[tuple[str, ...]], Names] | None


class Wanted(NamedTuple):
    """Requested columns and properties of a table: the arguments of `read_table`."""

    columns: Choice
    labels: Names
    without: Names
    categories: Collection[str] | None
    texts: bool
    needed: Names = ()
    gaps: bool = False
    as_written: bool = False

    def chosen(self, available: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the columns to read that are no labels."""
        asked = self.columns(available) if callable(self.columns) else self.columns
        names = available if asked is None else asked
        apart = {*self.labels, *self.without}
        return tuple(name for name in names if name not in apart)

    def may_lack(self, name: str) -> bool:
        """Check whether values of a column may be missing."""
        return self.gaps and name not in self.needed

    @property
    def may_be_text(self) -> bool:
        """True if columns other than labels may hold text or flags."""
        return self.texts or self.categories is not None
