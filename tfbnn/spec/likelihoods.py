"""Likelihoods of numbers and of classes: settings and the NumPy side.

Their log densities in TensorFlow are in `tfbnn.engine.density.densities`, registered for each class
(see `tfbnn.spec.required`); tests hold the two together. `noise_scale` is always a standard deviation,
on the scale the network sees. Targets of classes are class numbers 0, 1, ..; the labels that they stand
for are kept by `tfbnn.data.labels`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma, log, pi, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tfbnn.data.validation import check_number
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.distributions import (
    normal_cdf,
    normal_quantile,
    student_t_cdf,
    student_t_quantile,
)
from tfbnn.spec.priors import ScalePrior, check_scale_prior
from tfbnn.system.arrays import Array


class Link(NamedTuple):
    """One inverse link wherever it is computed.

    Attributes:
        numpy: Locations [..., K] -> predictions of the same shape.
        tangent: (predictions [..., K], tangents of the locations [..., K]) -> those of the predictions.
        onnx: (op, name of locations [S, K, n]) -> name of the predictions, where op(kind, *inputs)
            adds an operation of the ONNX standard.
    """

    numpy: Callable[[Array], Array]
    tangent: Callable[[Array, Array], Array]
    onnx: Callable[[Callable[..., str], str], str]


def log_softmax(logits: Array) -> Array:
    """Log probabilities [..., M] out of logits [..., M]."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _softmax_tangent(p: Array, tangent: Array) -> Array:
    return p * (tangent - np.sum(p * tangent, axis=-1, keepdims=True))


LINKS = {
    "identity": Link(lambda f: f, lambda p, tangent: tangent, lambda op, f: f),
    "sigmoid": Link(
        lambda f: np.exp(-np.logaddexp(0.0, -f)),
        lambda p, tangent: p * (1.0 - p) * tangent,
        lambda op, f: op("Sigmoid", f),
    ),
    "exp": Link(lambda f: np.exp(f), lambda p, tangent: p * tangent, lambda op, f: op("Exp", f)),
    "softmax": Link(
        lambda f: np.exp(log_softmax(f)),
        _softmax_tangent,
        lambda op, f: op("Softmax", f, axis=1),
    ),
}


# By the names of the classes, as files have them, and by those of the command line.
REGISTRY: dict[str, type[Likelihood]] = {}
OPTIONS: dict[str, type[Likelihood]] = {}


class Likelihood(ABC):
    """The distribution of a row's targets given the network's outputs.

    A likelihood is a frozen dataclass of settings, and `class Mine(Likelihood, name="mine")` makes
    it known: to files by the name of the class, to `tfbnn fit --likelihood` by `name`. Classes
    without a name are there to be inherited from.

    Attributes:
        link: What makes predictions of its locations: a name in `LINKS`.
        has_classes: Whether targets are class labels, and predictions probabilities.
        has_counts: Whether they are counts, and predictions rates.
        is_conjugate: Whether a normal prior of the last layer has a normal posterior given all else:
            normal noise around the outputs, of a scale that does not depend on them.
        noise_scale: A fixed scale of the noise, one per output, or "learned"; None where there is no
            such setting.
        scale_prior: Prior of learned noise scales, "auto" until a model is made of it; None where
            there are none.
    """

    link: ClassVar[str]
    has_classes: ClassVar[bool]
    has_counts: ClassVar[bool] = False
    is_conjugate: ClassVar[bool] = False
    noise_scale: float | tuple[float, ...] | str | None = None
    scale_prior: ScalePrior | str | None = None

    def __init_subclass__(cls, name: str | None = None) -> None:
        if name is not None:
            REGISTRY[cls.__name__] = OPTIONS[name] = cls

    def num_targets(self, num_outputs: int) -> int:
        """Return the number of target columns K of a network with `num_outputs` outputs; by default the same."""
        return num_outputs

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """Return the number of outputs of a network for K target columns of so many classes, if of any."""
        return num_targets

    def check_outputs(self, num_outputs: int) -> None:
        """Refuse a network that does not fit this likelihood."""
        del num_outputs  # by default every number will do

    def num_noise_parameters(self, num_outputs: int) -> int:
        """Return the number of learned log noise scales besides the weights; by default none."""
        return 0

    def location(self, outputs: Any, offset: Array | None = None) -> Any:
        """Noise-free predictions out of network outputs [..., num_outputs], an array or a tensor.

        For targets that are numbers the first K [..., K]; of classes logits, [..., K] or
        [..., classes]; of counts rates, with the offset [n, K] of rows.
        """
        del offset
        return outputs[..., : self.num_targets(outputs.shape[-1])]

    def spread(self, outputs: Any) -> Any:
        """Return standard deviations of each draw's function around its location; None where it is known."""
        return None

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


LEARNED = "learned"
# Levels of a distribution function between quantiles: those of a normal so many standard deviations far.
_FARTHEST, _NUM_QUANTILES = 8.0, 4097


