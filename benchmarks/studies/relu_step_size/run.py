"""Step sizes of leapfrog HMC on densities with kinks: proposition 3.5 of Dinh, Ho and Nguyen 2024.

    python -m benchmarks relu_step_size [--quick --output FOLDER]

Densities of d independent components whose log has affine pieces, and the normal one beside them.
Starts are exact draws, so that one trajectory from each measures the acceptance of a chain in
equilibrium; the energy error is the sum of those of the components, which are simulated once for
each step size. Rows are kept as they finish; tables and figure are
benchmarks/results/relu_step_size.*.

Reference: arXiv:2410.22065.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.lib.common import add_common_options, keep, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.relu_step_size.report import figure, report

TRAVEL_TIME = 2.0
DIMENSIONS = (16, 64, 256, 1024, 4096)
# Of leapfrog steps in the travel time: a fifth more from each to the next.
NUMBERS_OF_STEPS = (
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    12,
    14,
    17,
    20,
    24,
    29,
    35,
    42,
    50,
    60,
    72,
    86,
    103,
    124,
    149,
)
# Components are simulated in tiles that stay in the cache, and reported in parts, for errors.
TILE, NUM_PARTS = 1 << 16, 8


class Density(NamedTuple):
    """One component: its potential U, dU/dq, and exact draws (generator, count) -> [count]."""

    potential: Callable
    slope: Callable
    draw: Callable


def two_slopes(left, right):
    """U = right * q to the right of a kink, and -left * q to the left."""

    def draw(generator, count):
        size = generator.exponential(size=count)
        is_right = generator.uniform(size=count) < left / (left + right)
        return np.where(is_right, size / right, -size / left)

    return Density(
        lambda q: np.maximum(right * q, -left * q),
        lambda q: np.where(q > 0.0, right, -left),
        draw,
    )


DENSITIES = {
    "slopes 1 and 1": two_slopes(1.0, 1.0),
    "slopes 1/2 and 2": two_slopes(0.5, 2.0),
    "normal": Density(
        lambda q: 0.5 * q**2, lambda q: q, lambda generator, count: generator.normal(size=count)
    ),
}


def energy_errors(density, num_steps, seed):
    """Error of H of TILE trajectories of one component, over the travel time.

    Starts depend on the seed alone: all step sizes have the same.
    """
    generator, step = np.random.default_rng(seed), TRAVEL_TIME / num_steps
    q, p = density.draw(generator, TILE), generator.normal(size=TILE)
    before = density.potential(q) + 0.5 * p**2
    p = p - 0.5 * step * density.slope(q)
    for left in reversed(range(num_steps)):
        q += step * p
        p -= (1.0 if left else 0.5) * step * density.slope(q)
    return density.potential(q) + 0.5 * p**2 - before


def measure(name, num_steps, num_tiles):
    """One density and step size, as JSON values.

    Returns:
        Dict with, for every d in DIMENSIONS as text, lists over NUM_PARTS: "acceptance", the mean
        of min(1, exp(-error)); "proposals", that of its inverse, the proposals until one is
        accepted; and "variance", the mean square error of one component.
    """
    began = time.process_time()
    tiles = [energy_errors(DENSITIES[name], num_steps, seed) for seed in range(num_tiles)]
    errors = np.concatenate(tiles).reshape(NUM_PARTS, -1)
    found = {"acceptance": {}, "proposals": {}}
    for dimension in DIMENSIONS:
        total = errors.reshape(NUM_PARTS, -1, dimension).sum(axis=-1)
        found["acceptance"][str(dimension)] = np.exp(-np.maximum(total, 0.0)).mean(axis=1).tolist()
        # Cut off where nothing is accepted, lest it overflow.
        proposals = np.exp(np.clip(total, 0.0, 500.0)).mean(axis=1)
        found["proposals"][str(dimension)] = proposals.tolist()
    return {
        "density": name,
        "num_steps": num_steps,
        "step_size": TRAVEL_TIME / num_steps,
        "components": errors.size,
        "variance": float(np.mean(errors**2)),
        **found,
        "seconds": round(time.process_time() - began, 2),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("relu_step_size", fresh=options.fresh, folder=folder)
    num_tiles = 8 if options.quick else 128
    for name in DENSITIES:
        for num_steps in NUMBERS_OF_STEPS:
            key = f"{name}, L = {num_steps}"
            if key not in store:
                store.add(key, measure(name, num_steps, num_tiles))
    rows = list(store.rows.values())
    keep("relu_step_size.md", report(rows, TRAVEL_TIME), folder)
    figure(rows, folder / "relu_step_size.png")


if __name__ == "__main__":
    main()
