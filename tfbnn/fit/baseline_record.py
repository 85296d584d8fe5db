"""What the fits of baselines return: how it went, in numbers and as a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tfbnn.diagnostics.diagnosis import rows_texts
from tfbnn.diagnostics.fit_check import RowsCheck
from tfbnn.diagnostics.verdict import NO_CHAINS, NOT_SAMPLED, Chains, Predictions
from tfbnn.diagnostics.wording import LABEL_WIDTH, text_width, wrapped
from tfbnn.run.listeners.history import Columns
from tfbnn.system.arrays import Array
from tfbnn.system.notebooks import folded


@dataclass(frozen=True, eq=False)
class Baseline:
    """The record of a fit that sampled nothing.

    Attributes:
        name: "fit_map", "fit_ensemble" or "fit_laplace".
        label: What the model says of itself.
        num_draws: Networks, or draws of the normal distribution, that predictions average over.
        start: One line on how the networks were found.
        log_prob: Their log densities [C].
        seconds: Dict of wall-clock seconds: startup, compile, pretraining, rest.
        rows: Agreement with the training rows, None where the fit was interrupted before.
        stopped: Whether it was stopped before its end.
        history: What happened, as that of a `Run`; its phases are "pretraining" and "newton".
    """

    name: str
    label: str
    num_draws: int
    start: str
    log_prob: Array
    seconds: dict[str, float]
    rows: RowsCheck | None
    stopped: bool
    history: dict[str, Columns] = field(default_factory=dict)

    verdict: ClassVar[str] = NOT_SAMPLED
    chains: ClassVar[Chains] = NO_CHAINS
    predictions: ClassVar[Predictions] = Predictions()

    def __repr__(self) -> str:
        return f"Baseline: {self.verdict}, {self.label}\nprint(report()) says more"

    def _repr_html_(self) -> str:
        """What a notebook shows: these lines, and the report on request."""
        return folded(repr(self), self.report(width=100))

    def report(self, *, width: int | None = None) -> str:
        """Returns the report as text.

        Args:
            width: Columns to break lines at, by default those of the terminal, else 100.
        """
        width = width or text_width()
        lines = (wrapped(name.ljust(LABEL_WIDTH), text, width) for name, text in self._lines())
        return "\n".join(lines)

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "Verdict", f"{self.verdict}: {_WORTH[self.name]}"
        yield "Baseline", self.label
        low, high = np.min(self.log_prob), np.max(self.log_prob)
        density = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        yield "Start", f"{self.start}; log density there {density}"
        parts = ", ".join(f"{name} {value:.1f}" for name, value in self.seconds.items())
        yield "Time", f"{sum(self.seconds.values()):.1f} s: {parts}"
        if self.rows is not None:
            yield from (("Rows" if not n else "", t) for n, t in enumerate(rows_texts(self.rows)))
        yield "Next", "hold evaluate of held-out rows against that of fit_posterior"


_WORTH = {
    "fit_map": "one network knows nothing of its own error, its standard deviation is 0",
    "fit_ensemble": "the spread of optimised networks is no error bar of a posterior",
    "fit_laplace": "error bars hold as far as the posterior is normal around one network",
}
