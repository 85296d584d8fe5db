"""Priors of weights, independent over the entries of a kernel or bias."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tfbnn.data.validation import check_number
from tfbnn.spec.priors.base import ScalePrior, WeightPrior, check_scale_prior
from tfbnn.spec.priors.scales import HalfCauchy
from tfbnn.system.arrays import Array


@dataclass(frozen=True)
class Normal(WeightPrior):
    """Each weight ~ N(0, scale^2). `scale` is a standard deviation, default 1."""

    scale: float = 1.0

    is_normal = True

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return self.scale * generator.standard_normal(shape)


@dataclass(frozen=True)
class Laplace(WeightPrior):
    """Each weight ~ Laplace(0, scale), density `exp(-|w| / scale) / (2 scale)`, default scale 1."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return generator.laplace(scale=self.scale, size=shape)


@dataclass(frozen=True)
class HierarchicalNormal(WeightPrior):
    """Each weight ~ N(0, s^2), with one s per layer, for kernel and bias apart, sampled as well.

    `scale_prior` is the prior of s: HalfCauchy(1.0) by default, or any other scale prior. In the
    ntk parameterisation the unscaled weights are N(0, 1) and s multiplies them in the network.
    """

    scale_prior: ScalePrior = field(default_factory=HalfCauchy)

    is_normal = True

    def __post_init__(self) -> None:
        check_scale_prior(self.scale_prior)

    def sample(
        self,
        generator: np.random.Generator,
        shape: int | tuple[int, ...],
        scale: float | Array = 1.0,
    ) -> Array:
        return scale * generator.standard_normal(shape)


@dataclass(frozen=True)
class ARD(HierarchicalNormal):
    """Automatic relevance determination: weights of input i ~ N(0, s_i^2), every s_i sampled.

    For the kernel of the first layer, and for no other: where an input says nothing of the targets,
    its s_i shrinks, and its weights with it. `model.relevance()` gives the scales after a fit. Other
    layers and the biases need priors of their own, so the prior of the model is a list:
    `[{"kernel": ARD(), "bias": Normal()}, Normal()]` for one hidden layer.

    `scale_prior` is the prior of each s_i, independently: HalfCauchy(1.0) by default, which has its
    median at the scale of Normal(1.0) and room for zero and for ten times as much, or any other
    scale prior. The inputs share no scale. In the ntk parameterisation the unscaled weights are
    N(0, 1) and s_i multiplies those of input i in the network, over the square root of the inputs.

    References:
        MacKay 1992, Neural Computation 4, 448. Neal 1996, Bayesian Learning for Neural Networks,
        Lecture Notes in Statistics 118, Springer.
    """

    per_input = True


@dataclass(frozen=True)
class Uniform(WeightPrior):
    """Each weight uniform on [low, high]; outside, the log density is minus infinity."""

    low: float
    high: float

    def __post_init__(self) -> None:
        check_number("low", self.low)
        check_number("high", self.high, above=self.low)

    @property
    def limits(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def sizes(self) -> tuple[float, ...]:
        return (self.high - self.low, max(abs(self.low), abs(self.high)))

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return generator.uniform(self.low, self.high, size=shape)
