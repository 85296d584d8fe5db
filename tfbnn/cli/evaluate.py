"""`tfbnn evaluate`: scores of a saved model on rows with known targets."""

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfbnn.cli.columns import Roles, read_rows
from tfbnn.cli.console import DONE, print_json
from tfbnn.cli.options import (
    DATA,
    add_model_argument,
    add_role_options,
    add_uncalibrated_option,
    load_model,
)
from tfbnn.posterior.stacking.stacking import weighting_note

HELP = "score a saved model on rows with known targets"
DESCRIPTION = """\
Score the predictions of a saved model on rows with known targets: errors, log predictive density,
and coverage, the share of rows within 1 to 5 predicted standard deviations (noise included). Of a
classifier: accuracy, Brier score, calibration error and log predictive density.
Use rows that the fit has not seen."""

_LINES = (
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument("data", metavar="DATA", help=DATA)
    add_role_options(parser)
    add_uncalibrated_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Evaluates and prints."""
    model = load_model(args)
    roles = Roles(model.posterior, args.target, args.noise_column)
    x, y, noise = read_rows(model, args.data, roles)
    calibrated = False if args.uncalibrated else "auto"
    scores = model.evaluate(x, y, noise_scale=noise, calibrated=calibrated)
    note, calibration = weighting_note(model.posterior), model.calibration
    told = None if calibration is None or args.uncalibrated else calibration.text
    if args.json:
        weights = {"chain_weights": model.posterior.chain_weights, "weighting": note}
        print_json(scores | weights | {"calibration": told})
    else:
        print(scores_text(scores, roles.targets, note, told))
    return DONE


def scores_text(
    scores: Mapping[str, Any],
    names: Sequence[str],
    weighting: str | None = None,
    calibration: str | None = None,
) -> str:
    """Scores as aligned lines, observed against nominal coverage at the end.

    Args:
        scores: Dict from `BayesianMLP.evaluate`.
        names: Names of the targets.
        weighting: Line on how the chains are weighted, or None for equal weights.
        calibration: Line on what calibrated the error bars, or None.
    """
    lines = [_line("Rows", [str(scores["num_rows"])])]
    if len(names) > 1:
        lines.insert(0, _line("", names))
    for key, label, note in _LINES:
        if key in scores:
            lines.append(_line(label, [f"{value:.4g}" for value in _values(scores[key])], note))
    for k, observed in scores.get("coverage", {}).items():
        shares = [f"{100 * value:.2f} %" for value in _values(observed)]
        nominal = f"{100 * math.erf(k / math.sqrt(2)):.{2 if k < 4 else 4}f} % nominal"
        lines.append(_line(f"Within {k} sigma", shares, nominal))
    if weighting is not None:
        lines.append(f"{'Chains':<24}{weighting}")
    if calibration is not None:
        lines.append(f"{'Calibrated':<24}{calibration}")
    return "\n".join(lines)


def _line(label: str, cells: Sequence[str], note: str = "") -> str:
    text = f"{label:<24}" + "".join(f"{cell:>14}" for cell in cells)
    return f"{text}   {note}".rstrip()


def _values(value: Any) -> list[float]:
    values: list[float] = np.atleast_1d(value).tolist()
    return values
