"""Subject of a report page, and parts of the page before they become HTML.

The text of parts is plain; the template escapes it.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

from tfbnn.diagnostics.convergence import judged_by
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.problem import PYTHON, Interface
from tfbnn.diagnostics.verdict import CALIBRATED, FOR_MEANS, NOT_YET, USABLE, Predictions
from tfbnn.plots import canvas
from tfbnn.plots.canvas import styled_figure
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
        return self.interface.of_run(origin.until or not_sampled, origin.ended or not_sampled)

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


# Width of a figure with one column in inches, about the width of a phone.
WIDTH = 4.2
# Resolution of images inside a figure, in dots per inch.
_DOTS = 200


class Drawing(NamedTuple):
    """Figure of a page.

    Attributes:
        svg: The figure in SVG, as base64.
        caption: Description of the figure and of a good result, also read by screen readers.
    """

    svg: str
    caption: str


class PageTable(NamedTuple):
    """Table of a page; the first cell of a row is the row's name.

    Attributes:
        caption: Title of the table.
        header, rows: Cells of the table.
        is_prose: Whether cells are sentences, which are stacked on a narrow screen.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_prose: bool = False


class Section(NamedTuple):
    """Section of a page.

    Attributes:
        anchor: Name of the section in links.
        title: Heading.
        notes: Sentences, including reasons why something is missing.
        facts: Labels, each with its lines.
        tables, drawings: Tables and figures.
    """

    anchor: str
    title: str
    notes: list[str]
    facts: list[tuple[str, list[str]]]
    tables: list[PageTable]
    drawings: list[Drawing]


class Verdict(NamedTuple):
    """Verdict on the predictions.

    Attributes:
        headline: One of the VERDICTS, or a text that there is no verdict yet.
        meaning: Meaning of the verdict, in a sentence or two.
        answers: Verdicts on chains and on predictions: whether they pass, or None, and the reason.
        findings: Problems, each with its meaning and the next step.
    """

    headline: str
    meaning: str
    answers: Sequence[tuple[bool | None, str]]
    findings: Sequence[tuple[str, str, str]] = ()

    @property
    def tone(self) -> str:
        """Style of the verdict; its words carry the same information without colours."""
        tones = {USABLE: "good", CALIBRATED: "fair", FOR_MEANS: "fair", NOT_YET: "poor"}
        return tones.get(self.headline, "open")


class Page(NamedTuple):
    """Whole page: title, subtitle, verdict, and all other sections in order."""

    title: str
    subtitle: str
    verdict: Verdict
    sections: Sequence[Section]


# Parts that a section yields, in any order: notes, (label, line) pairs, tables and drawings. A line
# with an empty label continues the entry above.
Part: TypeAlias = str | tuple[str, str] | PageTable | Drawing
Parts: TypeAlias = Iterator[Part]


# Functions that make the sections of a page, in their order.
Maker: TypeAlias = Callable[[Subject], Section]
SECTIONS: list[Maker] = []


def section(anchor: str, title: str) -> Callable[[Callable[[Subject], Parts]], Maker]:
    """Decorate a function that yields the parts of a section, and add the section to every page."""

    def decorated(parts: Callable[[Subject], Parts]) -> Maker:
        def made(subject: Subject) -> Section:
            found = Section(anchor, title, [], [], [], [])
            for part in parts(subject):
                if isinstance(part, str):
                    found.notes.append(part)
                elif isinstance(part, PageTable):
                    found.tables.append(part)
                elif isinstance(part, Drawing):
                    found.drawings.append(part)
                elif part[0] or not found.facts:
                    found.facts.append((part[0], [part[1]]))
                else:
                    found.facts[-1][1].append(part[1])
            return found

        SECTIONS.append(made)
        return made

    return decorated


def drawing(caption: str, height: float, draw: Callable[..., None], *content: Any) -> Drawing:
    """Draw a figure for a page.

    Args:
        caption: As in `Drawing`.
        height: Height in inches.
        draw: Function that is called with the axes and the content.
        *content: Further arguments of `draw`.
    """
    stream = io.BytesIO()
    with styled_figure(1, 1, (WIDTH, height)) as (figure, axes):
        draw(axes[0, 0], *content)
        with warnings.catch_warnings():
            # The fonts of the reader's browser differ from those that measure the text here.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure.savefig(stream, format="svg", dpi=_DOTS, metadata={"Date": None})
    return Drawing(base64.b64encode(stream.getvalue()).decode(), caption)
