"""The forward pass of all draws and its derivatives, with NumPy alone or in TensorFlow.

Draws of `fit_laplace` predict f(x; mode) + J(x) (theta - mode), with J the derivative of the
network's outputs with respect to theta at the mode. The Gauss-Newton normal distribution
approximates the posterior of this linearised model. As networks the draws would predict something
else, and worse, see Immer, Korzepa and Bauer 2021, "Improving predictions of Bayesian neural nets
via local linearization", AISTATS, arXiv:2008.08400. J is never formed. One forward pass at the mode
also computes the tangents of all draws (forward mode), at one to one and a half times the price of
as many networks (layers 5-50-1, 5-50-50-1).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.mixture import moments
from tfbnn.posterior.process_predictions import process_gradients, process_outputs
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.system.arrays import Array, row_slices, with_ones
from tfbnn.system.threads import on_all_cores

# Hidden activations, or their tangents, of a tile of draws: they fit into the cache of one core.
_HIDDEN_VALUES = 250_000
# Most numbers in the widest array of a tile of rows, for derivatives.
_TILE_VALUES = 2_000_000
# Draws x rows from which a GPU saves more than the transfer costs.
_GPU_VALUES = 1_000_000


def forward_pass(ensemble: Ensemble, num_rows: int) -> Callable[[Array], Array]:
    """Return the function that maps transformed inputs [n, D] to outputs [C * S, num_outputs, n].

    Args:
        ensemble: Ensemble.
        num_rows: Number of rows that will be predicted in all; many rows go to a GPU, if there is
            one.
    """
    are_networks = ensemble.mode is None
    if isinstance(ensemble.spec, ModelSpec):
        is_large = num_rows * ensemble.num_draws >= _GPU_VALUES
        if are_networks and is_large and _gpu_is_at_hand():
            return _forward_of_tensorflow(ensemble)
        # Cached now, or every thread would compute them.
        ensemble.effective_weights if are_networks else ensemble.effective_tangents  # noqa: B018
    elif isinstance(ensemble.spec, InfiniteSpec):
        ensemble.conditioned_draws  # noqa: B018
    return partial(network_outputs, ensemble)


def _forward_of_tensorflow(ensemble: Ensemble) -> Callable[[Array], Array]:
    from tfbnn.engine.export.tensorflow_forward import make_forward

    return make_forward(ensemble)


def _gpu_is_at_hand() -> bool:
    """Return whether TensorFlow is already imported and sees a GPU; importing it takes seconds."""
    if sys.modules.get("tensorflow") is None:  # None forbids an import
        return False
    from tfbnn.engine.basis.compile import has_gpu

    return has_gpu()


def network_outputs(ensemble: Ensemble, x: Array, weights: Sequence[Array] | None = None) -> Array:
    """Compute outputs of all networks at transformed inputs x [n, D]: [C * S, num_outputs, n].

    Draws around a mode are linearised. Rows are innermost, as in the engine. Biases are multiplied
    by a line of ones behind the inputs and the hidden units, which is cheaper than adding them.

    Args:
        ensemble: Ensemble.
        x: [n, D].
        weights: Weights in place of `effective_weights`, for example with other lines in the last
            layer.
    """
    if ensemble.mode is not None:
        return linearised_outputs(ensemble, x)
    if isinstance(ensemble.spec, InfiniteSpec):
        return process_outputs(ensemble, x)
    if not isinstance(ensemble.spec, ModelSpec):
        return _forward_of_tensorflow(ensemble)(x)
    spec, weights = ensemble.spec, weights or ensemble.effective_weights
    inputs = with_ones(x.T, spec.dtype)
    outputs = np.empty((ensemble.num_draws, weights[-1].shape[1], len(x)), spec.dtype)
    widths = spec.layer_sizes[1:-1]
    step = max(1, _HIDDEN_VALUES // (max(widths, default=1) * len(x)))
    step = min(step, ensemble.num_draws)
    # Reused by every tile, as threads that allocate memory wait for each other.
    layers = [np.ones((step, width + 1, len(x)), spec.dtype) for width in widths]
    for tile in row_slices(ensemble.num_draws, step):
        previous = inputs
        for name, kernel, layer in zip(spec.activations, weights, layers):
            units = layer[: tile.stop - tile.start]
            hidden = np.matmul(kernel[tile], previous, out=units[:, :-1])
            ACTIVATIONS[name].numpy(hidden, out=hidden)
            previous = units
        np.matmul(weights[-1][tile], previous, out=outputs[tile])
    return outputs


def linearised_outputs(ensemble: Ensemble, x: Array) -> Array:
    """Compute linearised outputs of all draws at transformed x [n, D]: [C * S, num_outputs, n].

    Args:
        ensemble: Ensemble with a mode.
        x: [n, D].
    """
    spec, tangents = perceptron(ensemble.spec, "fit_laplace"), ensemble.effective_tangents
    outputs, layers = layers_at(ensemble.at_mode, x)
    dtype = np.dtype(spec.dtype)
    kernels = [weights[:, :-1].astype(dtype) for weights, _, _ in layers]
    inputs = [received.astype(dtype) for _, received, _ in layers]
    slopes = [slope.astype(dtype) for _, _, slope in layers]
    found = np.empty((ensemble.num_draws, *outputs.shape), dtype)
    step = max(1, _HIDDEN_VALUES // (max(spec.layer_sizes[1:]) * len(x)))
    for tile in row_slices(ensemble.num_draws, step):
        change = np.matmul(tangents[0][tile], inputs[0])
        for index in range(1, len(layers)):
            change *= slopes[index - 1]
            through = np.matmul(kernels[index], change)
            change = np.matmul(tangents[index][tile], inputs[index])
            change += through
        # The sum is in float64: a network near noise-free data is known to more than seven digits.
        found[tile] = outputs + change
    return found


def layers_at(network: Ensemble, x: Array) -> tuple[Array, list[tuple[Array, Array, Array]]]:
    """Compute the outputs [num_outputs, n] of one network, and weights, inputs and slopes per layer.

    Weights are [out, in + 1], inputs [in + 1, n] with ones as last line, slopes of the activation
    [out, n]. The slopes of the last layer are ones.
    """
    names, layers = (*perceptron(network.spec, "This").activations, "identity"), []
    values = x.T
    for name, weights in zip(names, network.effective_weights):
        received = with_ones(values, np.float64)
        sums = weights[0] @ received
        values = ACTIVATIONS[name].numpy(sums)
        layers.append((weights[0], received, ACTIVATIONS[name].derivative(sums)))
    return values, layers


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
    forward_pass(ensemble, 0)  # caches what the threads share
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
