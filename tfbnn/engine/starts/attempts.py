"""ADAM begins again, from steeper networks, where it has not begun to follow the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data
from tfbnn.engine.starts.check import misfits
from tfbnn.engine.starts.polishing import Unpolished
from tfbnn.engine.starts.pretraining import PretrainingResult
from tfbnn.run.counters import Seconds
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

# Prior scales of the first layer at which ADAM begins again; the faster a function goes up and down, the
# steeper. From draws of the prior it ends at a constant of those of tests/unit/engine/starts/test_attempts.py.
_STEEPER = (6.0, 12.0, 24.0, 48.0)


class Attempts(NamedTuple):
    """What ADAM has found for each start: of its attempts that which misses the rows by least.

    Attributes:
        theta: [C, P].
        epochs: Epochs that were kept [C].
        scores: Validation log likelihood per row [C], NaN without validation rows.
        misfit: As `misfits` [C], infinite where it is not a number; 0 where nobody asks.
        scale: Prior scale of the first layer that it began with [C], NaN of a draw of its prior.
    """

    theta: Array
    epochs: Array
    scores: Array
    misfit: Array
    scale: Array

    @classmethod
    def of(cls, result: PretrainingResult, misfit: Array, scale: float | None) -> Attempts:
        """Those of one attempt."""
        unknown = np.full(len(result.theta), np.nan)
        scores = result.validation_log_likelihood
        begun = unknown if scale is None else np.full(len(unknown), scale)
        return cls(
            result.theta, result.epochs, unknown if scores is None else scores, misfit, begun
        )

    def or_better(self, later: Attempts, largest_misfit: float) -> Attempts:
        """Of each start the later attempt where this does not follow the rows, and that misses less."""
        better = (later.misfit < self.misfit) & (self.misfit > largest_misfit)
        theta = np.where(better[:, None], later.theta, self.theta)
        rest = (np.where(better, new, old) for new, old in zip(later[1:], self[1:]))
        return Attempts(theta, *rest)

    def suffice(self, num_chains: int, largest_misfit: float) -> bool:
        """Whether so many starts miss the rows by no more."""
        return bool(np.sum(self.misfit <= largest_misfit) >= num_chains)

    @property
    def text(self) -> str:
        """A line on all."""
        text = f"ADAM, {_range(self.epochs, '')} epochs"
        steeper = self.scale[np.isfinite(self.scale)]
        if len(steeper):
            text += (
                f" ({len(steeper)} of {len(self.scale)} starts from first layers of prior scale "
                f"{_range(steeper, 'g')}, as from draws too few followed the rows)"
            )
        if np.isfinite(self.scores).any():
            low, high = self.scores.min(), self.scores.max()
            text += f", validation log likelihood {low:.3f} to {high:.3f} per row"
        return text


def _range(values: Array, form: str) -> str:
    low, high = values.min(), values.max()
    return f"{low:{form}}" + (f" to {high:{form}}" if high > low else "")


def follow_rows(
    spec: NetworkSpec,
    data: Data,
    num_chains: int,
    largest_misfit: float | None,
    pretrain: Callable[[float | None], PretrainingResult],
    notify: Notifier,
) -> Unpolished:
    """What ADAM finds, in attempts until there is a start for each chain that follows the rows.

    Args:
        spec: NetworkSpec.
        data: Data that ADAM sees.
        num_chains: Starts that are needed, of those that are sought.
        largest_misfit: As `Pretraining` has it.
        pretrain: Makes an attempt with this prior scale of the first layer, None for draws.
        notify: Of the search; an attempt that it has stopped is the last.

    Raises:
        KeyboardInterrupt: Before the first attempt has found anything.
    """
    scales: tuple[float | None, ...] = (None,)
    limit = np.inf
    if largest_misfit is not None and spec.samples_input_scales and not spec.has_classes:
        scales, limit = (None, *_STEEPER), largest_misfit
    best, seconds = None, Seconds()
    for scale in scales:
        try:
            result = pretrain(scale)
            misfit = np.zeros(len(result.theta))
            if np.isfinite(limit):
                misfit = misfits(spec, result.theta, data)
                misfit[np.isnan(misfit)] = np.inf
        except KeyboardInterrupt:
            if best is None:
                raise
            return Unpolished(best.theta, best.text, seconds, interrupted=True)
        seconds += result.seconds
        found = Attempts.of(result, misfit, scale)
        best = found if best is None else best.or_better(found, limit)
        if best.suffice(num_chains, limit) or result.interrupted or notify.stopped:
            break
    return Unpolished(best.theta, best.text, seconds, result.interrupted)
