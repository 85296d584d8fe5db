"""Learning of the columns with text, categories or flags in a training table, and their values."""

from typing import Any, Literal, TypeAlias

import numpy as np

from tfbnn.data.bad_rows import BadRowError
from tfbnn.data.coding import (
    FLAGS,
    MISSING,
    MOST_VALUES,
    NUMBERS,
    TEXTS,
    Coding,
    Column,
    lacking,
    words_of,
)
from tfbnn.data.frames import (
    are_numbers,
    distinct_names,
    frame_columns,
    listed,
    numbered_names,
    refuse_foreign_table,
)
from tfbnn.data.numbers import decimal, is_missing, is_number, is_other_notation, told
from tfbnn.data.table import Table
from tfbnn.data.validation import (
    DATES,
    FILL_ADVICE,
    as_float_array,
    as_rectangle,
    counted,
    has_text,
    refuse_units,
)
from tfbnn.system.arrays import Array
from tfbnn.system.words import repeated

# Treatment of missing values in a fit.
Missing: TypeAlias = Literal["refuse", "indicator"]
REFUSE: Missing = "refuse"


def learn_coding(x: Any, argument: str, missing: str = REFUSE) -> Coding | None:
    """Learn how the columns of a frame are coded.

    Args:
        x: Anything array-like.
        argument: What the user calls it, for messages.
        missing: "refuse" (default), or "indicator". With the latter, a column of numbers with
            missing values gets their median in place of them, and a second input that is 1 there; a
            column of text gets one more category. Columns of an array without names are then called
            x0, x1, ...

    Returns:
        Coding; None if all columns hold numbers, or have no names.

    Raises:
        TypeError: For a column of dates, or one that mixes text with something else.
        ValueError: For two columns of one name, missing values that are refused, or a column of
            text whose values are too many or look like numbers or dates.
    """
    refuse_units(x, argument)
    refuse_foreign_table(x, argument)
    if missing != REFUSE:
        x = _with_names(x, argument)
    names = distinct_names(x, argument)
    if names is None or (are_numbers(x) and missing == REFUSE):
        return None
    if missing == REFUSE:
        _refuse_missing(x, names, argument)
    columns = (
        _learn_column(name, entries, is_category, argument)
        for name, (is_category, entries) in zip(names, frame_columns(x))
    )
    coding = Coding(tuple(columns))
    if not coding.coded:
        return None
    if twice := repeated(coding.input_names):
        raise ValueError(
            f"Inputs from {argument} must have unique names, but two columns give {twice[0]!r}. "
            "Rename one of them."
        )
    return coding


def _with_names(x: Any, argument: str) -> Any:
    """Convert an array of numbers without names to a Table, if values are missing."""
    if distinct_names(x, argument) is not None:
        return x
    array = as_rectangle(x, argument, "numbers")
    if array.ndim != 2 or array.dtype.kind not in "fO" or has_text(array):
        return x
    array = as_float_array(array, argument)
    return Table(numbered_names(array.shape[1]), array) if np.isnan(array).any() else x


def _refuse_missing(x: Any, names: tuple[str, ...], argument: str) -> None:
    """Refuse missing values, with the names of all columns that have some."""
    columns = {name: entries for name, (_, entries) in zip(names, frame_columns(x))}
    gaps = {name: lacking(entries) for name, entries in columns.items()}
    counts = {name: int(mask.sum()) for name, mask in gaps.items() if mask.any()}
    if not counts:
        return
    (first, *others) = counts
    row = int(np.argmax(gaps[first]))
    what = argument if others else f"column {first!r} of {argument}"
    found = f"{what} must have a value in every row, {counted(counts) if others else counts[first]} have "
    found += f"none, received {columns[first].tolist()[row]!r}"
    raise BadRowError(argument, found, FILL_ADVICE, row, names.index(first) if others else None)


def _learn_column(name: str, entries: Array, is_category: bool, argument: str) -> Column:
    what, lacks = f"column {name!r} of {argument}", lacking(entries)
    if lacks.all():
        raise ValueError(f"{what} has no value in any row. Leave the column out.")
    entries, may_lack = entries[~lacks], bool(lacks.any())
    kind = TEXTS if is_category else _kind_of(entries, what)
    if kind == NUMBERS:
        return Column(
            name, fill=float(np.median(as_float_array(entries, what))) if may_lack else None
        )
    words = words_of(entries, what, argument)
    if kind == FLAGS or {word.casefold() for word in words} <= {"false", "true"}:
        share = np.mean(Column(name, FLAGS).encoded(entries, argument))
        return Column(name, FLAGS, fill=float(np.round(share)) if may_lack else None)
    values = sorted(set(words))
    _check_values(values, len(words), what, is_category)
    if may_lack:
        return Column(name, TEXTS, tuple(sorted({*values, MISSING})), MISSING)
    return Column(name, TEXTS, tuple(values))


def _kind_of(entries: Array, what: str) -> str:
    """Return the kind of a column without missing values: NUMBERS, FLAGS or TEXTS; refuse dates."""
    if entries.dtype.kind == "b":
        return FLAGS
    if entries.dtype.kind not in "OUTMm":
        return NUMBERS
    kinds = {type(entry) for entry in entries.tolist() if not is_missing(entry)}
    if entries.dtype.kind in "Mm" or any(issubclass(kind, DATES) for kind in kinds):
        as_float_array(entries, what)  # raises, with advice about dates
    is_text = [issubclass(kind, str) for kind in kinds]
    if any(is_text) and not all(is_text):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(
            f"{what} must hold either text or numbers, received both: {found}. Convert what is "
            "text to numbers, or all of it to text."
        )
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return FLAGS
    return TEXTS if any(is_text) else NUMBERS


def _check_values(values: list[str], num_rows: int, what: str, is_category: bool) -> None:
    """Refuse text values that are not a set of categories."""
    numbers = [value for value in values if is_number(decimal(value))]
    if numbers and not is_category:
        raise ValueError(
            f"{what} has numbers that are written as text, such as {numbers[0]!r}. Convert it to "
            "numbers. If they are names, use astype('category'), or --categories on the command line."
        )
    shown = told(values)
    if not is_category and is_other_notation(shown):
        raise ValueError(
            f"{what} has dates, or numbers in another notation, such as {shown[0]!r}. Convert dates to "
            "days since some date, and others to plain decimal numbers. If they are names, use "
            "astype('category'), or --categories on the command line."
        )
    most = min(MOST_VALUES, max(2, num_rows // 2))
    if len(values) > most:
        raise ValueError(
            f"{what} has {len(values)} different values in {num_rows} rows, such as "
            f"{listed(values[:3])}. Text may have at most {MOST_VALUES}, each in two rows or more on "
            "average. Merge values, or leave the column out (--ignore on the command line)."
        )
