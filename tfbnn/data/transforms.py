"""Elementwise transforms of inputs and targets, with inverse and Jacobian, in float64.

A `Pipeline` holds the transforms named in `x_transform` or `y_transform`, fitted to data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from tfbnn.data.bad_rows import refuse_entries
from tfbnn.data.frames import listed
from tfbnn.exceptions import DataWarning
from tfbnn.system.arrays import Array, by_rows, slices_to_read
from tfbnn.system.words import did_you_mean, warn

# Adds an ONNX operation: (kind, *names of tensors or numbers) -> name of the result.
Operation = Callable[..., str]
Names = Sequence[str] | None
# All transforms by their names.
TRANSFORMS: dict[str, type[Transform]] = {}


@dataclass(frozen=True)
class Transform(ABC):
    """An elementwise transform for NumPy and ONNX.

    Its fields are what it learns from data: tuples with an entry for every column.

    `forward` takes rows [N, D] and `inverse` values [..., K]. In ONNX graphs, the inverse has the
    rows innermost, [S, K, N]. There op(kind, *inputs) adds an operation of the ONNX standard and
    returns its result, as in `tfbnn.posterior.onnx`.

    Attributes:
        name: Name in `x_transform`, `y_transform` and files; every subclass has one.
        is_affine: Whether it only shifts and rescales, so that moments carry over exactly.
    """

    name: ClassVar[str]
    is_affine: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        TRANSFORMS[cls.name] = cls

    @classmethod
    def fit(cls, values: Array, argument: str, columns: Names = None) -> Self:
        """Fit the transform to the training rows [N, K].

        Args:
            values: The rows.
            argument: What messages call them.
            columns: Names of their columns, for messages too, or None.
        """
        transform = cls()
        transform.check_domain(values, argument)
        return transform

    def check_domain(self, values: Array, argument: str) -> None:
        """Refuse values [N, K] for which the transform is not defined."""
        del values, argument  # by default it is defined for all

    def to_json(self) -> dict[str, Any]:
        """Return its name and lists of what it has learned."""
        return {"name": self.name} | {key: list(value) for key, value in vars(self).items()}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Self:
        """Rebuild and check what `to_json` wrote; by default the transform has learned nothing."""
        return cls()

    @abstractmethod
    def forward(self, y: Array) -> Array: ...

    @abstractmethod
    def inverse(self, t: Array) -> Array: ...

    @abstractmethod
    def derivative(self, y: Array) -> Array: ...

    @abstractmethod
    def forward_onnx(self, op: Operation, y: str) -> str: ...

    @abstractmethod
    def inverse_onnx(self, op: Operation, t: str) -> str: ...


@dataclass(frozen=True)
class Log10(Transform):
    """y -> log10(y), for positive values."""

    name = "log10"

    def forward(self, y: Array) -> Array:
        return np.log10(y)

    def inverse(self, t: Array) -> Array:
        with np.errstate(over="ignore"):  # a wild draw may exceed 1e308: infinity is the answer
            return 10.0**t

    def derivative(self, y: Array) -> Array:
        return 1.0 / (np.log(10.0) * y)

    def forward_onnx(self, op: Operation, y: str) -> str:
        return op("Div", op("Log", y), np.log(10.0))

    def inverse_onnx(self, op: Operation, t: str) -> str:
        return op("Pow", 10.0, t)

    def check_domain(self, values: Array, argument: str) -> None:
        bad = values <= 0
        found = f"{argument} must be positive for the transform 'log10', received {bad.sum()} "
        found += "values <= 0, the first ({})"
        refuse_entries(bad, values, argument, found, "Drop these rows or leave 'log10' out.")


@dataclass(frozen=True)
class Standardize(Transform):
    """y -> (y - mean) / scale, per column; mean and scale come from the training rows."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    name = "standardize"
    is_affine = True

    @classmethod
    def fit(cls, values: Array, argument: str, columns: Names = None) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = values.min(axis=0), values.max(axis=0)
            # Rounding must not turn a constant column into anything but zeros.
            mean = np.where(low == high, low, values.mean(axis=0))
            # Scaled by a power of two, which is exact: squares of 1e200 or 1e-200 are out of range.
            exponent = np.frexp(np.maximum(-low, high))[1]
            scale = np.ldexp(_stddev(values, -exponent), exponent)
        too_large = ~(np.isfinite(mean) & np.isfinite(scale))
        if np.any(too_large):
            raise ValueError(
                f"Columns {_those(too_large, columns)} of {argument} are too large to standardise: their "
                "mean or spread overflows. Rescale them first."
            )
        # Rounding makes the spread of a constant column tiny but not zero.
        info = np.finfo(np.float64)
        constant = (low == high) | (scale <= 8.0 * info.eps * np.maximum(np.abs(mean), info.tiny))
        if np.any(constant):
            warn(
                f"Columns {_those(constant, columns)} of {argument} are constant; they are shifted, not rescaled.",
                DataWarning,
            )
        scale = np.where(constant, 1.0, scale)
        return cls(tuple(mean.tolist()), tuple(scale.tolist()))

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Self:
        mean, scale = tuple(map(float, entry["mean"])), tuple(map(float, entry["scale"]))
        if len(mean) != len(scale) or not np.all(np.isfinite(mean)):
            raise ValueError("the mean of 'standardize' is not finite or has a wrong length")
        if not all(np.isfinite(s) and s > 0 for s in scale):
            raise ValueError("the scale of 'standardize' is not positive and finite")
        return cls(mean, scale)

    def forward(self, y: Array) -> Array:
        return (y - np.asarray(self.mean)) / np.asarray(self.scale)

    def inverse(self, t: Array) -> Array:
        return t * np.asarray(self.scale) + np.asarray(self.mean)

    def derivative(self, y: Array) -> Array:
        return np.broadcast_to(1.0 / np.asarray(self.scale), np.shape(y))

    def forward_onnx(self, op: Operation, y: str) -> str:
        unit, mean, scale = self._in_units()
        return op("Div", op("Sub", op("Div", y, unit), mean), scale)

    def inverse_onnx(self, op: Operation, t: str) -> str:
        unit, mean, scale = (values[:, None] for values in self._in_units())
        return op("Mul", op("Add", op("Mul", t, scale), mean), unit)

    def _in_units(self) -> tuple[Array, Array, Array]:
        """Return (powers of two next to the scales, means and scales in these units), all exact.

        onnxruntime leaves out the addition of a number that it takes for zero, such as a mean below
        the range of float32.
        """
        mean, scale = np.array(self.mean), np.array(self.scale)
        unit = np.ldexp(1.0, np.frexp(scale)[1] - 1)
        return unit, mean / unit, scale / unit


