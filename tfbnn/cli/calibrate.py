"""Write a model whose error bars with noise are calibrated.

DATA has 150 or more rows with known targets that the fit has not seen. Without DATA the rows of a run
folder are left out in turn. Means do not change. 'tfbnn predict --include-noise', 'evaluate' and 'plot'
use the calibrated error bars of the new model. Needs no TensorFlow.
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
        by: Groups of rows that are calibrated separately: with small and large predicted deviations, or
            inside the training inputs and at their edge; default: all rows together.
        scale: Quantity that bars are proportional to: predicted deviations (default), or these times the
            misfit of the rows of the fit around each input, for which the model must be a run folder.
    """

    by: Annotated[str | None, {"choices": [name for name in BY if name]}] = None
    scale: Annotated[str, {"choices": SCALES}] = SCALES[0]


def run(args: argparse.Namespace) -> int:
    """Calibrate, save and print the result."""
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
