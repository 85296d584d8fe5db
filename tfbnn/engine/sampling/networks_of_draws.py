"""From the coordinates that chains run in to the networks that are kept."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.potential import Density, Potential
from tfbnn.system.arrays import Array

Completion = Callable[..., tuple[Array, dict[str, Array]]]

# Hidden units x rows of the draws completed at once: as few milliseconds as hide the cost of a call,
# because the last tile of every block is filled up. And their largest number.
_VALUES, _MOST_DRAWS = 250_000, 32


def make_completion(potential: Density, data: Data, seed: int) -> Completion:
    """The function that completes what a block kept.

    Args:
        potential: Density.
        data: Data.
        seed: The user's seed; a draw's random numbers belong to its chain and its number.

    Returns:
        Function (coordinates [n, C, number of coordinates], statistics, chains, first) ->
        (theta [n, C, P], statistics), where `first` numbers the first of the n kept draws. The
        statistics, a dict of arrays [n, C], gain what the potential has `found`, and lp becomes the
        log density of theta.
    """
    if type(potential).complete is Density.complete:
        return lambda coordinates, statistics, chains, first: (coordinates, statistics)
    function = _compiled_completion(potential)
    # One shape for all calls, so that one program does.
    values = data.length * potential.spec.widest
    tile = min(max(1, _VALUES // values), _MOST_DRAWS)

    def complete(
        coordinates: Array, statistics: dict[str, Array], chains: list[int], first: int
    ) -> tuple[Array, dict[str, Array]]:
        count, num_chains = coordinates.shape[:2]
        flat = coordinates.reshape(count * num_chains, -1)
        normals = np.empty((count, num_chains, potential.num_normals), flat.dtype)
        if potential.num_normals:
            for index, chain in np.ndindex(count, num_chains):
                generator = seeds.generator(seed, "readout", chains[chain], first + index)
                normals[index, chain] = generator.standard_normal(potential.num_normals)
        normals = normals.reshape(len(flat), -1)
        parts = [
            function(tf.constant(flat[rows]), tf.constant(normals[rows]), data)
            for rows in _tiles(len(flat), tile)
        ]

        def joined(*tensors: Tensor) -> Array:
            values = np.concatenate(tensors)[: len(flat)]
            return values.reshape(count, num_chains, *values.shape[1:])

        theta, found, log_prob = tf.nest.map_structure(joined, *parts)
        return theta, {**statistics, **found, "lp": log_prob}

    return complete


@lru_cache(maxsize=32)
def _compiled_completion(potential: Density) -> Callable[..., Any]:
    """Compiled (coordinates [M, ..], normals [M, ..], Data) -> (theta, found, log density)."""

    def complete(coordinates: Tensor, normals: Tensor, data: Data) -> Any:
        theta, found = potential.complete(coordinates, normals, data)
        return theta, found, Potential(potential.spec).log_prob(theta, data)

    # Factorisations of float64 matrices take XLA up to 25 times as long on a CPU.
    return compiled(complete, jit_compile=False)


def _tiles(count: int, size: int) -> list[Array]:
    """Indices 0 .. count - 1 in parts of one size, the last one filled up with the last index."""
    return [
        np.minimum(np.arange(start, start + size), count - 1) for start in range(0, count, size)
    ]
