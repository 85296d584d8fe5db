"""Sections on the model: what it is good for, what was fitted, where it comes from."""

from __future__ import annotations

from tfbnn.diagnostics.verdict import MEANINGS, NO_CHAINS, NOT_SAMPLED, answer_lines
from tfbnn.diagnostics.wording import counted
from tfbnn.plots.inputs import draw_relevance
from tfbnn.plots.page.content import Finding, Section, Table, Verdict, facts
from tfbnn.plots.page.subject import WIDTH, Subject, drawing
from tfbnn.posterior import facts as known
from tfbnn.spec.summary import spec_facts, weight_table

# Inputs of a page that names them.
_MOST_INPUTS = 40


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
    choices = provenance.choices or ()
    tables = [Table("Layers", *weight_table(ensemble.spec))]
    if choices:
        chosen = [(choice.what, choice.chosen, choice.why) for choice in choices]
        header = ("Setting", "Chosen", "Why")
        tables.append(Table("What was “auto”, and what it came to", header, chosen, True))
    notes = [] if choices else ["No setting was “auto”, or the file does not say."]
    return Section("fitted", "What was fitted", notes, facts(lines), tables)


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
    figure = drawing(
        "relevance",
        caption,
        (WIDTH, 0.9 + 0.26 * count),
        draw_relevance,
        found,
    )
    return Section(anchor, title, notes, drawings=[figure])


def calibration(subject: Subject) -> Section:
    """What calibrated the error bars."""
    lines = facts(known.calibration_facts(subject.ensemble))
    notes = [] if lines else ["The error bars are those of the posterior: nothing calibrated them."]
    return Section("calibration", "Calibration of the error bars", notes, lines)


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
