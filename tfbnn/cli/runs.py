"""The ends of `tfbnn fit` and `tfbnn resume`: save, report, stop or fail."""

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

# This is a minute on a machine that is three times slower, or busier, than estimates assume.
_LONG_SECONDS = 20.0


def run_to_the_end(
    model: SampledNetwork, go_on: Callable[[], Run], folder: str | None, args: argparse.Namespace
) -> int:
    """Run, save and report.

    A signal stops the run. Once the run is over or is stopping, saving and reporting ignore further signals,
    because they take much less time than the run did.

    Args:
        model: The model of the run.
        go_on: Function that samples and returns the Run.
        folder: The run folder, or None.
        args: Arguments with model_file, json and strict.

    Returns:
        The exit code.

    Raises:
        ChainError: After saving the draws of the other chains.
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
                # A run that is resumed for some time at a time goes on from its folder.
                if getattr(args, "command", "") == "resume" and "max_seconds" in (run.ended or ""):
                    _say_how_to_go_on(folder, args)
                else:
                    _remove(folder)
        else:  # the time limit was reached, and the report says how to continue
            _save_stopped(model, folder, args)
        if folder is not None and RunFolder.around(folder) is None:
            folder = None  # it was removed, or the run ended in the search for its starts
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
    """Save the draws of a run that ended early, with a message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model's warning of the stop is printed below
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
    """Return the model, or if it has no draws the one that its run folder has committed, or None."""
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
    """Remove a run folder that is no longer needed, if it exists."""
    try:
        RunFolder.remove(folder)
    except (FileNotFoundError, RunLockedError):
        pass  # it does not exist, or another process uses it
    except (OSError, RunFolderError) as error:
        say(f"{folder} is no longer needed, and could not be removed: {error}")


def own_folder(model_file: str, seconds: float) -> str | None:
    """Return a new folder for a run, after checking that it can be made. None if the run keeps none.

    Args:
        model_file: File to which the model will be saved.
        seconds: Estimated seconds of the run, see `estimated_fit_seconds`.

    Raises:
        ValueError: When the folder holds a stopped run, which a new run must not remove.
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
        # One cause is a file system without locks.
        say(f"No run folder is kept, so a stopped run cannot be resumed: {error}")
        return None
    say(f"This may take more than a minute: draws are kept in {folder} until the model is saved.")
    return folder


def is_own_folder(folder: str | None, model_file: str | None) -> TypeGuard[str]:
    """Return whether a run folder belongs to a model file, so that it is removed when the run ends."""
    if folder is None or model_file is None:
        return False
    return os.path.realpath(folder) == os.path.realpath(f"{model_file}.run")
