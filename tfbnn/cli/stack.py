"""Weight the chains of a model so that their mixture predicts held-out rows best, and write the model.

This is stacking, for chains that do not agree. VALIDATION must have rows that the fit has not seen. Every
later prediction and score uses the weights. The mixture is not the posterior, and reports say so. An earlier
calibration is dropped; calibrate the stacked model. Needs no TensorFlow.

example:
  tfbnn stack bnn.h5 validation.csv -o stacked.h5
  tfbnn evaluate stacked.h5 test.csv               # on other rows than those of the weights
"""

import argparse
from typing import Annotated

from tfbnn.cli.arguments import RoleOptions, SavingOptions, argument, load_model
from tfbnn.cli.columns import read_rows
from tfbnn.cli.outputs import MODEL, check_output, tell_saved
from tfbnn.spec.rows import as_argument


class Options(SavingOptions, RoleOptions):
    """Options of the command.

    Attributes:
        data: Rows with known targets: text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text
            from standard input.
    """

    data: Annotated[str, argument("VALIDATION")]


def run(args: argparse.Namespace) -> int:
    """Weigh the chains, save the model and print the weights."""
    check_output(args.output, MODEL, [args.model, args.data])
    model = load_model(args)
    x, y, noise = read_rows(model, args)
    stacking = model.stack_chains(x, y, **as_argument(model.spec, noise))
    names = ("method", "weights", "log_score_uniform", "log_score_stacked", "num_rows")
    record = {name: getattr(stacking, name) for name in names}
    return tell_saved(args, model.save(args.output), stacking.summary(), record)
