"""Draws from the prior and from the prior predictive distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.coding import TEXTS, as_inputs
from tfbnn.data.learn_coding import REFUSE, learn_coding
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import Pipeline, fit_pipeline, unfitted_pipeline
from tfbnn.data.validation import check_integer
from tfbnn.posterior.at_rows import Points, at_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.network_spec import NetworkSpec, draw_parameters
from tfbnn.system.arrays import Array

# Keeps these random streams apart from those of noise and functions, which `at_rows` draws for every row
# and target.
_STREAM = 2**32 - 1


class PriorDraws(NamedTuple):
    """Draws of the prior and their predictions: S draws, N rows, K columns as in `predict`.

    Attributes:
        theta: Parameters [S, P], in the coordinates that are sampled.
        f: Functions [S, N, K], or [S, N] if the target was fitted as [N]; for classes their
            probabilities.
        y: Rows with noise, one for each draw, in the shape of f; for classes class numbers
            [S, N, K].
    """

    theta: Array
    f: Array
    y: Array


def prior_draws(
    spec: NetworkSpec,
    fitted: Ensemble | None,
    x: Any,
    noise_scale: Any,
    num_results: int,
    seed: int,
) -> PriorDraws:
    """Return the PriorDraws of a model; other arguments and errors as in `SampledModel.sample_prior`.

    Args:
        spec: NetworkSpec of the model.
        fitted: Its Ensemble, or None before a fit.
    """
    num_results = check_integer("num_results", num_results, minimum=1)
    seed = check_integer("seed", seed, minimum=0)
    if spec.earlier is not None:
        raise ValueError(
            "sample_prior needs priors of layers, received FromPosterior. Use predict_draws of that fit."
        )
    generators = [np.random.default_rng([seed, draw, _STREAM]) for draw in range(num_results)]
    theta = np.stack([draw_parameters(spec, one) for one in generators]).astype(spec.dtype)
    ensemble = replace((fitted or _unfitted(spec, x)).with_draws(theta[None]), given=None)
    points = Points.checked(ensemble, x, None, noise_scale, "sample_prior")
    functions, observations, _ = at_rows(ensemble, points, False, seed, "a smaller num_results")
    shaped = (ensemble.as_fitted(values[0]) for values in (functions, observations))
    return PriorDraws(theta, *shaped)


def _unfitted(spec: NetworkSpec, x: Any) -> Ensemble:
    """Return the ensemble of an unfitted model, without draws."""
    coding = learn_coding(x, "x", REFUSE)
    if coding is not None and any(column.kind == TEXTS for column in coding.columns):
        raise TypeError("sample_prior before a fit needs numbers in x, received text. Fit first.")
    inputs = as_inputs(spec.flat_inputs(x), "x", spec.num_inputs, None)
    x_pipeline = fit_pipeline(spec.x_transform, inputs.values, "x", inputs.names)
    y_pipeline = None if spec.is_open else unfitted_pipeline(spec.y_transform)
    return Ensemble(
        spec=spec,
        x_pipeline=x_pipeline,
        y_pipeline=Pipeline() if y_pipeline is None else y_pipeline,
        draws=np.empty((1, 0, spec.num_parameters), spec.dtype),
        sample_stats={},
        chain_weights=np.ones(1),
        x_reference=inputs.values,
        training_inputs=summarise_inputs(x_pipeline.forward(inputs.values)),
        feature_names=inputs.names,
        classes=tuple(range(spec.num_classes)) if spec.has_classes else None,
    )
