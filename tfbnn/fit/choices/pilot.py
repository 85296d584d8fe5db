"""A pilot: how noisy the targets are, found in milliseconds by regressions in closed form.

Ridge regression on the inputs, and on random features of them, each scored by the rows that it has
not seen: the residuals of leave-one-out follow from one decomposition (Allen 1974, Technometrics
16, 125), for every strength of the ridge at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfbnn.diagnostics.fit_check import ROUNDING
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import single_threaded_blas

_MOST_ROWS, _MOST_FEATURES = 2000, 300
# Fewer rows tell next to nothing, not even of a line.
_FEWEST_ROWS = 8
# Of the weights of the features, for smooth functions and for wiggly ones.
_SCALES = (0.5, 1.0, 2.0, 4.0)
# The ridge in units of the largest squared singular value.
_RIDGES = np.logspace(-12.0, 0.0, 25)


@dataclass(frozen=True, eq=False)
class Pilot:
    """What the pilot found, in standard deviations of the targets, whatever their unit.

    Attributes:
        noise: Residual standard deviation of held-out rows [K], of ridge regression on random
            features: about that of the noise, or more where the features cannot follow the function.
            1 where a target is constant: there is nothing to find.
        ridge_noise: The same of ridge regression on the inputs alone.
        num_rows: Rows that it has looked at.
    """

    noise: Array
    ridge_noise: Array
    num_rows: int

    @classmethod
    def fly(cls, rows: NetworkRows) -> Pilot:
        """The Pilot of training rows of a regression; the same for the same rows."""
        with single_threaded_blas():  # bits that no other thread decides
            x, y = _taken(rows)
            y = y / _largest(y)
            spread = y.std(axis=0)
            constant = spread <= ROUNDING * np.abs(y.mean(axis=0))
            if len(x) < _FEWEST_ROWS:
                return cls(np.ones(y.shape[1]), np.ones(y.shape[1]), len(x))
            y = (y - y.mean(axis=0)) / np.where(constant, 1.0, spread)
            linear = np.where(constant, 1.0, _held_out_error(x, y))
            errors = [_held_out_error(_features(x, scale), y) for scale in _SCALES]
            return cls(np.where(constant, 1.0, np.min([linear, *errors], axis=0)), linear, len(x))

    @classmethod
    def misses(cls, rows: NetworkRows) -> Array:
        """The noise [K] of training rows in units of the targets."""
        largest = _largest(rows.y)
        missed: Array = cls.fly(rows).noise * (rows.y / largest).std(axis=0) * largest
        return missed


def _taken(rows: NetworkRows) -> tuple[Array, Array]:
    """Inputs, of mean 0 and variance 1, and targets of up to so many rows, drawn at random."""
    x, y = rows.x, rows.y
    if len(x) > _MOST_ROWS:
        taken = np.sort(np.random.default_rng(0).choice(len(x), _MOST_ROWS, replace=False))
        x, y = x[taken], y[taken]
    x = x / _largest(x)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0)
    return x / np.where(spread > 0, spread, 1.0), y


def _largest(values: Array) -> Array:
    """The largest size in each column, or 1 of zeros: squares of 1e200 or 1e-200 are out of range."""
    largest = np.abs(values).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def _features(x: Array, scale: float) -> Array:
    """The inputs [n, D] and tanh of random projections, whose slopes are of this size: [n, D + M]."""
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
    least: Array = np.min(errors, axis=0)
    return least
