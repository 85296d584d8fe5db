"""`LogMetrics`: passes the numbers of a run on to a logger such as MLflow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tfbnn.data.validation import check_number
from tfbnn.run.listeners.news import AT_LOOKS, News

_Log = Callable[[dict[str, float], int], object]


class LogMetrics:
    """A callback that hands the numbers of events to a logger.

    Numbers are, by the phase of the run: `val_loss`, the negative log likelihood per held-out row
    while ADAM runs; `log_prob` of Levenberg-Marquardt; `acceptance_rate`, `step_size`,
    `num_divergent` and `num_kept` of the chains; `rhat` and `ess` of the function once for every
    look that `until` takes at the draws. Steps count the calls, from 0.

    Args:
        logger: Anything with `log_metrics(dict, step=)`, as MLflow, Comet and Lightning have it, with
            `log_metric(name, value, step=)` or with `log(dict, step=)` as Weights & Biases; or a
            function (dict, step). The module `mlflow` itself will do.
        seconds: At least so many pass between two calls, default 1, for loggers that talk to a
            server; looks are told in any case.

    Raises:
        TypeError: For a logger that is none of these.

    Example:
        model.fit_posterior(x, y, callbacks=[tfbnn.LogMetrics(mlflow)])
    """

    def __init__(self, logger: Any, *, seconds: float = 1.0) -> None:
        self._log, self._news = _logging(logger), News()
        self._seconds = check_number("seconds", seconds, minimum=0)
        self._last_time, self._num_calls = -float("inf"), 0

    def __call__(self, event: dict[str, Any]) -> None:
        """Logs what an event tells."""
        numbers, now = self._news(event), time.monotonic()
        is_due = not numbers.keys().isdisjoint(AT_LOOKS) or now - self._last_time >= self._seconds
        if numbers and is_due:
            self._log(numbers, self._num_calls)
            self._last_time, self._num_calls = now, self._num_calls + 1


def _logging(logger: Any) -> _Log:
    """The function of a logger that takes all numbers of a step."""
    if callable(getattr(logger, "log_metrics", None)):
        return lambda numbers, step: logger.log_metrics(numbers, step=step)
    if callable(getattr(logger, "log_metric", None)):
        return lambda numbers, step: _one_by_one(logger.log_metric, numbers, step)
    if callable(getattr(logger, "log", None)):
        return lambda numbers, step: logger.log(numbers, step=step)
    if callable(logger):
        return lambda numbers, step: logger(numbers, step)
    raise TypeError(
        "logger must have log_metrics, log_metric or log, or be a function (dict, step), received "
        f"{logger!r}."
    )


def _one_by_one(log_metric: Callable[..., object], numbers: dict[str, float], step: int) -> None:
    for name, number in numbers.items():
        log_metric(name, number, step=step)