@dataclass(frozen=True)
class Pipeline:
    """Transforms applied one after the other to arrays [..., K], to each column separately."""

    steps: tuple[Transform, ...] = ()

    def forward(self, y: Array) -> Array:
        """Transform values from original units to the scale the network sees."""
        for step in self.steps:
            y = step.forward(y)
        return y

    def inverse(self, t: Array) -> Array:
        """Transform values from the scale the network sees to original units."""
        for step in reversed(self.steps):
            t = step.inverse(t)
        return t

    def moments_of_normal(self, t: Array, scale: Array) -> tuple[Array, Array] | None:
        """Compute mean and standard deviation of `inverse(t + noise)` over normal noise.

        They have a closed form with at most one logarithm; otherwise None is returned.

        Args:
            t: Values on the scale the network sees.
            scale: Standard deviations of the noise, broadcastable to `t`.
        """
        spread: Array = np.broadcast_to(scale, t.shape)
        is_normal = True
        for step in reversed(self.steps):
            if isinstance(step, Log10):
                if not is_normal:
                    return None
                # exp(u) has the mean exp(v / 2) for normal u of variance v, times sqrt(exp(v) - 1) the
                # standard deviation.
                with np.errstate(over="ignore", invalid="ignore"):  # infinite as in `Log10.inverse`
                    t = step.inverse(t + 0.5 * np.log(10.0) * np.square(spread))
                    spread = t * np.sqrt(np.expm1(np.square(np.log(10.0) * spread)))
                is_normal = False
            else:
                spread = spread / np.abs(step.derivative(spread))
                t = step.inverse(t)
        return t, spread

    def derivative(self, y: Array) -> Array:
        """Compute d forward(y) / dy, elementwise, at `y` in original units."""
        product = np.ones_like(y)
        for step in self.steps:
            product = product * step.derivative(y)
            y = step.forward(y)
        return product

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the transforms."""
        return tuple(step.name for step in self.steps)

    @property
    def is_affine(self) -> bool:
        """True if the inverse only shifts and rescales, so that moments carry over exactly."""
        return all(step.is_affine for step in self.steps)

    def to_json(self) -> list[dict[str, Any]]:
        return [step.to_json() for step in self.steps]

    @classmethod
    def from_json(cls, entries: list[dict[str, Any]]) -> Pipeline:
        """Rebuild what `to_json` wrote; raise ValueError or TypeError for anything else."""
        unknown = [entry["name"] for entry in entries if entry["name"] not in TRANSFORMS]
        if unknown:
            raise ValueError(f"unknown transform {unknown[0]!r}")
        return cls(tuple(TRANSFORMS[entry["name"]].from_json(entry) for entry in entries))


def parse_names(value: Any, argument: str) -> tuple[str, ...]:
    """Convert None, a name or a list of names to a tuple of known transform names."""
    names = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(names, (tuple, list)) or not all(isinstance(n, str) for n in names):
        raise TypeError(
            f"{argument} must be None, a name or a list of names, received {value!r}. "
            f"Known names: {sorted(TRANSFORMS)}."
        )
    for name in names:
        if name not in TRANSFORMS:
            raise ValueError(
                f"{argument} must hold names out of {sorted(TRANSFORMS)}, received {name!r}."
                f"{did_you_mean(name, TRANSFORMS)}"
            )
    return tuple(names)


def fit_pipeline(
    names: tuple[str, ...], values: Array, argument: str, columns: Names = None
) -> Pipeline:
    """Fit the named transforms to the training rows.

    Args:
        names: Tuple of transform names, applied in this order.
        values: Array [N, K] in original units.
        argument: What the user calls `values`, for messages.
        columns: Names of its columns, for messages too, or None.

    Returns:
        A `Pipeline`.

    Raises:
        ValueError: If a transform is not defined for these values.
    """
    steps: list[Transform] = []
    for name in names:
        if steps:
            values = by_rows(steps[-1].forward, values)
        steps.append(TRANSFORMS[name].fit(values, argument, columns))
    return Pipeline(tuple(steps))


def unfitted_pipeline(names: tuple[str, ...]) -> Pipeline | None:
    """Return the pipeline of transforms that learn nothing from data, or None if one of them does."""
    if any(fields(TRANSFORMS[name]) for name in names):
        return None
    return Pipeline.from_json([{"name": name} for name in names])


def checked_forward(pipeline: Pipeline, values: Array, argument: str) -> Array:
    """Apply a fitted pipeline; refuse values [N, K] for which it is not defined."""
    for step in pipeline.steps:
        step.check_domain(values, argument)
        values = by_rows(step.forward, values)
    return values


def _stddev(values: Array, exponent: Array) -> Array:
    """Return the standard deviations [D] of values [N, D] times 2^exponent, without a copy of all rows."""
    num_rows = len(values)
    sums = (np.ldexp(values[rows], exponent).sum(axis=0) for rows in slices_to_read(values))
    mean = sum(sums) / num_rows
    scaled = (np.ldexp(values[rows], exponent) for rows in slices_to_read(values))
    return np.sqrt(sum(np.square(some - mean).sum(axis=0) for some in scaled) / num_rows)


def _those(chosen: Array, columns: Names) -> str:
    """Return the columns of a mask as text for messages: by name if they have names."""
    indices = np.flatnonzero(chosen).tolist()
    return f"[{listed(indices if columns is None else [columns[index] for index in indices])}]"
