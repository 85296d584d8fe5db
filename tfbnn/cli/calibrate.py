"""`tfbnn calibrate`: error bars that hold as often as they say, by rows or by those of a run."""

import argparse

from tfbnn.cli.columns import Roles, read_rows
from tfbnn.cli.derived.saving import add_saving_options, save_and_tell
from tfbnn.cli.options import DATA, add_model_argument, add_role_options, load_model
from tfbnn.cli.outputs import MODEL, check_output
from tfbnn.posterior.calibration.record import BY, SCALES

HELP = "make error bars hold as often as they say"
DESCRIPTION = """\
Write a model whose error bars with noise are calibrated: by rows with known targets that the fit has
not seen, 150 or more, or without DATA by the rows of a run folder, each left out in turn. Means stay
as they are. 'tfbnn predict --include-noise', 'evaluate' and 'plot' use the calibrated bars from then
on. Needs no TensorFlow."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help=f"{DATA}; of a run folder it may be left out, for its own rows",
    )
    parser.add_argument(
        "--by",
        choices=[name for name in BY if name],
        help="groups of rows that are each right by themselves: with small and large predicted "
        "deviations, or inside the training inputs and at their edge; default: all rows together",
    )
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default=SCALES[0],
        help="what bars are in proportion to: predicted deviations, or these times the misfit of the "
        "rows of the fit around each input, for which the model has to be a run folder; default: "
        "%(default)s",
    )
    add_role_options(parser)
    add_saving_options(parser)


def run(args: argparse.Namespace) -> int:
    """Calibrates, saves and prints."""
    check_output(args.output, MODEL, [args.model, args.data])
    model = load_model(args)
    if args.data is None:
        calibration = model.calibrate(by=args.by, method="loo", scale=args.scale)
    else:
        roles = Roles(model.posterior, args.target, args.noise_column)
        x, y, noise = read_rows(model, args.data, roles)
        calibration = model.calibrate(x, y, noise_scale=noise, by=args.by, scale=args.scale)
    summary = calibration.summary(model.posterior.target_names)
    return save_and_tell(model, args, summary, calibration.to_json())
