"""Where each weight sits in the flat parameter vector theta.

Per layer the kernel (row-major [in, out]) then the bias; then the log noise scales; then the log
prior scales, layer by layer, kernel before bias. A kernel or bias has no sampled prior scale, one,
or one per input; with m of them its n weights are m runs of n / m in a row, one run per scale.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tfbnn.system.arrays import Array


class LayerSlot(NamedTuple):
    """One layer's places in theta; those of prior scales are empty where none is sampled."""

    num_inputs: int
    num_outputs: int
    start: int
    kernel_scales: slice
    bias_scales: slice

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the kernel."""
        return self.num_inputs, self.num_outputs

    @property
    def kernel(self) -> slice:
        return slice(self.start, self.start + self.num_inputs * self.num_outputs)

    @property
    def bias(self) -> slice:
        return slice(self.kernel.stop, self.kernel.stop + self.num_outputs)

    @property
    def num_parameters(self) -> int:
        return (self.num_inputs + 1) * self.num_outputs


class Layout(NamedTuple):
    """The places of all parameters.

    Attributes:
        layers: One LayerSlot per layer.
        num_weights: Kernels and biases together.
        num_noise: Number of log noise scales, directly behind the weights.
        num_parameters: P, the length of theta.
    """

    layers: tuple[LayerSlot, ...]
    num_weights: int
    num_noise: int
    num_parameters: int

    @property
    def log_noise_scale(self) -> slice:
        return slice(self.num_weights, self.num_weights + self.num_noise)

    def kernels_and_biases(self, theta: Array) -> list[tuple[Array, Array]]:
        """Splits theta [..., P] into a list of (kernel [..., in, out], bias [..., out])."""
        leading = theta.shape[:-1]
        return [
            (theta[..., slot.kernel].reshape(*leading, *slot.shape), theta[..., slot.bias])
            for slot in self.layers
        ]

    def parameter_name(self, index: int) -> str:
        """A readable name of one entry of theta, for messages: 'layer 2 kernel[3, 0]'."""
        for number, slot in enumerate(self.layers, start=1):
            if index < slot.kernel.stop:
                row, column = np.unravel_index(index - slot.start, slot.shape)
                return f"layer {number} kernel[{row}, {column}]"
            if index < slot.bias.stop:
                return f"layer {number} bias[{index - slot.kernel.stop}]"
        if index < self.log_noise_scale.stop:
            return f"log noise scale[{index - self.num_weights}]"
        for number, slot in enumerate(self.layers, start=1):
            for kind, place in (("kernel", slot.kernel_scales), ("bias", slot.bias_scales)):
                if place.start <= index < place.stop:
                    entry = f"[{index - place.start}]" if place.stop - place.start > 1 else ""
                    return f"layer {number} log {kind} prior scale{entry}"
        raise IndexError(f"theta has {self.num_parameters} entries, received index {index}.")


def make_layout(
    layer_sizes: Sequence[int], num_noise: int, num_prior_scales: Iterable[tuple[int, int]]
) -> Layout:
    """Builds the layout.

    Args:
        layer_sizes: Widths from inputs to outputs.
        num_noise: Number of learned log noise scales.
        num_prior_scales: Per layer a pair of numbers: sampled scales of the kernel's prior, of the
            bias's.
    """
    num_weights = sum((a + 1) * b for a, b in zip(layer_sizes[:-1], layer_sizes[1:]))
    slots, start, next_scale = [], 0, num_weights + num_noise
    for num_inputs, num_outputs, counts in zip(layer_sizes[:-1], layer_sizes[1:], num_prior_scales):
        places = []
        for count in counts:
            places.append(slice(next_scale, next_scale + count))
            next_scale += count
        slots.append(LayerSlot(num_inputs, num_outputs, start, *places))
        start += (num_inputs + 1) * num_outputs
    return Layout(tuple(slots), num_weights, num_noise, next_scale)
