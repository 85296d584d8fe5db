"""Subject of a page: a fitted model, known rows, and results that several sections use."""

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

# Rows count as held out if at most this share of them took part in the fit: tables may hold a row
# twice.
_FEW_KNOWN = 0.05


class KnownRows(NamedTuple):
    """Rows with known targets.

    Attributes:
        x, y: As in `BayesianMLP.evaluate`.
        known: Their noise_scale, or their offset for counts.
        source: Origin of the rows, in words.
    """

    x: Any
    y: Any
    known: Any = None
    source: str = "the rows given"


@dataclass(frozen=True)
class Subject:
    """Fitted model, with rows to compare its predictions with.

    Attributes:
        model: The model.
        rows: Rows with known targets, or None.
        interface: Interface whose commands are used in advice.
        without_rows: Advice for sections that need rows.
    """

    model: SampledModel
    rows: KnownRows | None = None
    interface: Interface = PYTHON
    without_rows: str = "pass x and y"

    @property
    def advice(self) -> Interface:
        """Interface that words advice about this run."""
        origin = self.ensemble.provenance
        not_sampled = origin.not_sampled  # the reason why a run has no draws
        until, ended = origin.until or not_sampled, origin.ended or not_sampled
        return self.interface.of_run(until, ended, origin.sampling_seconds)

    @property
    def ensemble(self) -> Ensemble:
        """Sampled networks of the model."""
        return self.model.posterior

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Diagnosis of the chains, or None without chains."""
        if self.ensemble.no_chains is not None:
            return None
        diagnosis, held_out = self.model.diagnose(), self.held_out
        return judged_by(diagnosis, held_out) if held_out.coverage else diagnosis

    @cached_property
    def held_out(self) -> Predictions:
        """Verdict on the error bars by rows that the fit has not seen."""
        if self.ensemble.provenance.is_unfinished:
            return Predictions(why="networks without draws have no error bars")
        if self.rows is None:
            return Predictions()
        if self.ensemble.spec.has_classes:
            return Predictions(why="this check is not for classes")
        rows, _ = checked_rows(self.ensemble, self.rows.x, self.rows.y, self.rows.known, "evaluate")
        if (num_known(self.ensemble.row_digests, rows) or 0) > _FEW_KNOWN * len(rows.x):
            return Predictions(why="these rows took part in the fit")
        scores, is_calibrated = self.scores, self.ensemble.calibration is not None
        return scores.judged("held-out rows", is_calibrated, self.ensemble.target_names)

    @cached_property
    def scores(self) -> RowScores:
        """Scores of the rows by the predictive distribution, for numeric targets."""
        rows = cast(KnownRows, self.rows)
        return canvas.scored_rows(self.model, rows.x, rows.y, rows.known)
