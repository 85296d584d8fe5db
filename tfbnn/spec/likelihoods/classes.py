"""Likelihoods of class labels, whose probabilities are a function of the outputs, the logits.

Targets are class numbers 0, 1, ..; the labels that they stand for are kept by `tfbnn.data.labels`.
There is no noise scale.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.spec.likelihoods.base import Likelihood
from tfbnn.spec.likelihoods.links import log_softmax
from tfbnn.system.arrays import Array


class ClassLikelihood(Likelihood):
    """What the two likelihoods share."""

    has_classes = True

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> None:
        """None: a class has no noise besides its probability."""

    @abstractmethod
    def num_classes(self, num_outputs: int) -> int:
        """Number of classes of every target."""

    @abstractmethod
    def class_probabilities(self, probabilities: Array) -> Array:
        """Of every target all classes: predictions [N, columns] -> [N, K, number of classes]."""


@dataclass(frozen=True)
class Bernoulli(ClassLikelihood, name="bernoulli"):
    """Independent binary targets: P(y_k = 1 | x) = 1 / (1 + exp(-f_k(x))).

    The last entry of layer_sizes is the number of targets K. Targets are 0 and 1 or False and True,
    [N, K]; for K = 1 also any two labels, text or integers, of which the second in order counts as
    1. Probabilities are those of 1, or of the second label.
    """

    link = "sigmoid"

    def num_targets(self, num_outputs: int) -> int:
        return num_outputs

    def num_classes(self, num_outputs: int) -> int:
        return 2

    def class_probabilities(self, probabilities: Array) -> Array:
        """Of every target both classes: predictions [N, K] -> [N, K, 2]."""
        return np.stack([1.0 - probabilities, probabilities], axis=-1)

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Log probability of class numbers [n, K], summed over targets: [..., n, K] -> [..., n]."""
        density: Array = -np.logaddexp(0.0, (1.0 - 2.0 * target) * location).sum(axis=-1)
        return density


@dataclass(frozen=True)
class Categorical(ClassLikelihood, name="categorical"):
    """One label out of M classes: P(y = k | x) = exp(f_k(x)) / sum_j exp(f_j(x)).

    The last entry of layer_sizes is the number of classes M, at least 2. Targets are labels [N],
    text or integers. Softmax does not see a common shift of all outputs, which only the prior
    determines: the logits that predictions and diagnostics show are less their mean over classes.
    """

    link = "softmax"

    def num_targets(self, num_outputs: int) -> int:
        """One column of labels, whatever the number of classes."""
        return 1

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """One per class."""
        return num_classes

    def num_classes(self, num_outputs: int) -> int:
        return num_outputs

    def location(self, outputs: Any) -> Any:
        """Centred logits [..., M] out of network outputs [..., M]."""
        return outputs - outputs.mean(axis=-1, keepdims=True)

    def class_probabilities(self, probabilities: Array) -> Array:
        """Of the only target all classes: predictions [N, M] -> [N, 1, M]."""
        return probabilities[:, None, :]

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Log probability of class numbers [n, 1]: logits [..., n, M] -> [..., n]."""
        index = np.broadcast_to(target.astype(int), (*location.shape[:-1], 1))
        density: Array = np.take_along_axis(log_softmax(location), index, axis=-1)[..., 0]
        return density

    def check_outputs(self, num_outputs: int) -> None:
        """Refuses a network with a single output."""
        if num_outputs < 2:
            raise ValueError(
                "Categorical needs one output per class, at least 2, as the last entry of "
                f"layer_sizes, received {num_outputs}. For two classes on one logit use Bernoulli()."
            )
