"""Sections of a page: the fit, convergence, predictions, error bars, inputs, and settings."""

from __future__ import annotations

from collections.abc import Iterator

from tfbnn.diagnostics.verdict import MEANINGS, NOT_SAMPLED
from tfbnn.diagnostics.wording import counted, percent
from tfbnn.plots.canvas import Axes
from tfbnn.plots.chains import draw_rhats, draw_sizes
from tfbnn.plots.classes import draw_counts, draw_reliability, find_forecasts
from tfbnn.plots.page.content import PageTable, Part, Parts, Verdict, drawing, section
from tfbnn.plots.page.subject import Subject
from tfbnn.plots.predictions import draw_intervals, draw_pulls, draw_tails, draw_truth, find_truths
from tfbnn.plots.slices import draw_relevance, draw_slice
from tfbnn.plots.slicing import Slice, find_slices, why_no_slices
from tfbnn.posterior import facts as known
from tfbnn.spec.rows import as_argument
from tfbnn.spec.summary import spec_facts, weight_table

# Limits of the numbers of targets with figures, and of inputs in a figure with their names.
MOST_TARGETS, _MOST_INPUTS = 6, 40
# Smallest share of a slice outside the training inputs that its caption mentions.
_LEAST_OUTSIDE = 0.1
_STOPPED = "The run was stopped before sampling began", "", "resume its run folder, or fit again"


def verdict(subject: Subject) -> Verdict:
    """Return the verdict on the predictions, with remedies for the problems found."""
    diagnosis, ensemble = subject.diagnosis, subject.ensemble
    if diagnosis is None:
        answers = (None, str(ensemble.no_chains)), (subject.held_out.ok, subject.held_out.in_short)
        headline = NOT_SAMPLED if ensemble.provenance.not_sampled else "no chains to judge"
        findings = [_STOPPED] if ensemble.provenance.is_unfinished else []
        if subject.advice.is_out_of_time and headline == NOT_SAMPLED:
            findings = [("Time was over before sampling began", "", subject.advice.more_time())]
        return Verdict(headline, MEANINGS.get(headline, ""), answers, findings)
    problems, advice = diagnosis.problems, subject.advice
    findings = [(one.what, one.why, one.remedy.words(advice)) for one in problems]
    chains, found, headline = diagnosis.chains, diagnosis.predictions, diagnosis.verdict
    told = (chains.ok, chains.text), (found.ok, found.in_short)
    return Verdict(headline, MEANINGS[headline], told, findings)


@section("fitted", "What was fitted")
def fitted(subject: Subject) -> Parts:
    """Yield layers, prior, likelihood, transforms, rows, and the settings that were chosen."""
    ensemble, provenance = subject.ensemble, subject.ensemble.provenance
    if provenance.num_training_rows is not None:
        yield "Rows of the fit", str(provenance.num_training_rows)
    # The verdict gives the reason why there are no draws.
    left_out = ("Transforms", "Draws") if provenance.is_unfinished else ("Transforms",)
    lines = (*known.draw_facts(ensemble), *spec_facts(ensemble.spec))
    yield from (line for line in lines if line[0] not in left_out)
    yield from known.column_facts(ensemble)
    yield PageTable("Layers", *weight_table(ensemble.spec))
    chosen = [(choice.what, choice.chosen, choice.why) for choice in provenance.choices or ()]
    if chosen:
        header = ("Setting", "Chosen", "Why")
        yield PageTable("What was “auto”, and what it came to", header, chosen, True)
    else:
        yield "No setting was “auto”, or the file does not say."


@section("convergence", "Convergence")
def convergence(subject: Subject) -> Parts:
    """Yield R-hat and effective sample sizes, those of the function first."""
    diagnosis = subject.diagnosis
    if diagnosis is None:
        yield "There are no chains to compare."
        return
    yield from diagnosis.facts()
    rhats = "R-hat of the predictions at the reference inputs. 1 means that the chains agree."
    yield drawing(rhats, 2.9, draw_rhats, diagnosis)
    sizes = "Effective number of draws behind the predictions there, of all chains together."
    yield drawing(sizes, 2.9, draw_sizes, diagnosis)


@section("predictions", "Predictions against targets")
def predictions(subject: Subject) -> Parts:
    """Yield scores, and figures of predictions against targets."""
    ensemble, rows = subject.ensemble, subject.rows
    if rows is None:
        yield _no_rows(subject)
        return
    yield "Rows that took part in the fit flatter it: judge a model by others."
    scores = subject.model.evaluate(rows.x, rows.y, **as_argument(ensemble.spec, rows.known))
    names = ensemble.target_names
    # A score of all targets is in the first column.
    table = [
        [label, *cells, *[""] * (len(names) - len(cells)), note]
        for label, cells, note in known.score_rows(scores)
    ]
    yield PageTable(f"Scores of {rows.source}", ("", *names, ""), table)
    if ensemble.spec.has_classes:
        yield "The next section compares probabilities with observed shares."
        return
    truths = find_truths(subject.model, rows.x, rows.y, rows.known)
    for truth in truths[:MOST_TARGETS]:
        points = "Points are medians, bars hold the central 68 % of a new observation."
        against = f"Predicted against true values of {truth.name}. {points}"
        yield drawing(against, 3.4, draw_truth, truth)
        off = f"Errors of the predictions of {truth.name}. {points}"
        yield drawing(off, 3.4, draw_truth, truth, True)
    yield from _left_out(len(truths))


