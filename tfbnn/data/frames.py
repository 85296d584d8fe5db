"""Data frames: their columns are found by name, and their names are kept.

A frame is anything with `columns` that NumPy can convert to an array and that returns some of its
columns as `frame[[label, ...]]`: frames of pandas and polars, and the tables of this package.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfbnn.data.table import Table, column_indices
from tfbnn.exceptions import DataWarning
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn

_MOST_SHOWN = 10


def refuse_foreign_table(value: Any, what: str) -> None:
    """Refuse tables of pyarrow and lazy frames of polars, whose columns are not those of a frame.

    Args:
        value: What the user passed.
        what: What messages call it.

    Raises:
        TypeError: For a table of pyarrow, and for a LazyFrame of polars, which has no rows of its own.
    """
    kind, package = type(value).__name__, type(value).__module__.partition(".")[0]
    if kind == "LazyFrame" or (package == "pyarrow" and hasattr(value, "column_names")):
        call = "collect" if kind == "LazyFrame" else "to_pandas"
        raise TypeError(f"{what} must be a data frame, received a {kind}. Pass {what}.{call}().")


def rows_of(values: Any, rows: slice) -> Any:
    """Return some of the rows of an array, a frame or a Table."""
    if hasattr(values, "take") and hasattr(values, "line_of"):  # a Table
        return values.take(rows)
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def refuse_other_order(x: Any, value: Any, what: str, argument: str = "x") -> None:
    """Refuse rows with the same labels as those of x in another order.

    Args:
        x: Inputs as the user passed them; only frames of pandas have labels.
        value: Targets or noise.
        what, argument: What messages call the value and x.
    """
    labels: Any = getattr(x, "index", None)
    others: Any = getattr(value, "index", None)
    if not (hasattr(labels, "equals") and hasattr(others, "equals")) or labels.equals(others):
        return
    if Counter(labels.tolist()) == Counter(others.tolist()):
        raise ValueError(
            f"{what} has the index of {argument} in another order, and rows are paired by their place. Pass "
            f"{what}.loc[{argument}.index] to pair them by index, {what}.to_numpy() to keep the places."
        )


def column_names(value: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame as strings, or None for anything without names."""
    columns = _columns_of(value)
    return None if columns is None else tuple(map(str, columns))


def _columns_of(value: Any) -> list[Any] | None:
    """Return the labels of the columns of a frame, or None for anything else."""
    columns = getattr(value, "columns", None)
    return None if columns is None or callable(columns) else list(columns)


def distinct_names(value: Any, what: str) -> tuple[str, ...] | None:
    """Return `column_names`; raise ValueError if two columns have the same name.

    Args:
        value: What the user passed.
        what: What messages call it.
    """
    names = column_names(value)
    column_indices(names or (), names or (), what)
    return names


def select_columns(
    value: Any,
    expected: tuple[str, ...] | None,
    what: str,
    others: bool = False,
    numbered: bool = False,
) -> Any:
    """Return the expected columns of a frame, in this order.

    Args:
        value: What the user passed. A value without names is returned unchanged.
        expected: Names of the columns that the model was fitted with, or None if it knows none.
        what: What messages call the value.
        others: Whether other columns are expected, too; default False: they are ignored with a
            DataWarning.
        numbered: Whether names such as x0 may be those of an array; columns of a frame with the same number
            of other names are then taken in their order, with a DataWarning. Default False.

    Raises:
        ValueError: For a column that is missing, or occurs twice.
    """
    refuse_foreign_table(value, what)
    names = column_names(value)
    if names is None or expected is None or names == expected:
        return value
    if numbered and expected == numbered_names(len(names)) and {*names}.isdisjoint(expected):
        warn(
            f"{what} has columns of other names than {listed(expected)}; their order counts.",
            DataWarning,
        )
        return value
    indices, wanted = column_indices(expected, names, what), set(expected)
    ignored = [name for name in names if name not in wanted]
    if ignored and not others:
        warn(
            f"{what} has columns that the model was not fitted with, which are ignored: "
            f"{listed(ignored)}.",
            DataWarning,
        )
    labels = list(value.columns)
    return value[[labels[index] for index in indices]]


