"""`tfbnn diagnose`: have the chains of a saved model converged?"""

import argparse
import os
import time
import warnings
from collections.abc import Callable

from tfbnn.cli.console import DIAGNOSTICS_FAILED, DONE, print_json, say
from tfbnn.cli.options import add_model_argument, add_strict_option, load_model
from tfbnn.diagnostics.diagnosis import Diagnosis, ess_text, lower, rhat_text, upper
from tfbnn.diagnostics.problem import Interface, Spoils
from tfbnn.diagnostics.wording import text_width, wrapped
from tfbnn.model import load
from tfbnn.run.description import wanted_results
from tfbnn.run.stores import num_committed
from tfbnn.storage import RunFolder

HELP = "have the chains of a saved model converged?"
DESCRIPTION = """\
What a saved model is good for: a verdict, what is wrong and what to do next, then convergence of
its chains, of their predictions first, and how it agrees with its training rows.
With --follow of a run that is going on: a line whenever it has committed more draws, until it is
finished or nobody has been at work on it for half a minute."""


_SECONDS = 5.0
# Between two processes that work on a run, which load their libraries, there may be a pause.
_MAX_IDLE_LOOKS = 6


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_strict_option(parser)
    parser.add_argument(
        "--follow", action="store_true", help="watch the run in this folder until it ends"
    )


def run(args: argparse.Namespace) -> int:
    """Diagnoses and prints."""
    if args.follow:
        _follow(args.model, say if args.json else print)
    model = load_model(args)
    diagnosis, bias = model.diagnose(), model.posterior.provenance.bias
    folder = args.model if os.path.isdir(args.model) else None
    interface, width = Interface(is_command_line=True, folder=folder), text_width()
    if args.json:
        print_json(diagnosis.to_dict(interface) | {"bias": bias})
    else:
        lines = diagnosis.lines(interface, width, details=True)
        if bias is not None:
            lines.append(wrapped("Note: ", bias, width))
        print("\n".join([*lines, "", *diagnosis.numbers(width)]))
    return verdict(diagnosis, args.strict)


def verdict(diagnosis: Diagnosis | None, strict: bool) -> int:
    """The exit code after a diagnosis, which is None where there were too few draws for one."""
    failed = diagnosis is None or diagnosis.spoils != Spoils.NOTHING
    return DIAGNOSTICS_FAILED if strict and failed else DONE


def _follow(path: str, show: Callable[[str], None]) -> None:
    """Shows R-hat and effective sample size whenever the run has committed more, until it is done.

    Ends also when nobody has been at work on the run for a while, and says so.

    Args:
        path: Run folder, also one in which the run has not begun yet.
        show: Called with a line of text.
    """
    if not os.path.isdir(path):
        raise ValueError(f"--follow needs the folder of a run, received {path!r}. Leave it out.")
    shown: tuple[int, int] | None = (0, 0)  # a run that has begun wants more
    idle_looks = 0
    while True:
        # Asked first, so that what was committed before the end is shown.
        in_use, progress = RunFolder.in_use(path), _progress(path)
        idle_looks = 0 if in_use or progress != shown else idle_looks + 1
        if progress != shown and progress is None:
            say(f"The run in {path} has not begun to sample: waiting for it.")
        elif progress != shown and progress is not None:
            show(_line(path, *progress))
        shown = progress
        if progress is not None and progress[0] >= progress[1]:
            return
        if idle_looks == _MAX_IDLE_LOOKS:
            say(
                f"Nobody has been at work on {path} for {_MAX_IDLE_LOOKS * _SECONDS:.0f} s: it is "
                f"no longer followed. A run that was stopped goes on with: tfbnn resume {path}"
            )
            return
        time.sleep(_SECONDS)


def _progress(path: str) -> tuple[int, int] | None:
    """(Draws that every chain has committed, draws wanted), or None where no run has begun."""
    folder = RunFolder.find(path)
    return None if folder is None else (num_committed(folder), wanted_results(folder))


def _line(path: str, count: int, wanted: int) -> str:
    text = f"{count}/{wanted} draws per chain"
    if not count:
        return text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the run is not finished
        diagnosis = load(path).diagnose()
    rhat = rhat_text(upper(diagnosis.rhat_function))
    return f"{text}: {rhat}, {ess_text('bulk ESS', lower(diagnosis.ess_function))}"
