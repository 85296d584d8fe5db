"""Score the predictions of a saved model on rows with known targets.

The scores are errors, log predictive density, and coverage, the share of rows within 1 to 5 predicted
standard deviations (noise included). A classifier gets accuracy, Brier score, calibration error and log
predictive density. Use rows that the fit has not seen.
"""

import argparse
from collections.abc import Sequence
from typing import Annotated

from tfbnn.cli.arguments import ErrorBarOptions, JsonOptions, RoleOptions, argument, load_model
from tfbnn.cli.columns import read_rows
from tfbnn.cli.console import DONE, print_json
from tfbnn.posterior.facts import score_rows
from tfbnn.posterior.stacking import weighting_note
from tfbnn.spec.rows import as_argument


class Options(JsonOptions, ErrorBarOptions, RoleOptions):
    """Options of the command.

    Attributes:
        data: Rows with known targets: text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text
            from standard input.
    """

    data: Annotated[str, argument("DATA")]


def run(args: argparse.Namespace) -> int:
    """Evaluate the model and print the scores."""
    model = load_model(args)
    x, y, noise = read_rows(model, args)
    calibrated = False if args.uncalibrated else "auto"
    scores = model.evaluate(x, y, **as_argument(model.spec, noise), calibrated=calibrated)
    note, calibration = weighting_note(model.posterior), model.calibration
    told = None if calibration is None or args.uncalibrated else calibration.text
    if args.json:
        weights = {"chain_weights": model.posterior.chain_weights, "weighting": note}
        print_json(scores | weights | {"calibration": told})
    else:
        # The scores end with observed against nominal coverage.
        lines = [_line(*row) for row in score_rows(scores)]
        names = args.target or model.posterior.provenance.target_names or ()
        if len(names) > 1:
            lines.insert(0, _line("", names))
        for label, text in (("Chains", note), ("Calibrated", told)):
            lines += [] if text is None else [f"{label:<24}{text}"]
        print("\n".join(lines))
    return DONE


def _line(label: str, cells: Sequence[str], note: str = "") -> str:
    text = f"{label:<24}" + "".join(f"{cell:>14}" for cell in cells)
    return f"{text}   {note}".rstrip()
