"""Two small networks whose posterior is known, for the kernels that ask for a network.

What is compared are moments of f at three inputs, which do not care for the symmetries of the network,
or of the two weights of the line.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy import special, stats

import tfbnn
from benchmarks.studies.reference_posteriors.densities import LOG_2PI, Moments
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal, Uniform

NOISE = 0.3
X = np.linspace(-2.0, 2.0, 15)
SEEN_AT = np.array([-1.5, 0.3, 2.5])
NOT_SCALED = dict(x_transform=None, y_transform=None, dtype="float64")


@dataclasses.dataclass(frozen=True)
class Network:
    """A network, its targets at X, and what is known of its posterior.

    Attributes:
        model: Function that returns a new `BayesianMLP`.
        y: Targets [N] at X [N].
        quantities: Function of a fitted model that returns [C, S, Q].
        moments: Function that returns their Moments.
    """

    model: Callable
    y: np.ndarray
    quantities: Callable
    moments: Callable[[], Moments]


def bump():
    return tfbnn.BayesianMLP([1, 1, 1], prior=Normal(1.0), likelihood=Gaussian(NOISE), **NOT_SCALED)


def bump_targets():
    noise = np.random.default_rng(7).normal(size=len(X))
    return np.tanh(1.2 * X - 0.4) + 0.3 + NOISE * noise


def functions(model):
    """f [C, S, 3] at SEEN_AT."""
    draws = model.predict_draws(SEEN_AT[:, None])
    return np.reshape(draws, (*model.posterior.draws.shape[:2], len(SEEN_AT)))


def bump_moments():
    """Given kernel and bias of the unit, (readout, offset) are normal, and so is f."""
    inside = np.linspace(-7.0, 7.0, 561)
    points = np.stack(np.meshgrid(inside, inside, indexing="ij"), axis=-1).reshape(-1, 2)
    y, kernel, bias = bump_targets(), points[:, :1], points[:, 1:]
    unit = np.tanh(kernel * X + bias)
    # Precision of the two, [[a, b], [b, c]], and its inverse by hand.
    a = 1.0 + np.sum(unit**2, axis=-1) / NOISE**2
    b = np.sum(unit, axis=-1) / NOISE**2
    c = 1.0 + len(X) / NOISE**2
    determinant = a * c - b**2
    along, total = unit @ y / NOISE**2, np.sum(y) / NOISE**2
    readout = (c * along - b * total) / determinant
    offset = (a * total - b * along) / determinant
    log_weights = (
        stats.norm.logpdf(points).sum(axis=-1)
        + 0.5 * (readout * along + offset * total - np.log(determinant) - np.sum(y**2) / NOISE**2)
        - len(X) * (np.log(NOISE) + 0.5 * LOG_2PI)
        + 2.0 * np.log(inside[1] - inside[0])
    )
    at = np.tanh(kernel * SEEN_AT + bias)
    means = readout[:, None] * at + offset[:, None]
    variances = (c * at**2 - 2.0 * b[:, None] * at + a[:, None]) / determinant[:, None]
    return Moments.of_mixture(log_weights, means, variances)


def boxed_line():
    return tfbnn.BayesianMLP(
        [1, 1], prior=Uniform(-1.0, 1.0), likelihood=Gaussian(NOISE), **NOT_SCALED
    )


def boxed_targets():
    noise = np.random.default_rng(11).normal(size=len(X))
    return 0.95 * X - 0.9 + NOISE * noise


def weights(model):
    return model.posterior.draws


def boxed_moments():
    """Over the square, by the rule of Gauss and Legendre."""
    nodes, areas = special.roots_legendre(300)
    points = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    predicted = points[:, :1] * X + points[:, 1:]
    log_weights = stats.norm.logpdf(boxed_targets(), predicted, NOISE).sum(axis=-1)
    log_weights += np.log(0.25 * np.outer(areas, areas)).ravel()
    return Moments.of_mixture(log_weights, points, np.zeros_like(points))


NETWORKS = {
    "network 1-1-1": Network(bump, bump_targets(), functions, bump_moments),
    "line in a box": Network(boxed_line, boxed_targets(), weights, boxed_moments),
}
