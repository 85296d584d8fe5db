"""Sections that hold predictions against known targets, and show what is predicted between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfbnn.diagnostics.wording import counted, percent
from tfbnn.plots.canvas import add_legend
from tfbnn.plots.classes import draw_reliability, find_forecasts
from tfbnn.plots.coverage import draw_intervals, draw_tails
from tfbnn.plots.page.content import Section, Table
from tfbnn.plots.page.subject import MOST_TARGETS, WIDTH, Grid, Subject, drawing
from tfbnn.plots.predictions import draw_pulls, draw_truth, find_truths
from tfbnn.plots.slices import draw_slice
from tfbnn.plots.slicing import Slice, find_slices
from tfbnn.plots.units import target_quantities
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.score_rows import score_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NO_DRAWS = "The run ended before its first draw: its networks have no error bars."
# The least share of a slice outside the training inputs that its caption tells.
_LEAST_OUTSIDE = 0.1
_TWO = Grid(2, 1, {"height_ratios": [3, 1], "sharex": "col"})


def predictions(subject: Subject) -> Section:
    """Scores, and predictions against targets."""
    anchor, title = "predictions", "Predictions against targets"
    if subject.ensemble.provenance.is_unfinished:
        return Section(anchor, title, [_NO_DRAWS])
    if subject.rows is None:
        return Section(anchor, title, [_no_rows(subject)])
    rows, ensemble = subject.rows, subject.ensemble
    scores = subject.model.evaluate(rows.x, rows.y, noise_scale=rows.noise_scale)
    names = [quantity.text for quantity in target_quantities(ensemble, subject.unit)]
    table = [(row.label, *_across(row.cells, len(names)), row.note) for row in score_rows(scores)]
    source = f"Scores of {rows.source}"
    tables = [Table(source, ("", *names, ""), table)]
    notes = ["Rows that took part in the fit flatter it: judge a model by others."]
    if ensemble.spec.has_classes:
        notes.append("Of classes, probabilities are held against what came true below.")
        return Section(anchor, title, notes, tables=tables)
    truths = find_truths(subject.model, rows.x, rows.y, rows.noise_scale, subject.unit)
    caption = (
        "{}: predicted against true values above, how far predictions are off below. Points are "
        "medians, bars hold the central 68 % of a new observation."
    )
    drawings = [
        drawing(
            f"truth{number}",
            caption.format(truth.quantity.name),
            (WIDTH, 4.2),
            draw_truth,
            truth,
            grid=_TWO,
        )
        for number, truth in enumerate(truths[:MOST_TARGETS])
    ]
    return Section(anchor, title, [*notes, *_left_out(len(truths))], (), tables, drawings)


def pulls(subject: Subject) -> Section:
    """Pulls and coverage, or the reliability of probabilities."""
    if subject.ensemble.spec.has_classes:
        return _reliability(subject)
    anchor, title = "pulls", "Pulls and coverage"
    if subject.rows is None:
        return Section(anchor, title, [_no_rows(subject)])
    scores, quantities = subject.scores, target_quantities(subject.ensemble)
    drawings = [
        drawing(
            f"pulls{number}",
            f"Pulls of {quantity.name}. They follow the standard normal where error bars are right; "
            "a width above 1 means that bars are too short.",
            (WIDTH, 3.1),
            draw_pulls,
            pull,
            quantity,
        )
        for number, (pull, quantity) in enumerate(zip(scores.pull.T, quantities[:MOST_TARGETS]))
    ]
    shown = slice(MOST_TARGETS)
    drawings += [
        drawing(
            "intervals",
            "Share of rows inside central intervals against what these promise.",
            (WIDTH, 4.5),
            draw_intervals,
            scores.pit[:, shown],
            quantities[shown],
        ),
        drawing(
            "tails",
            "Share of rows more than k standard deviations off, with its 68 % interval (Wilson).",
            (WIDTH, 3.4),
            draw_tails,
            scores.pull[:, shown],
            quantities[shown],
        ),
    ]
    return Section(anchor, title, _left_out(len(quantities)), drawings=drawings)


def _reliability(subject: Subject) -> Section:
    anchor, title = "pulls", "Reliability of the probabilities"
    if subject.rows is None:
        return Section(anchor, title, [_no_rows(subject)])
    found = find_forecasts(subject.model, subject.rows.x, subject.rows.y)
    caption = (
        "How often what is given a probability comes true, with 68 % intervals (Wilson), and how many "
        "rows there are of each probability."
    )
    drawings = [
        drawing(
            f"reliability{number}",
            caption,
            (WIDTH, 4.2),
            draw_reliability,
            one,
            grid=_TWO,
        )
        for number, one in enumerate(found[:MOST_TARGETS])
    ]
    note = "Pulls are of targets that are numbers; of classes, probabilities are to come true."
    return Section(anchor, title, [note, *_left_out(len(found))], drawings=drawings)


def slices(subject: Subject) -> Section:
    """Predictions along one input at a time."""
    anchor, title = "slices", "Predictions along the inputs"
    if subject.ensemble.provenance.is_unfinished:
        return Section(anchor, title, [_NO_DRAWS])
    ranges, rows = subject.ensemble.training_inputs, subject.rows
    if not (ranges.high > ranges.low).any():
        return Section(anchor, title, ["All inputs of the fit were constant."])
    x, y, noise = (None, None, None) if rows is None else (rows.x, rows.y, rows.noise_scale)
    found = find_slices(subject.model, x, y, noise, subject.unit)
    num_shown, num_columns = len(found[0]), subject.ensemble.num_columns
    notes = []
    if num_shown < num_columns:
        what = "inputs" if subject.ensemble.coding is None else "columns"
        notes.append(f"{num_shown} of {num_columns} {what} are shown.")
    others = _where_others_are(subject.ensemble)
    drawings = [
        drawing(
            f"slice{number}-{place}",
            f"Predictions of {piece.target.text} {_along(piece)}{others}.{_outside(piece)}",
            (WIDTH, 3.1),
            _draw_slice,
            piece,
        )
        for number, pieces in enumerate(found[:MOST_TARGETS])
        for place, piece in enumerate(pieces)
    ]
    notes += _left_out(len(found))
    return Section(anchor, title, notes, drawings=drawings)


def _along(piece: Slice) -> str:
    """The column of a slice, for its caption."""
    if piece.names is None:
        return f"along {piece.input.text}"
    if not piece.num_left_out:
        return f"at each value of {piece.input.text}"
    return f"at the {len(piece.names)} most frequent values of {piece.input.text}"


def _outside(piece: Slice) -> str:
    """A warning of a slice that leaves the rows, for its caption."""
    if piece.share_outside < _LEAST_OUTSIDE:
        return ""
    return (
        f" {percent(piece.share_outside)} of the line is outside the training inputs: inputs that depend "
        "on each other, such as mixings, cannot all be at their medians."
    )


def _where_others_are(ensemble: Ensemble) -> str:
    """Where a slice holds the other columns, for its caption."""
    if ensemble.num_columns == 1:
        return ""
    if ensemble.coding is None:
        return ", the other inputs at their medians"
    return ", other columns at their medians, of text and flags at their most frequent values"


def _draw_slice(axis: Axes, piece: Slice) -> None:
    draw_slice(axis, piece)
    add_legend(axis, num_columns=2)


def _no_rows(subject: Subject) -> str:
    return f"This needs rows with known targets: {subject.without_rows}."


def _left_out(num_targets: int) -> list[str]:
    if num_targets <= MOST_TARGETS:
        return []
    return [f"The first {MOST_TARGETS} of {counted(num_targets, 'target')} are drawn."]


def _across(cells: list[str], num_targets: int) -> list[str]:
    """Cells of all targets; one of all of them is the first."""
    return [*cells, *[""] * (num_targets - len(cells))]
