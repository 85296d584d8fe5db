"""`tfbnn compress`: a smaller and faster model that predicts about the same."""

import argparse
from dataclasses import asdict
from typing import cast

from tfbnn.cli.columns import read_inputs
from tfbnn.cli.derived.saving import add_saving_options, save_and_tell
from tfbnn.cli.options import DATA, add_model_argument, load_model
from tfbnn.cli.outputs import MODEL, check_output
from tfbnn.posterior.provenance import Compression

HELP = "make a smaller model that predicts about the same"
DESCRIPTION = """\
Write a model with fewer draws, chosen so that its predictions change little, and say by how much
they do: smaller files, faster predictions. The draws are no Markov chain any more: 'tfbnn diagnose'
refuses such a model. A calibration is dropped; calibrate the small model. Needs SciPy (tfbnn[fit])
but for --method stride, and no TensorFlow."""

EPILOG = """\
example:
  tfbnn compress bnn.h5 -n 100 --reference points.csv -o small.h5"""

# "stein" needs the rows of the fit, and TensorFlow: model.compress has it.
_METHODS = ("kernel_thinning", "stride")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "-n",
        "--num-draws",
        type=int,
        default=100,
        metavar="N",
        help="draws to choose out of all chains; default: %(default)s",
    )
    parser.add_argument(
        "--method",
        choices=_METHODS,
        default=_METHODS[0],
        help="kernel_thinning keeps mean, spread and quantiles at reference inputs; stride takes "
        "equally spaced draws; default: %(default)s",
    )
    parser.add_argument(
        "--reference",
        metavar="DATA",
        help="inputs like those to come, 1000 of them or so, at which predictions are kept; other "
        f"columns are ignored; {DATA}; default: inputs of the fit that are saved with the model",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the choice; default: %(default)s"
    )
    add_saving_options(parser)


def run(args: argparse.Namespace) -> int:
    """Chooses draws, saves and prints."""
    check_output(args.output, MODEL, [args.model, args.reference])
    model = load_model(args)
    inputs = None if args.reference is None else read_inputs(model.posterior, args.reference)
    small = model.compress(args.num_draws, args.method, x_reference=inputs, seed=args.seed)
    record = cast(Compression, small.compression)  # which `compress` leaves
    return save_and_tell(small, args, record.summary(), asdict(record))
