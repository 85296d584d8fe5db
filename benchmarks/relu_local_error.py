"""The energy error of one leapfrog step, for benchmarks/relu_inefficiency.py."""

import numpy as np

from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient

__all__ = ["fitted_slope", "local_error"]

STEP_SIZES = np.geomspace(1e-6, 2e-3, 14)
# Slopes are fitted where the error of the smooth pieces, of third order, is still the smaller one.
LARGEST_FITTED = 3e-5
TILE = 200
NEVER_MOVED = 0.1


def local_error(model, x, y, num_points):
    """Errors of H over one step of each size, from posterior draws with new momenta.

    Args:
        model: A fitted model [1, width, 1] in float64, without transforms.
        x, y: Its training rows.
        num_points: Number of (draw, momentum) pairs, the same for all step sizes.

    Returns:
        Dict of lists over step sizes: step_size; mean |error| of all steps; share of steps on which
        a hidden unit changes sign for some row, which is a kink if the activation has one; mean
        |error| of those (None where there is none).
    """
    generator = np.random.default_rng(0)
    theta = points(model.posterior, num_points, generator)
    momentum = generator.standard_normal(theta.shape)
    gradients = make_value_and_gradient(Potential(model.spec), make_data(x, y, None, "float64"))
    found = {"step_size": [], "mean": [], "share_crossing": [], "mean_crossing": []}
    for step in STEP_SIZES:
        tiles = [
            one_step(
                gradients, theta[place : place + TILE], momentum[place : place + TILE], step, x
            )
            for place in range(0, num_points, TILE)
        ]
        error, crosses = map(np.concatenate, zip(*tiles))
        found["step_size"].append(float(step))
        found["mean"].append(float(error.mean()))
        found["share_crossing"].append(float(crosses.mean()))
        found["mean_crossing"].append(float(error[crosses].mean()) if crosses.any() else None)
    return found


def points(posterior, num_points, generator):
    """Draws [num_points, P] of the chains that left their start."""
    moved = posterior.sample_stats["acceptance_rate"].mean(axis=1) > NEVER_MOVED
    draws = posterior.draws[moved].reshape(-1, posterior.draws.shape[-1])
    return draws[generator.integers(len(draws), size=num_points)]


def one_step(gradients, theta, momentum, step, x):
    """(|error of H|, whether a kink was crossed) of one leapfrog step, [M] each."""
    value, gradient = gradients(theta)
    half = momentum + 0.5 * step * gradient
    end = theta + step * half
    new_value, new_gradient = gradients(end)
    new_momentum = half + 0.5 * step * new_gradient
    kinetic = 0.5 * ((new_momentum**2).sum(-1) - (momentum**2).sum(-1))
    crosses = (active(theta, x) != active(end, x)).any(axis=(1, 2))
    return np.abs(kinetic - (new_value - value)), crosses


def active(theta, x):
    """Whether each hidden unit is on the positive side, for every row: [M, rows, width]."""
    width = (theta.shape[1] - 1) // 3
    kernel, bias = theta[:, None, :width], theta[:, None, width : 2 * width]
    return x * kernel + bias > 0.0


def fitted_slope(step_sizes, errors):
    """Slope of log(error) against log(step size), over the small steps."""
    points = [(s, e) for s, e in zip(step_sizes, errors) if e and s <= LARGEST_FITTED]
    return float(np.polyfit(*np.log(points).T, 1)[0])
