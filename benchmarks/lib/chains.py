"""Fits whose chains are to be judged, and what their predictions say about convergence."""

import contextlib
import time
import warnings

import numpy as np

import tfbnn
from tfbnn.diagnostics.statistics import bulk_ess, rhat

__all__ = [
    "Deadline",
    "convergence",
    "fit",
    "num_gradients",
    "predictions",
    "quiet",
    "scores",
]

MAX_ROWS = 300


class Deadline:
    """A callback that stops a run when its time is over; the clock starts with the object."""

    def __init__(self, seconds):
        self._end = time.perf_counter() + seconds

    def __call__(self, event):
        return time.perf_counter() >= self._end


@contextlib.contextmanager
def quiet():
    """Silences the two warnings that the tables state in numbers: no convergence, stopped early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfbnn.ConvergenceWarning)
        warnings.filterwarnings("ignore", "The run was stopped", UserWarning)
        yield


def fit(layers, settings, problem, **options):
    """A fitted model and its Run; `options` go to `fit_posterior`. Error bars are not calibrated."""
    model = tfbnn.BayesianMLP(layers, **settings)
    options |= {"validation_data": problem.validation, "calibrate": False}
    with quiet():
        run = model.fit_posterior(*problem.train, **options)
    return model, run


def scores(model, problem):
    """`model.evaluate` on the test rows."""
    with quiet():
        return model.evaluate(*problem.test)


def predictions(model, problem):
    """Function draws [C, S, R] at up to 300 test rows, in transformed units."""
    x = problem.test[0]
    chosen = np.unique(np.linspace(0, len(x) - 1, min(MAX_ROWS, len(x))).astype(int))
    with quiet():
        draws = model.predict_draws(x[chosen], space="transformed")
        return draws.reshape(model.posterior.num_chains, -1, len(chosen))


def convergence(draws):
    """R-hat and ESS of function draws [C, S, R], as plain numbers over the rows."""
    hats, sizes = rhat(draws), bulk_ess(draws)
    # "higher" takes an element as it is: R-hat may be infinite, and infinities do not interpolate.
    median, q95 = np.quantile(hats, [0.5, 0.95], method="higher")
    return {
        "rhat": float(median),
        "rhat_q95": float(q95),
        "below_1.05": float(np.mean(hats < 1.05)),
        "below_1.01": float(np.mean(hats < 1.01)),
        "ess": float(np.median(sizes)),
    }


def num_gradients(run, phase):
    """Gradients of all chains in "warmup" or "sampling"."""
    return int(run.num_gradients[phase].sum())
