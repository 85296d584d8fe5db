"""Elementwise transforms of inputs and targets, with inverse and Jacobian, in float64.

A `Pipeline` is what the names in `x_transform` and `y_transform` become once they have seen data.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from tfbnn.exceptions import DataWarning


@dataclass(frozen=True)
class Log10:
    """y -> log10(y), for positive values."""

    name = "log10"

    def forward(self, y):
        return np.log10(y)

    def inverse(self, t):
        with np.errstate(over="ignore"):  # a wild draw may exceed 1e308: infinity is the answer
            return 10.0**t

    def derivative(self, y):
        return 1.0 / (np.log(10.0) * y)

    def to_json(self):
        return {"name": self.name}


@dataclass(frozen=True)
class Standardize:
    """y -> (y - mean) / scale, per column; mean and scale come from the training rows."""

    mean: tuple
    scale: tuple

    name = "standardize"

    def forward(self, y):
        return (y - np.asarray(self.mean)) / np.asarray(self.scale)

    def inverse(self, t):
        return t * np.asarray(self.scale) + np.asarray(self.mean)

    def derivative(self, y):
        return np.broadcast_to(1.0 / np.asarray(self.scale), np.shape(y))

    def to_json(self):
        return {"name": self.name, "mean": list(self.mean), "scale": list(self.scale)}


@dataclass(frozen=True)
class Pipeline:
    """Transforms applied one after the other to arrays [..., K], columns kept apart."""

    steps: tuple = ()

    def forward(self, y):
        """Original units -> the scale the network sees."""
        for step in self.steps:
            y = step.forward(y)
        return y

    def inverse(self, t):
        """The scale the network sees -> original units."""
        for step in reversed(self.steps):
            t = step.inverse(t)
        return t

    def derivative(self, y):
        """d forward(y) / dy, elementwise, at `y` in original units; the shape of `y`."""
        product = np.ones_like(y)
        for step in self.steps:
            product = product * step.derivative(y)
            y = step.forward(y)
        return product

    @property
    def is_affine(self):
        """Whether the inverse only shifts and rescales, so that moments carry over exactly."""
        return all(isinstance(step, Standardize) for step in self.steps)

    def to_json(self):
        return [step.to_json() for step in self.steps]

    @classmethod
    def from_json(cls, entries):
        """The pipeline written by `to_json`. Raises ValueError or TypeError for anything else."""
        return cls(tuple(_step_from_json(entry) for entry in entries))


def parse_names(value, argument):
    """Turns None, a name or a list of names into a tuple of known transform names."""
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
            )
    return tuple(names)


def fit_pipeline(names, values, argument):
    """Fits the named transforms to the training rows.

    Args:
        names: Tuple of transform names, applied in this order.
        values: Array [N, K] in original units.
        argument: What the user calls `values`, for messages.

    Returns:
        A `Pipeline`.

    Raises:
        ValueError: When a transform does not exist for these values.
    """
    steps = []
    for name in names:
        step = TRANSFORMS[name](values, argument)
        values = step.forward(values)
        steps.append(step)
    return Pipeline(tuple(steps))


def unfitted_pipeline(names):
    """The pipeline of transforms that learn nothing from data, or None if one of them does."""
    if "standardize" in names:
        return None
    return Pipeline.from_json([{"name": name} for name in names])


def checked_forward(pipeline, values, argument):
    """`forward` of a fitted pipeline; refuses values [N, K] for which it is not defined."""
    for step in pipeline.steps:
        if isinstance(step, Log10):
            _refuse_non_positive(values, argument)
        values = step.forward(values)
    return values


def _fit_log10(values, argument):
    _refuse_non_positive(values, argument)
    return Log10()


def _refuse_non_positive(values, argument):
    bad = np.argwhere(values <= 0)
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"{argument} must be positive for the transform 'log10', received {len(bad)} values "
            f"<= 0, the first ({values[row, column]}) in row {row}. Drop these rows or leave "
            "'log10' out."
        )


def _fit_standardize(values, argument):
    with np.errstate(over="ignore", invalid="ignore"):
        mean = values.mean(axis=0)
        # Scaled by a power of two, which is exact: squares of 1e200 or 1e-200 are out of range.
        exponent = np.frexp(np.abs(values).max(axis=0))[1]
        scale = np.ldexp(np.ldexp(values, -exponent).std(axis=0), exponent)
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(scale))):
        columns = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(scale))).tolist()
        raise ValueError(
            f"Columns {columns} of {argument} are too large to standardise: their mean or spread "
            "overflows. Rescale them first."
        )
    # Rounding makes the spread of a constant column tiny but not zero.
    constant = scale <= 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    if np.any(constant):
        columns = np.flatnonzero(constant).tolist()
        warnings.warn(
            f"Columns {columns} of {argument} are constant; they are shifted, not rescaled.",
            DataWarning,
            stacklevel=2,
        )
    scale = np.where(constant, 1.0, scale)
    return Standardize(tuple(mean.tolist()), tuple(scale.tolist()))


def _step_from_json(entry):
    if entry["name"] == "log10":
        return Log10()
    if entry["name"] == "standardize":
        mean, scale = tuple(map(float, entry["mean"])), tuple(map(float, entry["scale"]))
        if len(mean) != len(scale) or not np.all(np.isfinite(mean)):
            raise ValueError("the mean of 'standardize' is not finite or has a wrong length")
        if not all(np.isfinite(s) and s > 0 for s in scale):
            raise ValueError("the scale of 'standardize' is not positive and finite")
        return Standardize(mean, scale)
    raise ValueError(f"unknown transform {entry['name']!r}")


TRANSFORMS = {"log10": _fit_log10, "standardize": _fit_standardize}
