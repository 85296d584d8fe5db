"""Likelihoods of numbers and of classes: settings and the NumPy side.

Their log densities in TensorFlow are in `tfbnn.engine.density.densities`, registered for each class
(see `tfbnn.spec.required`); tests compare the two. `noise_scale` is always a standard deviation, on
the scale the network sees. Targets of classes are class numbers 0, 1, ..; `tfbnn.data.labels` keeps
the labels that they stand for.
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
    """An inverse link: its NumPy function, its tangent and its ONNX operations.

    Attributes:
        numpy: Locations [..., K] -> predictions of the same shape.
        tangent: (predictions [..., K], tangents of the locations [..., K]) -> tangents of the
            predictions.
        onnx: (op, name of locations [S, K, n]) -> name of the predictions, where op(kind, *inputs)
            adds an operation of the ONNX standard.
    """

    numpy: Callable[[Array], Array]
    tangent: Callable[[Array, Array], Array]
    onnx: Callable[[Callable[..., str], str], str]


def log_softmax(logits: Array) -> Array:
    """Compute log probabilities [..., M] from logits [..., M]."""
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


# Likelihoods by class name, as in files, and by their names on the command line.
REGISTRY: dict[str, type[Likelihood]] = {}
OPTIONS: dict[str, type[Likelihood]] = {}


class Likelihood(ABC):
    """Base class: the distribution of a row's targets given the network's outputs.

    A likelihood is a frozen dataclass of settings. `class Mine(Likelihood, name="mine")` registers
    it: for files by the name of the class, for `tfbnn fit --likelihood` by `name`. Classes without
    a name are base classes.

    Attributes:
        link: Name in `LINKS` of the function that turns locations into predictions.
        has_classes: Whether targets are class labels, and predictions probabilities.
        has_counts: Whether targets are counts, and predictions rates.
        is_conjugate: Whether a normal prior of the last layer has a normal posterior given all
            other parameters. This needs normal noise whose scale does not depend on the outputs.
        noise_scale: A fixed scale of the noise, one per output, or "learned"; None if there is no
            such setting.
        scale_prior: Prior of learned noise scales, "auto" until a model is built with it; None if
            there are no such scales.
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
        """Return the number of target columns K for `num_outputs` outputs; by default the same."""
        return num_outputs

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """Return the number of outputs for K target columns, with `num_classes` classes if any."""
        return num_targets

    def check_outputs(self, num_outputs: int) -> None:
        """Raise ValueError if the number of outputs does not fit this likelihood."""
        del num_outputs  # by default every number fits

    def num_noise_parameters(self, num_outputs: int) -> int:
        """Return the number of learned log noise scales; by default none."""
        return 0

    def location(self, outputs: Any, offset: Array | None = None) -> Any:
        """Compute noise-free predictions from network outputs [..., num_outputs], array or tensor.

        For numeric targets they are the first K outputs [..., K]. For classes they are logits,
        [..., K] or [..., classes]. For counts they are rates, with the offset [n, K] of the rows.
        """
        return outputs[..., : self.num_targets(outputs.shape[-1])]

    def spread(self, outputs: Any) -> Any:
        """Return the spread of each draw's function around its location; None if it is known.

        The spread is a standard deviation.
        """
        return None

    def inverse_link(self, location: Array) -> Array:
        """Compute predictions from locations of the same shape, before undoing the y transform."""
        return LINKS[self.link].numpy(location)

    def link_tangent(self, predictions: Array, tangent: Array) -> Array:
        """Compute tangents of predictions from tangents of their locations, all [..., K]."""
        return LINKS[self.link].tangent(predictions, tangent)

    @abstractmethod
    def scale(
        self, outputs: Array, log_noise_scale: Array, row_noise: Array | None
    ) -> Array | None:
        """Compute noise standard deviations, broadcastable to the locations; None for classes.

        Args:
            outputs: Network outputs [S, n, num_outputs].
            log_noise_scale: Learned log scales [S, number of noise parameters].
            row_noise: Known standard deviations [n, K] or [S, n, K], transformed units, or None.
        """

    @abstractmethod
    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Compute the log density, summed over targets.

        Targets [n, K], locations [..., n, K] and a broadcastable scale give [..., n]. Targets of
        classes are class numbers.
        """


LEARNED = "learned"
# Range, in normal standard deviations, and number of the quantiles between which `noise_cdf`
# interpolates.
_FARTHEST, _NUM_QUANTILES = 8.0, 4097


class Regression(Likelihood):
    """Base class of all likelihoods of numbers.

    Attributes:
        has_exponential_moments: Whether exp(noise) has a mean and a variance, which 10**y needs.
    """

    link = "identity"
    has_classes = False
    has_exponential_moments: ClassVar[bool]

    @property
    def learns_noise(self) -> bool:
        """True if at least a part of the noise is learned from the rows, not given by the user."""
        return self.noise_scale is None or self.noise_scale == LEARNED

    @abstractmethod
    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array: ...

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Compute the log density, summed over targets."""
        return self.log_densities(target, location, scale).sum(axis=-1)

    @abstractmethod
    def log_densities(self, target: Array, location: Array, scale: Any) -> Array:
        """Compute the log density of targets, elementwise."""

    @abstractmethod
    def noise_quantile(self, probability: Array) -> Array:
        """Compute quantiles of the noise with standard deviation 1, the scores of `noisy`."""

    @abstractmethod
    def noisy(self, score: Array, location: Array, scale: Any) -> Array:
        """Compute targets at scores of the noise, elementwise."""

    @abstractmethod
    def cdf(self, target: Array, location: Array, scale: Any) -> Array:
        """Compute the probability of at most these targets, elementwise."""


