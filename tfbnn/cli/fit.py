"""`tfbnn fit`: sample the posterior of a network given a table."""

import os

from tfbnn.cli import fit_options
from tfbnn.cli.columns import as_noise, remember_columns
from tfbnn.cli.console import DONE, STOPPED, import_tensorflow, print_json, say
from tfbnn.cli.diagnose import verdict

__all__ = ["add_parser"]

_DESCRIPTION = """\
Sample the posterior of a Bayesian neural network given a table of features and targets.

All numeric columns other than targets and noise are features, unless --features names them.
Ctrl-C or SIGTERM stops the run; what was sampled until then is saved."""

_EPILOG = """\
example:
  tfbnn fit train.csv --target xsec_fb --layers 20,20 --y-transform log10,standardize \\
      --epochs 2000 --batch-size full --learning-rate 0.02 --learning-rate-schedule cosine \\
      --kernel hmc --num-leapfrog-steps 256 --validation-fraction 0.1 -o bnn.h5"""


def add_parser(commands):
    """Adds the command to argparse's subparsers."""
    parser = commands.add_parser(
        "fit", help="sample a network given a table", description=_DESCRIPTION, epilog=_EPILOG
    )
    fit_options.add_options(parser)
    parser.set_defaults(run=run)


def run(args):
    """Reads, fits, reports and saves."""
    fit_options.check_model_file(args.model_file)
    table, features, noise = _read(args)
    validation = _validation(args, table, features, noise)
    if isinstance(validation, tuple):
        table, validation = validation
    model = fit_options.make_model(args, len(features), len(args.target))
    say(f"Read {len(table)} training rows: {', '.join(features)} -> {', '.join(args.target)}.")
    if args.model_file is None:
        say("Without -o FILE nothing is kept but the report.")
    import_tensorflow()
    x, y, noise_scale = _parts(table, features, args.target, noise)
    held_out = None if validation is None else _parts(validation, features, args.target, noise)
    try:
        run = model.fit_posterior(
            x,
            y,
            noise_scale=noise_scale,
            validation_data=held_out,
            **fit_options.fit_arguments(args),
        )
    except KeyboardInterrupt:
        return _stopped(args, model, noise)
    _save(args, model, noise)
    if args.json:
        print_json(run.to_dict())
    else:
        print(run.report())
    return verdict(run.diagnosis, args.strict)
