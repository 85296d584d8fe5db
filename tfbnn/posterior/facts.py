"""Descriptions of models, draws and scores as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfbnn.data.transforms import Standardize, Transform
from tfbnn.diagnostics.wording import Facts, counted, labelled
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.relevance import Relevance, relevance_of, scales_of_inputs
from tfbnn.posterior.stacking import weighting_note
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.open_spec import OpenSpec

# Entries of the provenance that are described elsewhere.
_TOLD_APART = ("target_names", "compression", "not_sampled", "choices")
# Scores: keys, labels, and units or the best value.
_LABELS = (
    ("rmse", "RMSE", "original units"),
    ("r2", "R2", "original units, 1 is perfect"),
    ("relative_error_median", "Relative error, median", "of the mean prediction"),
    ("relative_error_mean", "Relative error, mean", "of the mean prediction"),
    ("relative_error_q90", "Relative error, 90 %", "of the rows have less"),
    ("rmse_log10", "RMSE of log10", "decades"),
    ("r2_log10", "R2 of log10", "1 is perfect"),
    ("crps", "CRPS", "original units, 0 is perfect"),
    ("interval_score", "Interval score, 90 %", "original units, 0 is perfect"),
    ("log_predictive_density", "Log predictive density", "mean per row, higher is better"),
    (
        "rank_correlation",
        "Rank correlation",
        "of error bars and errors, 1: they tell which are large",
    ),
    ("pull_width", "Pull width", "1 is perfect, above 1: error bars too small"),
    ("accuracy", "Accuracy", "share of rows, 1 is perfect"),
    ("brier", "Brier score", "summed over classes, 0 is perfect"),
    ("ece", "Calibration error", "ECE in 15 bins, 0 is perfect"),
    ("n_effective", "Effective draws", "median over rows"),
)


def draw_facts(ensemble: Ensemble) -> Facts:
    """Describe the draws and their number."""
    compression = ensemble.provenance.compression
    told = {
        "Draws": _what(ensemble),
        "Coarsened": ensemble.spec.coarsening_note,
        "Compressed": None if compression is None else compression.choice,
        "Chains": weighting_note(ensemble),
    }
    return ((label, text) for label, text in told.items() if text is not None)


def basin_facts(ensemble: Ensemble) -> Facts:
    """Describe the basins of the chains, if they are stored."""
    return labelled("Basins", () if ensemble.basins is None else ensemble.basins.lines())


def calibration_facts(ensemble: Ensemble) -> Facts:
    """Describe the calibration of the error bars, if there is one."""
    known, names = ensemble.calibration, ensemble.target_names
    return labelled("Calibrated", () if known is None else known.lines(names))


def column_facts(ensemble: Ensemble) -> Facts:
    """Yield inputs, targets, classes and transforms."""
    if ensemble.coding is None:
        yield "Features", ", ".join(ensemble.feature_names or ["names unknown"])
    else:
        yield "Features", ", ".join(map(str, ensemble.coding.columns))
        yield "Inputs", ", ".join(ensemble.coding.input_names)
    yield "Targets", ", ".join(ensemble.provenance.target_names or ["names unknown"])
    if ensemble.classes is not None:
        yield "Classes", ", ".join(map(str, ensemble.classes))
    for name, pipeline in (("x", ensemble.x_pipeline), ("y", ensemble.y_pipeline)):
        yield f"{name} transform", " -> ".join(map(_step_text, pipeline.steps)) or "none"


def known_relevance(ensemble: Ensemble) -> Relevance | None:
    """Return the relevance of the inputs if the prior has a scale for each, else None."""
    return None if scales_of_inputs(ensemble.spec) is None else relevance_of(ensemble)


def choice_facts(ensemble: Ensemble) -> Facts:
    """Describe the settings that were "auto", their values and the reasons."""
    return labelled("Chosen", map(str, ensemble.provenance.choices or ()))


def origin_facts(ensemble: Ensemble) -> Facts:
    """Yield settings, seeds, versions and hashes."""
    for key, value in ensemble.provenance.to_json().items():
        if key in _TOLD_APART:
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{name} {_entry_text(entry)}" for name, entry in value.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value)) or None
        if value is not None:
            yield key.replace("_", " "), str(value)


def _entry_text(entry: Any) -> str:
    if isinstance(entry, dict):
        return " ".join(f"{name} {_entry_text(value)}" for name, value in entry.items())
    return f"{entry:.6g}" if isinstance(entry, float) else str(entry)


def _step_text(step: Transform) -> str:
    if not isinstance(step, Standardize):
        return step.name
    means, scales = (", ".join(f"{v:.4g}" for v in values) for values in (step.mean, step.scale))
    return f"standardize (mean {means}; scale {scales})"


def line_of(name: str, spec: NetworkSpec | OpenSpec, ensemble: Ensemble | None) -> str:
    """Return a line such as "<BayesianMLP 5-20-20-1, tanh, Gaussian: 4 x 1000 draws, calibrated>".

    Args:
        name: Name of the class.
        spec: The model.
        ensemble: Its draws, or None before a fit.
    """
    state = ["not fitted"]
    if ensemble is not None:
        power = ensemble.spec.likelihood_power
        remarks = {
            f"likelihood to the power {power:g}": power < 1.0,
            "chains weighted": np.ptp(ensemble.chain_weights) > 0,
            "calibrated": ensemble.calibration is not None,
        }
        state = [_what(ensemble), *(remark for remark, holds in remarks.items() if holds)]
    return f"<{name} {spec.architecture_text}, {spec.likelihood_name}: {', '.join(state)}>"


def _what(ensemble: Ensemble) -> str:
    if ensemble.provenance.not_sampled is not None:
        return f"not sampled, {ensemble.provenance.not_sampled}"
    if ensemble.is_compressed:
        return f"{counted(ensemble.num_draws, 'draw')} chosen by compress"
    return f"{ensemble.num_chains} x {counted(ensemble.num_results, 'draw')}"


def score_rows(scores: Mapping[str, Any]) -> Iterator[tuple[str, list[str], str]]:
    """Yield (label, cells, note) for the scores that `BayesianMLP.evaluate` returned.

    There is a cell for each target, or one for all. Coverage comes last, beside the nominal one.
    """
    yield "Rows", [str(scores["num_rows"])], ""
    for key, label, note in _LABELS:
        if key in scores:
            yield label, [f"{value:.4g}" for value in _values(scores[key])], note
    for k, observed in scores.get("coverage", {}).items():
        shares = [f"{100 * value:.2f} %" for value in _values(observed)]
        nominal = f"{100 * math.erf(k / math.sqrt(2)):.{2 if k < 4 else 4}f} % nominal"
        yield f"Within {k} sigma", shares, nominal
    for name, observed in scores.get("coverage_by_thirds", {}).items():
        shares = [
            " ".join(f"{100 * value:.1f}" for value in pair)
            for pair in zip(*map(_values, observed.values()))
        ]
        yield f"Bars, {name} third", shares, "% within 1 and 2 sigma"


def _values(value: Any) -> list[float]:
    return np.atleast_1d(value).tolist()
