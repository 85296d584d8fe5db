"""Diagnose a saved model: give a verdict on its use.

The verdict comes first, with the problems and the next steps. It is followed by the convergence of the
predictions and of the weights, and by the agreement with the training rows. For the folder of a run that
has not ended, the draws so far are diagnosed.
"""

import argparse
import os

from tfbnn.cli.arguments import JsonOptions, ModelOptions, StrictOptions, load_model
from tfbnn.cli.console import DIAGNOSTICS_FAILED, DONE, print_json
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.problem import Interface
from tfbnn.diagnostics.verdict import USABLE
from tfbnn.diagnostics.wording import text_width, wrapped


class Options(StrictOptions, JsonOptions, ModelOptions):
    """Options of the command."""


def run(args: argparse.Namespace) -> int:
    """Diagnose the model and print the result."""
    model = load_model(args)
    diagnosis, origin, width = model.diagnose(), model.posterior.provenance, text_width()
    coarsened, basins = model.spec.coarsening_note, model.posterior.basins
    folder = args.model if os.path.isdir(args.model) else None
    interface = Interface(is_command_line=True, folder=folder)
    interface = interface.of_run(origin.until, origin.ended, origin.sampling_seconds)
    if args.json:
        told = {"bias": origin.bias, "coarsened": coarsened, "basins": basins and basins.to_json()}
        print_json(diagnosis.to_dict(interface) | told)
    else:
        lines = diagnosis.lines(interface, width, details=True)
        if basins is not None:
            lines.append(basins.report(width))
        notes = filter(None, (origin.bias, coarsened))
        lines += [wrapped("Note: ", note, width) for note in notes]
        print("\n".join([*lines, "", *diagnosis.numbers(width)]))
    return verdict(diagnosis, args.strict)


def verdict(diagnosis: Diagnosis | None, strict: bool) -> int:
    """Return the exit code for a diagnosis. The diagnosis is None if there were too few draws."""
    failed = diagnosis is None or diagnosis.verdict != USABLE
    return DIAGNOSTICS_FAILED if strict and failed else DONE
