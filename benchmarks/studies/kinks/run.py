"""Kinks on the way of leapfrog HMC: how rarely one is harmless, what a path may err by, how many there are.

    python -m benchmarks kinks [--quick --output FOLDER]

Lemma 3.4 of Dinh, Ho and Nguyen 2024, the bound on the error of a path that follows it, and the number of kinks
by architecture that they leave open. The networks and rows of benchmarks/studies/relu_inefficiency/run.py, at draws of
their posteriors with fresh momenta. Rows are kept as they finish; the table is benchmarks/results/kinks.md.

Reference: arXiv:2410.22065.
"""

import argparse

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.relu_energy_error.run import kinks_of_steps
from benchmarks.studies.relu_inefficiency.local_error import TILE, one_step, points
from benchmarks.studies.relu_inefficiency.run import NOISE_SCALE, WIDTH, Case, Length, fit, rows
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
STEP_SIZES = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4)
NUM_STATES, QUICK_STATES = 100_000, 2000
# Paths of a fixed travel time, and their numbers of steps.
TRAVEL_TIME, NUMBERS_OF_STEPS, NUM_PATHS = 0.01, (100, 300, 1000, 3000), 200
# Steps of paths on which kinks are counted: short enough that few are passed twice.
COUNTED_TIME, COUNTED_STEP = 0.05, 1e-4
HIDDEN = ((10,), (50,), (100,), (200,), (400,), (20,), (20, 20), (20, 20, 20), (20, 20, 20, 20))

