"""Priors on weights and on positive scales: settings and draws, in NumPy.

Their log densities, in TensorFlow, are in `tfbnn.engine.density.densities`, registered for each class
(see `tfbnn.spec.required`); tests hold the two together.
Weight priors are independent over the entries of a kernel or bias. Scale priors are densities of a
positive scale s; s is sampled as log(s), and the density of log(s) includes the Jacobian.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from tfbnn.data.validation import check_number, unknown_settings
from tfbnn.system.arrays import Array

# Every class by its name, as files have it; a family lists those who inherit from it.
SCALE_PRIORS: dict[str, type[ScalePrior]] = {}
WEIGHT_PRIORS: dict[str, type[WeightPrior]] = {}
REGISTRY: dict[str, type] = {}

_DRAWS_FOR_MEDIAN = 40_001
# 75 % quantile of the standard normal, half of which lies beyond it on either side.
_MEDIAN_OF_HALF_NORMAL = 0.6744897501960817


class ScalePrior(ABC):
    """A density of a positive scale s. A new one is a frozen dataclass that inherits from this.

    Attributes:
        sizes: Typical values of s, or of what else is squared: the dtype of a model has to be able
            to (`tfbnn.spec.prior_sizes`). By default those of its setting `scale`, if it has one.
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
        scale: What the ntk parameterisation takes out of the weights; None where there is nothing of
            the kind, or where it is sampled.
        scale_prior: Prior of a scale that is sampled together with the weights, or None.
        per_input: Whether each input has a sampled scale of its own: for the first kernel alone.
        is_normal: Whether the weights are N(0, s^2), s the scale.
        sizes: Typical sizes of weights, as of `ScalePrior`. By default those of its scale.
    """

    scale: float | None = None
    scale_prior: ScalePrior | None = None
    per_input: bool = False
    is_normal: bool = False

    def __init_subclass__(cls) -> None:
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
    def limits(self) -> tuple[float, float]:
        """Ends of the interval outside of which the density is zero."""
        return -inf, inf

    @property
    def is_bounded(self) -> bool:
        """Whether there are weights without density."""
        return any(map(isfinite, self.limits))


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


@dataclass(frozen=True)
class LayerPrior:
    """The priors of one layer."""

    kernel: WeightPrior
    bias: WeightPrior


REGISTRY["LayerPrior"] = LayerPrior


def check_scale_prior(prior: object) -> None:
    """Refuses anything that is not a prior of a positive scale."""
    if not isinstance(prior, ScalePrior):
        raise unknown_settings("scale_prior must be one of tfbnn.priors", SCALE_PRIORS, prior)


def resolve_priors(prior: Any, num_layers: int) -> tuple[LayerPrior, ...]:
    """Turns what the user passes as `prior` into one `LayerPrior` per layer.

    Args:
        prior: A weight prior for everything, a dict {"kernel": .., "bias": ..}, or a list with one
            of these per layer.
        num_layers: Number of layers, the output layer included.

    Returns:
        Tuple of `num_layers` LayerPrior.

    Raises:
        TypeError, ValueError: For what is none of these, and for a prior with one scale per input
            that would be of anything but the first kernel.
    """
    if not isinstance(prior, (list, tuple)):
        layers = (_layer_prior(prior),) * num_layers
    elif len(prior) == num_layers:
        layers = tuple(_layer_prior(entry) for entry in prior)
    else:
        raise ValueError(
            f"prior must be one prior or a list of {num_layers}, one per layer with the output "
            f"layer last, received {len(prior)}."
        )
    _check_per_input(layers)
    return layers


def prior_per_input(num_layers: int) -> str:
    """What to type as `prior` of so many layers for one sampled scale per input."""
    first = '{"kernel": ARD(), "bias": Normal()}'
    return f"prior=[{', '.join([first, *['Normal()'] * (num_layers - 1)])}]"


def _check_per_input(layers: Sequence[LayerPrior]) -> None:
    for number, layer in enumerate(layers, start=1):
        for kind, prior in (("kernel", layer.kernel), ("bias", layer.bias)):
            if prior.per_input and (number, kind) != (1, "kernel"):
                raise ValueError(
                    f"{type(prior).__name__} has one scale per input and is for the kernel of the "
                    f"first layer alone, received it for the {kind} of layer {number}. "
                    f"Pass {prior_per_input(len(layers))}."
                )


def _layer_prior(entry: Any) -> LayerPrior:
    kernel = bias = entry
    if isinstance(entry, LayerPrior):
        kernel, bias = entry.kernel, entry.bias
    elif isinstance(entry, dict):
        if set(entry) != {"kernel", "bias"}:
            raise ValueError(
                "A prior given as a dict must have the keys 'kernel' and 'bias', received "
                f"{sorted(map(str, entry))}."
            )
        kernel, bias = entry["kernel"], entry["bias"]
    return LayerPrior(_weight_prior(kernel), _weight_prior(bias))


def _weight_prior(prior: object) -> WeightPrior:
    if not isinstance(prior, WeightPrior):
        raise unknown_settings("prior must be made of tfbnn.priors", WEIGHT_PRIORS, prior)
    return prior
