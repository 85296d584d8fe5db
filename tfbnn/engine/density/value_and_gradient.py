"""The log density and its gradient, compiled or as a function of the coordinates of a kernel.

For most kernels a chain is one walker. For PowerPosterior it is a ladder of walkers, one rung for
every power of the likelihood. Rows are ordered by chain, and within a chain by rising power, so
that the last rung of each chain has the posterior itself.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data, make_data
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.gauss_newton import gauss_newton_matrices
from tfbnn.engine.density.network import network_tiles
from tfbnn.engine.density.potential import Density
from tfbnn.spec.density_spec import Function, model_of
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited, each_in_background


def likelihood_weights(temperatures: Sequence[float], num_rows: int) -> Tensor:
    """Return the power of the likelihood of every row.

    Args:
        temperatures: Powers of one chain's rungs.
        num_rows: Number R of rows, a multiple of the number of rungs.

    Returns:
        float64 tensor [R], or the number 1.0 if the posterior is the only rung.
    """
    if len(temperatures) == 1:
        return 1.0
    return tf.tile(tf.constant(temperatures, tf.float64), [num_rows // len(temperatures)])


def of_posterior(rows: Any, temperatures: Sequence[float]) -> Any:
    """Select the rows [C, ...] of an array or tensor [R, ...] that sample the posterior."""
    count = len(temperatures)
    return rows[count - 1 :: count]


ValueAndGradient = Callable[[Array], tuple[Array, Array]]

_MEASURED_SECONDS, _MOST_MEASURED, _NEXT_TO_NOTHING = 0.2, 10_000, 1e-30


@lru_cache(maxsize=32)
def compiled_value_and_gradient(potential: Density) -> Any:
    """Compile the function (coordinates [C, P], Data) -> (log density [C] in float64, gradient).

    An optional third argument is the weight of the likelihood, as in `Density.log_prob`. XLA is not
    used, because its compilation would not pay off for some hundred evaluations.
    """
    return compiled(potential.value_and_gradient, jit_compile=False)


@lru_cache(maxsize=32)
def compiled_log_likelihoods(potential: Density) -> Any:
    """Compile the function (coordinates [M, C, P], m, Data) -> log likelihoods [m, C] in float64.

    The first m batches of C networks are evaluated one after the other, so that their number
    changes no bit.
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
    """Return the NumPy function coordinates [R, P] -> (log density [R] in float64, gradient [R, P]).

    Args:
        potential: Density.
        data: Data.
        temperatures: Powers of the likelihood of a chain's rungs, by default only the posterior's.
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
    """Measure the wall-clock seconds of a gradient at theta [C, P] while all threads compute one.

    The measurement takes half a second after compilation, in a loop like that of a trajectory.
    """
    gradients, theta = _compiled_gradients(potential, jit_compile), tf.constant(theta)

    def timed(count: int) -> float:
        began = time.perf_counter()
        each_in_background(
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
        # The added term is rounded away, but keeps the loop from being optimised away.
        return index + 1, theta + _NEXT_TO_NOTHING * potential.value_and_gradient(theta, data)[1]

    def gradients(theta: Any, data: Data, count: Any) -> Any:
        start = (tf.constant(0), theta)
        return tf.while_loop(lambda i, _: i < count, lambda i, t: one(i, t, data), start)[1]

    return compiled(gradients, jit_compile=jit_compile)


def make_log_prob(spec: NetworkSpec, x: Array, y: Array, row_noise: Array | None) -> Function:
    """Return the pure TensorFlow function theta [C, P] -> log density [C] in the dtype of theta.

    Its gradient is computed together with the value, by row blocks.

    Args:
        spec: The model.
        x, y, row_noise: As in `log_prob_terms`.
    """
    potential, data = density_of(spec), make_data(x, y, row_noise, spec.dtype)

    def log_prob(theta: Any) -> Any:
        theta = tf.convert_to_tensor(theta)
        if theta.shape.rank != 2 or theta.shape[1] != spec.num_parameters:
            raise ValueError(
                f"theta must have shape [C, {spec.num_parameters}], received {theta.shape.as_list()}."
            )
        value, by_theta = potential.value_and_gradient(theta, data.cast(theta.dtype))
        return tf.cast(value, theta.dtype), _pull_back_by(by_theta)

    return tf.custom_gradient(log_prob)


def _pull_back_by(gradient: Tensor) -> Callable[..., Any]:
    """Return the function of the upstream gradient [C] that `tf.custom_gradient` needs."""

    def pull_back(upstream: Tensor, variables: Sequence[Any] = ()) -> Any:
        # Frozen layers and a user's log density may contain variables, which are constants here.
        by_position = upstream[:, None] * gradient
        return (by_position, [None] * len(variables)) if variables else by_position

    return pull_back


def log_prob_terms(
    spec: NetworkSpec, theta: Array, x: Array, y: Array, row_noise: Array | None
) -> dict[str, Array]:
    """Compute the terms of the log density.

    Args:
        spec: The model.
        theta: Parameters [M, P].
        x, y, row_noise: Transformed rows [N, D], [N, K], [N, K] or None.

    Returns:
        Dict with log_prior and log_likelihood, the latter with the power of the spec, float64 [M]
        each.
    """
    potential, data = density_of(spec), make_data(x, y, row_noise, spec.dtype)
    terms: dict[str, list[Array]] = {"log_prior": [], "log_likelihood": []}
    for tile in network_tiles(spec, theta, len(x)):
        tile = tf.constant(tile, spec.dtype)
        terms["log_prior"].append(potential.log_prior(tile).numpy())
        log_likelihood = compiled_log_likelihoods(potential)(tile[None], tf.constant(1), data)
        terms["log_likelihood"].append(spec.likelihood_power * log_likelihood.numpy()[0])
    return {name: np.concatenate(parts) for name, parts in terms.items()}


@dataclass(frozen=True, eq=False)
class Target:
    """Log density as a function of preconditioned coordinates z [C, P] -> [C].

    Its methods provide everything else that a kernel may need.

    Attributes:
        potential: Density.
        data: Data.
        linear_map: Map with theta = linear_map.forward(z).
        reference: Log density [C], float64, subtracted before rounding to the dtype of z.
        temperatures: Powers of the likelihood of a chain's rungs; see
            `tfbnn.engine.density.value_and_gradient`.
    """

    potential: Density
    data: Data
    linear_map: Any
    reference: Tensor
    temperatures: tuple[float, ...]

    def __call__(self, z: Tensor) -> Tensor:
        weights = likelihood_weights(self.temperatures, z.shape[0])
        value_and_gradient = self.potential.value_and_gradient
        if tf.executing_eagerly():
            # Kernels are started eagerly. The function of the search for starts and step sizes is
            # already compiled, and an uncompiled gradient takes a tenth of a second.
            value_and_gradient = compiled_value_and_gradient(self.potential)

        def log_prob(z: Tensor) -> tuple[Tensor, Any]:
            # Stop the tape, which would otherwise differentiate the compiled function, for a
            # second.
            theta = self.linear_map.forward(tf.stop_gradient(z))
            value, by_theta = value_and_gradient(theta, self.data, weights)
            value = tf.cast(value - self.reference, z.dtype)
            return value, _pull_back_by(self.linear_map.pull_back(by_theta))

        return tf.custom_gradient(log_prob)(z)

    def log_likelihood(self, z: Tensor) -> Tensor:
        """Compute the log likelihood [C], float64, with the power of the spec but not of the rung."""
        theta = self.linear_map.forward(z)
        return self.potential.powered_log_likelihood(theta, self.data, 1.0)

    def gather(self, z: Tensor, rows: Tensor) -> Tensor:
        """Move states of `rows` [C] to the rows [C, P], each in the coordinates of its new row.

        This requires a DiagonalMap.
        """
        theta = tf.gather(self.linear_map.forward(z), rows)
        # A row that keeps its state keeps it bit by bit.
        keeps = rows == tf.range(z.shape[0])
        return tf.where(keeps[:, None], z, self.linear_map.inverse(theta))

    def hessian(self, z: Tensor) -> Tensor:
        """Compute the second derivatives of the log density, float64 [C, P, P]; requires z = theta."""
        return self.potential.hessian(*self._in_float64(z))

    def gauss_newton(self, z: Tensor) -> Tensor:
        """Compute the Gauss-Newton matrices, float64 [C, P, P]; requires z = theta."""
        spec = model_of(self.potential.spec, "The Gauss-Newton matrix")
        theta, data, weights = self._in_float64(z)
        weights = tf.broadcast_to(tf.cast(weights, tf.float64), z.shape[:1])
        return gauss_newton_matrices(spec, theta, data, weights)

    def box(self) -> tuple[Tensor, Tensor]:
        """Return the lower and upper limits of z, float64 [C, P] each; requires a DiagonalMap."""
        scale = tf.cast(self.linear_map.scale, tf.float64)
        low, high = self.potential.limits
        return low / scale, high / scale

    def _in_float64(self, z: Tensor) -> tuple[Tensor, Data, Tensor]:
        """Return (theta, Data, weights of the likelihood)."""
        theta = tf.cast(self.linear_map.forward(z), tf.float64)
        weights = likelihood_weights(self.temperatures, z.shape[0])
        return theta, self.data.cast("float64"), weights
