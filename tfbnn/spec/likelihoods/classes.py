"""Likelihoods of class labels, whose probabilities are a function of the outputs, the logits.

Settings and the NumPy side, as in `tfbnn.likelihoods`, which exports both. Targets are class
numbers 0, 1, ..; the labels that they stand for are kept by `tfbnn.data.labels`. There is no noise scale.
"""

from dataclasses import dataclass

import numpy as np


class _Classes:
    """What the two likelihoods share."""

    has_classes = True

    def num_noise_parameters(self, num_outputs):
        """There are no noise parameters besides the weights."""
        return 0

    def scale(self, outputs, log_noise_scale, row_noise):
        """None: a class has no noise besides its probability."""
        return None


@dataclass(frozen=True)
class Bernoulli(_Classes):
    """Independent binary targets: P(y_k = 1 | x) = 1 / (1 + exp(-f_k(x))).

    The last entry of layer_sizes is the number of targets K. Targets are 0 and 1 or False and True,
    [N, K]; for K = 1 also any two labels, text or integers, of which the second in order counts as
    1. Probabilities are those of 1, or of the second label.
    """

    def num_targets(self, num_outputs):
        """Number of target columns K."""
        return num_outputs

    def num_classes(self, num_outputs):
        """Number of classes of every target."""
        return 2

    def location(self, outputs):
        """Logits [..., K]: the outputs as they are."""
        return outputs

    def inverse_link(self, logits):
        """Probabilities of class 1 [..., K] out of logits [..., K]."""
        return np.exp(-np.logaddexp(0.0, -logits))

    def class_probabilities(self, probabilities):
        """Of every target both classes: predictions [N, K] -> [N, K, 2]."""
        return np.stack([1.0 - probabilities, probabilities], axis=-1)

    def log_density(self, target, logits, scale=None):
        """Log probability of class numbers [n, K], summed over targets: [..., n, K] -> [..., n]."""
        return -np.logaddexp(0.0, (1.0 - 2.0 * target) * logits).sum(axis=-1)

    def check_outputs(self, num_outputs):
        """Every number of outputs will do."""


@dataclass(frozen=True)
class Categorical(_Classes):
    """One label out of M classes: P(y = k | x) = exp(f_k(x)) / sum_j exp(f_j(x)).

    The last entry of layer_sizes is the number of classes M, at least 2. Targets are labels [N],
    text or integers. Softmax does not see a common shift of all outputs, which only the prior
    determines: the logits that predictions and diagnostics show are less their mean over classes.
    """

    def num_targets(self, num_outputs):
        """One column of labels, whatever the number of classes."""
        return 1

    def num_classes(self, num_outputs):
        """Number of classes M."""
        return num_outputs

    def location(self, outputs):
        """Centred logits [..., M] out of network outputs [..., M]."""
        return outputs - outputs.mean(axis=-1, keepdims=True)

    def inverse_link(self, logits):
        """Probabilities of the classes [..., M] out of logits [..., M]."""
        return np.exp(_log_softmax(logits))

    def class_probabilities(self, probabilities):
        """Of the only target all classes: predictions [N, M] -> [N, 1, M]."""
        return probabilities[:, None, :]

    def log_density(self, target, logits, scale=None):
        """Log probability of class numbers [n, 1]: logits [..., n, M] -> [..., n]."""
        index = np.broadcast_to(target.astype(int), (*logits.shape[:-1], 1))
        return np.take_along_axis(_log_softmax(logits), index, axis=-1)[..., 0]

    def check_outputs(self, num_outputs):
        """Refuses a network with a single output."""
        if num_outputs < 2:
            raise ValueError(
                "Categorical needs one output per class, at least 2, as the last entry of "
                f"layer_sizes, received {num_outputs}. For two classes on one logit use Bernoulli()."
            )


def _log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
