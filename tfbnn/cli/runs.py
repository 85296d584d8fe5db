"""How `tfbnn fit` and `tfbnn resume` end: saved, reported, stopped, failed."""

import argparse
import os
import shlex
import warnings
from collections.abc import Callable

from tfbnn.cli.console import DIAGNOSTICS_FAILED, STOPPED, print_json, say
from tfbnn.cli.diagnose import verdict
from tfbnn.cli.own_folder import is_own_folder
from tfbnn.diagnostics.problem import Interface
from tfbnn.diagnostics.wording import megabytes
from tfbnn.exceptions import (
    ChainError,
    NotFittedError,
    RunFolderError,
    RunLockedError,
    VerdictWarning,
)
from tfbnn.fit.model import SampledNetwork, load
from tfbnn.run.report import Run
from tfbnn.storage import RunFolder
from tfbnn.system.signals import signals_held


def run_to_the_end(
    model: SampledNetwork, go_on: Callable[[], Run], folder: str | None, args: argparse.Namespace
) -> int:
    """Runs, saves and reports.

    A signal stops the run. Once it is over, or is stopping, the rest is done however often one asks
    to stop: a model that is saved has cost more than anybody waits for it.

    Args:
        model: The model that the run is of.
        go_on: Function that samples and returns the Run.
        folder: The run folder, or None.
        args: Arguments with model_file, json and strict.

    Returns:
        The exit code.

    Raises:
        ChainError: After saving what the other chains have.
    """
    with signals_held(lambda: say("Asked to stop: what there is is saved first.")) as hold:
        try:
            with hold.lifted(), warnings.catch_warnings():
                warnings.simplefilter("ignore", VerdictWarning)  # the report says the same
                run = go_on()
        except KeyboardInterrupt:
            _save_stopped(model, folder, args)
            _say_how_to_go_on(folder, args)
            return STOPPED
        except ChainError:
            _save_stopped(model, folder, args)
            raise
        finally:
            if is_own_folder(folder, args.model_file) and RunFolder.around(folder) is None:
                _remove(folder)
        if run.num_results:
            _save(model, folder, args)
        else:  # it was out of time, and the report says how to go on
            _save_stopped(model, folder, args)
        if run.num_results and is_own_folder(folder, args.model_file):
            _remove(folder)
            folder = None
        if folder is not None and RunFolder.around(folder) is None:
            folder = None  # it ended in the search for its starts
        interface = Interface(True, folder, args.model_file, command=getattr(args, "fitted_by", ""))
        if args.json:
            print_json(run.to_dict(interface))
        else:
            print(run.report(details=getattr(args, "verbose", None) == 2, interface=interface))
        if hold.seen:
            say("The run was over when it was asked to stop: nothing is missing.")
        if not run.num_results:
            return DIAGNOSTICS_FAILED
        return verdict(run.diagnosis, args.strict)


def _save(model: SampledNetwork, folder: str | None, args: argparse.Namespace) -> None:
    if args.model_file is None:
        return
    try:
        model.save(args.model_file)
    except (OSError, ValueError):
        if folder is not None:
            say(f"The draws are in {folder}: tfbnn resume {shlex.quote(folder)} -o ANOTHER.h5")
        raise
    say(f"Saved {args.model_file}. It takes {megabytes(os.path.getsize(args.model_file))}.")


def _save_stopped(model: SampledNetwork, folder: str | None, args: argparse.Namespace) -> None:
    """Saves what a run has kept that did not come to its end, and says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model warns that its run was stopped: said below
        kept = _with_draws(model, folder)
        if kept is None:
            say("Stopped before anything was kept; nothing is saved.")
        elif kept.posterior.provenance.not_sampled is None:
            say(f"Stopped with {kept.posterior.num_results} draws kept per chain.")
            _save(kept, folder, args)
        else:
            _save_unsampled(kept, folder, args)


def _save_unsampled(model: SampledNetwork, folder: str | None, args: argparse.Namespace) -> None:
    """Saves pretrained networks, but never in place of what may be draws."""
    say("Out of time or stopped before sampling began: these are networks without error bars.")
    if args.model_file is not None and os.path.exists(args.model_file):
        say(f"{args.model_file} was there before, and is left as it is.")
    else:
        _save(model, folder, args)


def _with_draws(model: SampledNetwork, folder: str | None) -> SampledNetwork | None:
    """The model, or what its run folder has committed where a stop came before it had anything."""
    try:
        model.posterior  # noqa: B018
        return model
    except NotFittedError:
        pass
    try:
        return load(folder) if folder is not None and RunFolder.around(folder) else None
    except (NotFittedError, RunFolderError):
        return None


def _say_how_to_go_on(folder: str | None, args: argparse.Namespace) -> None:
    if folder is None:
        say("With --output FOLDER a run that is stopped goes on where it was.")
    elif RunFolder.around(folder) is not None:
        save = "" if args.model_file is None else f" -o {shlex.quote(args.model_file)}"
        say(f"Go on with: tfbnn resume {shlex.quote(folder)}{save}")
    else:
        say("Sampling had not begun: the same command starts anew.")


def _remove(folder: str) -> None:
    """Removes a run folder that is no longer needed, if there is one."""
    try:
        RunFolder.remove(folder)
    except (FileNotFoundError, RunLockedError):
        pass  # there is none, or another process needs it
    except (OSError, RunFolderError) as error:
        say(f"{folder} is no longer needed, and could not be removed: {error}")
