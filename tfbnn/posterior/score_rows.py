"""Scores as people read them: a label, a number per target, and what is good."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

_LABELS = (
    ("rmse", "RMSE", "original units"),
    ("r2", "R2", "original units, 1 is perfect"),
    ("relative_error_median", "Relative error, median", "of the mean prediction"),
    ("relative_error_mean", "Relative error, mean", "of the mean prediction"),
    ("relative_error_q90", "Relative error, 90 %", "of the rows have less"),
    ("rmse_log10", "RMSE of log10", "decades"),
    ("r2_log10", "R2 of log10", "1 is perfect"),
    ("crps", "CRPS", "original units, 0 is perfect"),
    ("log_predictive_density", "Log predictive density", "mean per row, higher is better"),
    ("pull_width", "Pull width", "1 is perfect, above 1: error bars too small"),
    ("accuracy", "Accuracy", "share of rows, 1 is perfect"),
    ("brier", "Brier score", "summed over classes, 0 is perfect"),
    ("ece", "Calibration error", "ECE in 15 bins, 0 is perfect"),
    ("n_effective", "Effective draws", "median over rows"),
)


class ScoreRow(NamedTuple):
    """One score.

    Attributes:
        label: What it is called.
        cells: As text, one for each target or one of all.
        note: Its unit, and what is good.
    """

    label: str
    cells: list[str]
    note: str = ""


def score_rows(scores: Mapping[str, Any]) -> Iterator[ScoreRow]:
    """The rows of a table of what `BayesianMLP.evaluate` gave, observed against nominal coverage last."""
    yield ScoreRow("Rows", [str(scores["num_rows"])])
    for key, label, note in _LABELS:
        if key in scores:
            yield ScoreRow(label, [f"{value:.4g}" for value in _values(scores[key])], note)
    for k, observed in scores.get("coverage", {}).items():
        shares = [f"{100 * value:.2f} %" for value in _values(observed)]
        nominal = f"{100 * math.erf(k / math.sqrt(2)):.{2 if k < 4 else 4}f} % nominal"
        yield ScoreRow(f"Within {k} sigma", shares, nominal)


def _values(value: Any) -> list[float]:
    values: list[float] = np.atleast_1d(value).tolist()
    return values
