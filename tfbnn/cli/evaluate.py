"""`tfbnn evaluate`: scores of a saved model on rows with known targets."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from tfbnn.cli.columns import Roles, read_rows
from tfbnn.cli.console import DONE, print_json
from tfbnn.cli.options import (
    DATA,
    add_model_argument,
    add_role_options,
    add_uncalibrated_option,
    load_model,
)
from tfbnn.posterior.facts import score_rows
from tfbnn.posterior.stacking import weighting_note

HELP = "score a saved model on rows with known targets"
DESCRIPTION = """\
Score the predictions of a saved model on rows with known targets: errors, log predictive density,
and coverage, the share of rows within 1 to 5 predicted standard deviations (noise included). Of a
classifier: accuracy, Brier score, calibration error and log predictive density.
Use rows that the fit has not seen."""


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
    lines = [_line(*row) for row in score_rows(scores)]
    if len(names) > 1:
        lines.insert(0, _line("", names))
    if weighting is not None:
        lines.append(f"{'Chains':<24}{weighting}")
    if calibration is not None:
        lines.append(f"{'Calibrated':<24}{calibration}")
    return "\n".join(lines)


def _line(label: str, cells: Sequence[str], note: str = "") -> str:
    text = f"{label:<24}" + "".join(f"{cell:>14}" for cell in cells)
    return f"{text}   {note}".rstrip()
