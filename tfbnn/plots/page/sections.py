"""The sections of a page: what was fitted, whether chains agree, predictions, and where it is from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfbnn.diagnostics.verdict import MEANINGS, NO_CHAINS, NOT_SAMPLED, answer_lines
from tfbnn.diagnostics.wording import counted, percent
from tfbnn.plots.canvas import add_legend, target_quantities
from tfbnn.plots.chains import draw_rhats, draw_sizes
from tfbnn.plots.classes import draw_reliability, find_forecasts
from tfbnn.plots.page.content import Finding, Section, Table, Verdict, drawing, facts
from tfbnn.plots.page.subject import Subject
from tfbnn.plots.predictions import (
    draw_intervals,
    draw_pulls,
    draw_tails,
    draw_truth,
    find_truths,
)
from tfbnn.plots.slices import draw_relevance, draw_slice
from tfbnn.plots.slicing import Slice, find_slices
from tfbnn.posterior import facts as known
from tfbnn.spec.summary import spec_facts, weight_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Figures of further targets, and inputs in a figure that names them, are left out.
MOST_TARGETS, _MOST_INPUTS = 6, 40
# The least share of a slice outside the training inputs that its caption tells.
_LEAST_OUTSIDE = 0.1
_NO_DRAWS = "The run ended before its first draw: its networks have no error bars."


def verdict(subject: Subject) -> Verdict:
    """What the predictions are good for, and what to do next."""
    diagnosis, ensemble = subject.diagnosis, subject.ensemble
    if diagnosis is None:
        is_sampled = ensemble.provenance.not_sampled is None
        headline = "no chains to judge" if is_sampled else NOT_SAMPLED
        answers = answer_lines(NO_CHAINS, subject.held_out)
        findings = []
        if subject.advice.is_out_of_time and not is_sampled:
            remedy = subject.advice.more_time()
            findings.append(Finding("Time was over before sampling began", "", remedy))
        return Verdict(headline, f"{ensemble.no_chains}.", answers, findings)
    findings = [
        Finding(problem.what, problem.why, problem.remedy.words(subject.advice))
        for problem in diagnosis.problems
    ]
    answers = answer_lines(diagnosis.chains, diagnosis.predictions)
    return Verdict(diagnosis.verdict, MEANINGS[diagnosis.verdict], answers, findings)


def fitted(subject: Subject) -> Section:
    """Layers, prior, likelihood, transforms, rows, and what was chosen."""
    ensemble = subject.ensemble
    provenance = ensemble.provenance
    lines = []
    if provenance.num_training_rows is not None:
        lines.append(("Rows of the fit", str(provenance.num_training_rows)))
    lines += [
        *known.draw_facts(ensemble),
        *((label, text) for label, text in spec_facts(ensemble.spec) if label != "Transforms"),
        *known.column_facts(ensemble),
    ]
    tables = [Table("Layers", *weight_table(ensemble.spec))]
    notes = ["No setting was “auto”, or the file does not say."]
    if provenance.choices:
        chosen = [(choice.what, choice.chosen, choice.why) for choice in provenance.choices]
        header = ("Setting", "Chosen", "Why")
        tables.append(Table("What was “auto”, and what it came to", header, chosen, True))
        notes = []
    return Section("fitted", "What was fitted", notes, facts(lines), tables)


def convergence(subject: Subject) -> Section:
    """R-hat and effective sample sizes, of the function first."""
    anchor, title = "convergence", "Convergence"
    diagnosis = subject.diagnosis
    if diagnosis is None:
        return Section(anchor, title, [f"{subject.ensemble.no_chains}: nothing can converge."])
    rhats = "R-hat of the predictions at the reference inputs. 1 means that the chains agree."
    sizes = "Effective number of draws behind the predictions there, of all chains together."
    drawings = [
        drawing(rhats, 2.9, draw_rhats, diagnosis),
        drawing(sizes, 2.9, draw_sizes, diagnosis),
    ]
    return Section(anchor, title, (), facts(diagnosis.facts()), (), drawings)


def predictions(subject: Subject) -> Section:
    """Scores, and predictions against targets."""
    anchor, title = "predictions", "Predictions against targets"
    if subject.ensemble.provenance.is_unfinished:
        return Section(anchor, title, [_NO_DRAWS])
    if subject.rows is None:
        return Section(anchor, title, [_no_rows(subject)])
    rows, ensemble = subject.rows, subject.ensemble
    scores = subject.model.evaluate(rows.x, rows.y, noise_scale=rows.noise_scale)
    names = [quantity.text for quantity in target_quantities(ensemble)]
    # A score of all targets is in the first column.
    table = [
        [row.label, *row.cells, *[""] * (len(names) - len(row.cells)), row.note]
        for row in known.score_rows(scores)
    ]
    tables = [Table(f"Scores of {rows.source}", ("", *names, ""), table)]
    notes = ["Rows that took part in the fit flatter it: judge a model by others."]
    if ensemble.spec.has_classes:
        notes.append("Of classes, probabilities are held against what came true below.")
        return Section(anchor, title, notes, tables=tables)
    truths = find_truths(subject.model, rows.x, rows.y, rows.noise_scale)
    caption = (
        "{}: predicted against true values above, how far predictions are off below. Points are "
        "medians, bars hold the central 68 % of a new observation."
    )
    drawings = [
        drawing(caption.format(truth.quantity.name), 4.2, draw_truth, truth, is_double=True)
        for truth in truths[:MOST_TARGETS]
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
    caption = (
        "Pulls of {}. They follow the standard normal where error bars are right; a width above 1 "
        "means that bars are too short."
    )
    drawings = [
        drawing(caption.format(quantity.name), 3.1, draw_pulls, pull, quantity)
        for pull, quantity in zip(scores.pull.T, quantities[:MOST_TARGETS])
    ]
    shown = slice(MOST_TARGETS)
    inside = "Share of rows inside central intervals against what these promise."
    drawings.append(drawing(inside, 4.5, draw_intervals, scores.pit[:, shown], quantities[shown]))
    off = "Share of rows more than k standard deviations off, with its 68 % interval (Wilson)."
    drawings.append(drawing(off, 3.4, draw_tails, scores.pull[:, shown], quantities[shown]))
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
        drawing(caption, 4.2, draw_reliability, one, is_double=True) for one in found[:MOST_TARGETS]
    ]
    note = "Pulls are of targets that are numbers; of classes, probabilities are to come true."
    return Section(anchor, title, [note, *_left_out(len(found))], drawings=drawings)


def calibration(subject: Subject) -> Section:
    """What calibrated the error bars."""
    lines = facts(known.calibration_facts(subject.ensemble))
    notes = [] if lines else ["The error bars are those of the posterior: nothing calibrated them."]
    return Section("calibration", "Calibration of the error bars", notes, lines)


def slices(subject: Subject) -> Section:
    """Predictions along one input at a time."""
    anchor, title, ensemble = "slices", "Predictions along the inputs", subject.ensemble
    if ensemble.provenance.is_unfinished:
        return Section(anchor, title, [_NO_DRAWS])
    ranges, rows = ensemble.training_inputs, subject.rows
    if not (ranges.high > ranges.low).any():
        return Section(anchor, title, ["All inputs of the fit were constant."])
    x, y, noise = (None, None, None) if rows is None else (rows.x, rows.y, rows.noise_scale)
    found = find_slices(subject.model, x, y, noise)
    notes = _left_out(len(found))
    what, others = "inputs", ", the other inputs at their medians"
    if ensemble.coding is not None:
        what = "columns"
        others = ", other columns at their medians, of text and flags at their most frequent values"
    if len(found[0]) < ensemble.num_columns:
        notes.insert(0, f"{len(found[0])} of {ensemble.num_columns} {what} are shown.")
    drawings = [
        drawing(
            _slice_caption(piece, others if ensemble.num_columns > 1 else ""), 3.1, _draw, piece
        )
        for pieces in found[:MOST_TARGETS]
        for piece in pieces
    ]
    return Section(anchor, title, notes, drawings=drawings)


def _slice_caption(piece: Slice, others: str) -> str:
    along = f"along {piece.input.text}"
    if piece.names is not None:
        values = (
            f"the {len(piece.names)} most frequent values" if piece.num_left_out else "each value"
        )
        along = f"at {values} of {piece.input.text}"
    caption = f"Predictions of {piece.target.text} {along}{others}."
    if piece.share_outside < _LEAST_OUTSIDE:
        return caption
    return (
        f"{caption} {percent(piece.share_outside)} of the line is outside the training inputs: inputs "
        "that depend on each other, such as mixings, cannot all be at their medians."
    )


def _draw(axis: Axes, piece: Slice) -> None:
    draw_slice(axis, piece)
    add_legend(axis, num_columns=2)


def relevance(subject: Subject) -> Section:
    """The scales of the inputs."""
    anchor, title = "relevance", "Relevance of the inputs"
    found = known.known_relevance(subject.ensemble)
    if found is None:
        note = "The prior of this model has no scale for each input (ARD), so nothing ranks them."
        return Section(anchor, title, [note])
    caption = (
        "Posterior of each input's scale, the most relevant first: medians and central 68 %. A scale "
        "far below the others' means that the input says little about the targets."
    )
    count = min(len(found.names), _MOST_INPUTS)
    notes = []
    if count < len(found.names):
        notes.append(f"The first {count} of {counted(len(found.names), 'input')} are shown.")
    figure = drawing(caption, 0.9 + 0.26 * count, draw_relevance, found)
    return Section(anchor, title, notes, drawings=[figure])


def basins(subject: Subject) -> Section:
    """Where the chains are."""
    lines = facts(known.basin_facts(subject.ensemble))
    finds = "" if subject.interface.is_command_line else "; model.basins() finds them"
    notes = [] if lines else [f"Nothing on basins is stored with the model{finds}."]
    return Section("basins", "Basins", notes, lines)


def settings(subject: Subject) -> Section:
    """Seeds, settings, versions and hashes."""
    lines = facts(known.origin_facts(subject.ensemble))
    notes = [] if lines else ["The model does not say where it comes from."]
    return Section("settings", "Settings and versions", notes, lines)


def _no_rows(subject: Subject) -> str:
    return f"This needs rows with known targets: {subject.without_rows}."


def _left_out(num_targets: int) -> list[str]:
    if num_targets <= MOST_TARGETS:
        return []
    return [f"The first {MOST_TARGETS} of {counted(num_targets, 'target')} are drawn."]
