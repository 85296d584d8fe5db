"""Write a model whose error bars with noise are calibrated.

The rows have known targets that the fit has not seen, 150 or more; without DATA the rows of a run folder
are left out in turn. Means stay as they are. 'tfbnn predict --include-noise', 'evaluate' and 'plot' use
the calibrated bars from then on. Needs no TensorFlow.
"""

import argparse
from typing import Annotated

from tfbnn.cli.columns import read_rows
from tfbnn.cli.options import RowOptions, SavingOptions, load_model
from tfbnn.cli.outputs import MODEL, check_output, save_and_tell
from tfbnn.posterior.calibration.record import BY, SCALES


class Options(SavingOptions, RowOptions):
    """Options of the command.

    Attributes:
        by: Groups of rows that are each right by themselves: with small and large predicted deviations,
            or inside the training inputs and at their edge; default: all rows together.
        scale: What bars are in proportion to: predicted deviations (default), or these times the misfit
            of the rows of the fit around each input, for which the model has to be a run folder.
    """

    by: Annotated[str | None, {"choices": [name for name in BY if name]}] = None
    scale: Annotated[str, {"choices": SCALES}] = SCALES[0]


def run(args: argparse.Namespace) -> int:
    """Calibrate, save and print."""
    check_output(args.output, MODEL, [args.model, args.data])
    model = load_model(args)
    settings = {"by": args.by, "scale": args.scale}
    if args.data is None:
        calibration = model.calibrate(method="loo", **settings)
    else:
        x, y, noise = read_rows(model, args)
        calibration = model.calibrate(x, y, noise_scale=noise, **settings)
    summary = calibration.summary(model.posterior.target_names)
    return save_and_tell(model, args, summary, calibration.to_json())
