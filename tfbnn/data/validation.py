"""Checks of arguments: arrays first, then plain settings.

Every message says what was expected, what was received, and what to do.
"""

import datetime
import numbers
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tfbnn.data.bad_rows import BadRowError, refuse_entries
from tfbnn.data.frames import column_names
from tfbnn.data.numbers import is_missing
from tfbnn.data.table import Table
from tfbnn.exceptions import DataWarning
from tfbnn.system.arrays import Array, mapped_file
from tfbnn.system.words import did_you_mean, name_of, warn

Limit = float | None

FILL_ADVICE = (
    "Drop or fill these rows (SimpleImputer of scikit-learn), or fit with missing='indicator', on the "
    "command line --missing indicator, to rows with such gaps."
)
# Types of entries that are no real numbers, with their names in messages.
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NO_NUMBERS: dict[str, tuple[type, ...]] = {
    "strings": (str, bytes),
    "booleans": (bool, np.bool_),
    "complex numbers": (complex, np.complexfloating),
    "dates": (datetime.date, datetime.time, np.datetime64),
    "time spans": (datetime.timedelta, np.timedelta64),
}
_ADVICE = {
    "strings": "Convert numbers to float; text in x needs a data frame, labels in y a classifier: "
    "likelihood=Categorical().",
    "booleans": "Convert them with astype(float); booleans in x may stay in a data frame.",
    "dates": "Convert them to numbers: .dt.dayofyear and .dt.year, or days since some date.",
    "time spans": "Convert them to numbers, such as .dt.total_seconds().",
}


_KINDS = {
    **dict.fromkeys("UST", "strings"),
    **{"c": "complex numbers", "b": "booleans", "M": "dates", "m": "time spans"},
}


def as_matrix(
    value: Any, name: str, *, num_columns: int | None = None, names: Sequence[str] | None = None
) -> Array:
    """Convert `value` to a finite, contiguous float64 matrix.

    Args:
        value: Anything array-like with two dimensions: NumPy arrays, nested lists, data frames,
            whose columns of booleans count as 0 and 1.
        name: What the user calls it, for messages.
        num_columns: Required number of columns, or None for any number of at least one.
        names: Names of the columns, for messages; None (default): those of a frame.

    Returns:
        Array [N, num_columns], float64. It is a copy that shares no memory with `value`, except in
        the cases that `as_float_array` names.

    Raises:
        TypeError: For values that are not real numbers, sparse matrices and masked arrays.
        ValueError: For a wrong shape, no rows or columns, NaN or infinity.
    """
    array = as_rectangle(value, name, "numbers")
    of_frame = column_names(value)
    if of_frame is not None:
        array = _flags_as_numbers(array)
    names = of_frame if names is None else names
    array = as_float_array(array, name, is_new=_has_no_other_owner(value), names=names)
    is_matrix = array.ndim == 2 and array.size > 0
    if not is_matrix or num_columns not in (None, array.shape[1]):
        count = "D" if num_columns is None else num_columns
        raise ValueError(
            f"{name} must have shape [N, {count}], at least one row of {count} columns, one per input of "
            f"the network, received {list(array.shape)}. Select the columns; {name}.reshape(-1, 1) makes "
            f"one column, {name}.reshape(1, -1) one row."
        )
    _refuse_non_finite(array, name, names, FILL_ADVICE)
    return array


def as_targets(value: Any, name: str, *, num_targets: int) -> Array:
    """Convert targets, [N, K], or [N] if K is 1, to a float64 matrix [N, K]."""
    array = as_columns(
        as_float_array(value, name),
        name,
        num_targets=num_targets,
        advice="The number of columns is that of the outputs of the network.",
    )
    _refuse_non_finite(array, name)
    return array


