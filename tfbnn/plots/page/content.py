"""What a page is made of, before it is HTML: text in here is plain, and is escaped by the template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tfbnn.diagnostics.verdict import CALIBRATED, FOR_MEANS, NOT_YET, USABLE


@dataclass(frozen=True)
class Drawing:
    """A figure.

    Attributes:
        svg: Made by `tfbnn.plots.page.svg`, which alone is not escaped again.
        caption: What is to be seen, and what would be good.
    """

    svg: str
    caption: str


@dataclass(frozen=True)
class Table:
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


@dataclass(frozen=True)
class Fact:
    """A label with one line or several."""

    label: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Section:
    """One part of a page.

    Attributes:
        anchor: Its name in links.
        title: Its heading.
        notes: Sentences, among them why something is not there.
        facts, tables, drawings: What there is.
    """

    anchor: str
    title: str
    notes: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    tables: Sequence[Table] = ()
    drawings: Sequence[Drawing] = ()


@dataclass(frozen=True)
class Finding:
    """What is wrong, what it means, and what to do next."""

    what: str
    why: str
    remedy: str


@dataclass(frozen=True)
class Verdict:
    """What the predictions are good for.

    Attributes:
        headline: One of the VERDICTS, or in some words that nothing can be said yet.
        meaning: In a sentence or two.
        answers: The verdicts on chains and predictions, with their labels.
        findings: What is wrong.
    """

    headline: str
    meaning: str
    answers: Sequence[tuple[str, str]] = ()
    findings: Sequence[Finding] = ()

    @property
    def tone(self) -> str:
        """The look of it; the words say the same, for those who see no colours."""
        tones = {USABLE: "good", CALIBRATED: "fair", FOR_MEANS: "fair", NOT_YET: "poor"}
        return tones.get(self.headline, "open")


@dataclass(frozen=True)
class Page:
    """A whole page.

    Attributes:
        title: Name of what it is about.
        subtitle: What that is.
        status: How far it is, of a run that goes on; "" elsewhere.
        verdict: Verdict.
        sections: All others, in their order.
        footer: Where the page comes from.
    """

    title: str
    subtitle: str
    status: str
    verdict: Verdict
    sections: Sequence[Section]
    footer: str


def facts(lines: Iterable[tuple[str, str]]) -> list[Fact]:
    """Facts out of labelled lines; one without a label goes on with the fact above."""
    found: list[tuple[str, list[str]]] = []
    for label, text in lines:
        if label or not found:
            found.append((label, []))
        found[-1][1].append(text)
    return [Fact(label, texts) for label, texts in found]
