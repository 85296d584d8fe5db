"""Likelihoods: settings and the NumPy side (location, noise scale, density, noise quantiles).

Their log densities in TensorFlow are in `tfbnn.engine.density.densities`; tests hold the two together.
`noise_scale` is always a standard deviation, on the scale the network sees.
"""

from dataclasses import dataclass, field

import numpy as np

from tfbnn.data.validation import check_number
from tfbnn.spec.class_likelihoods import Bernoulli, Categorical
from tfbnn.spec.priors import HalfCauchy, HalfNormal, InverseGamma, LogNormal, check_scale_prior

LEARNED = "learned"


class _Regression:
    """What all likelihoods of numbers share: noise of some scale around a location."""

    has_classes = False

    def inverse_link(self, location):
        """Predictions out of locations, before the y transform is undone: they are the same."""
        return location

    def log_density(self, target, location, scale):
        """Log density summed over targets: [n, K], [..., n, K], broadcastable -> [..., n]."""
        return self.log_noise_density(target - location, scale).sum(axis=-1)


class _LocationScale(_Regression):
    """What Gaussian and StudentT share: every output is a location; the scale is fixed or learned.

    A known scale per row (`row_noise`) replaces a fixed scale and adds in quadrature to a learned
    one.
    """

    def num_targets(self, num_outputs):
        """Number of target columns K of a network with `num_outputs` outputs."""
        return num_outputs

    def num_noise_parameters(self, num_outputs):
        """Number of learned log noise scales: one per output, or none."""
        return num_outputs if self.noise_scale == LEARNED else 0

    def location(self, outputs):
        """Noise-free predictions [..., K] out of network outputs [..., num_outputs]."""
        return outputs

    def scale(self, outputs, log_noise_scale, row_noise):
        """Noise standard deviations, broadcastable to the locations.

        Args:
            outputs: Network outputs [S, n, num_outputs].
            log_noise_scale: Learned log scales [S, number of noise parameters].
            row_noise: Known standard deviations [n, K] or [S, n, K], transformed units, or None.
        """
        if self.noise_scale == LEARNED:
            learned = np.exp(log_noise_scale)[:, None, :]
            return learned if row_noise is None else np.hypot(learned, row_noise)
        if row_noise is not None:
            return row_noise
        return np.asarray(self.noise_scale, dtype=np.float64)

    def _check(self):
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

    def check_outputs(self, num_outputs):
        """Refuses a network that does not fit this likelihood."""
        if isinstance(self.noise_scale, tuple) and len(self.noise_scale) != num_outputs:
            raise ValueError(
                f"noise_scale must have one entry per output, {num_outputs}, received "
                f"{len(self.noise_scale)}."
            )


@dataclass(frozen=True)
class Gaussian(_LocationScale):
    """y ~ N(f(x), noise_scale^2), independent over rows and outputs.

    Attributes:
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default): one per output, sampled as log scale.
        scale_prior: Prior of a learned scale, default HalfNormal(1.0).
    """

    noise_scale: float | tuple | str = LEARNED
    scale_prior: HalfNormal | HalfCauchy | InverseGamma | LogNormal = field(
        default_factory=HalfNormal
    )

    def __post_init__(self):
        self._check()

    def log_noise_density(self, residual, scale):
        """Elementwise log density of y - location for noise of standard deviation `scale`."""
        return -0.5 * (residual / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)

    def noise_quantile(self, probability):
        """Quantile of the noise with standard deviation 1."""
        from scipy.special import ndtri

        return ndtri(probability)


@dataclass(frozen=True)
class StudentT(_LocationScale):
    """Student-t noise around f(x), for targets with outliers.

    The noise is t-distributed with `df` degrees of freedom, rescaled so that `noise_scale` is its
    standard deviation (the t scale is noise_scale * sqrt((df - 2) / df)).

    Attributes:
        df: Degrees of freedom, larger than 2 so that the standard deviation exists; default 4.
        noise_scale: Standard deviation after the y transform: a number, an array [K], or "learned"
            (default): one per output, sampled as log scale.
        scale_prior: Prior of a learned scale, default HalfNormal(1.0).
    """

    df: float = 4.0
    noise_scale: float | tuple | str = LEARNED
    scale_prior: HalfNormal | HalfCauchy | InverseGamma | LogNormal = field(
        default_factory=HalfNormal
    )

    def __post_init__(self):
        check_number("df", self.df, above=2)
        self._check()

    def log_noise_density(self, residual, scale):
        """Elementwise log density of y - location for noise of standard deviation `scale`."""
        from math import lgamma, log, pi

        spread = scale * np.sqrt((self.df - 2) / self.df)
        constant = lgamma((self.df + 1) / 2) - lgamma(self.df / 2) - 0.5 * log(self.df * pi)
        tail = -0.5 * (self.df + 1) * np.log1p((residual / spread) ** 2 / self.df)
        return constant - np.log(spread) + tail

    def noise_quantile(self, probability):
        """Quantile of the noise with standard deviation 1."""
        from scipy.special import stdtrit

        return stdtrit(self.df, probability) * np.sqrt((self.df - 2) / self.df)


@dataclass(frozen=True)
class HeteroscedasticGaussian(_Regression):
    """y ~ N(m(x), s(x)^2) where the network gives both: its last layer has 2 K units.

    The first K outputs are the means, softplus of the last K the standard deviations, after the y
    transform. A known scale per row adds in quadrature.
    """

    log_noise_density = Gaussian.log_noise_density
    noise_quantile = Gaussian.noise_quantile

    def num_targets(self, num_outputs):
        """Number of target columns K of a network with `num_outputs` = 2 K outputs."""
        return num_outputs // 2

    def num_noise_parameters(self, num_outputs):
        """There are no noise parameters besides the weights."""
        return 0

    def location(self, outputs):
        """Noise-free predictions [..., K] out of network outputs [..., 2 K]."""
        return outputs[..., : outputs.shape[-1] // 2]

    def scale(self, outputs, log_noise_scale, row_noise):
        """Noise standard deviations [S, n, K]; arguments as for Gaussian."""
        learned = np.logaddexp(0.0, outputs[..., outputs.shape[-1] // 2 :])
        return learned if row_noise is None else np.hypot(learned, row_noise)

    def check_outputs(self, num_outputs):
        """Refuses a network whose last layer cannot hold means and scales."""
        if num_outputs % 2:
            raise ValueError(
                "HeteroscedasticGaussian needs an even last entry of layer_sizes, 2 K for K "
                f"targets (means, then scales), received {num_outputs}. "
                f"Use {2 * num_outputs} for {num_outputs} targets."
            )


REGISTRY = {
    cls.__name__: cls
    for cls in (Gaussian, StudentT, HeteroscedasticGaussian, Bernoulli, Categorical)
}
