"""Convergence of a run while it is going on: `tfbnn diagnose FOLDER --follow`."""

import os
import time
import warnings

import tfbnn
from tfbnn.diagnostics.presentation import ess_text, lower, rhat_text, upper
from tfbnn.recording import num_committed
from tfbnn.storage import RunFolder

__all__ = ["follow"]

_SECONDS = 5.0


def follow(path, show):
    """Shows R-hat and effective sample size whenever the run has committed more, until it is done.

    Args:
        path: Run folder.
        show: Called with a line of text.
    """
    if not os.path.isdir(path):
        raise ValueError(f"--follow needs the folder of a run, received {path!r}. Leave it out.")
    shown = -1
    while True:
        folder = RunFolder.open(path)
        wanted, count = folder.description["num_results"], num_committed(folder)
        if count > shown:
            shown = count
            show(_line(path, count, wanted))
        if count >= wanted:
            return
        time.sleep(_SECONDS)


def _line(path, count, wanted):
    text = f"{count}/{wanted} draws per chain"
    if not count:
        return text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the run is not finished
        diagnosis = tfbnn.load(path).diagnose()
    rhat = rhat_text(upper(diagnosis.rhat_function))
    return f"{text}: {rhat}, {ess_text('bulk ESS', lower(diagnosis.ess_function))}"
