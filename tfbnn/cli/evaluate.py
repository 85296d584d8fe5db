"""`tfbnn evaluate`: scores of a saved model on rows with known targets."""

from tfbnn.cli.columns import Roles, read_rows
from tfbnn.cli.console import DONE, print_json
from tfbnn.cli.models import add_model_argument, load_model
from tfbnn.cli.scores import scores_text
from tfbnn.posterior.stacking.stacking import weighting_note

_DESCRIPTION = """\
Score the predictions of a saved model on rows with known targets: errors, log predictive density,
and coverage, the share of rows within 1 to 5 predicted standard deviations (noise included). Of a
classifier: accuracy, Brier score, calibration error and log predictive density.
Use rows that the fit has not seen."""


def add_parser(commands):
    """Adds the command to argparse's subparsers."""
    parser = commands.add_parser(
        "evaluate", help="score a saved model on rows with known targets", description=_DESCRIPTION
    )
    add_model_argument(parser)
    parser.add_argument(
        "data", metavar="DATA", help="CSV with header, NPZ, HDF5 or Parquet; '-': standard input"
    )
    add_role_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def add_role_options(parser):
    """Adds --target and --noise-column, as `evaluate` and `plot` have them."""
    parser.add_argument(
        "--target", action="append", metavar="COL",
        help="target column, once per target in order; default: the name used in the fit",
    )  # fmt: skip
    parser.add_argument(
        "--noise-column", action="append", metavar="COL",
        help="column with the known standard deviation of each row; default: as in the fit",
    )  # fmt: skip


def run(args):
    """Evaluates and prints."""
    model = load_model(args)
    roles = Roles(model.posterior, args.target, args.noise_column)
    x, y, noise = read_rows(model, args.data, roles)
    scores = model.evaluate(x, y, noise_scale=noise)
    note = weighting_note(model.posterior)
    if args.json:
        weights = {"chain_weights": model.posterior.chain_weights, "weighting": note}
        print_json(scores | weights)
    else:
        print(scores_text(scores, roles.targets, note))
    return DONE
