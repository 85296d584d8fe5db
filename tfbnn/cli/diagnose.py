"""`tfbnn diagnose`: have the chains of a saved model converged?"""

import argparse
import sys
from functools import partial

from tfbnn.cli.console import DIAGNOSTICS_FAILED, DONE, print_json, say
from tfbnn.cli.following import follow
from tfbnn.cli.options import add_model_argument, load_model
from tfbnn.diagnostics.diagnosis import Diagnosis

HELP = "have the chains of a saved model converged?"
DESCRIPTION = """\
Convergence of the chains of a saved model: R-hat and effective sample sizes of its predictions
first, then of the log density and the weights, and sentences on what is wrong and what to do.
With --follow of a run that is going on or has yet to begin: a line whenever it has committed more,
with its phase, the time to go, acceptance and divergent transitions, and R-hat once there are
draws; until it is finished or nobody has been at work on it for half a minute."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit with 3 if there are warnings")
    parser.add_argument(
        "--follow", action="store_true", help="watch the run in this folder until it ends"
    )


def run(args: argparse.Namespace) -> int:
    """Diagnoses and prints."""
    if args.follow:
        show = (say, sys.stderr) if args.json else (partial(print, flush=True), sys.stdout)
        follow(args.model, *show)
    model = load_model(args)
    diagnosis, bias = model.diagnose(), model.posterior.provenance.bias
    if args.json:
        print_json(diagnosis.to_dict() | {"bias": bias})
    else:
        if bias is not None:
            print(f"Note: {bias}")
        print(diagnosis.summary())
        for warning in diagnosis.warnings:
            print(f"! {warning}")
    return verdict(diagnosis, args.strict)


def verdict(diagnosis: Diagnosis | None, strict: bool) -> int:
    """The exit code after a diagnosis, which is None where there were too few draws for one."""
    failed = diagnosis is None or bool(diagnosis.warnings)
    return DIAGNOSTICS_FAILED if strict and failed else DONE
