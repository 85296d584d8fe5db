"""Where each variable of a Keras model sits in the flat parameter vector theta.

Sampled variables one after the other, row by row; then the log noise scales; then the log prior
scales in the order of the variables. A perceptron's theta is laid out alike (`tfbnn.spec.layout`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np


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
