"""Continue a run that was stopped or killed, or add draws to one that is finished.

The run folder holds everything needed. The draws are those of an uninterrupted run, bit by bit. A folder
MODEL.h5.run, which 'tfbnn fit' makes without --output, is removed once -o MODEL.h5 is saved, unless
--max-seconds ended the run.

example:
  tfbnn fit train.csv --target y --layers 20,20 --output run/     # killed after an hour
  tfbnn resume run/ -o bnn.h5
  tfbnn resume run/ --num-results 4000 -o bnn.h5                  # more draws
  tfbnn resume run/ --until ess=1000 -o bnn.h5                    # until they are better
  tfbnn resume run/ --max-seconds 300 -o bnn.h5                   # for five minutes more
"""

import argparse
import inspect

from tfbnn.cli.arguments import ResultOptions, add_fields, add_option, argument_of, described, given
from tfbnn.cli.console import import_tensorflow, say
from tfbnn.cli.fit_options import FIT_ARGUMENTS, add_fit_arguments
from tfbnn.cli.outputs import MODEL, check_output
from tfbnn.cli.runs import run_to_the_end
from tfbnn.fit.loading import prepare_resume, resume
from tfbnn.run.options import FitOptions
from tfbnn.storage.run.folder import RunFolder

_ARGUMENTS = [name for name in inspect.signature(resume).parameters if name in FIT_ARGUMENTS]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folder", metavar="RUNDIR", help="folder given as --output to 'tfbnn fit'")
    for name in _ARGUMENTS:
        text = described(resume.__doc__, name)
        if text:
            add_option(parser, name, argument_of([FitOptions], name), text)
        else:  # the docstring of `resume` refers to `fit_posterior`
            add_fit_arguments(parser, [name])
    add_fields(parser, ResultOptions)


def run(args: argparse.Namespace) -> int:
    """Continue the run, report and save."""
    check_output(args.model_file, MODEL, [args.folder])
    if RunFolder.find(args.folder) is None:
        raise ValueError(f"There is no run in {args.folder}. Begin one: tfbnn fit --output.")
    import_tensorflow()
    model, go_on = prepare_resume(args.folder, **given(args, _ARGUMENTS))
    say(f"Going on with {args.folder}.")
    return run_to_the_end(model, go_on, args.folder, args)
