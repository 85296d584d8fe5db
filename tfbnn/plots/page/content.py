"""Parts of a report page before they become HTML. Their text is plain; the template escapes it."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from tfbnn.diagnostics.verdict import CALIBRATED, FOR_MEANS, NOT_YET, USABLE
from tfbnn.plots.canvas import styled_figure
from tfbnn.plots.page.subject import Subject

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
