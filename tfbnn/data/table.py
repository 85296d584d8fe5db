"""A table in memory: named columns of numbers, and of class labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tfbnn.data.csv_tables import TEXT_ADVICE, Names, column_places
from tfbnn.system.arrays import Array


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of finite numbers.

    A table passes for a data frame where tfbnn takes one: it has `columns`, and NumPy converts it
    to its values. So `model.fit_posterior(table.select(names), ...)` remembers the names.

    Attributes:
        columns: Column names, M of them.
        values: Array [N, M], float64.
        source: Where it was read, for messages.
        texts: Columns of labels as they are written, dict name -> array [N] of text, integers or
            booleans.
        lines: Line of each row in a text file [N], from 1, or None.
        left_out: Names of columns that the file has, but without numbers or without a name.
    """

    columns: tuple[str, ...]
    values: Array
    source: str = "the table"
    texts: Mapping[str, Array] = field(default_factory=dict)
    lines: Array | None = None
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def select(self, names: Names) -> "Table":
        """The table with these columns only, in this order.

        Raises:
            ValueError: If a column is not there, or holds no numbers.
        """
        for name in names:
            if name in self.left_out:
                raise ValueError(
                    f"{self.source}, column {name}: expected numbers, but {TEXT_ADVICE}."
                )
        places = column_places(names, self.columns, self.source, kind="columns of numbers")
        return replace(self, columns=tuple(names), values=self.values[:, places])

    def __getitem__(self, names: list[str]) -> "Table":
        """`select`, as frames have it."""
        return self.select(names)

    def labels(self, names: Names) -> Array:
        """These columns as labels [N, K]: as they are written, or numbers where they are not.

        Raises:
            ValueError: If a column is not there.
        """
        if all(name in self.texts for name in names):
            return np.column_stack([self.texts[name] for name in names])
        return self.select(names).values

    def line_of(self, row: int) -> str | None:
        """Where a row was read, for messages; None if that is not known."""
        return None if self.lines is None else f"{self.source}, line {self.lines[row]}"

    def take(self, rows: Array | slice) -> "Table":
        """The table with these rows only: indices, a mask or a slice."""
        return replace(
            self,
            values=self.values[rows],
            texts={name: column[rows] for name, column in self.texts.items()},
            lines=None if self.lines is None else self.lines[rows],
        )
