"""`Prediction`, the result of `predict`, and its columns, column names and pandas data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfbnn.diagnostics.wording import counted
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.system.arrays import Array

# Most numbers of an array that the repr of a Prediction shows.
_MOST_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Prediction:
    """A summary of the predictive distribution; unpacks as `mean, stddev = prediction`.

    If the target was fitted as [N], mean and stddev are [N] and quantiles [Q, N]. For classes all
    values are those of probabilities, and K is the number of columns M of Categorical.

    Attributes:
        mean: [N, K] or [N].
        stddev: The same shape; of the function alone (epistemic), or with noise if requested.
        quantiles: [Q, N, K] or [Q, N], or None.
        trust: [N], 1 inside the training inputs, 0 at their edge, -1 outside; None unless
            requested.
        names: Names of the columns of `to_frame`, without that of trust.
        index: Index of the data frame that was predicted for, or None.
    """

    mean: Array
    stddev: Array
    quantiles: Array | None = None
    trust: Array | None = None
    names: Sequence[str] | None = None
    index: Any = None

    def __repr__(self) -> str:
        """Return a line per array: its shape and first numbers."""
        lines = [f"Prediction of {counted(len(self.mean), 'row')}"]
        for name in ("mean", "stddev", "quantiles", "trust"):
            values = getattr(self, name)
            if values is not None:
                numbers = [f"{value:.4g}" for value in values.ravel()[:_MOST_SHOWN]]
                more = [] if values.size <= _MOST_SHOWN else ["..."]
                text = ", ".join([*numbers, *more])
                lines.append(f"  {name:<10} {list(values.shape)!s:<14} {text}")
        return "\n".join(lines)

    def __iter__(self) -> Iterator[Array]:
        return iter((self.mean, self.stddev))

    def with_room(self, num_rows: int, index: Any) -> Prediction:
        """Return an empty prediction of `num_rows` rows, which `put` fills with parts like this one."""

        def empty(array: Array | None, axis: int = 0) -> Any:
            if array is None:
                return None
            shape = (*array.shape[:axis], num_rows, *array.shape[axis + 1 :])
            return np.empty(shape, array.dtype)

        found = empty(self.mean), empty(self.stddev), empty(self.quantiles, 1), empty(self.trust)
        return Prediction(*found, names=self.names, index=index)

    def put(self, rows: slice, part: Prediction) -> None:
        """Write the prediction of some rows."""
        for name in ("mean", "stddev", "trust"):
            if getattr(self, name) is not None:
                getattr(self, name)[rows] = getattr(part, name)
        if self.quantiles is not None:
            self.quantiles[:, rows] = part.quantiles

    @property
    def columns(self) -> Prediction:
        """The prediction with a column per target, [N, K], whatever the shape of the fitted target."""
        return self if self.mean.ndim == 2 else self.shaped(lambda values: values[..., None])

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for each row of x, indexed as x if it was a data frame.

        Columns are those of `tfbnn predict`: mean, stddev, q0.16, trust. With several targets the
        name of the target stands before them. For classes they are p_LABEL, p_LABEL_stddev, and so
        on.

        Raises:
            ImportError: If pandas is not installed.
            ValueError: For a Prediction that `model.predict` did not return.

        Example:
            table = frame.join(model.predict(frame, quantiles=[0.16, 0.84]).to_frame())
        """
        if self.names is None:
            raise ValueError("to_frame needs column names: call it on what model.predict returns.")
        import pandas

        if self.trust is None:
            return pandas.DataFrame(values_of(self), self.index, self.names)
        frame = pandas.DataFrame(values_of(self), self.index, [*self.names, "trust"])
        return frame.astype({"trust": self.trust.dtype})

    def shaped(self, shape: Callable[[Array], Array]) -> Prediction:
        """Return the prediction with the function `shape` applied to mean, stddev and quantiles."""
        quantiles = None if self.quantiles is None else shape(self.quantiles)
        mean, stddev = shape(self.mean), shape(self.stddev)
        return replace(self, mean=mean, stddev=stddev, quantiles=quantiles)


def target_prefixes(ensemble: Ensemble, is_named: bool = False) -> list[str]:
    """Return the prefixes of column names: target names if there are several targets, or if requested."""
    names = ensemble.target_names
    return [f"{name}_" for name in names] if is_named or len(names) > 1 else [""]


def value_names(
    ensemble: Ensemble, quantiles: Sequence[float], space: str, is_named: bool = False
) -> list[str]:
    """Return the names of the columns of `values_of`, without trust.

    They are mean, stddev, q0.16, .., for classes p_a, p_a_stddev, .., after `target_prefixes`. With
    two classes only the second is included.
    """
    classes, spec = ensemble.classes or (), ensemble.spec
    prefixes = target_prefixes(ensemble, is_named)
    spreads = ["stddev", *(f"q{value!r}" for value in quantiles)]
    if not spec.has_classes:
        return [f"{prefix}{name}" for prefix in prefixes for name in ("mean", *spreads)]
    shown = classes if spec.num_predicted > spec.num_targets else classes[1:]
    what = "p" if space == "original" else "logit"
    values = [f"{prefix}{what}_{label}" for prefix in prefixes for label in shown]
    endings = ["", *(f"_{name}" for name in spreads)]
    return [f"{value}{ending}" for value in values for ending in endings]


def values_of(prediction: Prediction) -> Array:
    """Return a table [N, columns]: mean, stddev and quantiles of each target, then the trust level."""
    prediction = prediction.columns
    found = () if prediction.quantiles is None else prediction.quantiles
    parts = [prediction.mean, prediction.stddev, *found]
    # [N, K, statistics], so that the columns of one target are adjacent.
    values = np.stack(parts, axis=2).reshape(len(prediction.mean), -1)
    return values if prediction.trust is None else np.column_stack([values, prediction.trust])
