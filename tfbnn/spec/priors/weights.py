"""Priors of weights, independent over the entries of a kernel or bias."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tfbnn.data.validation import check_number
from tfbnn.spec.priors.arrays import FrozenArray, entries, number_or_array
from tfbnn.spec.priors.base import ScalePrior, WeightPrior, check_scale_prior
from tfbnn.spec.priors.scales import HalfCauchy
from tfbnn.spec.settings_json import ADDED
from tfbnn.system.arrays import Array


@dataclass(frozen=True)
class Normal(WeightPrior):
    """Each weight ~ N(loc, scale^2), independently.

    Attributes:
        scale: Standard deviation, default 1: a number for all weights, or an array of the weights'
            shape: [inputs, outputs] of a kernel, [outputs] of a bias.
        loc: Mean, default 0: a number, or an array as well.

    With arrays or a mean the prior is of one kernel or bias, which the list of priors names:
    `[{"kernel": Normal(0.1, loc=kernel), "bias": Normal()}, Normal()]`. It is then for the standard
    parameterisation, in which weights are what they are, and the readout has no closed form: kernels
    that need one refuse it.
    """

    scale: float | FrozenArray = 1.0  # type: ignore[assignment]
    loc: float | FrozenArray = field(default=0.0, metadata=ADDED)

    def __post_init__(self) -> None:
        for name, above in (("scale", 0), ("loc", None)):
            value = number_or_array(name, getattr(self, name), above)
            if isinstance(value, FrozenArray):
                object.__setattr__(self, name, value)
        shapes = self._shapes
        if len(set(shapes)) > 1:
            raise ValueError(
                f"scale and loc must have one shape, received {' and '.join(map(str, shapes))}."
            )

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        settings = (self.scale, self.loc)
        return [value.shape for value in settings if isinstance(value, FrozenArray)]

    @property
    def shape(self) -> tuple[int, ...] | None:
        return next(iter(self._shapes), None)

    @property
    def is_normal(self) -> bool:
        return self.has_scale

    @property
    def is_even(self) -> bool:
        return self.has_scale

    @property
    def has_scale(self) -> bool:
        return self.shape is None and self.loc == 0

    @property
    def sizes(self) -> tuple[float, ...]:
        scales, largest = entries(self.scale), float(np.abs(entries(self.loc)).max())
        of_scales = float(scales.min()), float(scales.max())
        return (*of_scales, largest) if largest else of_scales

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return entries(self.loc) + entries(self.scale) * generator.standard_normal(shape)

    def __repr__(self) -> str:
        loc = "" if self.loc == 0 else f", loc={self.loc!r}"
        return f"Normal(scale={self.scale!r}{loc})"


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

    def __post_init__(self) -> None:
        check_scale_prior(self.scale_prior)

    @property
    def is_normal(self) -> bool:
        return True

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
