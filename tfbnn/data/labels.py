"""Class labels (text, integers or booleans of the user) and their class numbers 0, 1, ..

The number of a label is its index in `classes`, a sorted tuple of plain Python values.
"""

from typing import Any

import numpy as np

from tfbnn.data.bad_rows import BadRowError
from tfbnn.data.frames import listed, refuse_foreign_table
from tfbnn.data.validation import as_columns, as_float_array, as_rectangle
from tfbnn.system.arrays import Array

# Labels in the order of their numbers, all of one kind.
Classes = tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]


def as_labels(
    value: Any,
    name: str,
    *,
    num_targets: int,
    advice: str = "For numbers use a likelihood such as Gaussian().",
) -> Array:
    """Convert labels given as [N, K], or as [N] where K is 1, to an array [N, K].

    Args:
        value: Anything array-like of text, integers, booleans, or floats that are whole numbers.
        name: What the user calls it, for messages.
        num_targets: K.
        advice: What to do about numbers that are not whole, for messages.

    Returns:
        Array [N, K] of text, int64, uint64 or bool.

    Raises:
        TypeError: For labels of other or mixed kinds.
        ValueError: For a wrong shape, no rows, or numbers that are not whole.
    """
    array = as_columns(
        _plain_array(value, name),
        name,
        num_targets=num_targets,
        content="one label per row and target, ",
        advice="Pass labels, not one-hot columns.",
    )
    if array.dtype.kind == "f":
        return _whole_numbers(array, name, advice)
    # Labels that are hashes may need all 64 bits.
    return _as_int64(array, name) if array.dtype.kind in "iu" else array


def learn_classes(labels: Array, num_classes: int, name: str) -> Classes:
    """Determine the classes from training labels [N, K].

    Labels that are class numbers already (0 .. num_classes - 1), and booleans for two classes, need
    not all occur. Other labels must have exactly `num_classes` different values, in a single
    target.

    Returns:
        Tuple of `num_classes` labels in order.

    Raises:
        ValueError: For more or fewer labels than classes, or labels of several targets.
    """
    found = np.unique(labels)
    if found.dtype.kind == "b" and num_classes == 2:
        return (False, True)
    if found.dtype.kind in "iu" and found[0] >= 0 and found[-1] < num_classes:
        return tuple(range(num_classes))
    if labels.shape[1] > 1:
        raise ValueError(
            f"{name} with several columns must hold 0 and 1 or booleans, received the labels "
            f"{listed(found.tolist())}. Convert each column."
        )
    if len(found) != num_classes:
        raise ValueError(
            f"{name} must hold {num_classes} different labels for this network, received "
            f"{len(found)}: {listed(found.tolist())}. With Categorical the last entry of "
            "layer_sizes is the number of classes; Bernoulli takes two."
        )
    return tuple(found.tolist())


def class_numbers(labels: Array, classes: Classes, name: str) -> Array:
    """Convert labels [N, K] to class numbers, float64 [N, K].

    Raises:
        ValueError: For a label that is not one of the classes.
    """
    occurring, indices = np.unique(labels, return_inverse=True)
    known = {label: number for number, label in enumerate(classes)}
    for label in occurring.tolist():
        if label not in known:
            row = int(np.argwhere(labels == label)[0][0])
            found = f"{name} must hold the labels {listed(classes)}, received {label!r}"
            raise BadRowError(name, found, "Correct or drop these rows.", row)
    numbers = np.array([known[label] for label in occurring.tolist()], dtype=np.float64)
    return numbers[indices.reshape(labels.shape)]


def group_numbers(labels: Any, num_rows: int) -> Array | None:
    """Assign numbers to groups of rows with labels [N], text or integers, by first occurrence.

    Returns:
        Array [N] of 0 .. G - 1, which does not depend on the names of the labels; None for None.

    Raises:
        TypeError, ValueError: For labels of other kinds, missing labels, or another number of them.
    """
    if labels is None:
        return None
    advice = "Number the groups, or name them."
    values = as_labels(labels, "groups", num_targets=1, advice=advice)[:, 0]
    if len(values) != num_rows:
        raise ValueError(f"groups must have one label per row, {num_rows}, received {len(values)}.")
    _, first, indices = np.unique(values, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[indices.ravel()]


def label_array(classes: Classes) -> Array:
    """Return the labels [M] of the class numbers as text, int64, uint64 or bool, all exact."""
    return _from_objects(np.array(classes, dtype=object), "classes")


def check_classes(classes: Classes, num_classes: int) -> None:
    """Raise ValueError for classes that `learn_classes` cannot have returned."""
    kinds = {type(label) for label in classes}
    sound = len(kinds) == 1 and kinds <= {str, int, bool}
    if not sound or len(set(classes)) != len(classes) or len(classes) != num_classes:
        raise ValueError(
            f"classes must be {num_classes} different texts, integers or booleans, found "
            f"{classes!r:.100}."
        )


def _plain_array(value: Any, name: str) -> Array:
    refuse_foreign_table(value, name)
    if hasattr(value, "to_pylist"):  # of pyarrow, whose categories hide missing values from NumPy
        value = value.to_pylist()
    array = as_rectangle(value, name, "labels")
    if array.dtype.kind == "T" or (array.dtype.kind in "Uiuf" and not hasattr(value, "dtype")):
        array = np.asarray(value, dtype=object)  # NumPy would convert a list of mixed kinds
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    if array.dtype.kind not in "biufU":
        raise TypeError(
            f"{name} must hold labels, text or integers, received dtype {array.dtype}. "
            "Convert them to text."
        )
    return array


def _from_objects(array: Array, name: str) -> Array:
    kinds = {type(entry) for entry in array.ravel()}
    for classes, dtype in (((str,), str), ((bool, np.bool_), bool)):
        if all(issubclass(kind, classes) for kind in kinds):
            return array.astype(dtype)
    # timedelta64 is a subclass of the integers of NumPy
    others = (bool, np.bool_, np.timedelta64)
    numbers = (int, float, np.integer, np.floating)
    if any(issubclass(kind, others) or not issubclass(kind, numbers) for kind in kinds):
        raise TypeError(
            f"{name} must hold labels of one kind, text or integers, received a mixture or "
            f"missing values: {', '.join(sorted(kind.__name__ for kind in kinds))}. Drop missing "
            "labels, convert others to text."
        )
    if any(issubclass(kind, (float, np.floating)) for kind in kinds):
        return as_float_array(array, name)
    return _as_int64(array, name)


def _as_int64(array: Array, name: str) -> Array:
    """Convert integers to 64 bits, signed if they fit; raise ValueError if they fit neither."""
    low, high = int(array.min()), int(array.max())
    for dtype in (np.int64, np.uint64):
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return array.astype(dtype)
    raise ValueError(
        f"{name} must hold labels, text or integers of 64 bits, received larger integers. "
        "Convert them to text."
    )


def _whole_numbers(array: Array, name: str, advice: str) -> Array:
    bad = np.argwhere(~np.isfinite(array) | (array != np.round(array)) | (np.abs(array) >= 2**53))
    if len(bad):
        row, column = bad[0]
        found = f"{name} must hold labels, text or whole numbers, received {array[row, column]}"
        raise BadRowError(name, found, advice, int(row))
    return array.astype(np.int64)
