"""Convergence of a run while it is going on: `tfbnn diagnose FOLDER --follow`."""

import os
import time
import warnings
from collections.abc import Callable

from tfbnn.cli.console import say
from tfbnn.diagnostics.diagnosis import ess_text, lower, rhat_text, upper
from tfbnn.model import load
from tfbnn.run.description import wanted_results
from tfbnn.run.stores import num_committed
from tfbnn.storage import RunFolder

_SECONDS = 5.0
# Between two processes that work on a run, which load their libraries, there may be a pause.
_MAX_IDLE_LOOKS = 6


def follow(path: str, show: Callable[[str], None]) -> None:
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
