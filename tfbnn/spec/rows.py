"""Rows of data, their transformation to the scale the network sees, and their digests."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.bad_rows import positions_named, refuse_entries
from tfbnn.data.coding import Coding, as_inputs
from tfbnn.data.frames import (
    column_names,
    in_order_of,
    refuse_other_order,
    select_columns,
    targets_in_order,
)
from tfbnn.data.labels import Classes, as_labels, class_numbers, group_numbers, learn_classes
from tfbnn.data.learn_coding import REFUSE, learn_coding
from tfbnn.data.missing_codes import warn_of_codes
from tfbnn.data.transforms import Pipeline, checked_forward, fit_pipeline
from tfbnn.data.validation import as_row_noise, as_targets, check_counts, check_rows
from tfbnn.exceptions import DataWarning
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import ROWS_AT_ONCE, Array, by_rows, rows_at, slices_to_read
from tfbnn.system.words import warn

# With fewer rows, numbers may ascend by one by chance.
_FEWEST_COUNTED = 20
# With fewer copies the coverage of error bars changes by less than this.
_MANY_COPIES = 0.05
MAX_REFERENCE_ROWS = 200  # for diagnostics in function space; also the limit for model files


@dataclass(frozen=True)
class Rows:
    """Checked rows in original units.

    Attributes:
        x: Inputs [N, D].
        y: Targets [N, K]. Class labels are given by their numbers, indices into `classes`.
        noise: Known noise scales, or offsets of counts, [N, K]; or None.
        feature_names: Names of the inputs, or None.
        classes: Class labels, or None for other targets.
        vector_target: Whether y came as [N].
        transforms: Transforms of inputs and targets that an earlier model hands on. None: they are
            fitted to the rows.
        coding: Coding of the columns from which x comes, or None if all hold numbers.
        groups: Numbers [N] of the groups of rows that belong together, or None if each row stands
            for itself.
    """

    x: Array
    y: Array
    noise: Array | None
    feature_names: tuple[str, ...] | None
    classes: Classes | None = None
    vector_target: bool = False
    transforms: tuple[Pipeline, Pipeline] | None = None
    coding: Coding | None = None
    groups: Array | None = None

    def part(self, most: int) -> "Rows":
        """Return up to `most` rows, evenly spaced; groups of rows are kept whole."""
        if len(self.x) <= most:
            return self
        indices = evenly_spaced_groups(self.groups, len(self.x), most)
        noise = None if self.noise is None else rows_at(self.noise, indices)
        groups = None if self.groups is None else self.groups[indices]
        x, y = rows_at(self.x, indices), rows_at(self.y, indices)
        return replace(self, x=x, y=y, noise=noise, groups=groups)


class Known(NamedTuple):
    """Facts about rows that an earlier fit knows; None for those that it does not know.

    Attributes:
        feature_names, classes, coding, transforms: As in `Rows`.
        target_names: Names of the targets, in their order.
    """

    feature_names: tuple[str, ...] | None
    classes: Classes | None
    coding: Coding | None
    transforms: tuple[Pipeline, Pipeline] | None = None
    target_names: tuple[str, ...] | None = None

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns from which the inputs come, or None."""
        return self.feature_names if self.coding is None else self.coding.names

    def select(self, x: Any, what: str) -> Any:
        """Return the columns of the fit out of a frame, as `select_columns` does."""
        return select_columns(x, self.column_names, what, numbered=self.coding is not None)


class NetworkRows(NamedTuple):
    """Rows on the scale the network sees: x [N, D], y [N, K], noise [N, K] or None."""

    x: Array
    y: Array
    noise: Array | None

    def taken(self, indices: slice | Array) -> "NetworkRows":
        """Return the rows at some indices."""
        noise = None if self.noise is None else self.noise[indices]
        return NetworkRows(self.x[indices], self.y[indices], noise)


def rows_of_chains(spec: NetworkSpec, rows: NetworkRows) -> NetworkRows:
    """Return the rows on which the parameters of a model are sampled."""
    indices = spec.indices_of_chains(len(rows.x))
    return rows if indices is None else rows.taken(indices)