def as_columns(
    array: Array, name: str, *, num_targets: int, content: str = "", advice: str
) -> Array:
    """Return an array, [N, K], or [N] if K is 1, as [N, K].

    Args:
        array: The array.
        name: What the user calls it, for messages.
        num_targets: K.
        content: What its entries are, for messages.
        advice: What to do about a wrong shape.

    Raises:
        ValueError: For a wrong shape, or no rows.
    """
    if array.ndim == 1 and num_targets == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != num_targets or not len(array):
        also = " or [N]" if num_targets == 1 else ""
        raise ValueError(
            f"{name} must have shape [N, {num_targets}]{also} with at least one row, {content}received "
            f"{list(array.shape)}. {advice}"
        )
    return array


# Logarithm of an exposure that is larger than any real one.
_LARGEST_OFFSET = 50.0


def as_row_noise(
    value: Any, *, num_rows: int, num_targets: int, is_offset: bool = False
) -> Array | None:
    """Convert a known noise scale per row, [N] or [N, K], to a positive float64 matrix [N, K].

    Offsets of counts may have either sign.
    """
    if value is None:
        return None
    name = "offset" if is_offset else "noise_scale"
    array = as_float_array(value, name)
    if array.ndim == 1:
        array = np.repeat(array[:, None], num_targets, axis=1)
    if array.shape != (num_rows, num_targets):
        raise ValueError(
            f"{name} must have shape [{num_rows}] or [{num_rows}, {num_targets}], received "
            f"{list(array.shape)}. Give one number per row."
        )
    _refuse_non_finite(array, name)
    if is_offset and np.any(array > _LARGEST_OFFSET):
        raise ValueError(
            f"offset must be the logarithm of the exposure, received {array.max():g}. Pass np.log(exposure)."
        )
    if np.any(array <= 0) and not is_offset:
        row = int(np.argwhere(array <= 0)[0][0])
        found = f"noise_scale must be positive, received {array[row].min()}"
        advice = "It is a standard deviation in the units of y."
        raise BadRowError("noise_scale", found, advice, row)
    return array


def check_counts(values: Array, name: str) -> None:
    """Refuse targets [N, K] that are not whole numbers of at least 0."""
    bad = (values < 0) | (values != np.floor(values))
    found = f"{name} must hold counts 0, 1, 2, .., received {{:g}}"
    refuse_entries(bad, values, name, found, "Use likelihood=Gaussian() for other numbers.")


def check_rows(**matrices: Array | None) -> None:
    """Refuse arrays whose first dimensions differ; None is ignored."""
    rows = {name: len(matrix) for name, matrix in matrices.items() if matrix is not None}
    if len(set(rows.values())) > 1:
        found = ", ".join(f"{name} has {count}" for name, count in rows.items())
        raise ValueError(f"All of {', '.join(rows)} must have the same number of rows: {found}.")
    if set(rows.values()) == {1}:
        warn("There is only one row of data.", DataWarning)


def check_integer(name: str, value: Any, *, minimum: int) -> int:
    """Return `value` as int; raise if it is not an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, received {name}={value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, received {name}={value}.")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    above: Limit = None,
    minimum: Limit = None,
    below: Limit = None,
    maximum: Limit = None,
) -> float:
    """Return `value` as float; raise if it is not finite, or is outside the range.

    Args:
        name: What the user calls it.
        value: A real number.
        above: The value must be larger than this.
        minimum: The value must not be smaller than this.
        below: The value must be smaller than this.
        maximum: The value must not be larger than this.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_number:
        raise TypeError(f"{name} must be a number, received {name}={value!r}.")
    limits = [
        (holds(value, limit), f"{sign} {limit}")
        for sign, holds, limit in (
            (">", operator.gt, above),
            (">=", operator.ge, minimum),
            ("<", operator.lt, below),
            ("<=", operator.le, maximum),
        )
        if limit is not None
    ]
    if not np.isfinite(value) or not all(ok for ok, _ in limits):
        wanted = " and ".join(text for _, text in limits) or "finite"
        raise ValueError(f"{name} must be {wanted}, received {name}={value}.")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return `value` as bool; raise if it is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, received {name}={value!r}.")
    return bool(value)


