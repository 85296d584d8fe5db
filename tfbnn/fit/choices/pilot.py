"""Estimate noise with a pilot regression in closed form, and use it to choose the scale of targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tfbnn.data.missing_codes import are_codes
from tfbnn.diagnostics.fit_check import ROUNDING
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import single_threaded_blas

_MOST_ROWS, _MOST_FEATURES = 2000, 300
# Fewer rows contain next to no information, even on a linear function.
_FEWEST_ROWS = 8
# Scales of the weights of the features, for smooth functions and for wiggly ones.
_SCALES = (0.5, 1.0, 2.0, 4.0)
# The ridge in units of the largest squared singular value.
_RIDGES = np.logspace(-12.0, 0.0, 25)


def pilot_noise(rows: NetworkRows) -> Array:
    """Estimate the noise of the training rows of a regression; deterministic.

    Returns:
        Leave-one-out residual standard deviation [K] of a ridge regression on random features. This is
        about that of the noise, or more if the features cannot follow the function. It is in standard
        deviations of the targets, whatever their unit, and 1 for a constant target, which has nothing to
        predict.
    """
    with single_threaded_blas():  # so that the bits do not depend on the number of threads
        x, y = _taken(rows)
        y = y / _largest(y)
        spread = y.std(axis=0)
        constant = spread <= ROUNDING * np.abs(y.mean(axis=0))
        if len(x) < _FEWEST_ROWS:
            return np.ones(y.shape[1])
        y = (y - y.mean(axis=0)) / np.where(constant, 1.0, spread)
        linear = np.where(constant, 1.0, _held_out_error(x, y))
        errors = [_held_out_error(_features(x, scale), y) for scale in _SCALES]
        return np.where(constant, 1.0, np.min([linear, *errors], axis=0))


def pilot_misses(rows: NetworkRows) -> Array:
    """Return the noise [K] of training rows in units of the targets."""
    largest = _largest(rows.y)
    return pilot_noise(rows) * (rows.y / largest).std(axis=0) * largest


def _taken(rows: NetworkRows) -> tuple[Array, Array]:
    """Return inputs with mean 0 and variance 1, and targets, of a random sample of limited size."""
    x, y = rows.x, rows.y
    if len(x) > _MOST_ROWS:
        taken = np.sort(np.random.default_rng(0).choice(len(x), _MOST_ROWS, replace=False))
        x, y = x[taken], y[taken]
    x = x / _largest(x)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0)
    return x / np.where(spread > 0, spread, 1.0), y


def _largest(values: Array) -> Array:
    """Return the largest absolute value of each column, or 1 for zeros.

    Dividing by it avoids squares of 1e200 or 1e-200, which are out of range.
    """
    largest = np.abs(values).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def _features(x: Array, scale: float) -> Array:
    """Return the inputs and tanh of random projections with slopes of size `scale`: [n, D + M]."""
    count = min(len(x) // 2, _MOST_FEATURES)
    generator = np.random.default_rng(1)
    directions = generator.standard_normal((x.shape[1], count)) / np.sqrt(x.shape[1])
    # Each unit bends within the range of the inputs.
    offsets = scale * generator.standard_normal(count)
    return np.hstack([x, np.tanh(scale * (x @ directions) + offsets)])


def _held_out_error(features: Array, y: Array) -> Array:
    """Return the leave-one-out residual standard deviation [K] for the best ridge."""
    centre = y.mean(axis=0)
    u, s, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    projections, largest = u.T @ (y - centre), max(float(s[0]) ** 2, np.finfo(float).tiny)
    # The part of the targets outside the span of the features. With as many features as rows it is 0; for a
    # small ridge the remaining residual is far below the rounding of the sums that it is computed from.
    out_of_reach = y - centre - u @ projections
    room_beyond = 1.0 - 1.0 / len(y) - np.sum(u**2, axis=1)
    errors = []
    for ridge in _RIDGES * largest:
        left = ridge / (s**2 + ridge)
        residual = out_of_reach + u @ (left[:, None] * projections)
        room = np.maximum(room_beyond + u**2 @ left, np.finfo(float).eps)[:, None]
        errors.append(np.sqrt(np.mean((residual / room) ** 2, axis=0)))
    return np.min(errors, axis=0)


# Targets that span more than this factor are modelled on a log scale.
_WIDE = 100.0
# Fewer distinct targets than these may be multiples of a step by chance.
_ENOUGH_TARGETS = 20
# If the floating-point error is a larger part of a step than this, every number looks like a multiple.
_MOST_BLUR = 0.05
# Calculations fail in a few rows. If more rows are 0, as for daily rainfall, zeros belong to the targets.
_MOST_FAILED = 0.05


class Misfits(NamedTuple):
    """Standard deviations [K] of a pilot's residuals for targets, and for log10 of them, in their units."""

    plain: Array
    decades: Array


