"""What is known of a model, in labelled lines: for `tfbnn info`, and for pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from tfbnn.data.transforms import Standardize, Transform
from tfbnn.diagnostics.wording import counted
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.relevance import Relevance, relevance_of, scales_of_inputs
from tfbnn.posterior.stacking.stacking import weighting_note

# (label, text); a line that goes on with the one above has the label "".
Facts: TypeAlias = Iterator[tuple[str, str]]
# Entries of the provenance that have facts of their own.
_TOLD_APART = ("target_names", "compression", "not_sampled", "choices")


def draw_facts(ensemble: Ensemble) -> Facts:
    """How many draws there are, and what they are."""
    provenance = ensemble.provenance
    yield "Draws", _draws_text(ensemble)
    if provenance.not_sampled is not None:
        yield "Not sampled", provenance.not_sampled
    if ensemble.spec.coarsening_note is not None:
        yield "Coarsened", ensemble.spec.coarsening_note
    if provenance.compression is not None:
        yield "Compressed", provenance.compression.choice
    note = weighting_note(ensemble)
    if note is not None:
        yield "Chains", note


def basin_facts(ensemble: Ensemble) -> Facts:
    """Where the chains are, if that is stored."""
    if ensemble.basins is not None:
        for number, line in enumerate(ensemble.basins.lines()):
            yield "" if number else "Basins", line


def calibration_facts(ensemble: Ensemble) -> Facts:
    """What calibrated the error bars, if anything did."""
    if ensemble.calibration is not None:
        for number, line in enumerate(ensemble.calibration.lines(ensemble.target_names)):
            yield "" if number else "Calibrated", line


def column_facts(ensemble: Ensemble) -> Facts:
    """Inputs, targets, classes and transforms."""
    if ensemble.coding is None:
        yield "Features", ", ".join(ensemble.feature_names or ["names unknown"])
    else:
        yield "Features", ", ".join(map(str, ensemble.coding.columns))
        yield "Inputs", ", ".join(ensemble.coding.input_names)
    yield "Targets", ", ".join(ensemble.provenance.target_names or ["names unknown"])
    if ensemble.classes is not None:
        yield "Classes", ", ".join(map(str, ensemble.classes))
    for name, pipeline in (("x", ensemble.x_pipeline), ("y", ensemble.y_pipeline)):
        yield f"{name} transform", " -> ".join(map(_step_text, pipeline.steps)) or "none"


def known_relevance(ensemble: Ensemble) -> Relevance | None:
    """The relevance of the inputs where the prior has a scale for each."""
    return None if scales_of_inputs(ensemble.spec) is None else relevance_of(ensemble)


def choice_facts(ensemble: Ensemble) -> Facts:
    """What was "auto", what it came to, and why."""
    for number, choice in enumerate(ensemble.provenance.choices or ()):
        yield "" if number else "Chosen", str(choice)


def origin_facts(ensemble: Ensemble) -> Facts:
    """Settings, seeds, versions and hashes."""
    for key, value in ensemble.provenance.to_json().items():
        if key in _TOLD_APART:
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{name} {_entry_text(entry)}" for name, entry in value.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value)) or None
        if value is not None:
            yield key.replace("_", " "), str(value)


def _draws_text(ensemble: Ensemble) -> str:
    if ensemble.mode is not None:
        return f"{ensemble.num_draws} of a normal distribution around one network"
    if ensemble.provenance.not_sampled is not None:
        return f"none, but {counted(ensemble.num_draws, 'network')}"
    return f"{ensemble.num_chains} chains x {ensemble.num_results}"


def _entry_text(entry: Any) -> str:
    if isinstance(entry, dict):
        return " ".join(f"{name} {_entry_text(value)}" for name, value in entry.items())
    return f"{entry:.6g}" if isinstance(entry, float) else str(entry)


def _step_text(step: Transform) -> str:
    if not isinstance(step, Standardize):
        return step.name
    means, scales = (", ".join(f"{v:.4g}" for v in values) for values in (step.mean, step.scale))
    return f"standardize (mean {means}; scale {scales})"
