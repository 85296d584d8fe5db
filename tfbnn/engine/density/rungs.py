"""How the walkers of a chain lie in the rows of a lane.

A chain of most kernels is one walker; one of PowerPosterior is a ladder of them, a rung for every
power of the likelihood. Rows are chain by chain, and within a chain by rising power, so that the
last rung of each chain has the posterior itself.
"""

from collections.abc import Sequence
from typing import Any

from tfbnn.engine.basis.libraries import Tensor, tf


def likelihood_weights(temperatures: Sequence[float], num_rows: int) -> Tensor:
    """The power of the likelihood of every row.

    Args:
        temperatures: The powers of one chain's rungs.
        num_rows: R, a multiple of their number.

    Returns:
        float64 tensor [R], or the number 1.0 where the posterior has the only rung.
    """
    if len(temperatures) == 1:
        return 1.0
    return tf.tile(tf.constant(temperatures, tf.float64), [num_rows // len(temperatures)])


def of_posterior(rows: Any, temperatures: Sequence[float]) -> Any:
    """Of an array or tensor [R, ...] the rows of the rungs that have the posterior: [C, ...]."""
    count = len(temperatures)
    return rows[count - 1 :: count]
