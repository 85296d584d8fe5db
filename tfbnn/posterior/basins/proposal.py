"""Normal distributions in the coordinates in which the curvature at one network is one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.system.arrays import Array


class Frame(NamedTuple):
    """Coordinates z = L^T (theta - centre), in which H = L L^T is the unit matrix.

    Attributes:
        centre: [P].
        factor: Lower Cholesky factor L [P, P].
    """

    centre: Array
    factor: Array

    def whiten(self, theta: Array) -> Array:
        """theta [M, P] -> z [M, P]."""
        return (theta - self.centre) @ self.factor

    def normal(self, mean: Array, spread: Array) -> Normal:
        """N(mean, spread spread^T) of z, as a distribution of theta."""
        log_det = np.log(np.diag(spread)).sum() - np.log(np.diag(self.factor)).sum()
        return Normal(self, mean, spread, float(log_det))

    def shrunk(self, scale: float) -> Normal:
        """The normal distribution with this curvature, its lengths times `scale`."""
        count = len(self.centre)
        return self.normal(np.zeros(count), scale * np.eye(count))

    def fitted(self, draws: Array, size: float) -> Normal:
        """With the mean of draws, and their covariance as far as so few can tell it from H^-1.

        It is that of so many draws and P more whose covariance is H^-1: with far fewer draws than
        parameters no other has an inverse.

        Args:
            draws: [M, P].
            size: Their effective number.
        """
        z = self.whiten(draws)
        mean, count = z.mean(axis=0), len(self.centre)
        covariance = size * np.cov(z, rowvar=False, bias=True).reshape(count, count)
        covariance = (covariance + count * np.eye(count)) / (size + count)
        return self.normal(mean, np.linalg.cholesky(covariance))


class Normal(NamedTuple):
    """A normal distribution of theta.

    Attributes:
        frame: Frame.
        mean, spread: Of z: its mean [P], and the lower Cholesky factor of its covariance [P, P].
        log_det: Log determinant of d theta / d (standard normal numbers).
    """

    frame: Frame
    mean: Array
    spread: Array
    log_det: float

    def sample(self, generator: np.random.Generator, count: int) -> Array:
        """Draws [count, P]."""
        standard = generator.standard_normal((count, len(self.mean)))
        z = self.mean + standard @ self.spread.T
        draws: Array = self.frame.centre + np.linalg.solve(self.frame.factor.T, z.T).T
        return draws

    def log_density(self, theta: Array) -> Array:
        """At theta [M, P]: [M]."""
        z = self.frame.whiten(theta) - self.mean
        standard = np.linalg.solve(self.spread, z.T)
        constant = 0.5 * len(self.mean) * np.log(2.0 * np.pi) + self.log_det
        density: Array = -0.5 * np.square(standard).sum(axis=0) - constant
        return density
