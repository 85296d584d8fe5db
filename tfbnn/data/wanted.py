"""What is wanted of a table that is read, and the table of it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.csv_tables import Names
from tfbnn.data.table import Table
from tfbnn.system.arrays import Array

# Names of the columns to read, or what picks them from the names there are; None for all.
Choice = Names | Callable[[tuple[str, ...]], Names] | None


class Wanted(NamedTuple):
    """What is wanted of a table: the arguments of `read_table`."""

    columns: Choice
    labels: Names
    without: Names
    categories: Collection[str] | None
    texts: bool
    needed: Names = ()
    gaps: bool = False

    def chosen(self, available: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the columns to read that are no labels."""
        if self.columns is None:
            names: Names = available
        else:
            names = self.columns(available) if callable(self.columns) else self.columns
        apart = {*self.labels, *self.without}
        return tuple(name for name in names if name not in apart)

    def may_lack(self, name: str) -> bool:
        """Whether values of a column may be missing."""
        return self.gaps and name not in self.needed

    @property
    def may_be_text(self) -> bool:
        """Whether a column may hold text or flags and be no label."""
        return self.texts or self.categories is not None

    def table(
        self,
        names: tuple[str, ...],
        numbers: Array,
        words: Mapping[str, Array],
        **others: Any,
    ) -> Table:
        """The Table of columns of numbers [N, columns], and of others [N] each."""
        if words:
            mixed = np.empty((len(numbers), len(names)), dtype=object)
            mixed[:, [place for place, name in enumerate(names) if name not in words]] = numbers
            for name, column in words.items():
                mixed[:, names.index(name)] = column
            numbers = mixed
        return Table(
            names,
            numbers,
            words=frozenset(words),
            categories=frozenset(self.categories or ()) & set(words),
            **others,
        )
