"""Which columns of a training table hold text, categories or flags, and which values."""

from collections import Counter
from typing import Any

import numpy as np

from tfbnn.data.coded_column import FLAGS, MOST_VALUES, TEXTS, Column, is_missing, words_of
from tfbnn.data.coding import Coding
from tfbnn.data.frames import are_numbers, distinct_names, frame_columns, listed
from tfbnn.data.numbers import is_number
from tfbnn.system.arrays import Array


def learn_coding(x: Any, argument: str) -> Coding | None:
    """How the columns of a frame are coded; None where they all hold numbers, and without names.

    Args:
        x: Anything array-like.
        argument: What the user calls it, for messages.

    Raises:
        TypeError: For a column that mixes text with something else.
        ValueError: For two columns of one name, a missing value in a column of text, one whose
            values are too many or look like numbers.
    """
    names = distinct_names(x, argument)
    if names is None or are_numbers(x):
        return None
    columns = (
        _learn_column(name, entries, is_category, argument)
        for name, (is_category, entries) in zip(names, frame_columns(x))
    )
    coding = Coding(tuple(columns))
    if not coding.coded:
        return None
    twice = [name for name, count in Counter(coding.input_names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{argument} must have columns whose inputs have different names, received {twice[0]!r} "
            "of two columns. Rename one of them."
        )
    return coding


def _learn_column(name: str, entries: Array, is_category: bool, argument: str) -> Column:
    what = f"column {name!r} of {argument}"
    if not is_category:
        if entries.dtype.kind == "b":
            return Column(name, FLAGS)
        if entries.dtype.kind not in "OUT":
            return Column(name)
        kinds = {type(entry) for entry in entries.tolist() if not is_missing(entry)}
        is_text = [issubclass(kind, str) for kind in kinds]
        if any(is_text) and not all(is_text):
            found = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(
                f"{what} must hold either text or numbers, received both: {found}. Convert what is "
                "text to numbers, or all of it to text."
            )
        is_flag = bool(kinds) and all(issubclass(kind, (bool, np.bool_)) for kind in kinds)
        if not any(is_text) and not is_flag:
            return Column(name)
    words = words_of(entries, what, argument)
    values = sorted(set(words))
    if {value.casefold() for value in values} <= {"false", "true"}:
        return Column(name, FLAGS)
    _check_values(values, len(words), what, is_category)
    return Column(name, TEXTS, tuple(values))


def _check_values(values: list[str], num_rows: int, what: str, is_category: bool) -> None:
    """Refuses what is no set of categories."""
    numbers = [value for value in values if is_number(value)]
    if numbers and not is_category:
        raise ValueError(
            f"{what} has numbers that are written as text, such as {numbers[0]!r}. Convert it to "
            "numbers; or where they are names, to categories: astype('category'), on the command "
            "line --categories."
        )
    most = min(MOST_VALUES, max(2, num_rows // 2))
    if len(values) > most:
        raise ValueError(
            f"{what} has {len(values)} different values in {num_rows} rows, {listed(values[:3])} and "
            f"so on: a category has at most {MOST_VALUES}, each in two rows or more on average. "
            "Leave the column out, on the command line with --ignore, or merge values."
        )
