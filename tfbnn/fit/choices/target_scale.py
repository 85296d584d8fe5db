"""Whether targets are modelled as they are, or their logarithms: pure functions of them and a pilot."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tfbnn.data.missing_codes import are_codes
from tfbnn.fit.choices.pilot import Pilot
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array

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

    @classmethod
    def of(cls, x: Array, y: Array) -> Misfits:
        """Those of inputs [N, D] and positive targets [N, K]."""
        return cls(*(Pilot.misses(NetworkRows(x, values, None)) for values in (y, np.log10(y))))


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
    """What all of the values are multiples of, as rounded numbers are, or 0."""
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
