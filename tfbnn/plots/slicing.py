"""What is predicted along one input at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.plots.canvas import plain
from tfbnn.plots.units import Quantity, input_quantities, target_quantities
from tfbnn.posterior.checks import checked_inputs, checked_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.relevance import relevance_of
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import evenly_spaced
from tfbnn.system.arrays import Array

_NUM_POINTS = 121
_MAX_INPUTS = 6
_MAX_ROWS = 1000
# How far a slice goes beyond the training rows, as a share of their range: what the network says
# there shows how its error bars grow.
_BEYOND = 0.15
_CENTRAL = (0.16, 0.5, 0.84)


class Curve(NamedTuple):
    """A prediction along one input.

    Attributes:
        label: What it is of.
        function: Quantiles at 16, 50 and 84 % of the function [3, n]; of a class that of its
            probability, with the mean over draws in the middle.
        noisy: Quantiles at 16 and 84 % of a new observation [2, n], or None.
    """

    label: str
    function: Array
    noisy: Array | None


class Slice(NamedTuple):
    """What is predicted along one input, all others at their medians.

    Attributes:
        input, values: The input, and what it is [n].
        ends: Its range in the training rows.
        target: What is predicted.
        label: That, or the probability of a class of it, for an axis.
        curves: One for a target that is a number, one per class otherwise.
        points: (input [N], target [N]) of rows that are drawn as well, or None.
        is_log: Whether input and target are learned as log10.
    """

    input: Quantity
    values: Array
    ends: tuple[float, float]
    target: Quantity
    label: str
    curves: Sequence[Curve]
    points: tuple[Array, Array] | None
    is_log: tuple[bool, bool]


def find_slices(
    model: SampledModel,
    x: ArrayLike | None,
    y: ArrayLike | None,
    noise_scale: ArrayLike | None,
    unit: str | Sequence[str] | None,
) -> list[tuple[Slice, ...]]:
    """What `plot_slices` shows: of each target slices along the inputs."""
    ensemble = model.posterior
    points = None
    if x is None:
        seen = checked_inputs(ensemble, ensemble.x_reference)
    elif y is None:
        seen = checked_inputs(ensemble, x)
    else:
        rows, transformed = checked_rows(ensemble, x, y, noise_scale, "this figure")
        seen = transformed.x
        if ensemble.spec.num_inputs == 1 and not ensemble.spec.has_classes:
            shown = evenly_spaced(len(rows.x), _MAX_ROWS)
            points = rows.x[shown, 0], rows.y[shown]
    centre = np.median(seen, axis=0)
    by_input = [
        _slices_along(model, index, centre, points, unit) for index in _chosen_inputs(ensemble)
    ]
    return list(zip(*by_input))


def _chosen_inputs(ensemble: Ensemble) -> list[int]:
    """Which inputs are shown, in their order."""
    varies = ensemble.training_inputs.high > ensemble.training_inputs.low
    if not varies.any():
        raise ValueError(
            "plot_slices goes along inputs that vary; all inputs of this fit were constant. Look at "
            "plot_truth instead."
        )
    places = np.flatnonzero(varies)
    if len(places) > _MAX_INPUTS and ensemble.spec.priors[0].kernel.per_input:
        order = np.argsort(-relevance_of(ensemble).median[places], kind="stable")
        places = np.sort(places[order[:_MAX_INPUTS]])
    chosen: list[int] = places[:_MAX_INPUTS].tolist()
    return chosen


def _slices_along(
    model: SampledModel,
    index: int,
    centre: Array,
    points: tuple[Array, Array] | None,
    unit: str | Sequence[str] | None,
) -> list[Slice]:
    """Slices of all targets along one input, through a point [D] on the scale the network sees."""
    ensemble = model.posterior
    ranges, pipeline = ensemble.training_inputs, ensemble.x_pipeline
    low, high = ranges.low[index], ranges.high[index]
    margin = _BEYOND * (high - low)
    grid = np.repeat(centre[None], _NUM_POINTS + 2, axis=0)
    grid[:-2, index] = np.linspace(low - margin, high + margin, _NUM_POINTS)
    grid[-2:, index] = low, high
    x = pipeline.inverse(grid)
    values, ends = x[:-2, index], (float(x[-2, index]), float(x[-1, index]))
    is_log = tuple("log10" in steps.names for steps in (pipeline, ensemble.y_pipeline))
    quantity = input_quantities(ensemble)[index]
    return [
        Slice(
            quantity,
            values,
            ends,
            target,
            label,
            curves,
            None if points is None else (points[0], points[1][:, number]),
            (is_log[0], is_log[1]),
        )
        for number, (target, label, curves) in enumerate(_curves(model, x[:-2], unit))
    ]


def _curves(
    model: SampledModel, x: Array, unit: str | Sequence[str] | None
) -> list[tuple[Quantity, str, list[Curve]]]:
    """(target, label, curves) of every target at inputs [n, D]."""
    ensemble = model.posterior
    quantities = target_quantities(ensemble, unit)
    found = model.predict(x, quantiles=_CENTRAL).columns
    function = np.asarray(found.quantiles)
    if ensemble.spec.has_classes:
        function[1] = found.mean
        return _class_curves(ensemble, quantities, function)
    noisy: Sequence[Array | None] = [None] * len(quantities)
    if not ensemble.row_noise:
        ends = model.predict(
            x, include_noise=True, quantiles=(_CENTRAL[0], _CENTRAL[-1]), calibrated=False
        )
        noisy = list(np.moveaxis(np.asarray(ends.columns.quantiles), -1, 0))
    return [
        (quantity, quantity.label, [Curve("median", function[..., number], noisy[number])])
        for number, quantity in enumerate(quantities)
    ]


def _class_curves(
    ensemble: Ensemble, quantities: Sequence[Quantity], function: Array
) -> list[tuple[Quantity, str, list[Curve]]]:
    classes = ensemble.classes or ()
    curves = [Curve("", found, None) for found in np.moveaxis(function, -1, 0)]
    if ensemble.spec.num_predicted == ensemble.spec.num_targets:  # of the second of two
        last = plain(str(classes[-1]))
        return [
            (one, f"probability of {one.symbol} = {last}", [curve._replace(label="mean")])
            for one, curve in zip(quantities, curves)
        ]
    labelled = [curve._replace(label=plain(str(label))) for label, curve in zip(classes, curves)]
    return [(quantities[0], f"probability of {quantities[0].symbol}", labelled)]
