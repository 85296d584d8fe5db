"""Priors on weights and on positive scales: settings and draws, in NumPy.

Their log densities, in TensorFlow, are in `tfbnn.engine.density.densities`; tests hold the two together.
Weight priors are independent over the entries of a kernel or bias. Scale priors are densities of a
positive scale s; s is sampled as log(s), and the density of log(s) includes the Jacobian.
"""

from dataclasses import dataclass, field

import numpy as np

from tfbnn.data.validation import check_number


@dataclass(frozen=True)
class HalfNormal:
    """s = |z|, z ~ N(0, scale^2)."""

    scale: float = 1.0

    def __post_init__(self):
        check_number("scale", self.scale, above=0)

    def sample(self, generator, shape):
        return self.scale * np.abs(generator.standard_normal(shape))


@dataclass(frozen=True)
class HalfCauchy:
    """s = |z|, z ~ Cauchy(0, scale)."""

    scale: float = 1.0

    def __post_init__(self):
        check_number("scale", self.scale, above=0)

    def sample(self, generator, shape):
        return self.scale * np.abs(generator.standard_cauchy(shape))


@dataclass(frozen=True)
class InverseGamma:
    """The variance s^2 ~ InverseGamma(concentration, scale): density prop. to v^(-a-1) e^(-b/v)."""

    concentration: float = 1.0
    scale: float = 1.0

    def __post_init__(self):
        check_number("concentration", self.concentration, above=0)
        check_number("scale", self.scale, above=0)

    def sample(self, generator, shape):
        return np.sqrt(self.scale / generator.gamma(self.concentration, size=shape))


@dataclass(frozen=True)
class LogNormal:
    """log(s) ~ N(loc, scale^2)."""

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self):
        check_number("loc", self.loc)
        check_number("scale", self.scale, above=0)

    def sample(self, generator, shape):
        return np.exp(self.loc + self.scale * generator.standard_normal(shape))


@dataclass(frozen=True)
class Normal:
    """Each weight ~ N(0, scale^2). `scale` is a standard deviation, default 1."""

    scale: float = 1.0

    def __post_init__(self):
        check_number("scale", self.scale, above=0)

    def sample(self, generator, shape):
        return self.scale * generator.standard_normal(shape)


@dataclass(frozen=True)
class Laplace:
    """Each weight ~ Laplace(0, scale), density exp(-|w| / scale) / (2 scale), default scale 1."""

    scale: float = 1.0

    def __post_init__(self):
        check_number("scale", self.scale, above=0)

    def sample(self, generator, shape):
        return generator.laplace(scale=self.scale, size=shape)


@dataclass(frozen=True)
class HierarchicalNormal:
    """Each weight ~ N(0, s^2), with one s per layer, for kernel and bias apart, sampled as well.

    `scale_prior` is the prior of s: HalfCauchy(1.0) by default, or any other scale prior. In the
    ntk parameterisation the unscaled weights are N(0, 1) and s multiplies them in the network.
    """

    scale_prior: HalfNormal | HalfCauchy | InverseGamma | LogNormal = field(
        default_factory=HalfCauchy
    )

    def __post_init__(self):
        check_scale_prior(self.scale_prior)

    def sample(self, generator, shape, scale):
        return scale * generator.standard_normal(shape)


@dataclass(frozen=True)
class Uniform:
    """Each weight uniform on [low, high]; outside, the log density is minus infinity."""

    low: float
    high: float

    def __post_init__(self):
        check_number("low", self.low)
        check_number("high", self.high, above=self.low)

    def sample(self, generator, shape):
        return generator.uniform(self.low, self.high, size=shape)


@dataclass(frozen=True)
class LayerPrior:
    """The priors of one layer."""

    kernel: Normal | Laplace | HierarchicalNormal | Uniform
    bias: Normal | Laplace | HierarchicalNormal | Uniform


SCALE_PRIORS = (HalfNormal, HalfCauchy, InverseGamma, LogNormal)
WEIGHT_PRIORS = (Normal, Laplace, HierarchicalNormal, Uniform)
REGISTRY = {cls.__name__: cls for cls in (*SCALE_PRIORS, *WEIGHT_PRIORS, LayerPrior)}


def check_scale_prior(prior):
    """Refuses anything that is not a prior of a positive scale."""
    if not isinstance(prior, SCALE_PRIORS):
        names = sorted(cls.__name__ for cls in SCALE_PRIORS)
        raise TypeError(f"scale_prior must be one of tfbnn.priors {names}, received {prior!r}.")


def resolve_priors(prior, num_layers):
    """Turns what the user passes as `prior` into one `LayerPrior` per layer.

    Args:
        prior: A weight prior for everything, a dict {"kernel": .., "bias": ..}, or a list with one
            of these per layer.
        num_layers: Number of layers, the output layer included.

    Returns:
        Tuple of `num_layers` LayerPrior.
    """
    if isinstance(prior, (list, tuple)):
        if len(prior) != num_layers:
            raise ValueError(
                f"prior must be one prior or a list of {num_layers}, one per layer with the output "
                f"layer last, received {len(prior)}."
            )
        return tuple(_layer_prior(entry) for entry in prior)
    return (_layer_prior(prior),) * num_layers


def _layer_prior(entry):
    if isinstance(entry, LayerPrior):
        return LayerPrior(_weight_prior(entry.kernel), _weight_prior(entry.bias))
    if isinstance(entry, dict):
        if set(entry) != {"kernel", "bias"}:
            raise ValueError(
                "A prior given as a dict must have the keys 'kernel' and 'bias', received "
                f"{sorted(map(str, entry))}."
            )
        return LayerPrior(_weight_prior(entry["kernel"]), _weight_prior(entry["bias"]))
    return LayerPrior(_weight_prior(entry), _weight_prior(entry))


def _weight_prior(prior):
    if not isinstance(prior, WEIGHT_PRIORS):
        names = sorted(cls.__name__ for cls in WEIGHT_PRIORS)
        raise TypeError(f"prior must be made of tfbnn.priors {names}, received {prior!r}.")
    return prior