def rows_to_fit(
    spec: NetworkSpec,
    x: Any,
    y: Any,
    noise_scale: Any,
    validation_data: Any,
    earlier: Known | None = None,
    missing: str = REFUSE,
    groups: Any = None,
) -> tuple[Rows, Rows | None]:
    """Prepare training and validation rows from the arguments of `fit_posterior`.

    Args:
        spec: NetworkSpec.
        x, y, noise_scale, validation_data: As the user passed them.
        earlier: What is Known of the rows, or None to learn it from the rows themselves.
        missing: As in `learn_coding`.
        groups: Labels [N] of rows that belong together, or None; see `group_numbers`.

    Returns:
        (Training Rows, validation Rows or None).

    Raises:
        TypeError, ValueError: If the model cannot use them.
    """
    refuse_other_order(x, groups, "groups")
    rows = prepare_rows(spec, x, y, noise_scale, "", earlier, missing)
    rows = replace(rows, groups=group_numbers(groups, len(rows.x)))
    advice = "make NaN of them and fit with missing='indicator' (--missing indicator), or drop these rows."
    warn_of_codes(rows.x, "x", advice, rows.feature_names)
    _warn_of_row_numbers(rows)
    if rows.classes is None:
        warn_of_codes(rows.y, "y", "drop these rows.")
    if spec.has_additive_noise and groups is None:
        _warn_of_copies(rows)
    if earlier is not None:
        rows = replace(rows, transforms=earlier.transforms)
    if validation_data is None:
        return rows, None
    if not isinstance(validation_data, (tuple, list)) or len(validation_data) not in (2, 3):
        raise ValueError(
            "validation_data must be (x, y), (x, y, noise_scale) or (x, y, offset), received "
            f"{type(validation_data).__name__}."
        )
    names = (earlier and earlier.target_names) or column_names(y)
    known = Known(rows.feature_names, rows.classes, rows.coding, target_names=names)
    x, y, *noise = validation_data
    noise_scale = noise[0] if noise else None
    held_out = prepare_rows(spec, x, y, noise_scale, "validation ", known)
    if not spec.has_counts and held_out.noise is None and rows.noise is not None:
        raise ValueError(
            "validation_data needs noise_scale, as the training rows have one. Pass (x, y, noise_scale)."
        )
    if spec.has_counts and (rows.noise is None) != (held_out.noise is None):
        raise ValueError(
            "validation_data must have an offset if the training rows have one, and none otherwise. Pass "
            "(x, y, offset) or (x, y)."
        )
    return rows, held_out


def _warn_of_row_numbers(rows: Rows) -> None:
    """Warn if one of several inputs numbers the rows, as a saved index does."""
    if rows.x.shape[1] < 2 or len(rows.x) < _FEWEST_COUNTED:
        return
    head, numbers = rows.x[:_FEWEST_COUNTED], np.arange(len(rows.x))
    rises = (head == head[0] + numbers[: len(head), None]).all(axis=0)
    for column in np.flatnonzero(rises & np.isin(head[0], (0, 1))).tolist():
        if np.array_equal(rows.x[:, column], head[0, column] + numbers):
            name = column if rows.feature_names is None else repr(rows.feature_names[column])
            warn(
                f"Column {name} of x numbers the rows, so new rows lie outside its range. Leave it out "
                "(--ignore), unless it is a measurement.",
                DataWarning,
            )


def _warn_of_copies(rows: Rows) -> None:
    """Warn if many rows are equal to others that came before, as where files were joined that overlap."""
    of_x = by_rows(_digests_of, rows.x)
    some = np.sort(of_x)[:MOST_DIGESTS][-1] >= of_x  # all rows of some inputs
    of_y, of_both = (
        by_rows(_digests_of, *arrays)[some] for arrays in ((rows.y,), (rows.x, rows.y))
    )
    num_x, num_y, num_both = (len(np.unique(each)) for each in (of_x[some], of_y, of_both))
    share = 1.0 - num_both / len(of_both)
    # Where inputs and targets both have few values, rows are equal by chance.
    if share > _MANY_COPIES and 2 * max(num_x, num_y) > num_both:
        warn(
            f"{share:.0%} of the rows repeat another row, with the same inputs and targets. Each is fitted as "
            "a measurement of its own, and error bars become too short if it is none: drop copies.",
            DataWarning,
        )