def misfits_of(x: Array, y: Array) -> Misfits:
    """Return the misfits for inputs [N, D] and positive targets [N, K]."""
    return Misfits(*(pilot_misses(NetworkRows(x, values, None)) for values in (y, np.log10(y))))


def y_transform(targets: Array, fly: Callable[[], Misfits]) -> tuple[tuple[str, ...], str]:
    """Choose the transform of numeric targets from all rows.

    Rounded targets keep their scale if rounding changes the logarithms of the smallest of them by more
    than the error of a regression: those few rows would determine the noise of all rows. (Yacht, rounded
    to 0.01 from 0.01 on: a Gaussian process scores -0.06 per row without the logarithm, -1.05 with it.)
    Targets also keep their scale if a regression predicts them better on it. For a smooth function that
    comes close to zero in places, the logarithm has pits there that few rows show.

    Args:
        targets: [N, K].
        fly: Function that returns the Misfits of a pilot.

    Returns:
        (Names of the transforms, reason).
    """
    low, high = targets.min(axis=0), targets.max(axis=0)
    if np.any(low <= 0):
        return ("standardize",), "not all targets are positive"
    with np.errstate(over="ignore"):
        span = float(np.min(high / low))
    told = f"all targets are positive and span a factor of {span:.3g}"
    if span <= _WIDE:
        return ("standardize",), f"{told}, at most {_WIDE:g}"
    misfits = fly()
    steps = np.array([_rounding_of(column) for column in targets.T])
    if steps.any():
        moved = steps / np.sqrt(12.0) / (low * np.log(10.0))
        if np.any(moved > misfits.decades):
            why = f"{told}, but rounding to {steps.max():.3g} blurs logarithms of the smallest"
            return ("standardize",), why
    loss = _loss_by_logarithms(targets, misfits)
    if loss > 0:
        why = (
            f"{told}, but a pilot's log density per row is {loss:.2g} higher without the logarithm"
        )
        return ("standardize",), why
    return ("log10", "standardize"), f"{told}, more than {_WIDE:g}"


def failed_rows(targets: Array) -> Array:
    """Find rows of targets [N, K] with 0, -1 or a code for missing values if all others are positive.

    Returns:
        A mask [N]. No row is marked if they are more than one row in twenty, or if other targets are
        negative.
    """
    is_code = np.isin(targets, (0.0, -1.0, -9.0)) | are_codes(targets)
    failed: Array = np.any(targets <= 0, axis=1)
    if not np.all((targets > 0) | is_code) or failed.mean() > _MOST_FAILED:
        return np.zeros(len(targets), bool)
    return failed


def _loss_by_logarithms(targets: Array, misfits: Misfits) -> float:
    """Return the loss of log density per row by modelling log10 of the targets with normal errors."""
    rounding = np.finfo(float).eps
    plain = np.log(np.maximum(misfits.plain, rounding * targets.max(axis=0)))
    decades = np.log(np.maximum(misfits.decades, rounding))
    slopes = np.mean(np.log(targets), axis=0) + np.log(np.log(10.0))
    return float(np.sum(decades + slopes - plain))


def _rounding_of(values: Array) -> float:
    """Return the step of which all values are multiples, as for rounded numbers, or 0."""
    distinct = np.unique(values)
    if len(distinct) < _ENOUGH_TARGETS:
        return 0.0
    step = float(np.min(np.diff(distinct)))
    multiples = distinct / step
    # Bound on the error of a number of this precision, and of the difference of two of them.
    blur = 4.0 * np.finfo(values.dtype).eps * multiples[-1]
    if blur > _MOST_BLUR:
        return 0.0
    # The largest multiple determines the step more precisely.
    step = float(distinct[-1] / np.round(multiples[-1]))
    multiples = distinct / step
    return step if np.abs(multiples - np.round(multiples)).max() <= max(blur, 1e-6) else 0.0