class AdditiveNoise(Regression):
    """Base class of additive noise with some scale around a location."""

    def log_densities(self, target: Array, location: Array, scale: Any) -> Array:
        return self.log_noise_density(target - location, scale)

    def noisy(self, score: Array, location: Array, scale: Any) -> Array:
        return location + score * scale

    def cdf(self, target: Array, location: Array, scale: Any) -> Array:
        return self.noise_cdf((target - location) / scale)

    @abstractmethod
    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        """Compute the log density of y - location with standard deviation `scale`, elementwise."""

    def noise_cdf(self, residual: Array) -> Array:
        """Compute the distribution function of the noise with standard deviation 1.

        By default it interpolates between quantiles.
        """
        levels = normal_cdf(np.linspace(-_FARTHEST, _FARTHEST, _NUM_QUANTILES))
        return np.interp(residual, self.noise_quantile(levels), levels, left=0.0, right=1.0)


class NormalNoise(AdditiveNoise):
    """Additive noise with a normal distribution."""

    has_exponential_moments = True

    def log_noise_density(self, residual: Array, scale: Any) -> Array:
        return -0.5 * (residual / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)

    def noise_quantile(self, probability: Array) -> Array:
        return normal_quantile(probability)

    def noise_cdf(self, residual: Array) -> Array:
        return normal_cdf(residual)


class ScaledNoise(Regression):
    """Base class of noise with a setting `noise_scale` that is fixed or learned, one per output."""

    noise_scale: float | tuple[float, ...] | str
    scale_prior: ScalePrior | str

    def num_noise_parameters(self, num_outputs: int) -> int:
        """Return one per output if the scale is learned, else none."""
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
        """Raise ValueError if the number of outputs differs from that of the noise scales."""
        if isinstance(self.noise_scale, tuple) and len(self.noise_scale) != num_outputs:
            raise ValueError(
                f"noise_scale must have one entry per output, {num_outputs}, received "
                f"{len(self.noise_scale)}."
            )


