"""Write a model whose chains are weighted by how well they predict held-out rows together.

This is stacking, for chains that do not mix, on rows that the fit has not seen. Every later prediction
and score uses the weights. The mixture is not the posterior, and reports say so. Without DATA the
rows of a run folder are left out in turn, which needs ArviZ (tfbnn[arviz]). A calibration is dropped;
calibrate the stacked model. Needs no TensorFlow.

example:
  tfbnn stack bnn.h5 validation.csv -o stacked.h5
  tfbnn evaluate stacked.h5 test.csv               # on other rows: the weights are fitted to those
"""

import argparse
import os

from tfbnn.cli.columns import read_rows
from tfbnn.cli.options import RowOptions, SavingOptions, load_model
from tfbnn.cli.outputs import MODEL, check_output, save_and_tell


class Options(SavingOptions, RowOptions):
    """Options of the command."""


def run(args: argparse.Namespace) -> int:
    """Weigh, save and print."""
    check_output(args.output, MODEL, [args.model, args.data])
    if args.data is None and os.path.isfile(args.model):
        raise ValueError(
            f"{args.model} holds no rows: give DATA, rows that the fit has not seen, or in "
            "place of the file the folder of its run."
        )
    model = load_model(args)
    if args.data is None:
        stacking = model.stack_chains()
    else:
        x, y, noise = read_rows(model, args)
        stacking = model.stack_chains(x, y, noise_scale=noise)
    names = ("method", "weights", "log_score_uniform", "log_score_stacked", "num_rows")
    record = {name: getattr(stacking, name) for name in (*names, "unreliable_share")}
    return save_and_tell(model, args, stacking.summary(), record)