class Regression(Likelihood):
    """Base of all likelihoods of numbers.

    Attributes:
        has_exponential_moments: Whether exp(noise) has a mean and a variance, as 10**y needs them.
    """

    link = "identity"
    has_classes = False
    has_exponential_moments: ClassVar[bool]

    @property
    @abstractmethod
    def learns_noise(self) -> bool:
        """Tell whether rows tell at least a part of the noise, and not the user all of it."""

    @abstractmethod
    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array: ...

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Log density summed over targets."""
        return self.log_densities(target, location, scale).sum(axis=-1)

    @abstractmethod
    def log_densities(self, target: Array, location: Array, scale: Any) -> Array:
        """Elementwise log density of targets."""

    @abstractmethod
    def noise_quantile(self, probability: Array) -> Array:
        """Quantile of the noise with standard deviation 1: the score by which `noisy` finds a target."""

    @abstractmethod
    def noisy(self, score: Array, location: Array, scale: Any) -> Array:
        """Elementwise targets at scores of the noise."""

    @abstractmethod
    def cdf(self, target: Array, location: Array, scale: Any) -> Array:
        """Elementwise probability of at most these targets."""


class AdditiveNoise(Regression):
    """Base of noise of some scale around a location."""

    @property
    def learns_noise(self) -> bool:
        return self.noise_scale is None or self.noise_scale == LEARNED

    def log_densities(self, target: Array, location: Array, scale: Any) -> Array:
        return self.log_noise_density(target - location, scale)

    def noisy(self, score: Array, location: Array, scale: Any) -> Array:
        return location + score * scale

    def cdf(self, target: Array, location: Array, scale: Any) -> Array:
        return self.noise_cdf((target - location) / scale)

    @abstractmethod
    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        """Elementwise log density of y - location for noise of standard deviation `scale`."""

    def noise_cdf(self, residual: Array) -> Array:
        """Distribution function of the noise with standard deviation 1; by default between its quantiles."""
        levels = normal_cdf(np.linspace(-_FARTHEST, _FARTHEST, _NUM_QUANTILES))
        return np.interp(residual, self.noise_quantile(levels), levels, left=0.0, right=1.0)


class NormalNoise(AdditiveNoise):
    """Noise with a normal distribution."""

    has_exponential_moments = True

    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        return -0.5 * (residual / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)

    def noise_quantile(self, probability: Array) -> Array:
        return normal_quantile(probability)

    def noise_cdf(self, residual: Array) -> Array:
        return normal_cdf(residual)


class ScaledNoise(Regression):
    """Base of noise with a setting `noise_scale` that is fixed or learned, one per output."""

    noise_scale: float | tuple[float, ...] | str
    scale_prior: ScalePrior | str

    def num_noise_parameters(self, num_outputs: int) -> int:
        """One per output where the scale is learned."""
        return num_outputs if self.noise_scale == LEARNED else 0

    def __post_init__(self) -> None:
        if not is_auto(self.scale_prior):
            check_scale_prior(self.scale_prior)
        if isinstance(self.noise_scale, str):
            if self.noise_scale != LEARNED:
                raise ValueError(
                    "noise_scale must be a positive number, one per output, or 'learned', "
                    f"received {self.noise_scale!r}."
                )
            return
        scales = np.asarray(self.noise_scale)
        if scales.ndim > 1:
            raise ValueError(
                f"noise_scale must be a number or an array [K], received shape {scales.shape}."
            )
        values = tuple(check_number("noise_scale", v, above=0) for v in scales.ravel().tolist())
        object.__setattr__(self, "noise_scale", values if scales.ndim else values[0])

    def check_outputs(self, num_outputs: int) -> None:
        """Refuse a number of outputs other than that of the noise scales."""
        if isinstance(self.noise_scale, tuple) and len(self.noise_scale) != num_outputs:
            raise ValueError(
                f"noise_scale must have one entry per output, {num_outputs}, received "
                f"{len(self.noise_scale)}."
            )


class LocationScale(ScaledNoise, AdditiveNoise):
    """Base of Gaussian and StudentT: every output is a location.

    A known scale per row (`row_noise`) replaces a fixed scale and adds in quadrature to a learned
    one.
    """

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        if self.noise_scale == LEARNED:
            learned: Array = np.exp(log_noise_scale)[:, None, :]
            return learned if row_noise is None else np.hypot(learned, row_noise)
        if row_noise is not None:
            return row_noise
        return np.asarray(self.noise_scale, dtype=np.float64)


@dataclass(frozen=True)
class Gaussian(NormalNoise, LocationScale, name="gaussian"):
    """y ~ N(f(x), noise_scale^2), independent over rows and outputs.

    Attributes:
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default): one per output, sampled as log scale.
        scale_prior: Prior of a learned scale; "auto" (default): HalfNormal(1.0).
    """

    noise_scale: float | tuple[float, ...] | str = LEARNED
    scale_prior: ScalePrior | str = AUTO

    is_conjugate = True


@dataclass(frozen=True)
class StudentT(LocationScale, name="student_t"):
    """Student-t noise around f(x), for targets with outliers.

    The noise is t-distributed with `df` degrees of freedom, rescaled so that `noise_scale` is its
    standard deviation (the t scale is noise_scale * sqrt((df - 2) / df)).

    Attributes:
        df: Degrees of freedom, larger than 2 so that the standard deviation exists; default 4.
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default): one per output, sampled as log scale.
        scale_prior: Prior of a learned scale; "auto" (default): HalfNormal(1.0).
    """

    df: float = 4.0
    noise_scale: float | tuple[float, ...] | str = LEARNED
    scale_prior: ScalePrior | str = AUTO

    has_exponential_moments = False

    def __post_init__(self) -> None:
        check_number("df", self.df, above=2)
        super().__post_init__()

    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        spread = scale * np.sqrt((self.df - 2) / self.df)
        constant = lgamma((self.df + 1) / 2) - lgamma(self.df / 2) - 0.5 * log(self.df * pi)
        tail = -0.5 * (self.df + 1) * np.log1p((residual / spread) ** 2 / self.df)
        return constant - np.log(spread) + tail

    def noise_quantile(self, probability: Array) -> Array:
        return student_t_quantile(probability, self.df) * sqrt((self.df - 2) / self.df)

    def noise_cdf(self, residual: Array) -> Array:
        return student_t_cdf(residual / sqrt((self.df - 2) / self.df), self.df)


@dataclass(frozen=True)
class HeteroscedasticGaussian(NormalNoise, name="heteroscedastic"):
    """y ~ N(m(x), s(x)^2) where the network gives both: its last layer has 2 K units.

    The first K outputs are the means, softplus of the last K the standard deviations, after the y
    transform. A known scale per row adds in quadrature.
    """

    def num_targets(self, num_outputs: int) -> int:
        return num_outputs // 2

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """2 K for K targets."""
        return 2 * num_targets

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        learned: Array = np.logaddexp(0.0, outputs[..., outputs.shape[-1] // 2 :])
        return learned if row_noise is None else np.hypot(learned, row_noise)

    def check_outputs(self, num_outputs: int) -> None:
        """Refuse a network whose last layer cannot hold means and scales."""
        if num_outputs % 2:
            raise ValueError(
                "HeteroscedasticGaussian needs an even last entry of layer_sizes, 2 K for K "
                f"targets (means, then scales), received {num_outputs}. "
                f"Use {2 * num_outputs} for {num_outputs} targets."
            )


class ClassLikelihood(Likelihood):
    """Base of the likelihoods of class labels."""

    has_classes = True

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> None:
        """None: a class has no noise besides its probability."""

    @abstractmethod
    def num_classes(self, num_outputs: int) -> int:
        """Return the number of classes of every target."""

    @abstractmethod
    def class_probabilities(self, probabilities: Array) -> Array:
        """Probabilities of all classes of every target: predictions [N, columns] -> [N, K, number of classes]."""


@dataclass(frozen=True)
class Bernoulli(ClassLikelihood, name="bernoulli"):
    """Independent binary targets: P(y_k = 1 | x) = 1 / (1 + exp(-f_k(x))).

    The last entry of layer_sizes is the number of targets K. Targets are 0 and 1 or False and True,
    [N, K]; for K = 1 also any two labels, text or integers, of which the second in order counts as
    1. Probabilities are those of 1, or of the second label.
    """

    link = "sigmoid"

    def num_classes(self, num_outputs: int) -> int:
        return 2

    def class_probabilities(self, probabilities: Array) -> Array:
        """Probabilities of both classes of every target: predictions [N, K] -> [N, K, 2]."""
        return np.stack([1.0 - probabilities, probabilities], axis=-1)

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Log probability of class numbers [n, K], summed over targets: [..., n, K] -> [..., n]."""
        return -np.logaddexp(0.0, (1.0 - 2.0 * target) * location).sum(axis=-1)


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

    def location(self, outputs: Any, offset: Array | None = None) -> Any:
        """Centred logits [..., M] out of network outputs [..., M]."""
        return outputs - outputs.mean(axis=-1, keepdims=True)

    def class_probabilities(self, probabilities: Array) -> Array:
        """Probabilities of all classes of the only target: predictions [N, M] -> [N, 1, M]."""
        return probabilities[:, None, :]

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Log probability of class numbers [n, 1]: logits [..., n, M] -> [..., n]."""
        index = np.broadcast_to(target.astype(int), (*location.shape[:-1], 1))
        return np.take_along_axis(log_softmax(location), index, axis=-1)[..., 0]

    def check_outputs(self, num_outputs: int) -> None:
        """Refuse a network with a single output."""
        if num_outputs < 2:
            raise ValueError(
                "Categorical needs one output per class, at least 2, as the last entry of "
                f"layer_sizes, received {num_outputs}. For two classes on one logit use Bernoulli()."
            )