class LocationScale(ScaledNoise, AdditiveNoise):
    """Base class of Gaussian, StudentT and CustomNoise: every output is a location.

    A known scale per row (`row_noise`) replaces a fixed scale, and adds in quadrature to a learned
    scale.
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
            (default), which samples one log scale per output.
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
            (default), which samples one log scale per output.
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
    """y ~ N(m(x), s(x)^2), where the network gives both: its last layer has 2 K units.

    The first K outputs are the means; softplus of the last K outputs gives the standard deviations.
    Both are after the y transform. A known scale per row adds in quadrature.
    """

    def num_targets(self, num_outputs: int) -> int:
        return num_outputs // 2

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """Return 2 K for K targets."""
        return 2 * num_targets

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        learned: Array = np.logaddexp(0.0, outputs[..., outputs.shape[-1] // 2 :])
        return learned if row_noise is None else np.hypot(learned, row_noise)

    def check_outputs(self, num_outputs: int) -> None:
        """Raise ValueError unless the last layer can hold means and scales."""
        if num_outputs % 2:
            raise ValueError(
                "HeteroscedasticGaussian needs an even last entry of layer_sizes, 2 K for K "
                f"targets (means, then scales), received {num_outputs}. "
                f"Use {2 * num_outputs} for {num_outputs} targets."
            )


class ClassLikelihood(Likelihood):
    """Base class of the likelihoods of class labels."""

    has_classes = True

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> None:
        """Return None: a class has no noise besides its probability."""

    @abstractmethod
    def num_classes(self, num_outputs: int) -> int:
        """Return the number of classes of every target."""

    @abstractmethod
    def class_probabilities(self, probabilities: Array) -> Array:
        """Return probabilities of all classes of every target.

        Predictions [N, columns] become [N, K, number of classes].
        """


@dataclass(frozen=True)
class Bernoulli(ClassLikelihood, name="bernoulli"):
    """Independent binary targets: P(y_k = 1 | x) = 1 / (1 + exp(-f_k(x))).

    The last entry of layer_sizes is the number of targets K. Targets are 0 and 1, or False and
    True, [N, K]. For K = 1 they may also be any two labels, text or integers; the second in sorted
    order counts as 1. Probabilities are those of 1, or of the second label.
    """

    link = "sigmoid"

    def num_classes(self, num_outputs: int) -> int:
        return 2

    def class_probabilities(self, probabilities: Array) -> Array:
        """Return probabilities of both classes of every target: predictions [N, K] -> [N, K, 2]."""
        return np.stack([1.0 - probabilities, probabilities], axis=-1)

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Compute log probabilities of class numbers [n, K], summed over targets.

        Logits [..., n, K] give [..., n].
        """
        return -np.logaddexp(0.0, (1.0 - 2.0 * target) * location).sum(axis=-1)


@dataclass(frozen=True)
class Categorical(ClassLikelihood, name="categorical"):
    """One label out of M classes: P(y = k | x) = exp(f_k(x)) / sum_j exp(f_j(x)).

    The last entry of layer_sizes is the number of classes M, at least 2. Targets are labels [N],
    text or integers. A common shift of all outputs does not change the softmax; only the prior
    determines it. Predictions and diagnostics therefore show logits minus their mean over classes.
    """

    link = "softmax"

    def num_targets(self, num_outputs: int) -> int:
        """Return 1: there is one column of labels, whatever the number of classes."""
        return 1

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        """Return the number of classes: there is one output per class."""
        return num_classes

    def num_classes(self, num_outputs: int) -> int:
        return num_outputs

    def location(self, outputs: Any, offset: Array | None = None) -> Any:
        """Compute centred logits [..., M] from network outputs [..., M]."""
        return outputs - outputs.mean(axis=-1, keepdims=True)

    def class_probabilities(self, probabilities: Array) -> Array:
        """Return probabilities of all classes of the one target: [N, M] -> [N, 1, M]."""
        return probabilities[:, None, :]

    def log_density(self, target: Array, location: Array, scale: Array | None = None) -> Array:
        """Compute log probabilities of class numbers [n, 1]: logits [..., n, M] -> [..., n]."""
        index = np.broadcast_to(target.astype(int), (*location.shape[:-1], 1))
        return np.take_along_axis(log_softmax(location), index, axis=-1)[..., 0]

    def check_outputs(self, num_outputs: int) -> None:
        """Raise ValueError for a network with a single output."""
        if num_outputs < 2:
            raise ValueError(
                "Categorical needs one output per class, at least 2, as the last entry of "
                f"layer_sizes, received {num_outputs}. For two classes on one logit use Bernoulli()."
            )
