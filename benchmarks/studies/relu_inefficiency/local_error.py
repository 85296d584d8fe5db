"""The energy error of one leapfrog step, for the scripts benchmarks/relu_*.py."""

import numpy as np

from benchmarks.lib.common import markdown
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient

__all__ = [
    "LARGEST_FITTED",
    "TILE",
    "active",
    "error_table",
    "fitted_slope",
    "local_error",
    "one_step",
    "points",
]

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
            error_and_crossing(
                gradients, theta[start : start + TILE], momentum[start : start + TILE], step, x
            )
            for start in range(0, num_points, TILE)
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


def error_and_crossing(gradients, theta, momentum, step, x):
    """(|error of H|, whether a kink was crossed) of one leapfrog step, [M] each."""
    error, half = one_step(gradients, theta, momentum, step)
    crosses = (active(theta, x) != active(theta + step * half, x)).any(axis=(1, 2))
    return np.abs(error), crosses


def one_step(gradients, theta, momentum, step):
    """(error of H [M], momentum in the middle of the step [M, P]) of one leapfrog step."""
    value, gradient = gradients(theta)
    half = momentum + 0.5 * step * gradient
    new_value, new_gradient = gradients(theta + step * half)
    new_momentum = half + 0.5 * step * new_gradient
    kinetic = 0.5 * ((new_momentum**2).sum(-1) - (momentum**2).sum(-1))
    return kinetic - (new_value - value), half


def active(theta, x):
    """Return whether each hidden unit is on the positive side, for every row: [M, rows, width]."""
    width = (theta.shape[1] - 1) // 3
    kernel, bias = theta[:, None, :width], theta[:, None, width : 2 * width]
    return x * kernel + bias > 0.0


def fitted_slope(step_sizes, errors):
    """Slope of log(error) against log(step size), over the small steps."""
    points = [(s, e) for s, e in zip(step_sizes, errors) if e and s <= LARGEST_FITTED]
    return float(np.polyfit(*np.log(points).T, 1)[0])


def error_table(rows):
    """Slopes of the error of a single step."""
    lines = []
    for row in rows:
        smooth = row["activation"] == "sigmoid"
        crossing = [None] * len(row["step_size"]) if smooth else row["mean_crossing"]
        lines.append(
            [
                row["activation"],
                f"{fitted_slope(row['step_size'], row['mean']):.2f}",
                "" if smooth else f"{fitted_slope(row['step_size'], crossing):.2f}",
                ""
                if smooth
                else f"{row['share_crossing'][0]:.1%}, {row['share_crossing'][-1]:.0%}",
            ]
        )
    smallest, largest = rows[0]["step_size"][0], rows[0]["step_size"][-1]
    header = [
        "activation",
        "slope, all steps",
        "slope, steps that cross a kink",
        f"steps that cross a kink at eps = {smallest:g}, {largest:g}",
    ]
    return (
        "## Error of the energy in one leapfrog step\n\n"
        "The table has slopes of the logarithm of the mean |error| against that of eps up to 3e-5, in float64. Steps "
        "start at draws of the posterior with new momenta, the same for all eps.\n\n"
        + markdown(header, lines)
    )
