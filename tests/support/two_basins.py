"""A network of one hidden unit whose posterior has two basins, and their masses by quadrature.

The targets are a plateau, of which one unit has room for one edge only; the right floor is a little
higher than the left one, so that the two edges do not have the same mass.
"""

from typing import NamedTuple

import numpy as np

from tests.support.builders import plain_spec
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal
from tfbnn.spec.rows import NetworkRows

NOISE, PRIOR = 0.15, 3.0
X = np.linspace(-3.0, 3.0, 30)
Y = np.where(np.abs(X) < 1.0, 1.0, np.where(X < 0.0, 0.0, 0.01))
SPEC = plain_spec((1, 1, 1), prior=Normal(PRIOR), likelihood=Gaussian(NOISE))
ROWS = NetworkRows(X[:, None], Y[:, None], None)


def readout(kernel, bias):
    """Given the hidden unit [G] the readout is normal: (mean [G, 2], precision [G, 2, 2], log mass)."""
    hidden = np.tanh(kernel[:, None] * X + bias[:, None])
    features = np.stack([hidden, np.ones_like(hidden)], axis=2)
    precision = np.einsum("gni,gnj->gij", features, features) / NOISE**2 + np.eye(2) / PRIOR**2
    right = np.einsum("gni,n->gi", features, Y) / NOISE**2
    mean = np.linalg.solve(precision, right[..., None])[..., 0]
    mass = 0.5 * np.sum(mean * right, axis=1) - 0.5 * np.linalg.slogdet(precision)[1]
    mass -= 0.5 * Y @ Y / NOISE**2 + 0.5 * len(X) * np.log(2 * np.pi * NOISE**2) + 2 * np.log(PRIOR)
    return mean, precision, mass


class Basin(NamedTuple):
    """Cells of a grid in (kernel, edge = -bias / kernel), for positive kernels.

    Attributes:
        kernel, edge: Of the cells [G].
        widths: Of a cell in both.
        log_mass: Of the cells [G].
    """

    kernel: np.ndarray
    edge: np.ndarray
    widths: tuple
    log_mass: np.ndarray

    @classmethod
    def between(cls, low, high, size=300):
        """The basin whose edge is between two inputs."""
        kernel, edge = np.linspace(0.02, 16.0, size), np.linspace(low, high, size)
        widths = kernel[1] - kernel[0], edge[1] - edge[0]
        kernel, edge = (axis.ravel() for axis in np.meshgrid(kernel, edge, indexing="ij"))
        prior = -0.5 * (kernel**2 + (kernel * edge) ** 2) / PRIOR**2 - np.log(2 * np.pi * PRIOR**2)
        log_mass = readout(kernel, -kernel * edge)[2] + prior + np.log(kernel * np.prod(widths))
        return cls(kernel, edge, widths, log_mass)

    @property
    def evidence(self):
        """Log mass of all cells: of one of the two copies of the basin."""
        return np.logaddexp.reduce(self.log_mass)

    def draws(self, generator, count):
        """Independent draws [count, P], in either copy."""
        cells = generator.choice(len(self.kernel), count, p=np.exp(self.log_mass - self.evidence))
        kernel, edge = (
            values[cells] + width * generator.uniform(-0.5, 0.5, count)
            for values, width in zip((self.kernel, self.edge), self.widths)
        )
        mean, precision, _ = readout(kernel, -kernel * edge)
        factors = np.linalg.cholesky(np.linalg.inv(precision))
        weights = mean + np.einsum("gij,gj->gi", factors, generator.normal(size=mean.shape))
        signs = generator.choice([-1.0, 1.0], count)
        return np.stack(
            [signs * kernel, -signs * kernel * edge, signs * weights[:, 0], weights[:, 1]], 1
        )


def function(draws):
    """Predictions [C, S, N, 1] of draws [C, S, P] at the rows."""
    kernel, bias, weight, shift = np.moveaxis(draws[..., None], -2, 0)
    return (weight * np.tanh(kernel * X + bias) + shift)[..., None]
