"""How `tfbnn fit` and `tfbnn resume` end: saved, reported, stopped, failed."""

import argparse
import warnings
from collections.abc import Callable

from tfbnn.cli.console import STOPPED, print_json, say
from tfbnn.cli.diagnose import verdict
from tfbnn.exceptions import ChainError, NotFittedError
from tfbnn.model import BayesianMLP
from tfbnn.run.report import Run
from tfbnn.storage import RunFolder


def run_to_the_end(
    model: BayesianMLP, go_on: Callable[[], Run], folder: str | None, args: argparse.Namespace
) -> int:
    """Runs, saves and reports.

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
    try:
        run = go_on()
    except KeyboardInterrupt:
        _save_stopped(model, folder, args)
        return STOPPED
    except ChainError:
        _save_stopped(model, None, args)
        raise
    _save(model, args)
    if args.json:
        print_json(run.to_dict())
    else:
        print(run.report())
    return verdict(run.diagnosis, args.strict)


def _save(model: BayesianMLP, args: argparse.Namespace) -> None:
    if args.model_file is not None:
        model.save(args.model_file)
        say(f"Saved {args.model_file}.")


def _save_stopped(model: BayesianMLP, folder: str | None, args: argparse.Namespace) -> None:
    """Saves what a run has kept that did not come to its end, and says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model warns that its run was stopped: said below
        try:
            kept = model.posterior.num_results
        except NotFittedError:
            say("Stopped before anything was kept; nothing is saved.")
        else:
            say(f"Stopped with {kept} draws kept per chain.")
            _save(model, args)
    if folder is None:
        return
    if RunFolder.find(folder) is not None:
        say(f"Go on with: tfbnn resume {folder}")
    else:
        say("Sampling had not begun: the same command starts anew.")
