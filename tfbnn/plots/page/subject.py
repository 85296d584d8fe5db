"""What a page is about, and what its sections ask of it more than once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tfbnn.diagnostics.convergence import judged_by
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.problem import PYTHON, Interface
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.plots import canvas
from tfbnn.plots.page.content import Drawing
from tfbnn.plots.page.svg import to_svg
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.row_scores import RowScores
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import num_known

# Of a figure with one column, which a phone shows at about its own size, in inches.
WIDTH = 4.2
# Figures of further targets are left out.
MOST_TARGETS = 6
# Share of rows that may be those of the fit, as tables hold a row twice, where rows count as held out.
_FEW_KNOWN = 0.05


@dataclass(frozen=True)
class KnownRows:
    """Rows with known targets.

    Attributes:
        x, y, noise_scale: As in `BayesianMLP.evaluate`.
        source: Where they are from, in words.
    """

    x: Any
    y: Any
    noise_scale: Any = None
    source: str = "the rows given"


@dataclass(frozen=True)
class Subject:
    """A fitted model, and what is known besides.

    Attributes:
        model: The model.
        rows: Rows to hold its predictions against, or None.
        unit: Of the targets, as in `plot_truth`.
        interface: In whose words advice is given.
        without_rows: What to do to get what needs rows.
    """

    model: SampledModel
    rows: KnownRows | None = None
    unit: str | Sequence[str] | None = None
    interface: Interface = PYTHON
    without_rows: str = "pass x and y"

    @property
    def advice(self) -> Interface:
        """In whose words advice is given, about this run."""
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
        """Whether error bars hold on the rows, where the fit has not seen them."""
        if self.rows is None or self.ensemble.spec.has_classes:
            return Predictions()
        rows, _ = checked_rows(
            self.ensemble, self.rows.x, self.rows.y, self.rows.noise_scale, "evaluate"
        )
        if num_known(self.ensemble.row_digests, rows) > _FEW_KNOWN * len(rows.x):
            return Predictions(why="these rows took part in the fit")
        return Predictions.judge(
            self.scores.pit,
            self.scores.pull,
            "held-out rows",
            self.ensemble.calibration is not None,
            self.ensemble.target_names,
        )

    @cached_property
    def scores(self) -> RowScores:
        """What the predictive distribution says of the rows; of targets that are numbers."""
        rows = self.known_rows
        return canvas.scored_rows(self.model, rows.x, rows.y, rows.noise_scale)

    @property
    def known_rows(self) -> KnownRows:
        """The rows, where there are some."""
        if self.rows is None:
            raise ValueError("This page has no rows with known targets.")
        return self.rows


class Grid(NamedTuple):
    """Axes of a figure: how many, and further options of `Figure.subplots`."""

    num_rows: int = 1
    num_columns: int = 1
    options: Mapping[str, Any] = {}


def drawing(
    name: str,
    caption: str,
    size: tuple[float, float],
    draw: Callable[..., None],
    *content: Any,
    grid: Grid = Grid(),
) -> Drawing:
    """A figure for a page.

    Args:
        name: Its name there.
        caption: What is to be seen; what screen readers say as well.
        size: Width and height in inches.
        draw: Called with its axes, one or an array without directions of length one, and content.
        *content: What is drawn.
        grid: Grid of the axes.
    """
    num_rows, num_columns, options = grid
    panel = size[0] / num_columns, size[1] / num_rows
    with canvas.styled_figure(num_rows, num_columns, panel, **options) as (figure, axes):
        draw(np.squeeze(axes)[()], *content)
        return Drawing(to_svg(figure, name, caption), caption)
