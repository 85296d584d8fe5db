"""Layout of the flat parameter vector theta.

For a perceptron, theta holds for each layer the kernel (row-major [in, out]) and then the bias. For
a Keras model, it holds one sampled variable after the other. The log noise scales follow, then the
log prior scales in the same order as the weights. A kernel or bias has no sampled prior scale, one,
or one per input. With m scales, its n weights are m consecutive runs of n / m, one run per scale.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tfbnn.system.arrays import Array


class Slot(NamedTuple):
    """Slices of theta that belong to one kernel, bias or other variable.

    Attributes:
        name: Name, for messages.
        shape: Shape of the variable.
        weights: Slice of its weights.
        scales: Slice of the log scales of its prior, empty if none is sampled.
    """

    name: str
    shape: tuple[int, ...]
    weights: slice
    scales: slice


class Layer(NamedTuple):
    """Slots of a kernel [in, out] and of its bias, whose weights follow those of the kernel."""

    kernel: Slot
    bias: Slot

    @property
    def weights(self) -> slice:
        """Slice of all its weights in theta."""
        return slice(self.kernel.weights.start, self.bias.weights.stop)


@dataclass(frozen=True)
class Layout:
    """Layout of all parameters in theta.

    Attributes:
        slots: One Slot per variable.
        num_weights: Number of weights of all variables.
        num_noise: Number of log noise scales, which directly follow the weights.
        num_parameters: P, the length of theta.
    """

    slots: tuple[Slot, ...]
    num_weights: int
    num_noise: int
    num_parameters: int

    @property
    def log_noise_scale(self) -> slice:
        return slice(self.num_weights, self.num_weights + self.num_noise)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of a perceptron."""
        return tuple(map(Layer, self.slots[::2], self.slots[1::2]))

    def kernels_and_biases(self, theta: Array) -> list[tuple[Array, Array]]:
        """Split theta [..., P] of a perceptron by layers.

        Returns:
            List of (kernel [..., in, out], bias [..., out]).
        """
        leading = theta.shape[:-1]
        return [
            (
                theta[..., kernel.weights].reshape(*leading, *kernel.shape),
                theta[..., bias.weights],
            )
            for kernel, bias in self.layers
        ]

    def parameter_name(self, index: int) -> str:
        """Return a readable name of one entry of theta, such as 'dense/kernel[3, 0]'."""
        for slot in self.slots:
            if slot.weights.start <= index < slot.weights.stop:
                indices = np.unravel_index(index - slot.weights.start, slot.shape)
                return f"{slot.name}[{', '.join(str(int(one)) for one in indices)}]"
            if slot.scales.start <= index < slot.scales.stop:
                is_one = slot.scales.stop - slot.scales.start == 1
                entry = "" if is_one else f"[{index - slot.scales.start}]"
                return f"log prior scale of {slot.name}{entry}"
        if self.num_weights <= index < self.log_noise_scale.stop:
            return f"log noise scale[{index - self.num_weights}]"
        raise IndexError(f"theta has {self.num_parameters} entries, received index {index}.")
