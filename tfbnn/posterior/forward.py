"""The forward pass of all draws, with NumPy alone or in TensorFlow.

Draws of `fit_laplace` predict f(x; mode) + J(x) (theta - mode), with J the derivative of the
network's outputs with respect to theta at the mode. The Gauss-Newton normal distribution
approximates the posterior of this linearised model. As networks the draws would predict something
else, and worse, see Immer, Korzepa and Bauer 2021, "Improving predictions of Bayesian neural nets
via local linearization", AISTATS, arXiv:2008.08400. J is never formed. One forward pass at the mode
also computes the tangents of all draws (forward mode), at one to one and a half times the price of
as many networks (layers 5-50-1, 5-50-50-1).
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.process_predictions import process_outputs
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.system.arrays import Array, row_slices, with_ones

# Hidden activations, or their tangents, of a tile of draws: they fit into the cache of one core.
_HIDDEN_VALUES = 250_000
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
