"""Where a bad row stands: by number, and in the file and column it was read from, where known."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tfbnn.data.frames import column_names


class BadRowError(ValueError):
    """Raised for a row that cannot be used.

    Args:
        argument: What the user calls the rows: "y", "validation x".
        found: What is wrong, without the place.
        advice: What to do.
        row: Number of the first bad row, from 0.
        column: Number of its column, or None where there is but one.

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

    def look_up(self, x: Any) -> None:
        """Takes line and name of the column from the user's x, as far as it knows them."""
        line_of, names = getattr(x, "line_of", None), column_names(x)
        if callable(line_of):
            self.line = line_of(self.row)
        self.name_column(names)

    def name_column(self, names: Sequence[str] | None) -> None:
        """Takes the name of the column from those of the inputs, unless it is known already."""
        if names is None or self.column is None or self.name is not None:
            return
        if self.argument.endswith(("x", "X")):
            self.name = names[self.column]


@contextlib.contextmanager
def columns_named(names: Sequence[str] | None) -> Iterator[None]:
    """Lets a BadRowError from the body name its column by the names of the inputs, or None."""
    try:
        yield
    except BadRowError as error:
        error.name_column(names)
        raise


@contextlib.contextmanager
def places_named(x: Any, validation_x: Any = None) -> Iterator[None]:
    """Lets a BadRowError from the body say where in the user's tables its row is.

    Args:
        x: What was passed as x, whose rows are those of y and noise_scale too.
        validation_x: The same for arguments that begin with "validation"; else they are of x.
    """
    try:
        yield
    except BadRowError as error:
        is_of_validation = validation_x is not None and error.argument.startswith("validation")
        error.look_up(validation_x if is_of_validation else x)
        raise
