"""`tfbnn stack`: chains weighted by how well they predict held-out rows together."""

import argparse
import os

from tfbnn.cli.columns import Roles, read_rows
from tfbnn.cli.derived.saving import add_saving_options, save_and_tell
from tfbnn.cli.options import DATA, add_model_argument, add_role_options, load_model
from tfbnn.cli.outputs import MODEL, check_output

HELP = "weigh chains that do not mix by held-out rows"
DESCRIPTION = """\
Write a model whose chains are weighted by how well they predict rows together that the fit has not
seen (stacking): for chains that do not mix. Every later prediction and score uses the weights. The
mixture is not the posterior, and reports say so. Without VALIDATION the rows of a run folder are left
out in turn, which needs ArviZ (tfbnn[arviz]). A calibration is dropped; calibrate the stacked model.
Needs no TensorFlow."""

EPILOG = """\
example:
  tfbnn stack bnn.h5 validation.csv -o stacked.h5
  tfbnn evaluate stacked.h5 test.csv               # on other rows: the weights are fitted to those"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "data",
        metavar="VALIDATION",
        nargs="?",
        help=f"rows with known targets; {DATA}; of a run folder it may be left out",
    )
    add_role_options(parser)
    add_saving_options(parser)


def run(args: argparse.Namespace) -> int:
    """Weighs, saves and prints."""
    check_output(args.output, MODEL, [args.model, args.data])
    if args.data is None and os.path.isfile(args.model):
        raise ValueError(
            f"{args.model} holds no rows: give VALIDATION, rows that the fit has not seen, or in "
            "place of the file the folder of its run."
        )
    model = load_model(args)
    if args.data is None:
        stacking = model.stack_chains()
    else:
        roles = Roles(model.posterior, args.target, args.noise_column)
        x, y, noise = read_rows(model, args.data, roles)
        stacking = model.stack_chains(x, y, noise_scale=noise)
    record = {
        "method": stacking.method,
        "weights": stacking.weights,
        "log_score_uniform": stacking.log_score_uniform,
        "log_score_stacked": stacking.log_score_stacked,
        "num_rows": stacking.num_rows,
        "unreliable_share": stacking.unreliable_share,
    }
    return save_and_tell(model, args, stacking.summary(), record)