def prepare_rows(
    spec: NetworkSpec,
    x: Any,
    y: Any,
    noise_scale: Any,
    name: str = "",
    known: Known | None = None,
    missing: str = REFUSE,
) -> Rows:
    """Check one set of rows and convert it to Rows.

    Args:
        spec: NetworkSpec.
        x, y, noise_scale: As the user passed them.
        name: Prefix of the names of the arguments in messages.
        known: What is Known of the rows from the fit. Columns of a frame are selected by name, in
            any order, and other columns are ignored; targets and their noise are ordered by name,
            too.
            None: names, coding and classes are learned from these rows.
        missing: As in `learn_coding`; used only if `known` is None.

    Returns:
        Rows.
    """
    is_new, known = known is None, known or Known(None, None, None)
    for value, argument in ((y, f"{name}y"), (noise_scale, f"{name}{known_name(spec)}")):
        refuse_other_order(x, value, argument, f"{name}x")
    x = spec.flat_inputs(known.select(x, f"{name}x"))
    y, noise_scale = targets_in_order(y, noise_scale, known.target_names, name, known_name(spec))
    coding, classes = known.coding, known.classes
    with positions_named(x):
        if is_new and (coding := learn_coding(x, f"{name}x", missing)) is not None:
            coding.check_network(spec.num_inputs, spec.x_transform, f"{name}x")
        inputs = as_inputs(x, f"{name}x", spec.num_inputs, coding)
        if spec.has_classes:
            labels = as_labels(y, f"{name}y", num_targets=spec.num_targets)
            classes = classes or learn_classes(labels, spec.num_classes, f"{name}y")
            targets = class_numbers(labels, classes, f"{name}y")
        else:
            targets = as_targets(y, f"{name}y", num_targets=spec.num_targets)
            if spec.has_counts:
                check_counts(targets, f"{name}y")
        check_rows(**{f"{name}x": inputs.values, f"{name}y": targets})
        noise = prepare_noise(spec, noise_scale, len(targets))
    is_vector = np.ndim(y) == 1
    return Rows(inputs.values, targets, noise, inputs.names, classes, is_vector, coding=coding)


def prepare_noise(spec: NetworkSpec, noise_scale: Any, num_rows: int) -> Array | None:
    """Check known noise scales, or offsets of counts: [N, K] or None; refuse them for classes."""
    if spec.has_classes and noise_scale is not None:
        raise ValueError(
            f"noise_scale does not go with {spec.likelihood_name}, received "
            f"{type(noise_scale).__name__}: class labels have no noise scale. Leave it None."
        )
    of_counts, sizes = spec.has_counts, {"num_rows": num_rows, "num_targets": spec.num_targets}
    return as_row_noise(noise_scale, is_offset=of_counts, **sizes)


def known_beside(
    spec: NetworkSpec, x: Any, known: Any, target_names: tuple[str, ...] | None, num_rows: int
) -> Array | None:
    """Return known noise scales, or offsets of counts, of rows x in the order of the targets: [N, K].

    None if none are known.
    """
    name = known_name(spec)
    known = in_order_of(known, target_names, name)
    refuse_other_order(x, known, name)
    return prepare_noise(spec, known, num_rows)


def known_name(spec: Any) -> str:
    """Return the name of the argument with the known numbers of rows besides x and y."""
    return "offset" if spec.has_counts else "noise_scale"


def as_argument(spec: Any, known: Any) -> dict[str, Any]:
    """Return known noise scales, or offsets of counts, as a model method's keyword argument."""
    return {known_name(spec): known}


def known_of_rows(spec: Any, noise_scale: Any, offset: Any) -> Any:
    """Return the known numbers of each row besides x and y: noise scales, or offsets of counts.

    Raises:
        ValueError: For the argument that does not fit the likelihood of the spec.
    """
    of_counts = spec.has_counts
    name, value = ("noise_scale", noise_scale) if of_counts else ("offset", offset)
    if value is not None:
        advice = "pass offset=, the logarithm of the exposure" if of_counts else "it is for counts"
        raise ValueError(f"{name} does not go with {spec.likelihood_name}: {advice}.")
    return offset if of_counts else noise_scale