def check_choice(name: str, value: Any, choices: Collection[str], why: str = "") -> str:
    """Return `value`; raise if it is not one of `choices`, with the sentence `why` if there is one."""
    if isinstance(value, str) and value in choices:
        return value
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(
        f"{name} must be one of {sorted(choices)}, received {name}={value!r}.{why}"
        f"{did_you_mean(name_of(value), choices)}"
    )


def unknown_settings(wanted: str, classes: Iterable[str], value: Any) -> TypeError:
    """Return the error for a value that is no settings object of these classes.

    The value may be a name, a class, or an object of another library.

    Args:
        wanted: What was expected, up to the list of classes.
        classes: Names of the classes.
        value: The value that was received.
    """
    names = sorted(classes)
    meant = did_you_mean(name_of(value), [f"{name}()" for name in names])
    return TypeError(f"{wanted} {names}, received {value!r}.{meant}")


def as_float_array(
    value: Any, name: str, *, is_new: bool = False, names: Sequence[str] | None = None
) -> Array:
    """Convert `value` of any shape to a float64 copy; raise TypeError unless it holds numbers.

    Large data are not copied if nobody can change them: float64 data of a file that NumPy has
    mapped for reading (`np.load(path, mmap_mode="r")`), data read from a dataset of h5py, and those
    of a `Table`.

    Args:
        value: Anything array-like.
        name: What the user calls it, for messages.
        is_new: Whether it is an array that nobody else has.
        names: Names of its columns, for messages, or None.
    """
    array = as_rectangle(value, name, "numbers")
    if array.dtype.kind == "O":
        array = _from_objects(array, name, names)
    if array.dtype.kind not in "iuf":
        found = _KINDS.get(array.dtype.kind, f"dtype {array.dtype}")
        advice = _ADVICE.get(found, "Convert to float first.")
        raise TypeError(f"{name} must hold real numbers, received {found}. {advice}")
    if is_new or _has_no_other_owner(value) or mapped_file(array) is not None:
        return np.asarray(array, dtype=np.float64, order="C")
    return np.array(array, dtype=np.float64, order="C")


def _has_no_other_owner(value: Any) -> bool:
    """Check whether nobody else writes in the array that NumPy makes of a value.

    For a dataset of h5py the array is new, and a `Table` never changes its own.
    """
    return hasattr(value, "read_direct") or isinstance(value, Table)


def as_rectangle(value: Any, name: str, content: str) -> Array:
    """Convert `value` to an array; raise TypeError if it is not array-like, or not plain.

    Masked arrays, sparse matrices and numbers with units are not plain.

    Args:
        value: Anything array-like.
        name: What the user calls it, for messages.
        content: What its entries should be, for messages.
    """
    if _is_masked(value):
        raise TypeError(
            f"{name} is a masked array; tfbnn has no missing values. "
            "Drop or fill the masked rows and pass a plain array."
        )
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise TypeError(f"{name} is a sparse matrix. Pass {name}.toarray() instead.")
    refuse_units(value, name)
    if value is None or isinstance(value, (str, bytes, dict)):
        raise TypeError(f"{name} must be an array of {content}, received {type(value).__name__}.")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(
            f"{name} must be a rectangular array of {content}, received rows of different lengths."
        ) from error
    if array.dtype.kind == "O" and not array.ndim:
        # Datasets of TensorFlow, loaders of PyTorch, generators: every draw needs all rows at once.
        raise TypeError(
            f"{name} must be an array of {content}, received {type(value).__name__}. Make arrays of "
            "batches (x, y): x, y = map(np.concatenate, zip(*batches)). Batch single rows first."
        )
    return array


def has_text(array: Array) -> bool:
    """Check whether an array holds text, or is a matrix of objects with some text."""
    entries = array.flat if array.dtype.kind == "O" and array.ndim == 2 else ()
    return array.dtype.kind in "UST" or any(isinstance(entry, (str, bytes)) for entry in entries)


