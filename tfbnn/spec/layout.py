"""Where each weight sits in the flat parameter vector theta.

Of a perceptron per layer the kernel (row-major [in, out]) then the bias, of a Keras model one sampled
variable after the other; then the log noise scales; then the log prior scales in the same order. A kernel
or bias has no sampled prior scale, one, or one per input; with m of them its n weights are m runs of
n / m in a row, one run per scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
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


class VariableSlot(NamedTuple):
    """One variable's places in theta.

    Attributes:
        path: Its name in the model.
        shape: Its shape.
        weights: Place of its weights.
        scales: Place of the log scales of its prior, empty where none is sampled.
    """

    path: str
    shape: tuple[int, ...]
    weights: slice
    scales: slice


class VariableLayout(NamedTuple):
    """The places of all parameters, as `tfbnn.spec.network_spec.WeightLayout` asks for them.

    Attributes:
        slots: One VariableSlot per sampled variable.
        num_weights: Weights of all of them.
        num_noise: Number of log noise scales, directly behind the weights.
        num_parameters: P, the length of theta.
    """

    slots: tuple[VariableSlot, ...]
    num_weights: int
    num_noise: int
    num_parameters: int

    @classmethod
    def make(
        cls,
        variables: Sequence[tuple[str, tuple[int, ...]]],
        num_noise: int,
        num_scales: Sequence[int],
    ) -> VariableLayout:
        """The layout of variables (path, shape) with so many sampled prior scales each."""
        ends = np.cumsum([0, *(prod(shape) for _, shape in variables)]).tolist()
        behind = np.cumsum([ends[-1] + num_noise, *num_scales]).tolist()
        slots = tuple(
            VariableSlot(path, shape, slice(*ends[k : k + 2]), slice(*behind[k : k + 2]))
            for k, (path, shape) in enumerate(variables)
        )
        return cls(slots, ends[-1], num_noise, behind[-1])

    @property
    def log_noise_scale(self) -> slice:
        return slice(self.num_weights, self.num_weights + self.num_noise)

    def parameter_name(self, index: int) -> str:
        """A readable name of one entry of theta, for messages: 'dense/kernel[3, 0]'."""
        for slot in self.slots:
            if slot.weights.start <= index < slot.weights.stop:
                places = np.unravel_index(index - slot.weights.start, slot.shape)
                return f"{slot.path}[{', '.join(str(int(place)) for place in places)}]"
            if slot.scales.start <= index < slot.scales.stop:
                entry = f"[{index - slot.scales.start}]" if _count(slot.scales) > 1 else ""
                return f"log prior scale of {slot.path}{entry}"
        if self.num_weights <= index < self.log_noise_scale.stop:
            return f"log noise scale[{index - self.num_weights}]"
        raise IndexError(f"theta has {self.num_parameters} entries, received index {index}.")


def _count(place: slice) -> int:
    return int(place.stop - place.start)
