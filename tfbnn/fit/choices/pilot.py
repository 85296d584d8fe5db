"""Estimate noise by a pilot of linear algebra, and choose the scale of targets by it."""

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
# Fewer rows tell next to nothing, not even of a line.
_FEWEST_ROWS = 8
# Scales of the weights of the features, for smooth functions and for wiggly ones.
_SCALES = (0.5, 1.0, 2.0, 4.0)
# The ridge in units of the largest squared singular value.
_RIDGES = np.logspace(-12.0, 0.0, 25)


def pilot_noise(rows: NetworkRows) -> Array:
    """Estimate the noise of training rows of a regression; the same for the same rows.

    Returns:
        Residual standard deviation of held-out rows [K], of ridge regression on random features: about
        that of the noise, or more where the features cannot follow the function. It is in standard
        deviations of the targets, whatever their unit, and 1 where a target is constant: there is
        nothing to find.
    """
    with single_threaded_blas():  # bits that no other thread decides
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
    """Return inputs, of mean 0 and variance 1, and targets of up to so many rows, drawn at random."""
    x, y = rows.x, rows.y
    if len(x) > _MOST_ROWS:
        taken = np.sort(np.random.default_rng(0).choice(len(x), _MOST_ROWS, replace=False))
        x, y = x[taken], y[taken]
    x = x / _largest(x)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0)
    return x / np.where(spread > 0, spread, 1.0), y


def _largest(values: Array) -> Array:
    """Return the largest size in each column, or 1 of zeros: squares of 1e200 or 1e-200 are out of range."""
    largest = np.abs(values).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def _features(x: Array, scale: float) -> Array:
    """Return the inputs [n, D] and tanh of random projections, whose slopes are of this size: [n, D + M]."""
    count = min(len(x) // 2, _MOST_FEATURES)
    generator = np.random.default_rng(1)
    directions = generator.standard_normal((x.shape[1], count)) / np.sqrt(x.shape[1])
    # Each unit bends within the range of the inputs.
    offsets = scale * generator.standard_normal(count)
    return np.hstack([x, np.tanh(scale * (x @ directions) + offsets)])


def _held_out_error(features: Array, y: Array) -> Array:
    """Residual standard deviation [K] of leave-one-out, of the ridge for which it is least."""
    centre = y.mean(axis=0)
    u, s, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    projections, largest = u.T @ (y - centre), max(float(s[0]) ** 2, np.finfo(float).tiny)
    # What no ridge reaches. With as many features as rows both are 0, and what a small ridge leaves is
    # far below the rounding of sums of what it takes.
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
# Fewer different targets than these may be multiples of something by chance.
_ENOUGH_TARGETS = 20
# Where numbers are rounded to so much of a step, every one is as good as a multiple.
_MOST_BLUR = 0.05
# Calculations fail in a few rows; where more are 0, as of rain by the day, zeros belong to the targets.
_MOST_FAILED = 0.05


class Misfits(NamedTuple):
    """Standard deviations [K] by which a pilot misses targets, and log10 of them, in their units."""

    plain: Array
    decades: Array


def misfits_of(x: Array, y: Array) -> Misfits:
    """Return the misfits for inputs [N, D] and positive targets [N, K]."""
    return Misfits(*(pilot_misses(NetworkRows(x, values, None)) for values in (y, np.log10(y))))


def y_transform(targets: Array, fly: Callable[[], Misfits]) -> tuple[tuple[str, ...], str]:
    """Transform of targets that are numbers, by all rows that there are.

    Rounded targets keep their scale where rounding moves the logarithms of the smallest of them by
    more than a regression misses: those few rows would decide the noise of all. (Yacht, rounded to
    0.01 from 0.01 on: a Gaussian process scores -0.06 per row so, -1.05 with the logarithm.) So do
    others that a regression predicts better as they are: of a smooth function that comes close to
    zero in places, the logarithm has pits there that few rows show.

    Args:
        targets: [N, K].
        fly: Gives the Misfits of a pilot.
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
    """Find rows of targets [N, K] with 0, -1 or a code for missing values where all others are positive.

    Returns:
        A mask [N]. It is empty if they are more than one row in twenty, or if other targets are negative.
    """
    is_code = np.isin(targets, (0.0, -1.0, -9.0)) | are_codes(targets)
    failed: Array = np.any(targets <= 0, axis=1)
    if not np.all((targets > 0) | is_code) or failed.mean() > _MOST_FAILED:
        return np.zeros(len(targets), bool)
    return failed


def _loss_by_logarithms(targets: Array, misfits: Misfits) -> float:
    """Log density per row of normal errors of the targets, less that of normal errors of their log10."""
    rounding = np.finfo(float).eps
    plain = np.log(np.maximum(misfits.plain, rounding * targets.max(axis=0)))
    decades = np.log(np.maximum(misfits.decades, rounding))
    slopes = np.mean(np.log(targets), axis=0) + np.log(np.log(10.0))
    return float(np.sum(decades + slopes - plain))


def _rounding_of(values: Array) -> float:
    """Return the number that all values are multiples of, as rounded numbers are, or 0."""
    distinct = np.unique(values)
    if len(distinct) < _ENOUGH_TARGETS:
        return 0.0
    step = float(np.min(np.diff(distinct)))
    multiples = distinct / step
    # What a number of this precision, and the difference of two of them, may be off.
    blur = 4.0 * np.finfo(values.dtype).eps * multiples[-1]
    if blur > _MOST_BLUR:
        return 0.0
    # The step is better known from the largest multiple of it.
    step = float(distinct[-1] / np.round(multiples[-1]))
    multiples = distinct / step
    return step if np.abs(multiples - np.round(multiples)).max() <= max(blur, 1e-6) else 0.0
