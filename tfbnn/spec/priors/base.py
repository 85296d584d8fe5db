"""What every prior of weights or of a positive scale is, and the tables of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, isfinite
from typing import ClassVar

import numpy as np

from tfbnn.data.validation import unknown_settings
from tfbnn.system.arrays import Array

# Every class by its name, as files have it; a family lists those who inherit from it.
SCALE_PRIORS: dict[str, type[ScalePrior]] = {}
WEIGHT_PRIORS: dict[str, type[WeightPrior]] = {}
REGISTRY: dict[str, type] = {}

_DRAWS_FOR_MEDIAN = 40_001


class ScalePrior(ABC):
    """A density of a positive scale s. A new one is a frozen dataclass that inherits from this.

    Attributes:
        sizes: Typical values of s, or of what else is squared: the dtype of a model has to be able
            to (`tfbnn.spec.priors.sizes`). By default those of its setting `scale`, if it has one.
    """

    scale: float | None = None

    def __init_subclass__(cls) -> None:
        SCALE_PRIORS[cls.__name__] = REGISTRY[cls.__name__] = cls

    @property
    def sizes(self) -> tuple[float, ...]:
        return () if self.scale is None else (self.scale,)

    @property
    def median(self) -> float:
        """Median of s; where a prior has no closed form, that of many draws, right to a hundredth."""
        return float(np.median(self.sample(np.random.default_rng(0), _DRAWS_FOR_MEDIAN)))

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draws of s."""


class WeightPrior(ABC):
    """A density of each entry of a kernel or bias. A new one is a frozen dataclass as well.

    Attributes:
        is_own: Whether a user defines it in a file of their own; such classes are in no table.
        scale: What the ntk parameterisation takes out of the weights; None where there is nothing of
            the kind, or where it is sampled.
        scale_prior: Prior of a scale that is sampled together with the weights, or None.
        per_input: Whether each input has a sampled scale of its own: for the first kernel alone.
        is_normal: Whether the weights are N(0, s^2), s the scale.
        is_even: Whether weights of either sign have one density, whatever their place.
        shape: Shape of the kernel or bias that it is for, or None where it suits all.
        sizes: Typical sizes of weights, as of `ScalePrior`. By default those of its scale.
    """

    is_own: ClassVar[bool] = False
    scale: float | None = None
    scale_prior: ScalePrior | None = None
    per_input: bool = False

    def __init_subclass__(cls) -> None:
        if not cls.is_own:
            WEIGHT_PRIORS[cls.__name__] = REGISTRY[cls.__name__] = cls

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draws of the weights; those with a sampled scale take it as their last argument."""

    def num_scales(self, num_inputs: int) -> int:
        """How many scales are sampled for a kernel of so many inputs; for a bias it is asked of 1."""
        if self.scale_prior is None:
            return 0
        return num_inputs if self.per_input else 1

    @property
    def sizes(self) -> tuple[float, ...]:
        if self.scale_prior is not None:
            return self.scale_prior.sizes
        return () if self.scale is None else (self.scale,)

    @property
    def has_scale(self) -> bool:
        """Whether the weights have a scale, fixed or sampled."""
        return self.scale is not None or self.scale_prior is not None

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None

    @property
    def is_normal(self) -> bool:
        return False

    @property
    def is_even(self) -> bool:
        low, high = self.limits
        return low == -high

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the interval outside of which the density is zero."""
        return -inf, inf

    @property
    def is_bounded(self) -> bool:
        """Whether there are weights without density."""
        return any(map(isfinite, self.limits))


def check_scale_prior(prior: object) -> None:
    """Refuses anything that is not a prior of a positive scale."""
    if not isinstance(prior, ScalePrior):
        raise unknown_settings("scale_prior must be one of tfbnn.priors", SCALE_PRIORS, prior)
