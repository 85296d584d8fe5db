"""Priors and noise as users write them in files of their own, right ones and wrong ones."""

import math
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfbnn.likelihoods import CustomNoise
from tfbnn.priors import CustomPrior


@dataclass(frozen=True)
class StudentTPrior(CustomPrior):
    """Student's t."""

    df: float = 3.0
    scale: float = 1.0
    is_even = True

    def log_prob(self, weights):
        constant = math.lgamma((self.df + 1) / 2) - math.lgamma(self.df / 2)
        constant -= 0.5 * math.log(self.df * math.pi) + math.log(self.scale)
        tail = tf.math.log1p((weights / self.scale) ** 2 / self.df)
        return constant - 0.5 * (self.df + 1) * tail

    def sample(self, generator, shape):
        return self.scale * generator.standard_t(self.df, size=shape)


@dataclass(frozen=True)
class Triangle(CustomPrior):
    """Falls off to either side of zero, and is nothing beyond the width."""

    width: float = 2.0
    is_even = True

    @property
    def limits(self):
        return -self.width, self.width

    def log_prob(self, weights):
        height = (self.width - tf.abs(weights)) / self.width**2
        inside = height > 0
        density = tf.math.log(tf.where(inside, height, tf.ones_like(height)))
        return tf.where(inside, density, tf.constant(-math.inf, weights.dtype))

    def sample(self, generator, shape):
        return generator.triangular(-self.width, 0.0, self.width, size=shape)


@dataclass(frozen=True)
class AsymmetricLaplace(CustomNoise):
    """Exponential on either side of zero, `skew` times as steep above as it is below over skew."""

    skew: float = 1.5

    def log_prob(self, z):
        steepness = tf.where(z > 0, self.skew * tf.ones_like(z), -tf.ones_like(z) / self.skew)
        return -z * steepness - math.log(self.skew + 1.0 / self.skew)

    def quantile(self, probability):
        below = self.skew**2 / (1.0 + self.skew**2)
        left = np.log(np.minimum(probability, below) / below) * self.skew
        right = -np.log1p(-(np.maximum(probability, below) - below) / (1.0 - below)) / self.skew
        return left + right


@dataclass(frozen=True)
class Logistic(CustomNoise):
    """Logistic noise."""

    def log_prob(self, z):
        return -z - 2.0 * tf.math.softplus(-z)

    def quantile(self, probability):
        return np.log(probability / (1.0 - probability))


@dataclass(frozen=True)
class KnownLogistic(Logistic):
    """The same, whose moments are stated."""

    @property
    def moments(self):
        return 0.0, math.pi / math.sqrt(3.0)


@dataclass(frozen=True)
class Unnormalised(StudentTPrior):
    def log_prob(self, weights):
        return super().log_prob(weights) + 0.1


@dataclass(frozen=True)
class WrongSampler(StudentTPrior):
    def sample(self, generator, shape):
        return 1.1 * super().sample(generator, shape)


@dataclass(frozen=True)
class NoGradient(StudentTPrior):
    def log_prob(self, weights):
        return super().log_prob(tf.stop_gradient(weights)) + 0.0 * weights


@dataclass(frozen=True)
class GradientNotFinite(StudentTPrior):
    def log_prob(self, weights):
        unused = tf.sqrt(tf.minimum(weights, 0.0))
        return super().log_prob(weights) + tf.where(
            weights > 0, tf.zeros_like(weights), 0.0 * unused
        )


@dataclass(frozen=True)
class Rounded(StudentTPrior):
    def log_prob(self, weights):
        far = 1e6
        return super().log_prob((weights + far) - far)


@dataclass(frozen=True)
class Summed(StudentTPrior):
    def log_prob(self, weights):
        return tf.reduce_sum(super().log_prob(weights), axis=-1)


@dataclass(frozen=True)
class Flat(StudentTPrior):
    def sample(self, generator, shape):
        return super().sample(generator, shape).ravel()


@dataclass(frozen=True)
class OtherRandomness(StudentTPrior):
    def sample(self, generator, shape):
        return super().sample(np.random.default_rng(), shape)


@dataclass(frozen=True)
class NotEven(StudentTPrior):
    def log_prob(self, weights):
        return super().log_prob(weights - 0.5)

    def sample(self, generator, shape):
        return super().sample(generator, shape) + 0.5


@dataclass(frozen=True)
class BeyondItsLimits(StudentTPrior):
    limits = (-1.0, 1.0)


@dataclass(frozen=True)
class WrongQuantile(Logistic):
    def quantile(self, probability):
        return 1.01 * super().quantile(probability)


@dataclass(frozen=True)
class FlatQuantile(Logistic):
    def quantile(self, probability):
        return np.ravel(super().quantile(probability))


@dataclass(frozen=True)
class NoiseUnnormalised(Logistic):
    def log_prob(self, z):
        return super().log_prob(z) - 0.1


@dataclass(frozen=True)
class NoStandardDeviation(CustomNoise):
    def log_prob(self, z):
        return -math.log(math.pi) - tf.math.log1p(z**2)

    def quantile(self, probability):
        return np.tan(np.pi * (probability - 0.5))


@dataclass(frozen=True)
class WrongMoments(Logistic):
    moments = (0.0, 1.0)


@dataclass(frozen=True)
class NoExponentialMoments(Logistic):
    has_exponential_moments = True


class NoDataclass(StudentTPrior):
    pass


@dataclass(frozen=True)
class Uniform(StudentTPrior):
    """Has the name of a built-in one."""
