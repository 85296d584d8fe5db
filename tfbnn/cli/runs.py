"""How `tfbnn fit` and `tfbnn resume` end: saved, reported, stopped, failed."""

import argparse
import os
import warnings
from collections.abc import Callable

from tfbnn.cli.console import STOPPED, print_json, say
from tfbnn.cli.diagnose import verdict
from tfbnn.exceptions import ChainError, NotFittedError
from tfbnn.model import BayesianMLP
from tfbnn.run.preparation import preparation_in
from tfbnn.run.report import Run
from tfbnn.storage import RunFolder


def check_model_file(path: str | None) -> None:
    """Refuses a place where the model could not be saved, before hours of sampling."""
    if path is None:
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"The folder of {path} does not exist. Create it first.")
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: it is a folder, or its folder is read-only.")


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
            posterior = model.posterior
        except NotFittedError:
            say("Stopped before anything was kept; nothing is saved.")
        else:
            if posterior.provenance.not_sampled is None:
                say(f"Stopped with {posterior.num_results} draws kept per chain.")
                _save(model, args)
            else:
                _save_unsampled(model, args)
    _say_how_to_go_on(folder)


def _save_unsampled(model: BayesianMLP, args: argparse.Namespace) -> None:
    """Saves pretrained networks, but never in place of what may be draws."""
    say("Stopped before the first draw: there are pretrained networks, no draws of the posterior.")
    if args.model_file is not None and os.path.exists(args.model_file):
        say(f"{args.model_file} was there before, and is left as it is.")
    else:
        _save(model, args)


def _say_how_to_go_on(folder: str | None) -> None:
    if folder is None:
        return
    if RunFolder.find(folder) is not None or preparation_in(folder) is not None:
        say(f"Go on with: tfbnn resume {folder}")
    else:
        say("Sampling had not begun: the same command starts anew.")
