"""What `--follow` does: looks whenever a run has committed more, until it is finished."""

import os
import shlex
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TextIO

from tfbnn.cli.console import say
from tfbnn.diagnostics.diagnosis import ess_text, lower, rhat_text, upper
from tfbnn.exceptions import RunFolderError
from tfbnn.fit.model import load
from tfbnn.run.description import said_end, wanted_results
from tfbnn.run.events import SamplingEvent
from tfbnn.run.watching import committed_event
from tfbnn.run.wording import fitted, of_phase
from tfbnn.storage import RunFolder
from tfbnn.system.terminals import columns

_SECONDS = 5.0
# Between two processes that work on a run, which load their libraries, there may be a pause.
_MAX_IDLE_LOOKS = 6
# Of what goes to no terminal.
_WIDTH = 100


def follow(path: str, show: Callable[[RunFolder, SamplingEvent], None]) -> str:
    """Looks at a run whenever it has committed more, until it is done.

    Waits for a folder that is not there yet, and for a run that has not begun in it. Ends also when
    nobody has been at work on the run for a while, and says so.

    Args:
        path: Run folder, now or in future.
        show: Called with the run and how far it is.

    Returns:
        Where what the run has made is: the folder, or the model file whose run kept the folder by
        itself and has removed it.

    Raises:
        ValueError: When there is something else, when the folder cannot come to be, and when it is
            removed.
    """
    check_followed(path)
    shown, idle_looks, had_run = None, 0, False
    while True:
        # Asked first, so that what was committed before the end is shown.
        in_use = RunFolder.in_use(path)
        is_there = os.path.isdir(path)
        if not is_there and shown is not None and shown[0] and (saved := _saved_by(path)):
            say(f"The run in {path} has ended: {saved} is saved.")
            return saved
        try:
            folder = RunFolder.find(path)
            event = None if folder is None else committed_event(folder)
        except (RunFolderError, FileNotFoundError):
            if not had_run or RunFolder.around(path) is not None:
                raise
            folder = event = None  # it is being removed
        had_run |= folder is not None
        seen = is_there, event and (event.phase, event.transition, event.num_transitions)
        idle_looks = 0 if in_use or seen != shown or not is_there else idle_looks + 1
        if folder is not None and event is not None:
            if seen != shown:
                show(folder, event)
            has_all = event.phase == "sampling" and event.transition >= event.num_transitions
            if has_all or said_end(folder) is not None:
                return path
        elif seen != shown:
            _say_what_is_missing(path, is_there, was_there=shown is not None and shown[0])
        if idle_looks == _MAX_IDLE_LOOKS:
            say(
                f"Nobody has been at work on {path} for {_MAX_IDLE_LOOKS * _SECONDS:.0f} s: it is "
                f"no longer followed. A run that was stopped goes on with: tfbnn resume "
                f"{shlex.quote(path)}"
            )
            return path
        shown = seen
        time.sleep(_SECONDS)


def lines_to(
    show: Callable[[str], None], stream: TextIO | None
) -> Callable[[RunFolder, SamplingEvent], None]:
    """What shows a line for each look, as `follow` wants it.

    Args:
        show: Called with a line of text.
        stream: Where this goes, which says how long a line may be.
    """

    def look(folder: RunFolder, event: SamplingEvent) -> None:
        width = columns(stream) or _WIDTH
        show(textwrap.fill(_line(folder, event), width, subsequent_indent="    "))

    return look


def progress_text(folder: RunFolder, event: SamplingEvent) -> str:
    """How far a run is, in a line."""
    parts = of_phase(event, None, event.total_eta_seconds)
    if event.num_kept:
        parts[2:3] = [f"{event.num_kept}/{wanted_results(folder)} draws per chain"]
    return fitted(parts)


def check_followed(path: str) -> None:
    """Refuses what is no folder of a run, now or in future.

    Raises:
        ValueError: Says what there is instead.
    """
    if os.path.lexists(path) and not os.path.isdir(path):
        raise ValueError(f"--follow needs the folder of a run, received {path!r}. Leave it out.")
    above = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(above):
        raise ValueError(
            f"--follow can wait for a run in {path!r} only once there is a folder {above!r}. Pass "
            "what was the --output of 'tfbnn fit'."
        )


def _saved_by(path: str) -> str | None:
    """The model file, now there, of a run that kept this folder by itself."""
    name = path.rstrip("/")
    saved = name.removesuffix(".run")
    return saved if saved != name and os.path.isfile(saved) else None


def _say_what_is_missing(path: str, is_there: bool, was_there: bool) -> None:
    if is_there:
        say(f"The run in {path} has not begun to sample: waiting for it.")
    elif was_there:
        raise ValueError(
            f"{path} was removed while it was followed. If its run has ended, diagnose the model "
            "that it saved."
        )
    else:
        say(f"There is no folder {path} yet: waiting for it. Ctrl-C ends this.")


def _line(folder: RunFolder, event: SamplingEvent) -> str:
    parts = of_phase(event, None, event.total_eta_seconds)
    if event.num_kept:
        parts[2:3] = _of_draws(folder, event)
    return fitted(parts)


def _of_draws(folder: RunFolder, event: SamplingEvent) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the run is not finished
        diagnosis = load(folder.path).diagnose()
    yield f"{event.num_kept}/{wanted_results(folder)} draws per chain"
    yield rhat_text(upper(diagnosis.rhat_function))
    yield ess_text("bulk ESS", lower(diagnosis.ess_function))