SETUP = """\
ReLU networks have N(0, 1) priors and Gaussian noise of {noise} on 100 rows, in float64. States are draws of
the posterior with new momenta. At a kink, a hidden unit switches on or off for a row. The step size is eps.
Dinh, Ho and Nguyen 2024, arXiv:2410.22065, have no numbers for these tables."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("kinks", options.fresh, folder)
    hidden = HIDDEN[:2] if options.quick else HIDDEN
    x, y = rows(0)
    for sizes in hidden:
        key = f"count {'-'.join(map(str, sizes))}"
        if key not in store:
            found = count_kinks(sizes, x, y, options.quick)
            store.add(key, {"part": "count", "hidden": sizes} | found)
    if "lemma" not in store or "paths" not in store:
        gradients, theta, momentum = states((WIDTH,), x, y, options.quick)
        if "lemma" not in store:
            store.add("lemma", {"part": "lemma"} | lemma(gradients, theta, momentum, x, y))
        if "paths" not in store:
            few = NUM_PATHS if not options.quick else 20
            numbers = NUMBERS_OF_STEPS[: 2 if options.quick else None]
            found = paths(gradients, theta[:few], momentum[:few], x, y, numbers)
            store.add("paths", {"part": "paths", "rows": found})
    keep("kinks.md", report(store.rows), folder)


def states(hidden, x, y, quick):
    """(Log density with its gradient, draws of a network's posterior [M, P], momenta [M, P])."""
    length = Length(50, 50) if quick else Length(200, 400)
    # Steps so short that chains of the widest networks move, too.
    model, _ = fit(Case("relu", hidden, 200, 0.0001, "ADAM"), length, dtype="float64")
    gradients = make_value_and_gradient(Potential(model.spec), make_data(x, y, None, "float64"))
    generator = np.random.default_rng(0)
    theta = points(model.posterior, QUICK_STATES if quick else NUM_STATES, generator)
    return gradients, theta, generator.standard_normal(theta.shape)


def lemma(gradients, theta, momentum, x, y):
    """Share of states whose step crosses one kink at a time within (1 +- a) eps / 2, by eps and a."""
    shares = []
    for step in STEP_SIZES:
        off = []  # of states with one kink, how far from the middle, in half steps
        for start in range(0, len(theta), TILE):
            tile = slice(start, start + TILE)
            _, half = one_step(gradients, theta[tile], momentum[tile], step)
            who, times, _ = kinks_of_steps(theta[tile], half, step, x, y)
            counts = np.bincount(who, minlength=len(half))
            off.append(np.abs(2.0 * times[counts[who] == 1] / step - 1.0))
        off = np.concatenate(off)
        shares.append([float(np.sum(off < a) / len(theta)) for a in SHARES])
    return {"step_sizes": STEP_SIZES, "a": SHARES, "shares": shares, "states": len(theta)}


def paths(gradients, theta, momentum, x, y, numbers):
    """The error of H after a fixed travel time, and the bound by the kinks on the way, by number of steps."""
    found = []
    for number in numbers:
        step = TRAVEL_TIME / number
        error, bound = np.zeros(len(theta)), np.zeros(len(theta))
        harmless, point, speed = np.zeros(len(theta), int), theta, momentum
        for _ in range(number):
            change, half = one_step(gradients, point, speed, step)
            who, times, jump = kinks_of_steps(point, half, step, x, y)
            np.add.at(bound, who, 0.5 * step * np.abs(jump))
            np.add.at(harmless, who, np.abs(2.0 * times / step - 1.0) < 0.1)
            error += change
            point = point + step * half
            speed = half + 0.5 * step * gradients(point)[1]
        found.append(
            {
                "steps": number,
                "error": float(np.mean(np.abs(error))),
                "bound": float(np.mean(bound)),
                "within": float(np.mean(np.abs(error) <= bound)),
                "harmless": float(np.mean(harmless > 0)),
            }
        )
    return found


def count_kinks(hidden, x, y, quick):
    """Kinks a unit of travel time of one network."""
    gradients, theta, momentum = states(hidden, x, y, quick)
    few = 10 if quick else 50
    point, speed, sizes = theta[:few], momentum[:few], (1, *hidden, 1)
    before, count = signs(sizes, point, x), np.zeros(few)
    number = 10 if quick else round(COUNTED_TIME / COUNTED_STEP)
    for _ in range(number):
        _, half = one_step(gradients, point, speed, COUNTED_STEP)
        point = point + COUNTED_STEP * half
        speed = half + 0.5 * COUNTED_STEP * gradients(point)[1]
        after = signs(sizes, point, x)
        count += np.sum(before != after, axis=(1, 2))
        before = after
    rate = count / (number * COUNTED_STEP)
    return {
        "units": sum(hidden),
        "parameters": theta.shape[1],
        "rate": float(rate.mean()),
        "error": float(rate.std() / np.sqrt(few)),
    }


def signs(sizes, theta, x):
    """Which hidden units are on for each row: [M, rows, units]."""
    values, position, found = np.broadcast_to(x, (len(theta), *x.shape)), 0, []
    for above, below in zip(sizes[:-2], sizes[1:-1]):
        kernel = theta[:, position : position + above * below].reshape(-1, above, below)
        position += above * below
        sums = values @ kernel + theta[:, None, position : position + below]
        position += below
        found.append(sums > 0.0)
        values = np.maximum(sums, 0.0)
    return np.concatenate(found, axis=2)


def slope(abscissae, ordinates):
    """Return the slope of log(ordinates) against log(abscissae)."""
    return float(np.polyfit(np.log(abscissae), np.log(ordinates), 1)[0])


def report(found):
    """The whole text."""
    parts = ["# Kinks on the paths of leapfrog HMC", SETUP.format(noise=NOISE_SCALE)]
    row = found["lemma"]
    shares = np.array(row["shares"])
    header = ["eps", *(f"a = {a:g}" for a in row["a"])]
    lines = [
        [f"{step:g}", *(f"{share:.3%}" for share in of_step)]
        for step, of_step in zip(row["step_sizes"], row["shares"])
    ]
    parts.append(
        f"## A kink in the middle of a step (Lemma 3.4)\n\nCells have the share of {row['states']:,} states of a "
        f"1-{WIDTH}-1 network whose next step crosses exactly one kink, at a time within (1 +- a) eps / 2. Then the "
        "energy error of first order is at most a times its largest value. The lemma bounds the measure of "
        "these states by (C a M eps)^(1/alpha), with constants C, M and alpha, where alpha is at least 2.\n\n"
        + markdown(header, lines)
    )
    in_a = slope(row["a"], shares[2])
    in_step = slope(row["step_sizes"][:3], shares[:3, -1])
    parts.append(
        f"The share grows as a^{in_a:.2f} (eps = {row['step_sizes'][2]:g}) and as eps^{in_step:.2f} (a = "
        f"{row['a'][-1]:g}, eps up to {row['step_sizes'][2]:g}), because the times of crossing are uniform. The bound has an "
        "exponent of at most one half, and is much larger."
    )
    lines = [
        [
            row["steps"],
            f"{TRAVEL_TIME / row['steps']:.2g}",
            f"{row['error']:.3g}",
            f"{row['bound']:.3g}",
            f"{row['within']:.1%}",
            f"{row['harmless']:.1%}",
        ]
        for row in found["paths"]["rows"]
    ]
    header = ["steps", "eps", "mean of abs(dH)", "mean bound", "paths within the bound"]
    header.append("paths with a kink in the middle tenth of a step")
    parts.append(
        f"## The error of a path\n\nPaths have the travel time T = {TRAVEL_TIME:g}, and dH is the energy error at their "
        "end. The bound is eps / 2 times the sum of |p . jump of the gradient| over the kinks of a path, where p is the "
        "momentum. It holds up to terms of order T eps.\n\n" + markdown(header, lines)
    )
    counted = [row for row in found.values() if row["part"] == "count"]
    lines = [
        [
            "-".join(map(str, (1, *row["hidden"], 1))),
            row["parameters"],
            f"{row['rate']:.0f} +- {row['error']:.0f}",
            f"{row['rate'] / row['units']:.1f}",
        ]
        for row in counted
    ]
    header = ["network", "parameters", "kinks per unit of travel time", "the same per hidden unit"]
    parts.append(
        "## Kinks by architecture\n\nKinks are counted along leapfrog paths with eps = "
        f"{COUNTED_STEP:g}. The cells have the mean over paths and its standard error.\n\n"
        + markdown(header, lines)
    )
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
