"""Predictions of networks that are linear in their weights: those of `fit_laplace`.

A draw theta predicts f(x; mode) + J(x) (theta - mode), J the derivative of the network's outputs in
theta at the mode. That is the model whose posterior the Gauss-Newton normal distribution
approximates; its draws as networks would predict something else, and worse, see Immer, Korzepa and
Bauer 2021, "Improving predictions of Bayesian neural nets via local linearization", AISTATS,
arXiv:2008.08400.

J is never formed: one forward pass at the mode, and beside it the tangents of all draws (forward
mode), at one to one and a half times the price of as many networks (layers 5-50-1, 5-50-50-1).
"""

from collections.abc import Iterator

import numpy as np

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.model_spec import perceptron
from tfbnn.system.arrays import Array, with_ones

# Tangents of hidden units of one tile of draws: as much as the cache of one core holds.
_HIDDEN_VALUES = 250_000


def linearised_outputs(ensemble: Ensemble, x: Array) -> Array:
    """Outputs of all draws at transformed inputs x [n, D]: [C * S, num_outputs, n].

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
    for tile in _tiles(ensemble.num_draws, max(spec.layer_sizes[1:]) * len(x)):
        change = np.matmul(tangents[0][tile], inputs[0])
        for index in range(1, len(layers)):
            change *= slopes[index - 1]
            through = np.matmul(kernels[index], change)
            change = np.matmul(tangents[index][tile], inputs[index])
            change += through
        # In float64 until here: a network near noise-free data is known to more than seven digits.
        found[tile] = outputs + change
    return found


def layers_at(network: Ensemble, x: Array) -> tuple[Array, list[tuple[Array, Array, Array]]]:
    """One network's outputs [num_outputs, n], and per layer its weights, inputs and slopes.

    Weights are [out, in + 1], inputs [in + 1, n] with ones behind, slopes of the activation [out, n],
    which of the last layer are ones.
    """
    names, layers = (*perceptron(network.spec, "This").activations, "identity"), []
    values = x.T
    for name, weights in zip(names, network.effective_weights):
        received = with_ones(values, np.float64)
        sums = weights[0] @ received
        values = ACTIVATIONS[name].numpy(sums)
        layers.append((weights[0], received, ACTIVATIONS[name].derivative(sums)))
    return values, layers


def _tiles(num_draws: int, values_per_draw: int) -> Iterator[slice]:
    """Slices of the draws whose hidden units fit into the cache."""
    step = max(1, _HIDDEN_VALUES // values_per_draw)
    return (slice(start, start + step) for start in range(0, num_draws, step))
