"""Write a model with calibrated error bars (those that include the noise).

DATA needs at least 20 rows with known targets that the fit has not seen. 150 or more rows determine intervals of
one and two standard deviations. Without DATA, MODEL.h5 must be a run folder, and its training rows are used, each
left out in turn. Means do not change. 'tfbnn predict --include-noise', 'evaluate' and 'plot' use the calibrated
error bars of the new model. Needs no TensorFlow.
"""

import argparse
import os
from typing import Annotated

from tfbnn.cli.arguments import RowOptions, SavingOptions, load_model
from tfbnn.cli.columns import read_rows
from tfbnn.cli.outputs import MODEL, check_output, tell_saved
from tfbnn.posterior.calibration.calibration import BY, SCALES


class Options(SavingOptions, RowOptions):
    """Options of the command.

    Attributes:
        by: Groups of rows that are calibrated separately: with small and large predicted deviations, or
            inside the training inputs and at their edge; default: all rows together.
        scale: Quantity that error bars are proportional to: the predicted deviations (default), or these
            times the misfit of the training rows near each input, which needs a run folder.
    """

    by: Annotated[str | None, {"choices": [name for name in BY if name]}] = None
    scale: Annotated[str, {"choices": SCALES}] = SCALES[0]


def run(args: argparse.Namespace) -> int:
    """Calibrate, save and print the result."""
    check_output(args.output, MODEL, [args.model, args.data])
    model = load_model(args)
    settings = {"by": args.by, "scale": args.scale}
    if args.data is not None:
        x, y, noise = read_rows(model, args)
        calibration = model.calibrate(x, y, noise_scale=noise, **settings)
    elif os.path.isdir(args.model):
        calibration = model.calibrate(method="loo", **settings)
    else:
        raise ValueError(
            f"{args.model} holds no training rows. Add DATA that the fit has not seen, or give a run folder."
        )
    summary = calibration.summary(model.posterior.target_names)
    return tell_saved(args, model.save(args.output), summary, calibration.to_json())
