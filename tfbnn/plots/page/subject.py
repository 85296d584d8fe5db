"""Subject of a page, and what its sections ask of it more than once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

from tfbnn.diagnostics.convergence import judged_by
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.problem import PYTHON, Interface
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.plots import canvas
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.metrics import RowScores
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import num_known

# Share of rows that may be those of the fit, as tables hold a row twice, where rows count as held out.
_FEW_KNOWN = 0.05


class KnownRows(NamedTuple):
    """Rows with known targets.

    Attributes:
        x, y: As in `BayesianMLP.evaluate`.
        known: Their noise_scale, or offset of counts.
        source: Where they are from, in words.
    """

    x: Any
    y: Any
    known: Any = None
    source: str = "the rows given"


@dataclass(frozen=True)
class Subject:
    """A fitted model, and what is known besides.

    Attributes:
        model: The model.
        rows: Rows to hold its predictions against, or None.
        interface: In whose words advice is given.
        without_rows: What to do to get what needs rows.
    """

    model: SampledModel
    rows: KnownRows | None = None
    interface: Interface = PYTHON
    without_rows: str = "pass x and y"

    @property
    def advice(self) -> Interface:
        """Words of advice about this run."""
        origin = self.ensemble.provenance
        not_sampled = origin.not_sampled  # which says why, of a run without draws
        return self.interface.of_run(origin.until or not_sampled, origin.ended or not_sampled)

    @property
    def ensemble(self) -> Ensemble:
        """The sampled networks."""
        return self.model.posterior

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis of the chains, or None where there are none."""
        if self.ensemble.no_chains is not None:
            return None
        diagnosis, held_out = self.model.diagnose(), self.held_out
        return judged_by(diagnosis, held_out) if held_out.coverage else diagnosis

    @cached_property
    def held_out(self) -> Predictions:
        """The verdict on error bars by the rows, where the fit has not seen them."""
        if self.rows is None or self.ensemble.spec.has_classes:
            return Predictions()
        rows, _ = checked_rows(self.ensemble, self.rows.x, self.rows.y, self.rows.known, "evaluate")
        if num_known(self.ensemble.row_digests, rows) > _FEW_KNOWN * len(rows.x):
            return Predictions(why="these rows took part in the fit")
        scores, is_calibrated = self.scores, self.ensemble.calibration is not None
        return scores.judged("held-out rows", is_calibrated, self.ensemble.target_names)

    @cached_property
    def scores(self) -> RowScores:
        """Scores of the rows by the predictive distribution; of targets that are numbers."""
        rows = cast(KnownRows, self.rows)
        return canvas.scored_rows(self.model, rows.x, rows.y, rows.known)
