"""Priors of positive scales, each the density of one s."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from tfbnn.data.validation import check_number
from tfbnn.spec.priors.base import ScalePrior
from tfbnn.system.arrays import Array

# 75 % quantile of the standard normal, half of which lies beyond it on either side.
_MEDIAN_OF_HALF_NORMAL = 0.6744897501960817


@dataclass(frozen=True)
class HalfNormal(ScalePrior):
    """`s = |z|`, z ~ N(0, scale^2)."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)

    @property
    def median(self) -> float:
        return _MEDIAN_OF_HALF_NORMAL * self.scale

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return self.scale * np.abs(generator.standard_normal(shape))


@dataclass(frozen=True)
class HalfCauchy(ScalePrior):
    """`s = |z|`, z ~ Cauchy(0, scale)."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)

    @property
    def median(self) -> float:
        return self.scale

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return self.scale * np.abs(generator.standard_cauchy(shape))


@dataclass(frozen=True)
class InverseGamma(ScalePrior):
    """The variance s^2 ~ InverseGamma(concentration, scale): density prop. to v^(-a-1) e^(-b/v)."""

    concentration: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("concentration", self.concentration, above=0)
        check_number("scale", self.scale, above=0)

    @property
    def sizes(self) -> tuple[float, ...]:
        return (sqrt(self.scale),)  # of a standard deviation: `scale` is of its square

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return np.sqrt(self.scale / generator.gamma(self.concentration, size=shape))


@dataclass(frozen=True)
class LogNormal(ScalePrior):
    """log(s) ~ N(loc, scale^2)."""

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("loc", self.loc)
        check_number("scale", self.scale, above=0)

    @property
    def sizes(self) -> tuple[float, ...]:
        with np.errstate(over="ignore"):
            return (float(np.exp(self.loc)), self.scale)

    @property
    def median(self) -> float:
        return float(np.exp(self.loc))

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return np.exp(self.loc + self.scale * generator.standard_normal(shape))