def transform_rows(
    spec: NetworkSpec, x_pipeline: Pipeline, y_pipeline: Pipeline, rows: Rows, name: str = ""
) -> NetworkRows:
    """Transform Rows to NetworkRows, and check that they fit into the dtype.

    Messages call them x and y with the prefix `name`.
    """
    with positions_named(names=rows.feature_names):
        x = checked_forward(x_pipeline, rows.x, f"{name}x")
        y = checked_forward(y_pipeline, rows.y, f"{name}y")
        noise = None if rows.noise is None else rows.noise * np.abs(y_pipeline.derivative(rows.y))
        check_network_inputs(spec, f"{name}x", x)
        for argument, values in (("y", y), (known_name(spec), noise)):
            check_range(spec, f"{name}{argument}", values)
    return NetworkRows(x, y, noise)


class TransformedRows(NamedTuple):
    """Rows on the scale the network sees, and the transforms fitted to them.

    Attributes:
        x_pipeline, y_pipeline: Transforms fitted to the training rows.
        train, held_out: Training and validation rows; the latter may be None. Large sets of
            training rows have the dtype of the chains, because float64 would take too much memory.
        groups: As in the training Rows.
    """

    x_pipeline: Pipeline
    y_pipeline: Pipeline
    train: NetworkRows
    held_out: NetworkRows | None
    groups: Array | None = None


def learn_transforms(spec: NetworkSpec, rows: Rows, validation: Rows | None) -> TransformedRows:
    """Fit the transforms of `spec` to training Rows, unless they have some, and apply them."""
    if rows.transforms is None:
        with positions_named(names=rows.feature_names):
            x_pipeline = fit_pipeline(spec.x_transform, rows.x, "x", rows.feature_names)
        if rows.coding is not None:
            x_pipeline = rows.coding.even(x_pipeline)
        y_pipeline = fit_pipeline(spec.y_transform, rows.y, "y")
    else:
        x_pipeline, y_pipeline = rows.transforms
    train = transform_rows(spec, x_pipeline, y_pipeline, rows)
    held_out = None
    if validation is not None:
        held_out = transform_rows(spec, x_pipeline, y_pipeline, validation, "validation ")
    if len(train.x) > ROWS_AT_ONCE:
        noise = None if train.noise is None else train.noise.astype(spec.dtype)
        train = NetworkRows(train.x.astype(spec.dtype), train.y.astype(spec.dtype), noise)
    return TransformedRows(x_pipeline, y_pipeline, train, held_out, rows.groups)


def data_hash(rows: Rows) -> str:
    """Compute the SHA-256 of shapes and values of the rows, as hexadecimal text."""
    return array_hash(rows.x, rows.y, rows.noise)