def numbered_names(count: int) -> tuple[str, ...]:
    """Return the names of columns of an array without names."""
    return tuple(f"x{index}" for index in range(count))


def numbered_targets(count: int) -> list[str]:
    """Return the names of targets without names: y, or y1, y2, ..."""
    return ["y"] if count == 1 else [f"y{number + 1}" for number in range(count)]


def in_order_of(value: Any, expected: tuple[str, ...] | None, what: str) -> Any:
    """Return the columns of a frame in the order of these names if it has just these, else the value."""
    refuse_foreign_table(value, what)
    names = column_names(value)
    return value if names is None else select_columns(value, _in_order(names, expected), what)


def targets_in_order(
    y: Any, noise_scale: Any, expected: tuple[str, ...] | None, name: str, known: str
) -> tuple[Any, Any]:
    """Return targets and their noise in the order of a fit, if a frame has the names of the fit.

    Args:
        y: Targets that the user passed. They keep their order if they have no names, or others.
        noise_scale: Their noise, with the same names, or with a column for each column of y as
            passed.
        expected: Names of the targets in the fit, or None to keep the order of y.
        name: Prefix of what messages call them.
        known: What they call the noise.
    """
    refuse_foreign_table(y, f"{name}y")
    refuse_foreign_table(noise_scale, f"{name}{known}")
    names = column_names(y)
    if names is None:
        return y, in_order_of(noise_scale, expected, f"{name}{known}")
    order = _in_order(names, expected)
    y = select_columns(y, order, f"{name}y")
    noise_names = column_names(noise_scale)
    if noise_names is not None and sorted(noise_names) == sorted(order):
        noise_scale = select_columns(noise_scale, order, f"{name}{known}")
    elif order != names and np.shape(noise_scale)[1:] == (len(names),):
        noise_scale = np.asarray(noise_scale)[:, [names.index(target) for target in order]]
    return y, noise_scale


def frame_columns(value: Any) -> Iterator[tuple[bool, Array]]:
    """Yield (whether its type is that of categories, entries [N]) for each column of a frame."""
    if isinstance(value, Table):
        yield from zip((name in value.categories for name in value.columns), value.values.T)
        return
    labels = list(value.columns)
    kinds = getattr(value, "dtypes", [None] * len(labels))
    for label, kind in zip(labels, kinds):
        # "category" of pandas; "Categorical" and "Enum(...)" of polars. Neither is imported here.
        is_category = str(kind).startswith(("category", "Categorical", "Enum"))
        yield is_category, np.asarray(value[[label]]).reshape(-1)


def are_numbers(value: Any) -> bool:
    """Tell from the types of its columns alone whether a frame holds nothing but numbers."""
    if isinstance(value, Table):
        return not value.words
    kinds = getattr(value, "dtypes", None)
    if kinds is None:
        return np.asarray(value).dtype.kind in "iuf"
    # Types of polars have no kind, so their columns are examined one by one.
    return all(getattr(kind, "kind", "O") in ("i", "u", "f") for kind in kinds)


def column_names_of(y: Any, expected: tuple[str, ...] | None = None) -> dict[str, list[str]]:
    """Return the `target_names` of `Provenance.column_names` for targets y of a frame or series.

    Numbers are not names, because pandas numbers columns without names; nor are the names of arrays
    in files and graphs. The names are in the order of `targets_in_order`.
    """
    names = _columns_of(y)
    if names is None:
        names = [getattr(y, "name", None)] if hasattr(y, "to_numpy") else []
    if not names or not all(isinstance(name, str) and name for name in names):
        return {}
    return {"target_names": list(_in_order(tuple(names), expected))}


def _in_order(names: tuple[str, ...], expected: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return `expected` if it has the same names in any order, else `names`."""
    return names if expected is None or sorted(expected) != sorted(names) else expected


def listed(names: Sequence[Any]) -> str:
    """Join the first ten names or labels for a message."""
    text = ", ".join(map(repr, names[:_MOST_SHOWN]))
    return f"{text}, .." if len(names) > _MOST_SHOWN else text