def _flags_as_numbers(array: Array) -> Array:
    """Return the array of a frame with its columns of booleans as 0 and 1."""
    if array.dtype.kind == "b":
        return array.astype(np.float64)
    if array.dtype.kind == "O" and array.ndim == 2:
        array = array.copy()
        for column in array.T:
            if all(issubclass(kind, (bool, np.bool_)) for kind in set(map(type, column))):
                column[:] = column.astype(np.float64)
    return array


def _is_masked(value: Any) -> bool:
    """Check whether a value, or a row or entry of nested lists, is masked.

    NumPy would drop the mask.
    """
    if isinstance(value, (list, tuple)):
        return any(map(_is_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def refuse_units(value: Any, name: str) -> None:
    """Refuse a value whose numbers have a unit, which an array of them would lose."""
    unit = getattr(value, "unit", getattr(value, "units", None))
    # A column of a frame, and a label of a series, may have the name "unit".
    is_frame = hasattr(value, "columns") or hasattr(value, "iloc")
    if unit is None or callable(unit) or is_frame or str(unit) in ("", "dimensionless"):
        return
    raise TypeError(
        f"{name} must hold plain numbers, received some with the unit {unit}, which would be dropped. "
        f"Pass {name}.to_value(unit) of astropy, {name}.to(unit).magnitude of pint."
    )


def _where(index: Sequence[int], names: Sequence[str] | None) -> str:
    """Return the row and column of a position in an array, for messages."""
    column = f", column {index[1]}" if len(index) > 1 else ""
    name = f" ({names[index[1]]!r})" if names is not None and column else ""
    return f"row {index[0]}{column}{name}" if index else "it"


def _from_objects(array: Array, name: str, names: Sequence[str] | None) -> Array:
    kinds = {type(entry) for entry in array.ravel()}
    # NaT is an instance of datetime.
    present = {kind for kind in kinds if kind.__name__ != "NaTType"}
    for what, refused in _NO_NUMBERS.items():
        if any(issubclass(kind, refused) for kind in present):
            found = (index for index, entry in np.ndenumerate(array) if isinstance(entry, refused))
            advice = _ADVICE.get(what, "Convert to float first.")
            where = _where(next(found), names)
            raise TypeError(f"{name} must hold real numbers, received {what} in {where}. {advice}")
    if any(kind.__module__.startswith("pandas.") for kind in kinds):
        array = np.where(np.frompyfunc(is_missing, 1, 1)(array).astype(bool), np.nan, array)
    try:
        return array.astype(np.float64)
    except OverflowError as error:
        raise ValueError(
            f"{name} must hold numbers up to 1.8e308, received a larger integer. Rescale it first."
        ) from error
    except (TypeError, ValueError) as error:
        index, entry = next(found for found in np.ndenumerate(array) if not _is_float(found[1]))
        raise TypeError(
            f"{name} must be a rectangular array of numbers, received {type(entry).__name__} in "
            f"{_where(index, names)}: {entry!r:.60}. Convert to float first."
        ) from error


def _is_float(entry: Any) -> bool:
    try:
        np.float64(entry)
    except (TypeError, ValueError):
        return False
    return np.ndim(entry) == 0


def _refuse_non_finite(
    array: Array,
    name: str,
    names: Sequence[str] | None = None,
    advice: str = "Drop or repair these rows.",
) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.argwhere(~finite)
        row, column = map(int, bad[0])
        counts = Counter(bad[:, 1].tolist())
        shown = {index if names is None else names[index]: n for index, n in counts.items()}
        by_column = f" (by column: {counted(shown)})" if len(counts) > 1 else ""
        received = f"{len(bad)} NaN or infinite values{by_column}, the first ({array[row, column]})"
        if not np.isnan(array[row, column]):
            advice = "Drop or repair these rows."  # infinity is no gap
        raise BadRowError(name, f"{name} must be finite, received {received}", advice, row, column)


def counted(counts: dict[Any, int]) -> str:
    """Join the first ten columns and their counts for a message."""
    text = ", ".join(f"{name!r} {count}" for name, count in list(counts.items())[:10])
    return f"{text}, .." if len(counts) > 10 else text
