"""`tfbnn info`: what a model file holds."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tfbnn.cli.console import DONE, print_json
from tfbnn.cli.options import add_model_argument, load_model
from tfbnn.data.transforms import Standardize, Transform
from tfbnn.diagnostics.problem import VERDICTS
from tfbnn.diagnostics.wording import counted, megabytes
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.relevance import Relevance, relevance_of
from tfbnn.posterior.stacking.stacking import weighting_note

HELP = "show what a model file holds"
DESCRIPTION = "Show what a model file holds: network, draws, transforms, and where it came from."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints."""
    model = load_model(args)
    if args.json:
        print_json(_contents(model.posterior))
        return DONE
    model.summary()
    print()
    lines = list(_lines(model.posterior))
    if os.path.isfile(args.model):
        lines.insert(1, ("File", megabytes(os.path.getsize(args.model))))
    width = max(len(label) for label, _ in lines) + 2
    for label, text in lines:
        print(f"{label:<{width}}{text}")
    return DONE


def _contents(ensemble: Ensemble) -> dict[str, Any]:
    relevance = _relevance(ensemble)
    return {
        "spec": ensemble.spec.to_json(),
        "coarsened": ensemble.spec.coarsening_note,
        "num_parameters": ensemble.spec.layout.num_parameters,
        "num_chains": ensemble.num_chains,
        "num_results": ensemble.num_results,
        "chain_weights": ensemble.chain_weights,
        "weighting": weighting_note(ensemble),
        "feature_names": ensemble.feature_names,
        "coding": ensemble.coding and ensemble.coding.to_json(),
        "vector_target": ensemble.vector_target,
        "row_noise": ensemble.row_noise,
        "classes": ensemble.classes,
        "x_pipeline": ensemble.x_pipeline.to_json(),
        "y_pipeline": ensemble.y_pipeline.to_json(),
        "relevance": None if relevance is None else asdict(relevance),
        "diagnostics": ensemble.diagnostics,
        "calibration": ensemble.calibration and ensemble.calibration.to_json(),
        "basins": ensemble.basins and ensemble.basins.to_json(),
        "provenance": ensemble.provenance.to_json(),
    }


def _relevance(ensemble: Ensemble) -> Relevance | None:
    return relevance_of(ensemble) if ensemble.spec.priors[0].kernel.per_input else None


def _lines(ensemble: Ensemble) -> Iterator[tuple[str, Any]]:
    """Yields (label, text) of everything but the network."""
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
    if ensemble.basins is not None:
        for number, line in enumerate(ensemble.basins.lines()):
            yield "" if number else "Basins", line
    if ensemble.calibration is not None:
        for number, line in enumerate(ensemble.calibration.lines(ensemble.target_names)):
            yield "" if number else "Calibrated", line
    if ensemble.coding is None:
        yield "Features", ", ".join(ensemble.feature_names or ["names unknown"])
    else:
        yield "Features", ", ".join(map(str, ensemble.coding.columns))
        yield "Inputs", ", ".join(ensemble.coding.input_names)
    yield "Targets", ", ".join(provenance.target_names or ["names unknown"])
    if ensemble.classes is not None:
        yield "Classes", ", ".join(map(str, ensemble.classes))
    for name, pipeline in (("x", ensemble.x_pipeline), ("y", ensemble.y_pipeline)):
        yield f"{name} transform", " -> ".join(map(_step_text, pipeline.steps)) or "none"
    relevance = _relevance(ensemble)
    if relevance is not None:
        for name, scale, low, high in relevance.lines():
            yield "Relevance", f"{name}: {scale:.3g} ({low:.3g} to {high:.3g})"
    if ensemble.diagnostics is not None:
        count = len(ensemble.diagnostics.get("warnings") or ())
        verdict = ensemble.diagnostics.get("verdict")  # earlier releases gave none
        told = f"{verdict}, " if verdict in VERDICTS.values() else ""
        hint = "; see tfbnn diagnose" if count else ""
        yield "Diagnosis", f"{told}{counted(count, 'warning')} after the fit{hint}"
    for number, choice in enumerate(provenance.choices or ()):
        yield "" if number else "Chosen", choice
    for key, value in provenance.to_json().items():
        if key in ("target_names", "compression", "not_sampled", "choices"):
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{name} {_entry_text(entry)}" for name, entry in value.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value)) or None
        if value is not None:
            yield key.replace("_", " "), value


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
