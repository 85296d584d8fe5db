"""The log density and its gradient, for all who look at it outside the compiled block."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data, make_data
from tfbnn.engine.density.density import Density
from tfbnn.engine.density.network import network_tiles
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.rungs import likelihood_weights
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited, each_aside

ValueAndGradient = Callable[[Array], tuple[Array, Array]]

_MEASURED_SECONDS, _MOST_MEASURED, _NEXT_TO_NOTHING = 0.2, 10_000, 1e-30


@lru_cache(maxsize=32)
def compiled_value_and_gradient(potential: Density) -> Any:
    """Compiled function (coordinates [C, P], Data) -> (log density [C] in float64, gradient).

    A third argument is the weight of the likelihood, as in `Density.log_prob`. Without XLA, whose
    compilation some hundred evaluations would not pay back.
    """
    return compiled(potential.value_and_gradient, jit_compile=False)


@lru_cache(maxsize=32)
def compiled_log_likelihood(potential: Potential) -> Any:
    """Compiled function (coordinates [C, P], Data) -> log likelihood [C] in float64, as above."""
    return compiled(potential.log_likelihood, jit_compile=False)


@lru_cache(maxsize=32)
def compiled_log_likelihoods(potential: Potential) -> Any:
    """Compiled function (coordinates [M, C, P], m, Data) -> log likelihoods [m, C] in float64.

    The first m batches of C networks one after the other, with the bits of `compiled_log_likelihood`:
    products of more networks at once are rounded otherwise.
    """

    def each(coordinates: Any, count: Any, data: Data) -> Any:
        return tf.map_fn(
            lambda networks: potential.log_likelihood(networks, data),
            coordinates[:count],
            fn_output_signature=tf.float64,
            parallel_iterations=1,
        )

    return compiled(each, jit_compile=False)


def make_value_and_gradient(
    potential: Density, data: Data, temperatures: tuple[float, ...] = (1.0,)
) -> ValueAndGradient:
    """NumPy function of coordinates [R, P] -> (log density [R] in float64, gradient [R, P]).

    Args:
        potential: Density.
        data: Data.
        temperatures: Powers of the likelihood of a chain's rungs, by default the posterior's alone.
    """
    function = compiled_value_and_gradient(potential)

    def value_and_gradient(coordinates: Array) -> tuple[Array, Array]:
        weights = likelihood_weights(temperatures, len(coordinates))
        value, gradient = function(tf.convert_to_tensor(coordinates), data, weights)
        return value.numpy(), gradient.numpy()

    return value_and_gradient


def seconds_per_gradient(
    potential: Density, theta: Array, data: Data, num_threads: int, jit_compile: bool
) -> float:
    """Wall-clock seconds of a gradient at theta [C, P] while so many threads make one each.

    Measured in half a second, after compilation, in a loop as long as a trajectory's.
    """
    gradients, theta = _compiled_gradients(potential, jit_compile), tf.constant(theta)

    def timed(count: int) -> float:
        began = time.perf_counter()
        each_aside(
            lambda _: gradients(theta, data, tf.constant(count)), range(num_threads), num_threads
        )
        return (time.perf_counter() - began) / count

    awaited(gradients, theta, data, tf.constant(1))
    count, seconds = 1, timed(1)
    while count * seconds < _MEASURED_SECONDS and count < _MOST_MEASURED:
        count = min(_MOST_MEASURED, max(2 * count, int(_MEASURED_SECONDS / seconds)))
        seconds = timed(count)
    return seconds


@lru_cache(maxsize=32)
def _compiled_gradients(potential: Density, jit_compile: bool) -> Any:
    def one(index: Any, theta: Any, data: Data) -> Any:
        # What is added is rounded away, and keeps the loop from being optimised away.
        return index + 1, theta + _NEXT_TO_NOTHING * potential.value_and_gradient(theta, data)[1]

    def gradients(theta: Any, data: Data, count: Any) -> Any:
        start = (tf.constant(0), theta)
        return tf.while_loop(lambda i, _: i < count, lambda i, t: one(i, t, data), start)[1]

    return compiled(gradients, jit_compile=jit_compile)


def make_log_prob(
    spec: NetworkSpec, x: Array, y: Array, row_noise: Array | None
) -> Callable[[Any], Any]:
    """Pure TensorFlow function theta [C, P] -> log density [C], both in the dtype of theta.

    Its gradient is made with the value, row block by row block.

    Args:
        spec: The model.
        x, y, row_noise: As in `log_prob_terms`.
    """
    potential, data = Potential(spec), make_data(x, y, row_noise, spec.dtype)

    @tf.custom_gradient
    def log_prob(theta: Any) -> Any:
        theta = tf.convert_to_tensor(theta)
        if theta.shape.rank != 2 or theta.shape[1] != spec.num_parameters:
            raise ValueError(
                f"theta must have shape [C, {spec.num_parameters}], received {theta.shape.as_list()}."
            )
        value, by_theta = potential.value_and_gradient(theta, data.cast(theta.dtype))
        return tf.cast(value, theta.dtype), lambda upstream: upstream[:, None] * by_theta

    return log_prob


def log_prob_terms(
    spec: NetworkSpec, theta: Array, x: Array, y: Array, row_noise: Array | None
) -> dict[str, Array]:
    """Terms of the log density.

    Args:
        spec: The model.
        theta: [M, P].
        x, y, row_noise: Transformed rows [N, D], [N, K], [N, K] or None.

    Returns:
        Dict with log_prior and log_likelihood, the latter to the power of the spec, float64 [M] each.
    """
    potential, data = Potential(spec), make_data(x, y, row_noise, spec.dtype)
    terms: dict[str, list[Array]] = {"log_prior": [], "log_likelihood": []}
    for tile in network_tiles(spec, theta, len(x)):
        tile = tf.constant(tile, spec.dtype)
        terms["log_prior"].append(potential.log_prior(tile).numpy())
        log_likelihood = compiled_log_likelihood(potential)(tile, data)
        terms["log_likelihood"].append(spec.likelihood_power * log_likelihood.numpy())
    return {name: np.concatenate(parts) for name, parts in terms.items()}
