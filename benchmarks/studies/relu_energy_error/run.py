"""Energy errors of single leapfrog steps on a ReLU network against theorem 3.3 of Dinh et al. 2024.

    python -m benchmarks relu_energy_error [--quick --output FOLDER]

The network and the rows of benchmarks/studies/relu_inefficiency/run.py. Crossing times are exact: along a step
the input of a hidden unit changes linearly. Rows are kept as they finish; the table is
benchmarks/results/relu_energy_error.md.

Reference: arXiv:2410.22065.
"""

import argparse

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.relu_inefficiency.local_error import (
    LARGEST_FITTED,
    TILE,
    active,
    fitted_slope,
    one_step,
    points,
)
from benchmarks.studies.relu_inefficiency.run import NOISE_SCALE, WIDTH, Case, Length, fit, rows
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient

STEP_SIZES = (5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4)

SETUP = """\
A 1-{width}-1 network with ReLU has N(0, 1) priors and Gaussian noise of {noise} on 100 rows, in float64. One
leapfrog step is made from each of {points:,} draws of its posterior with new momenta, the same for all step
sizes eps. At a kink, a hidden unit switches on or off for a row. The table has the share of steps that cross
a kink and, for these steps, the number of kinks, the energy error dH, and the rest: dH minus the formula of
theorem 3.3, p_1/2 . sum_i (eps / 2 - eps_i) (jump of the gradient at kink i). Here p_1/2 is the momentum in
the middle of the step, and eps_i the time of kink i. Dinh, Ho and Nguyen 2024, arXiv:2410.22065, prove that
the rest is of order eps^2, and do not measure it."""


def theorem(theta, half, step, x, y):
    """(error of H [M] by theorem 3.3, kinks crossed [M]) of leapfrog steps; arguments as of `kinks_of_steps`."""
    who, times, jump = kinks_of_steps(theta, half, step, x, y)
    errors = np.zeros(len(theta))
    np.add.at(errors, who, (0.5 * step - times) * jump)
    return errors, np.bincount(who, minlength=len(theta))


def kinks_of_steps(theta, half, step, x, y):
    """(Numbers of the steps, times, momentum times jump of the gradient) of all kinks crossed [kinks] each.

    Args:
        theta: [M, P], where steps begin.
        half: [M, P], their momenta in the middle.
        step: Step size.
        x, y: [N, 1], the rows.
    """
    kernel, bias, readout = np.split(theta[:, :-1], 3, axis=1)
    kernel_speed, bias_speed, readout_speed = np.split(half[:, :-1], 3, axis=1)
    crosses = active(theta, x) != active(theta + step * half, x)
    who, row, unit = np.nonzero(crosses)
    inputs, targets = x[row, 0], y[row, 0]
    speed = kernel_speed[who, unit] * inputs + bias_speed[who, unit]
    times = -(kernel[who, unit] * inputs + bias[who, unit]) / speed
    at_kink = theta[who] + times[:, None] * half[who]
    residual = outputs(at_kink, inputs) - targets
    weight = readout[who, unit] + times * readout_speed[who, unit]
    # Momentum times jump: to the side where the unit is on, whichever way it goes.
    return who, times, residual * weight * np.abs(speed) / NOISE_SCALE**2


def outputs(theta, inputs):
    """Outputs [K] of K networks [K, P], each at an input of its own [K]."""
    kernel, bias, readout = np.split(theta[:, :-1], 3, axis=1)
    hidden = np.maximum(kernel * inputs[:, None] + bias, 0.0)
    return (hidden * readout).sum(axis=1) + theta[:, -1]


def measure(gradients, theta, momentum, step, x, y):
    """One step size, as JSON values; of steps that cross a kink."""
    tiles = []
    for start in range(0, len(theta), TILE):
        tile = slice(start, start + TILE)
        error, half = one_step(gradients, theta[tile], momentum[tile], step)
        tiles.append((error, *theorem(theta[tile], half, step, x, y)))
    error, predicted, kinks = map(np.concatenate, zip(*tiles))
    crossing = kinks > 0
    rest = (error - predicted)[crossing]
    return {
        "step_size": step,
        "points": len(theta),
        "share_crossing": float(crossing.mean()),
        "kinks": float(kinks[crossing].mean()),
        "error": float(np.abs(error[crossing]).mean()),
        "rest": float(np.abs(rest).mean()),
        "median_rest": float(np.median(np.abs(rest) / np.abs(error[crossing]))),
        "correlation": float(np.corrcoef(error[crossing], predicted[crossing])[0, 1]),
    }


def report(rows):
    """The whole text."""
    lines = [
        [
            f"{row['step_size']:g}",
            f"{row['share_crossing']:.2%}",
            f"{row['kinks']:.2f}",
            f"{row['error']:.3g}",
            f"{row['rest']:.2g}",
            f"{row['median_rest']:.1%}",
            f"{row['correlation']:.5f}",
        ]
        for row in rows
    ]
    header = [
        "eps",
        "steps that cross a kink",
        "mean number of kinks",
        "mean of abs(dH)",
        "mean of abs(rest)",
        "median of abs(rest / dH)",
        "correlation of dH and the formula",
    ]
    steps = [row["step_size"] for row in rows]
    orders = " and ".join(
        f"{fitted_slope(steps, [row[field] for row in rows]):.2f} ({name})"
        for field, name in (("error", "dH"), ("rest", "rest"))
    )
    setup = SETUP.format(width=WIDTH, noise=NOISE_SCALE, points=rows[0]["points"])
    table = markdown(header, lines)
    return (
        f"# Energy errors on a ReLU network, and theorem 3.3\n\n{setup}\n\n{table}\n\n"
        f"Orders in eps up to {LARGEST_FITTED:g}: {orders}. The theorem says 1 (dH) and at least 2 (rest)."
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("relu_energy_error", fresh=options.fresh, folder=folder)
    missing = [step for step in STEP_SIZES if f"eps {step:g}" not in store]
    if missing:
        length = Length(50, 50) if options.quick else Length(200, 400)
        # From the end of ADAM and with short steps: draws of the posterior are needed, not many.
        model, _ = fit(Case("relu", (WIDTH,), 100, 0.0005, "ADAM"), length, dtype="float64")
        x, y = rows(0)
        gradients = make_value_and_gradient(Potential(model.spec), make_data(x, y, None, "float64"))
        generator = np.random.default_rng(0)
        theta = points(model.posterior, 2000 if options.quick else 20_000, generator)
        momentum = generator.standard_normal(theta.shape)
    for step in missing:
        store.add(f"eps {step:g}", measure(gradients, theta, momentum, step, x, y))
    found = [store.rows[f"eps {step:g}"] for step in STEP_SIZES]
    keep("relu_energy_error.md", report(found), folder)


if __name__ == "__main__":
    main()
