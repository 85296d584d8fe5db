"""Errors about bad rows, which give the row's number, and its file, line and column where known."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfbnn.data.frames import column_names
from tfbnn.system.arrays import Array


class BadRowError(ValueError):
    """Raised for a row that cannot be used.

    Args:
        argument: What the user calls the rows: "y", "validation x".
        found: What is wrong, without the position.
        advice: What to do.
        row: Number of the first bad row, from 0.
        column: Number of its column, or None if there is only one.

    Attributes:
        argument, row, column: As above.
        line: Where the row was read, such as "t.csv, line 9", or None.
        name: Name of the column, or None.
    """

    def __init__(
        self, argument: str, found: str, advice: str, row: int, column: int | None = None
    ) -> None:
        super().__init__(argument, found, advice, row, column)
        self.argument, self.row, self.column = argument, row, column
        self._found, self._advice = found, advice
        self.line: str | None = None
        self.name: str | None = None

    def __str__(self) -> str:
        line = f" ({self.line})" if self.line is not None else ""
        name = f" ({self.name!r})" if self.name is not None else ""
        column = f", column {self.column}{name}" if self.column is not None else ""
        return f"{self._found} in row {self.row}{line}{column}. {self._advice}"


def refuse_entries(bad: Array, values: Array, argument: str, found: str, advice: str) -> None:
    """Raise BadRowError for the first entry of values [N, K] that is bad; `found` has a {} for it."""
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        raise BadRowError(argument, found.format(values[row, column]), advice, row, column)


@contextlib.contextmanager
def positions_named(
    x: Any = None, validation_x: Any = None, *, names: Sequence[str] | None = None
) -> Iterator[None]:
    """Add the position in the user's tables to a BadRowError that the body raises.

    Args:
        x: What was passed as x; its rows are those of y and noise_scale too.
        validation_x: The same for arguments that begin with "validation". None: they use `x` too.
        names: Names of the inputs; None (default): those of the columns of x.
    """
    try:
        yield
    except BadRowError as error:
        is_of_validation = validation_x is not None and error.argument.startswith("validation")
        rows = validation_x if is_of_validation else x
        names = column_names(rows) if names is None else names
        if error.line is None and hasattr(rows, "line_of"):
            error.line = rows.line_of(error.row)
        if error.name is None and names is not None and error.argument.endswith(("x", "X")):
            error.name = None if error.column is None else names[error.column]
        raise
