"""Copies of a network that are the same function: other orders of hidden units, or flipped signs.

In a layer with H units, all H! orders have the same likelihood and prior, if one prior holds for
all weights of a kernel or bias, and not arrays of priors. If the activation is odd and the priors
are even, the same holds for the 2^H flips of signs (Chen, Lu and Hecht-Nielsen 1993, Neural
Computation 5, 910).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array, row_slices

# Networks at once: each needs several H x H tables of distances.
_AT_ONCE = 16


class _Layer(NamedTuple):
    """A hidden layer of networks [M, P], as views of its weights.

    Attributes:
        incoming: Kernel [M, in, H].
        bias: [M, 1, H].
        outgoing: Kernel of the next layer [M, H, out].
        turns: Whether a unit with all signs flipped is the same unit.
        is_last: Whether the next layer is the readout.
    """

    incoming: Array
    bias: Array
    outgoing: Array
    turns: bool
    is_last: bool

    @property
    def units(self) -> Array:
        """Features [M, H, features] that identify units in any order of the units behind them."""
        lines = [self.incoming, self.bias]
        if self.is_last:
            lines.append(np.swapaxes(self.outgoing, 1, 2))
        return np.swapaxes(np.concatenate(lines, axis=1), 1, 2)

    def move(self, order: Array, signs: Array) -> None:
        """Put unit order[m, h] of network m, times its sign, at position h; both are [M, H]."""
        for weights in (self.incoming, self.bias):
            weights[...] = np.take_along_axis(weights, order[:, None], axis=2) * signs[:, None]
        outgoing = np.take_along_axis(self.outgoing, order[..., None], axis=1)
        self.outgoing[...] = outgoing * signs[..., None]


def aligned(spec: NetworkSpec, theta: Array, reference: Array) -> tuple[Array, Array]:
    """Replace each network by the copy whose units are most like those of a reference.

    Layer by layer, the two units that are nearest to each other are paired first, then the nearest
    of the others. All copies of a network become the same one, so that the copies of this kind are
    one part in H! 2^H of the parameters' space.

    Args:
        spec: NetworkSpec.
        theta: Parameters [M, P].
        reference: Parameters [P].

    Returns:
        (Parameters [M, P], boolean [M] that marks networks which had to move).
    """
    theta, target = theta.copy(), reference[None].copy()
    has_moved = np.zeros(len(theta), bool)
    for some in row_slices(len(theta), _AT_ONCE):
        part = theta[some]  # a view, as are its layers
        for layer, wanted in zip(_hidden_layers(spec, part), _hidden_layers(spec, target)):
            order, signs = _pairs(layer.units, wanted.units[0], layer.turns)
            has_moved[some] |= np.any((order != np.arange(order.shape[1])) | (signs < 0), axis=1)
            layer.move(order, signs.astype(theta.dtype))
    return theta, has_moved


def _hidden_layers(spec: NetworkSpec, theta: Array) -> list[_Layer]:
    if not isinstance(spec, ModelSpec):  # it is not known which of its weights may be exchanged
        return []
    weights = spec.layout.kernels_and_biases(theta)
    layers = []
    for index, name in enumerate(spec.activations):
        (kernel, bias), (outgoing, _) = weights[index : index + 2]
        here, behind = spec.priors[index : index + 2]
        around = (here.kernel, here.bias, behind.kernel)
        if any(prior.shape is not None for prior in around):
            continue  # weights have priors of their own there, so units cannot be exchanged
        turns = ACTIVATIONS[name].odd and all(prior.is_even for prior in around)
        is_last = index == len(spec.activations) - 1
        layers.append(_Layer(kernel, bias[:, None], outgoing, turns, is_last))
    return layers


def _pairs(units: Array, wanted: Array, turns: bool) -> tuple[Array, Array]:
    """Return (order [M, H], signs [M, H]) that match units [M, H, f] to those wanted [H, f]."""
    products = units @ wanted.T  # [M, H, H], the unit first
    likeness = np.abs(products) if turns else products
    distance = np.square(units).sum(axis=2)[:, :, None] - 2.0 * likeness
    distance += np.square(wanted).sum(axis=1)
    num_networks, num_units, _ = units.shape
    order, networks = np.empty((num_networks, num_units), int), np.arange(num_networks)
    for _ in range(num_units):
        nearest = distance.reshape(num_networks, -1).argmin(axis=1)
        unit, index = np.divmod(nearest, num_units)
        order[networks, index] = unit
        distance[networks, unit] = distance[networks, :, index] = np.inf
    signs = np.ones(order.shape)
    if turns:
        found = products[networks[:, None], order, np.arange(num_units)]
        signs[found < 0] = -1.0
    return order, signs
