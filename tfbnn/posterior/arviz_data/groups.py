"""The groups of ArviZ data: which variables are where, and what stands by them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tfbnn.posterior.arviz_data.at_rows import AtRows, Points
from tfbnn.posterior.arviz_data.variables import (
    SAMPLE,
    Variable,
    Variables,
    parameter_variables,
    prediction_side,
)
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.stacking.stacking import weighting_note
from tfbnn.system.arrays import Array

_ROW = "row"


@dataclass
class Group:
    """Variables, and what is said of all of them."""

    variables: Variables
    attributes: dict[str, Any] = field(default_factory=dict)


Groups = dict[str, Group]


def groups_of_draws(ensemble: Ensemble) -> Groups:
    """posterior, and sample_stats where there are some: not of draws that were chosen."""
    groups = {"posterior": Group(parameter_variables(ensemble), _origin(ensemble))}
    statistics = {
        name: Variable(SAMPLE, values, "") for name, values in ensemble.sample_stats.items()
    }
    return groups | ({"sample_stats": Group(statistics)} if statistics else {})


def add_rows(groups: Groups, ensemble: Ensemble, points: Points, found: AtRows) -> None:
    """Adds rows, and what the draws say of them, under the names that ArviZ has for it.

    Args:
        groups: Those of the draws; their posterior gains the function at the rows.
        ensemble: Ensemble.
        points: The rows.
        found: What was found there.
    """
    side = prediction_side(ensemble)
    name, what = "f", "prediction without noise, original units"
    if ensemble.spec.has_classes:
        name, what = "probability", "of the second label or of each class"
    groups["posterior"].variables[name] = _of_columns(found.function, side, what)
    what = "class numbers" if ensemble.spec.has_classes else "original units"
    what = f"{', '.join(ensemble.target_names)}: {what}"
    observations = _of_columns(found.observations, "target", what)
    noisy = Group({"y": observations}, {"calibrated": _calibration_text(ensemble)})
    constants = {"x": Variable((_ROW, "feature"), points.x, "inputs")}
    if points.noise is not None:
        scale = _of_columns(points.noise, "target", "known standard deviations", sample=())
        constants["noise_scale"] = scale
    if points.rows is None:
        groups |= {"predictions": noisy, "predictions_constant_data": Group(constants)}
        return
    groups["posterior_predictive"] = noisy
    if found.log_likelihood is not None:
        density = "log density of the targets of each row together, original units"
        variable = Variable((*SAMPLE, _ROW), found.log_likelihood, density)
        groups["log_likelihood"] = Group({"y": variable})
    y = points.rows.y.astype(int) if ensemble.spec.has_classes else points.rows.y
    groups["observed_data"] = Group({"y": _of_columns(y, "target", what, sample=())})
    if ensemble.classes is not None:
        groups["observed_data"].attributes["classes"] = list(map(str, ensemble.classes))
    groups["constant_data"] = Group(constants)


def _of_columns(
    values: Array, side: str, description: str, sample: tuple[str, ...] = SAMPLE
) -> Variable:
    """A variable of values [..., N, columns]; a single column needs no dimension."""
    if values.shape[-1] == 1:
        return Variable((*sample, _ROW), values[..., 0], description)
    return Variable((*sample, _ROW, side), values, description)


def _calibration_text(ensemble: Ensemble) -> str:
    if ensemble.calibration is None:
        return "no: the model has no calibration"
    return (
        "no: draws of the posterior predictive distribution as it is. Those of "
        f"predict(include_noise=True) are calibrated: {ensemble.calibration.in_short}"
    )


def _origin(ensemble: Ensemble) -> dict[str, Any]:
    """Where the draws come from, as attributes that a netCDF file can hold."""
    spec, origin = ensemble.spec, ensemble.provenance
    said = {
        "kernel": origin.kernel,
        "seed": origin.seed,
        "num_burnin_steps": origin.num_burnin_steps,
        "num_steps_between_results": origin.num_steps_between_results,
        "warmup": "its draws are not kept",
        "ended": origin.ended,
        "not_sampled": origin.not_sampled,
        "biased": origin.bias,
        "coarsened": spec.coarsening_note,
        "compressed": None if origin.compression is None else origin.compression.method,
        "calibration": None if ensemble.calibration is None else ensemble.calibration.in_short,
        "chain_weights": ensemble.chain_weights.tolist(),
        "weighting": weighting_note(ensemble),
        "initial_state": origin.initial_state,
        "num_training_rows": origin.num_training_rows,
        "data_sha256": origin.data_sha256,
        "created_at": origin.created_at,
        "versions": None if origin.versions is None else json.dumps(origin.versions),
        "model": json.dumps(spec.to_json()),
    }
    return {name: value for name, value in said.items() if value is not None}
