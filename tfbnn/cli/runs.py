"""Ends of `tfbnn fit` and `tfbnn resume`: saved, reported, stopped, failed."""

import argparse
import contextlib
import os
import shlex
import warnings
from collections.abc import Callable
from typing import TypeGuard

from tfbnn.cli.console import DIAGNOSTICS_FAILED, STOPPED, print_json, say
from tfbnn.cli.diagnose import verdict
from tfbnn.diagnostics.problem import Interface
from tfbnn.diagnostics.wording import megabytes
from tfbnn.exceptions import (
    ChainError,
    NotFittedError,
    RunFolderError,
    RunLockedError,
    VerdictWarning,
)
from tfbnn.fit.loading import load
from tfbnn.fit.model import SampledNetwork
from tfbnn.run.report import Run
from tfbnn.storage.run.folder import RunFolder
from tfbnn.system.signals import signals_held

# A minute, where the machine is three times as slow, or as busy, as estimates suppose.
_LONG_SECONDS = 20.0


def run_to_the_end(
    model: SampledNetwork, go_on: Callable[[], Run], folder: str | None, args: argparse.Namespace
) -> int:
    """Run, save and report.

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
    with signals_held(lambda: say("Stopping; saving the draws so far.")) as hold:
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
            if is_own_folder(folder, args.model_file):
                _remove(folder)
        else:  # it was out of time, and the report says how to go on
            _save_stopped(model, folder, args)
        if folder is not None and RunFolder.around(folder) is None:
            folder = None  # it is removed, or the run ended in the search for its starts
        interface = Interface(True, folder, args.model_file, command=getattr(args, "fitted_by", ""))
        if args.json:
            print_json(run.to_dict(interface))
        else:
            print(run.report(details=getattr(args, "verbose", None) == 2, interface=interface))
        if hold.seen:
            say("The run had already finished, so its results are complete.")
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
    """Save what a run has kept that did not come to its end, and say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model warns that its run was stopped: said below
        kept = _with_draws(model, folder)
        if kept is None:
            say("Stopped before anything was kept; nothing is saved.")
        elif kept.posterior.provenance.not_sampled is None:
            say(f"Stopped with {kept.posterior.num_results} draws kept per chain.")
            _save(kept, folder, args)
        else:
            say("The run ended before sampling: its networks have no posterior error bars.")
            if args.model_file is None or not os.path.exists(args.model_file):
                _save(kept, folder, args)
            else:  # it may have draws
                say(f"{args.model_file} already exists and is not overwritten.")


def _with_draws(model: SampledNetwork, folder: str | None) -> SampledNetwork | None:
    """Return the model, or what its run folder has committed where a stop came before it had anything."""
    with contextlib.suppress(NotFittedError):
        model.posterior  # noqa: B018
        return model
    with contextlib.suppress(NotFittedError, RunFolderError):
        return load(folder) if folder is not None and RunFolder.around(folder) else None
    return None


def _say_how_to_go_on(folder: str | None, args: argparse.Namespace) -> None:
    if folder is None:
        say("With --output FOLDER a stopped run could be resumed.")
    elif RunFolder.around(folder) is not None:
        save = "" if args.model_file is None else f" -o {shlex.quote(args.model_file)}"
        say(f"Go on with: tfbnn resume {shlex.quote(folder)}{save}")
    else:
        say("Sampling had not started: run the same command again.")


def _remove(folder: str) -> None:
    """Remove a run folder that is no longer needed, if there is one."""
    try:
        RunFolder.remove(folder)
    except (FileNotFoundError, RunLockedError):
        pass  # there is none, or another process needs it
    except (OSError, RunFolderError) as error:
        say(f"{folder} is no longer needed, and could not be removed: {error}")


def own_folder(model_file: str, seconds: float) -> str | None:
    """Return the folder for a run, which can be made and is not there yet, or None where it keeps none.

    Args:
        model_file: Where the model will be saved.
        seconds: How long the run will take, see `estimated_fit_seconds`.

    Raises:
        ValueError: When a stopped run is there: it is not for a new one to remove it.
        RunLockedError: When another process is about to begin a run there.
    """
    folder = f"{model_file}.run"
    if RunFolder.around(folder) is not None:
        raise ValueError(
            f"{folder} holds an unfinished run. Continue it: tfbnn resume {shlex.quote(folder)} -o "
            f"{shlex.quote(model_file)}; or remove the folder to start again."
        )
    if seconds < _LONG_SECONDS:
        return None
    try:
        with RunFolder.reserved(folder):
            pass
        RunFolder.remove(folder)  # the run makes it when it begins
    except RunLockedError:
        raise
    except (RunFolderError, OSError) as error:
        # Such as a file system without locks.
        say(f"No run folder is kept, so a stopped run cannot be resumed: {error}")
        return None
    say(f"This may take more than a minute: draws are kept in {folder} until the model is saved.")
    return folder


def is_own_folder(folder: str | None, model_file: str | None) -> TypeGuard[str]:
    """Return whether a run folder belongs to a model file, and goes with its run's end."""
    if folder is None or model_file is None:
        return False
    return os.path.realpath(folder) == os.path.realpath(f"{model_file}.run")
