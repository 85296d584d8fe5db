"""Sections of a page: the fit, convergence, predictions, error bars, inputs, and settings."""

from __future__ import annotations

from collections.abc import Iterator

from tfbnn.diagnostics.verdict import MEANINGS, NO_CHAINS, NOT_SAMPLED, answer_lines
from tfbnn.diagnostics.wording import counted, percent
from tfbnn.plots.canvas import Axes, add_legend
from tfbnn.plots.chains import draw_rhats, draw_sizes
from tfbnn.plots.classes import draw_reliability, find_forecasts
from tfbnn.plots.page.content import PageTable, Part, Parts, Verdict, drawing, section
from tfbnn.plots.page.subject import Subject
from tfbnn.plots.predictions import draw_intervals, draw_pulls, draw_tails, draw_truth, find_truths
from tfbnn.plots.slices import draw_relevance, draw_slice
from tfbnn.plots.slicing import Slice, find_slices
from tfbnn.posterior import facts as known
from tfbnn.spec.rows import as_argument
from tfbnn.spec.summary import spec_facts, weight_table

# Limits of the numbers of targets with figures, and of inputs in a figure with their names.
MOST_TARGETS, _MOST_INPUTS = 6, 40
# Smallest share of a slice outside the training inputs that its caption mentions.
_LEAST_OUTSIDE = 0.1
_NO_DRAWS = "The run ended before its first draw: its networks have no error bars."


def verdict(subject: Subject) -> Verdict:
    """Return the verdict on the predictions, with remedies for the problems found."""
    diagnosis, ensemble = subject.diagnosis, subject.ensemble
    if diagnosis is None:
        is_sampled = ensemble.provenance.not_sampled is None
        headline = "no chains to judge" if is_sampled else NOT_SAMPLED
        answers = answer_lines(NO_CHAINS, subject.held_out)
        findings = []
        if subject.advice.is_out_of_time and not is_sampled:
            remedy = subject.advice.more_time()
            findings.append(("Time was over before sampling began", "", remedy))
        return Verdict(headline, f"{ensemble.no_chains}.", answers, findings)
    findings = [
        (problem.what, problem.why, problem.remedy.words(subject.advice))
        for problem in diagnosis.problems
    ]
    answers = answer_lines(diagnosis.chains, diagnosis.predictions)
    return Verdict(diagnosis.verdict, MEANINGS[diagnosis.verdict], answers, findings)


@section("fitted", "What was fitted")
def fitted(subject: Subject) -> Parts:
    """Yield layers, prior, likelihood, transforms, rows, and the settings that were chosen."""
    ensemble, provenance = subject.ensemble, subject.ensemble.provenance
    if provenance.num_training_rows is not None:
        yield "Rows of the fit", str(provenance.num_training_rows)
    yield from known.draw_facts(ensemble)
    yield from (line for line in spec_facts(ensemble.spec) if line[0] != "Transforms")
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
        yield f"{subject.ensemble.no_chains}, so there is no convergence to check."
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
    if ensemble.provenance.is_unfinished or rows is None:
        yield _NO_DRAWS if ensemble.provenance.is_unfinished else _no_rows(subject)
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
        yield "Of classes, probabilities are held against what came true below."
        return
    truths = find_truths(subject.model, rows.x, rows.y, rows.known)
    for truth in truths[:MOST_TARGETS]:
        caption = (
            f"{truth.name}: predicted against true values above, how far predictions are off "
            "below. Points are medians, bars hold the central 68 % of a new observation."
        )
        yield drawing(caption, 4.2, draw_truth, truth, is_double=True)
    yield from _left_out(len(truths))


@section("pulls", "Do error bars and probabilities hold?")
def pulls(subject: Subject) -> Parts:
    """Yield pulls and coverage, or for classes the reliability of the probabilities."""
    if subject.rows is None:
        yield _no_rows(subject)
        return
    if subject.ensemble.spec.has_classes:
        yield "Pulls are of targets that are numbers; of classes, probabilities are to come true."
        found = find_forecasts(subject.model, subject.rows.x, subject.rows.y)
        caption = (
            "How often what is given a probability comes true, with 68 % intervals (Wilson), and how "
            "many rows there are of each probability."
        )
        for one in found[:MOST_TARGETS]:
            yield drawing(caption, 4.2, draw_reliability, one, is_double=True)
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
    yield from lines or ["The error bars are those of the posterior: nothing calibrated them."]


@section("slices", "Predictions along the inputs")
def slices(subject: Subject) -> Parts:
    """Yield predictions along one input at a time."""
    ensemble, rows, ranges = subject.ensemble, subject.rows, subject.ensemble.training_inputs
    if ensemble.provenance.is_unfinished:
        yield _NO_DRAWS
        return
    if not (ranges.high > ranges.low).any():
        yield "All inputs of the fit were constant."
        return
    x, y, noise = (None, None, None) if rows is None else (rows.x, rows.y, rows.known)
    found = find_slices(subject.model, x, y, noise)
    what, others = "inputs", ", the other inputs at their medians"
    if ensemble.coding is not None:
        what = "columns"
        others = ", other columns at their medians, of text and flags at their most frequent values"
    if len(found[0]) < ensemble.num_columns:
        yield f"{len(found[0])} of {ensemble.num_columns} {what} are shown."
    yield from _left_out(len(found))
    for piece in (piece for pieces in found[:MOST_TARGETS] for piece in pieces):
        caption = _slice_caption(piece, others if ensemble.num_columns > 1 else "")
        yield drawing(caption, 3.1, _draw, piece)


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
        "that depend on each other, such as mixings, cannot all be at their medians."
    )


def _draw(axis: Axes, piece: Slice) -> None:
    draw_slice(axis, piece)
    add_legend(axis, num_columns=2)


@section("relevance", "Relevance of the inputs")
def relevance(subject: Subject) -> Parts:
    """Yield a figure of the scales of the inputs."""
    found = known.known_relevance(subject.ensemble)
    if found is None:
        yield "The prior of this model has no scale for each input (ARD), so nothing ranks them."
        return
    count = min(len(found.names), _MOST_INPUTS)
    if count < len(found.names):
        yield f"The first {count} of {counted(len(found.names), 'input')} are shown."
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
    lines: list[Part] = [*known.origin_facts(subject.ensemble)]
    yield from lines or ["The model does not say where it comes from."]


def _no_rows(subject: Subject) -> str:
    return f"This needs rows with known targets: {subject.without_rows}."


def _left_out(num_targets: int) -> Iterator[str]:
    if num_targets > MOST_TARGETS:
        yield f"The first {MOST_TARGETS} of {counted(num_targets, 'target')} are drawn."
