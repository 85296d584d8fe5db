"""What every likelihood has: settings and the NumPy side.

What TensorFlow computes of it is registered for its class; see `tfbnn.spec.required`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tfbnn.spec.likelihoods.links import LINKS
from tfbnn.spec.priors import ScalePrior
from tfbnn.system.arrays import Array

# By the names of the classes, as files have them, and by those of the command line.
REGISTRY: dict[str, type[Likelihood]] = {}
OPTIONS: dict[str, type[Likelihood]] = {}


class Likelihood(ABC):
    """The distribution of a row's targets given the network's outputs.

    A likelihood is a frozen dataclass of settings, and `class Mine(Likelihood, name="mine")` makes
    it known: to files by the name of the class, to `tfbnn fit --likelihood` by `name`. Classes
    without a name are there to be inherited from.

    Attributes:
        is_own: Whether a user defines it in a file of their own; such classes are in no table.
        link: What makes predictions of its locations: a name in `LINKS`.
        has_classes: Whether targets are class labels, and predictions probabilities.
        is_conjugate: Whether a normal prior of the last layer has a normal posterior given all else:
            normal noise around the outputs, of a scale that does not depend on them.
        noise_scale: A fixed scale of the noise, one per output, or "learned"; None where there is no
            such setting.
        scale_prior: Prior of learned noise scales, "auto" until a model is made of it; None where
            there are none.
    """

    is_own: ClassVar[bool] = False
    link: ClassVar[str]
    has_classes: ClassVar[bool]
    is_conjugate: ClassVar[bool] = False
    noise_scale: float | tuple[float, ...] | str | None = None
    scale_prior: ScalePrior | str | None = None

    def __init_subclass__(cls, name: str | None = None) -> None:
        if name is not None:
            REGISTRY[cls.__name__] = OPTIONS[name] = cls

    @abstractmethod
    def num_targets(self, num_outputs: int) -> int:
        """Number of target columns K of a network with `num_outputs` outputs."""

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """Number of outputs of a network for K target columns of so many classes, if of any."""
        return num_targets

    def check_outputs(self, num_outputs: int) -> None:
        """Refuses a network that does not fit this likelihood."""
        del num_outputs  # by default every number will do

    def num_noise_parameters(self, num_outputs: int) -> int:
        """Number of learned log noise scales besides the weights; by default none."""
        return 0

    def location(self, outputs: Any) -> Any:
        """Noise-free predictions out of network outputs [..., num_outputs], an array or a tensor.

        Of targets that are numbers the first K [..., K]; of classes logits, [..., K] or
        [..., classes].
        """
        return outputs[..., : self.num_targets(outputs.shape[-1])]

    def inverse_link(self, location: Array) -> Array:
        """Predictions out of locations of the same shape, before the y transform is undone."""
        return LINKS[self.link].numpy(location)

    def link_tangent(self, predictions: Array, tangent: Array) -> Array:
        """Tangents of predictions out of those of their locations, all [..., K]."""
        return LINKS[self.link].tangent(predictions, tangent)

    @abstractmethod
    def scale(
        self, outputs: Array, log_noise_scale: Array, row_noise: Array | None
    ) -> Array | None:
        """Noise standard deviations, broadcastable to the locations; None for classes.

        Args:
            outputs: Network outputs [S, n, num_outputs].
            log_noise_scale: Learned log scales [S, number of noise parameters].
            row_noise: Known standard deviations [n, K] or [S, n, K], transformed units, or None.
        """

    @abstractmethod
    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Log density summed over targets: [n, K], [..., n, K] and a broadcastable scale -> [..., n].

        Targets of classes are class numbers.
        """