def array_hash(*arrays: Array | None) -> str:
    """Compute the SHA-256 of shapes and values of arrays, as hexadecimal text."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"none" if array is None else repr(array.shape).encode())
        if array is not None:
            for rows in slices_to_read(array):
                digest.update(np.ascontiguousarray(array[rows]).data)
    return digest.hexdigest()


def evenly_spaced(num_rows: int, most: int) -> Array:
    """Return up to `most` row indices, evenly spaced from the first row to the last."""
    return np.unique(np.linspace(0, num_rows - 1, min(num_rows, most)).astype(int))


def evenly_spaced_groups(groups: Array | None, num_rows: int, most: int) -> Array:
    """Return row indices of evenly spaced whole groups [N], with up to `most` rows in total, or of one group.

    If there are more rows, groups of more than a quarter of `most` are passed over where the others have at
    least a quarter of `most`: one of them would take the place of all others. The largest group stands alone,
    whatever its size, if no two fit.
    """
    if groups is None:
        return evenly_spaced(num_rows, most)
    sizes = np.bincount(groups)
    some = np.arange(len(sizes))
    small = np.flatnonzero((sizes > 0) & (sizes <= most // 4))
    if sizes.sum() > most and sizes[small].sum() >= most // 4:
        some = small
    count = len(some)
    while sizes[some[evenly_spaced(len(some), count)]].sum() > most and count > 1:
        count -= -(-count // 10)
    chosen = some[evenly_spaced(len(some), count)] if count > 1 else [sizes.argmax()]
    return np.flatnonzero(np.isin(groups, chosen))


def check_network_inputs(spec: NetworkSpec, name: str, x: Array) -> None:
    """Check that transformed inputs [N, D] fit into the dtype, and words into the table."""
    check_range(spec, name, x)
    most = spec.network.num_words
    if most is None:
        return
    bad = (x != np.floor(x)) | (x < 0) | (x >= most)
    found = f"{name} must number words from 0 to {most - 1}, received {{:g}}; first"
    advice = "Number words as in the fit, or give the Embedding a larger input_dim before it."
    refuse_entries(bad, x, name, found, advice)


def check_range(spec: NetworkSpec, name: str, values: Array | None) -> None:
    """Check that the model's dtype has a normal number for all transformed values [N, K].

    Zero is allowed where the value is zero; a noise scale must never be zero.
    """
    if values is None:
        return
    limits, is_noise = np.finfo(spec.dtype), name.endswith("noise_scale")
    # Residuals are divided by a noise scale and squared.
    least = np.sqrt(limits.tiny) if is_noise else limits.tiny

    def are_bad(values: Array) -> Array:
        size = np.abs(values)
        too_small = (size < least) & ((values != 0) | is_noise)
        return too_small | ~(size <= limits.max)

    found = (
        f"{name} does not fit into {spec.dtype} after its transform: received {{:.4g}}, its sizes "
        f"are {least:.2g} to {limits.max:.2g}; first"
    )
    advice = "Standardise it, rescale it or use dtype='float64'."
    refuse_entries(by_rows(are_bad, values), values, name, found, advice)


# With more rows, only the smallest digests are kept. They represent the share of rows with digests
# of that size.
MOST_DIGESTS = 65_536
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = (np.uint64(32), np.uint64(29))


def row_digests(rows: Rows) -> Array:
    """Compute ascending digests uint32 [min(N, 65536)] of inputs and targets, in original units.

    Among a million other rows, some 200 have the digest of one of these rows by chance. A row
    cannot be recovered from its digest.
    """
    return merged_digests(by_rows(_digests_of, rows.x, rows.y))


def merged_digests(*parts: Array) -> Array:
    """Merge the digests of several fits into the digests of all their rows together.

    Duplicates are kept: without them, a part that is not complete would count as more than it is.
    """
    return np.sort(np.concatenate(parts))[:MOST_DIGESTS].copy()


def num_known(known: Array, rows: Rows) -> int | None:
    """Estimate how many rows have one of the digests that `row_digests` gave for other rows.

    Return None if these are the smallest digests of many, and those of the rows are all larger.
    """
    if not len(known):
        return 0
    digests = by_rows(_digests_of, rows.x, rows.y)
    if len(known) == MOST_DIGESTS:
        digests = digests[digests <= known[-1]]
    return round(len(rows.x) * float(np.isin(digests, known).mean())) if len(digests) else None


def share_of_twins(known: Array) -> float:
    """Return the share of the rows behind digests that have the values of another row."""
    _, counts = np.unique(known, return_counts=True)
    return float(counts[counts > 1].sum() / max(len(known), 1))


def _digests_of(*columns: Array) -> Array:
    # Adding 0.0 makes minus zero zero. Integer products wrap around.
    values = np.ascontiguousarray(np.hstack(columns) + 0.0, dtype="<f8").view("<u8")
    state = np.zeros(len(values), np.uint64)
    with np.errstate(over="ignore"):
        for column in values.T:
            state = (state ^ column) * _MULTIPLIER
            for shift in _SHIFTS:
                state ^= state >> shift
            state *= _MULTIPLIER
    return (state >> _SHIFTS[0]).astype(np.uint32)
