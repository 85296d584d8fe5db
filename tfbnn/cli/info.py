"""Show the contents of a model file: network, draws, transforms and origin."""

import argparse
import os
from dataclasses import asdict
from typing import Any

from tfbnn.cli.arguments import JsonOptions, ModelOptions, load_model
from tfbnn.cli.console import DONE, print_json
from tfbnn.diagnostics.verdict import EARLIER, VERDICTS, Chains, Predictions, answer_lines
from tfbnn.diagnostics.wording import Facts, counted, megabytes
from tfbnn.posterior import facts
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.stacking import weighting_note

# Attributes of an ensemble that go into the JSON unchanged, and those in the form that files have.
_PLAIN = (
    *("num_chains", "num_results", "chain_weights", "feature_names", "vector_target", "row_noise"),
    *("classes", "diagnostics"),
)
_STORED = ("coding", "x_pipeline", "y_pipeline", "calibration", "basins", "provenance")


class Options(JsonOptions, ModelOptions):
    """Options of the command."""


def run(args: argparse.Namespace) -> int:
    """Print the contents."""
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
    relevance = facts.known_relevance(ensemble)
    stored = {name: getattr(ensemble, name) for name in _STORED}
    return {
        "spec": ensemble.spec.to_json(),
        "coarsened": ensemble.spec.coarsening_note,
        "num_parameters": ensemble.spec.layout.num_parameters,
        "weighting": weighting_note(ensemble),
        "relevance": None if relevance is None else asdict(relevance),
        **{name: getattr(ensemble, name) for name in _PLAIN},
        **{name: part and part.to_json() for name, part in stored.items()},
    }


def _lines(ensemble: Ensemble) -> Facts:
    """Yield (label, text) of everything except the network."""
    yield from facts.draw_facts(ensemble)
    yield from facts.basin_facts(ensemble)
    yield from facts.calibration_facts(ensemble)
    yield from facts.column_facts(ensemble)
    relevance = facts.known_relevance(ensemble)
    if relevance is not None:
        for name, scale, low, high in relevance.lines():
            yield "Relevance", f"{name}: {scale:.3g} ({low:.3g} to {high:.3g})"
    if ensemble.diagnostics is not None:
        count = len(ensemble.diagnostics.get("warnings") or ())
        verdict = str(ensemble.diagnostics.get("verdict"))  # earlier releases gave none
        verdict = EARLIER.get(verdict, verdict)
        told = f"{verdict}, " if verdict in VERDICTS else ""
        hint = "; see tfbnn diagnose" if count else ""
        yield "Diagnosis", f"{told}{counted(count, 'warning')} after the fit{hint}"
        chains = Chains.from_json(ensemble.diagnostics.get("chains"))
        if chains is not None:
            predictions = Predictions.from_json(ensemble.diagnostics.get("predictions"))
            yield from answer_lines(chains, predictions)
    yield from facts.choice_facts(ensemble)
    yield from facts.origin_facts(ensemble)
