"""Write a model with fewer draws and nearly the same predictions, and print the change.

Files are smaller and predictions faster. The draws are no longer a Markov chain, so 'tfbnn diagnose'
refuses such a model. An earlier calibration is dropped; calibrate the small model. Needs SciPy
(tfbnn[fit]) except with --method stride, and no TensorFlow.

example:
  tfbnn compress bnn.h5 -n 100 --reference points.csv -o small.h5
"""

import argparse
from dataclasses import asdict
from typing import Annotated, cast

from tfbnn.cli.arguments import ModelOptions, SavingOptions, load_model
from tfbnn.cli.columns import read_inputs
from tfbnn.cli.outputs import MODEL, check_output, tell_saved
from tfbnn.posterior.provenance import Compression

_METHODS = ("kernel_thinning", "stride")


class Options(SavingOptions, ModelOptions):
    """Options of the command.

    Attributes:
        num_draws: Number of draws to choose out of all chains; default: 100.
        method: kernel_thinning (default) preserves mean, spread and quantiles at reference inputs; stride
            takes equally spaced draws.
        reference: About 1000 inputs like those of later predictions, at which predictions are preserved;
            other columns are ignored; default: inputs of the fit that are saved with the model.
    """

    num_draws: Annotated[int, {"flags": ("-n", "--num-draws"), "type": int, "metavar": "N"}] = 100
    method: Annotated[str, {"choices": _METHODS}] = _METHODS[0]
    reference: Annotated[str | None, {"metavar": "DATA"}] = None


def run(args: argparse.Namespace) -> int:
    """Choose draws, save them and print the change."""
    check_output(args.output, MODEL, [args.model, args.reference])
    model = load_model(args)
    inputs = None if args.reference is None else read_inputs(model.posterior, args.reference)
    small = model.compress(args.num_draws, args.method, x_reference=inputs)
    record = cast(Compression, small.compression)  # `compress` sets it
    return tell_saved(args, small.save(args.output), record.summary(), asdict(record))
