"""Predictions as tables: their numbers in columns, what these are called, and pandas' data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from tfbnn.posterior.prediction import Prediction


class FrameLabels(NamedTuple):
    """What a Prediction knows of its table.

    Attributes:
        columns: Names of the columns but that of trust.
        index: The index of the frame that was predicted for, or None.
    """

    columns: tuple[str, ...]
    index: Any


def labels_of(
    ensemble: Ensemble, x: Any, quantiles: Sequence[float] | None, space: str
) -> FrameLabels:
    """The FrameLabels of a prediction for x, as the user has passed it."""
    index = getattr(x, "index", None)
    index = None if callable(index) else index  # a method of lists
    return FrameLabels(tuple(value_names(ensemble, quantiles or (), space)), index)


def target_prefixes(ensemble: Ensemble, is_named: bool = False) -> list[str]:
    """What stands before the names of columns: a target where there are several, or where asked for."""
    names = ensemble.target_names
    return [f"{name}_" for name in names] if is_named or len(names) > 1 else [""]


def value_names(
    ensemble: Ensemble, quantiles: Sequence[float], space: str, is_named: bool = False
) -> list[str]:
    """Names of the columns of `values_of` but trust: mean, stddev, q0.16, ..; of classes p_a, p_a_stddev, ..

    Before them stand `target_prefixes`; of two classes only the second is there.
    """
    classes, spec, prefixes = (
        ensemble.classes or (),
        ensemble.spec,
        target_prefixes(ensemble, is_named),
    )
    spreads = ["stddev", *(f"q{value!r}" for value in quantiles)]
    if not spec.has_classes:
        return [f"{prefix}{name}" for prefix in prefixes for name in ("mean", *spreads)]
    shown = classes if spec.num_predicted > spec.num_targets else classes[1:]
    what = "p" if space == "original" else "logit"
    values = [f"{prefix}{what}_{label}" for prefix in prefixes for label in shown]
    endings = ["", *(f"_{name}" for name in spreads)]
    return [f"{value}{ending}" for value in values for ending in endings]


def values_of(prediction: Prediction) -> Array:
    """Numbers [N, columns]: for each target mean, stddev, quantiles, then the trust level."""
    prediction = prediction.columns
    found = () if prediction.quantiles is None else prediction.quantiles
    parts = [prediction.mean, prediction.stddev, *found]
    # [N, K, statistics], so that all about one target stands together.
    values = np.stack(parts, axis=2).reshape(len(prediction.mean), -1)
    return values if prediction.trust is None else np.column_stack([values, prediction.trust])


def to_frame(prediction: Prediction, labels: FrameLabels) -> Any:
    """A pandas.DataFrame of `values_of`, with an integer column of trust where it was asked for."""
    try:
        import pandas
    except ImportError as error:
        message = "to_frame needs pandas, which is not installed: pip install pandas."
        raise ImportError(message) from error
    trust = prediction.trust
    names = labels.columns if trust is None else (*labels.columns, "trust")
    frame = pandas.DataFrame(values_of(prediction), columns=list(names), index=labels.index)
    return frame if trust is None else frame.astype({"trust": trust.dtype})
