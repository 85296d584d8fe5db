"""Derivatives of predictions with respect to the inputs, with NumPy alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.posterior.averages import moments
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.process_predictions import process_gradients
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array, row_slices, with_ones
from tfbnn.system.threads import on_all_cores

# Most numbers in the widest array of a tile of rows.
_TILE_VALUES = 2_000_000


class Gradient(NamedTuple):
    """Derivatives of the mean prediction with respect to every input, and their spread over the draws.

    Attributes:
        mean: [N, K, D], or [N, D] if the target was fitted as [N].
        stddev: The same shape.
    """

    mean: Array
    stddev: Array


def gradient_of_model(ensemble: Ensemble, x: Array) -> Gradient:
    """Compute the Gradient of a model in original units, in the shape of its target.

    Args:
        ensemble: Ensemble.
        x: Transformed inputs [N, D].
    """
    ensemble = ensemble.for_averages
    spec = ensemble.spec
    is_infinite = isinstance(spec, InfiniteSpec)
    if is_infinite:
        ensemble.conditioned_draws  # noqa: B018 - as below
    if isinstance(spec, ModelSpec):
        ensemble.effective_weights  # noqa: B018 - cached now, or every thread would compute them
    shape = (len(x), spec.num_predicted, spec.num_inputs)
    mean, stddev = np.empty(shape), np.empty(shape)

    def summarise(rows: slice) -> None:
        slopes, variances = (
            process_gradients(ensemble, x[rows])
            if is_infinite
            else (_of_draws(ensemble, x[rows]), np.zeros((ensemble.num_draws, 1, 1, 1)))
        )
        inputs = ensemble.x_pipeline.derivative(ensemble.x_pipeline.inverse(x[rows]))[:, None]
        mean[rows], between = moments(slopes * inputs, ensemble.draw_weights)
        within = np.einsum("s,snkd->nkd", ensemble.draw_weights, variances) * np.square(inputs)
        stddev[rows] = np.hypot(between, np.sqrt(within))

    # The widest array has an entry per draw, row, output and unit of a layer.
    step = max(1, _TILE_VALUES // (ensemble.num_draws * spec.num_outputs * spec.network.widest))
    if ensemble.given is not None:  # or per row, row of the fit and input
        step = max(1, min(step, _TILE_VALUES // (len(ensemble.given.x) * spec.num_inputs)))
    on_all_cores(summarise, row_slices(len(x), step))
    if ensemble.vector_target and spec.num_predicted == 1:
        return Gradient(mean[:, 0], stddev[:, 0])
    return Gradient(mean, stddev)


def _of_draws(ensemble: Ensemble, x: Array) -> Array:
    """Compute the derivatives of all draws' predictions in transformed inputs x [n, D]: [M, n, K, D].

    Predictions are in original units.
    """
    likelihood, pipeline = ensemble.spec.likelihood, ensemble.y_pipeline
    outputs, slopes = network_gradients(ensemble, x)
    linked = likelihood.inverse_link(likelihood.location(outputs))
    # The link takes outputs up to a common shift, which a softmax does not see: [M, n, D, K].
    slopes = slopes[..., : ensemble.spec.num_predicted]
    tangents = likelihood.link_tangent(linked[:, :, None], slopes)
    by_inputs = tangents / pipeline.derivative(pipeline.inverse(linked))[:, :, None]
    return np.moveaxis(by_inputs, 3, 2)


def network_gradients(ensemble: Ensemble, x: Array) -> tuple[Array, Array]:
    """Compute outputs [M, n, K] and derivatives [M, n, D, K] of M networks at transformed x [n, D].

    The pass runs backwards from the outputs, of which there are fewer than inputs, in the dtype of
    the spec.
    """
    if not isinstance(ensemble.spec, ModelSpec):
        from tfbnn.engine.export.tensorflow_forward import input_gradients

        return input_gradients(ensemble, x)
    spec, weights = ensemble.spec, ensemble.effective_weights
    ones = np.ones((1, len(x)), spec.dtype)
    received, slopes = with_ones(x.T, spec.dtype), []
    for name, kernel in zip(spec.activations, weights):
        sums = np.matmul(kernel, received)
        slopes.append(ACTIVATIONS[name].derivative(sums))
        hidden = ACTIVATIONS[name].numpy(sums)
        received = np.concatenate([hidden, np.broadcast_to(ones, (len(hidden), 1, len(x)))], axis=1)
    outputs = np.matmul(weights[-1], received)
    num_draws, num_outputs = outputs.shape[:2]
    back = np.repeat(weights[-1][:, :, None, :-1], len(x), axis=2)  # [M, K, n, units]
    for kernel, slope in zip(weights[-2::-1], reversed(slopes)):
        back = back * slope.swapaxes(1, 2)[:, None]
        back = np.matmul(back.reshape(num_draws, num_outputs * len(x), -1), kernel[:, :, :-1])
        back = back.reshape(num_draws, num_outputs, len(x), -1)
    return outputs.swapaxes(1, 2).astype(float), back.transpose(0, 2, 3, 1).astype(float)