@section("pulls", "Do error bars and probabilities hold?")
def pulls(subject: Subject) -> Parts:
    """Yield pulls and coverage, or for classes the reliability of the probabilities."""
    if subject.rows is None:
        yield _no_rows(subject)
        return
    if subject.ensemble.spec.has_classes:
        yield "Pulls are for numeric targets. For classes, probabilities should match observed shares."
        found = find_forecasts(subject.model, subject.rows.x, subject.rows.y)
        caption = (
            "How often what is given a probability comes true, with 68 % intervals (Wilson). Bins of few "
            "rows are small and grey."
        )
        for one in found[:MOST_TARGETS]:
            yield drawing(caption, 3.4, draw_reliability, one)
            yield drawing("Number of rows of each probability.", 3.4, draw_counts, one)
        yield from _left_out(len(found))
        return
    scores, names = subject.scores, subject.ensemble.target_names
    yield from _left_out(len(names))
    names, shown = names[:MOST_TARGETS], slice(MOST_TARGETS)
    for pull, name in zip(scores.pull.T, names):
        caption = (
            f"Pulls of {name}. They follow the standard normal where error bars are right; a "
            "width above 1 means that bars are too short."
        )
        yield drawing(caption, 3.1, draw_pulls, pull, name)
    inside = "Share of rows inside central intervals against what these promise."
    yield drawing(inside, 4.5, draw_intervals, scores.pit[:, shown], names)
    off = "Share of rows more than k standard deviations off, with its 68 % interval (Wilson)."
    yield drawing(off, 3.4, draw_tails, scores.pull[:, shown], names)


@section("calibration", "Calibration of the error bars")
def calibration(subject: Subject) -> Parts:
    """Yield facts on the calibration of the error bars."""
    lines: list[Part] = [*known.calibration_facts(subject.ensemble)]
    yield from lines or ["The error bars are not calibrated."]


@section("slices", "Predictions along the inputs")
def slices(subject: Subject) -> Parts:
    """Yield predictions along one input at a time."""
    ensemble, rows = subject.ensemble, subject.rows
    if reason := why_no_slices(ensemble):
        yield reason
        return
    x, y, noise = (None, None, None) if rows is None else (rows.x, rows.y, rows.known)
    found = find_slices(subject.model, x, y, noise)
    what = "inputs" if ensemble.coding is None else "columns"
    if len(found[0]) < len(ensemble.columns):
        yield f"{len(found[0])} of {len(ensemble.columns)} {what} are shown."
    yield from _left_out(len(found))
    for piece in (piece for pieces in found[:MOST_TARGETS] for piece in pieces):
        others = f", the other {what} {piece.line.held}" if len(ensemble.columns) > 1 else ""
        yield drawing(_slice_caption(piece, others), 3.1, _draw, piece)


def _slice_caption(piece: Slice, others: str) -> str:
    line = piece.line
    along = f"along {line.input}"
    if line.names is not None:
        values = (
            f"the {len(line.names)} most frequent values" if line.num_left_out else "each value"
        )
        along = f"at {values} of {line.input}"
    caption = f"Predictions of {piece.target} {along}{others}."
    if piece.share_outside < _LEAST_OUTSIDE:
        return caption
    return (
        f"{caption} {percent(piece.share_outside)} of the line is outside the training inputs: inputs "
        "that depend on each other, such as mixings, do not vary alone."
    )


def _draw(axis: Axes, piece: Slice) -> None:
    draw_slice(axis, piece)
    axis.figure.legend(loc="outside upper left", ncols=2, fontsize="small", columnspacing=0.8)


@section("relevance", "Relevance of the inputs")
def relevance(subject: Subject) -> Parts:
    """Yield a figure of the scales of the inputs."""
    found = known.known_relevance(subject.ensemble)
    if found is None:
        yield "The prior of this model has no scale for each input (ARD), so nothing ranks them."
        return
    count = min(len(found.names), _MOST_INPUTS)
    if count < len(found.names):
        yield f"The {count} most relevant of {counted(len(found.names), 'input')} are shown."
    caption = (
        "Posterior of each input's scale, the most relevant first: medians and central 68 %. A scale "
        "far below the others' means that the input says little about the targets."
    )
    yield drawing(caption, 0.9 + 0.26 * count, draw_relevance, found)


@section("basins", "Basins")
def basins(subject: Subject) -> Parts:
    """Yield facts on the basins of the chains."""
    finds = "" if subject.interface.is_command_line else "; model.basins() finds them"
    lines: list[Part] = [*known.basin_facts(subject.ensemble)]
    yield from lines or [f"Nothing on basins is stored with the model{finds}."]


@section("settings", "Settings and versions")
def settings(subject: Subject) -> Parts:
    """Yield seeds, settings, versions and hashes."""
    told = ("ended",) if subject.ensemble.provenance.is_unfinished else ()  # by the verdict
    lines: list[Part] = [
        *(one for one in known.origin_facts(subject.ensemble) if one[0] not in told)
    ]
    yield from lines or ["The model does not say where it comes from."]


def _no_rows(subject: Subject) -> str:
    return f"This needs rows with known targets: {subject.without_rows}."


def _left_out(num_targets: int) -> Iterator[str]:
    if num_targets > MOST_TARGETS:
        yield f"The first {MOST_TARGETS} of {counted(num_targets, 'target')} are drawn."
