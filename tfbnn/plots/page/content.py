"""The parts of a page before they are HTML. Their text is plain; the template escapes it."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfbnn.diagnostics.verdict import CALIBRATED, FOR_MEANS, NOT_YET, USABLE
from tfbnn.plots.canvas import DOUBLE, styled_figure
from tfbnn.plots.page.subject import Subject

# Width of a figure with one column, which a phone shows at about its own size, in inches.
WIDTH = 4.2
# Resolution of images inside a figure, in dots per inch.
_DOTS = 200


class Drawing(NamedTuple):
    """A figure.

    Attributes:
        svg: The figure in SVG, as base64.
        caption: What is to be seen, and what would be good; screen readers say it as well.
    """

    svg: str
    caption: str


class PageTable(NamedTuple):
    """Cells with a header; the first cell of a row is its name.

    Attributes:
        caption: What it is.
        header, rows: Its cells.
        is_prose: Whether cells are sentences, which stand one below the other on a narrow screen.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_prose: bool = False


class Section(NamedTuple):
    """One part of a page.

    Attributes:
        anchor: Its name in links.
        title: Its heading.
        notes: Sentences, among them why something is not there.
        facts: Labels, each with its lines.
        tables, drawings: What else there is.
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
        headline: One of the VERDICTS, or in some words that nothing can be said yet.
        meaning: In a sentence or two.
        answers: The verdicts on chains and predictions, with their labels.
        findings: What is wrong, what it means, and what to do next, of each.
    """

    headline: str
    meaning: str
    answers: Sequence[tuple[str, str]] = ()
    findings: Sequence[tuple[str, str, str]] = ()

    @property
    def tone(self) -> str:
        """The look of it; the words say the same, for those who see no colours."""
        tones = {USABLE: "good", CALIBRATED: "fair", FOR_MEANS: "fair", NOT_YET: "poor"}
        return tones.get(self.headline, "open")


class Page(NamedTuple):
    """A whole page: its title, what that is, the verdict, and all other sections in their order."""

    title: str
    subtitle: str
    verdict: Verdict
    sections: Sequence[Section]


# What a section yields, in any order: notes, labelled lines, tables and drawings. A line without a label
# goes on with the one above.
Part: TypeAlias = str | tuple[str, str] | PageTable | Drawing
Parts: TypeAlias = Iterator[Part]


# What makes the sections of a page, in their order.
Maker: TypeAlias = Callable[[Subject], Section]
SECTIONS: list[Maker] = []


def section(anchor: str, title: str) -> Callable[[Callable[[Subject], Parts]], Maker]:
    """Decorate a function that yields the parts of a section: every page has it from then on."""

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


def drawing(
    caption: str, height: float, draw: Callable[..., None], *content: Any, is_double: bool = False
) -> Drawing:
    """Draw a figure for a page.

    Args:
        caption: As in `Drawing`.
        height: In inches.
        draw: Called with the axes, or with two, one above the other, and with content.
        *content: What is drawn.
        is_double: Whether there are two axes.
    """
    options = DOUBLE if is_double else {}
    num_rows, stream = 1 + is_double, io.BytesIO()
    with styled_figure(num_rows, 1, (WIDTH, height / num_rows), **options) as (figure, axes):
        draw(np.squeeze(axes)[()], *content)
        with warnings.catch_warnings():
            # The fonts of the reader's browser are others than those that measure the text here.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure.savefig(stream, format="svg", dpi=_DOTS, metadata={"Date": None})
    return Drawing(base64.b64encode(stream.getvalue()).decode(), caption)
