"""Isokinetic dynamics: a particle of speed one, whose direction the gradient turns.

With U minus the log density, the flow of (z, u), |u| = 1, dz = u dt,
du = -(I - u u^T) grad U dt / (P - 1), keeps exp(-U) times the uniform density of directions.
Robnik, De Luca, Silverstein and Seljak 2023, JMLR 24, 311 (arXiv:2212.08549).
"""

from typing import NamedTuple

from tfbnn.engine.basis.libraries import LogDensity, Tensor, tf, tfp


class Flight(NamedTuple):
    """Where particles are, and what they have gained on the way.

    Attributes:
        z: Positions [C, P].
        direction: Unit vectors u [C, P].
        log_prob: Log density at z [C].
        gradient: Its gradient [C, P].
        kinetic: Growth of the kinetic energy since the start [C].
    """

    z: Tensor
    direction: Tensor
    log_prob: Tensor
    gradient: Tensor
    kinetic: Tensor


def unit(vector: Tensor) -> Tensor:
    """Vectors [C, P] divided by their lengths; zero stays zero."""
    return tf.math.divide_no_nan(vector, tf.norm(vector, axis=-1, keepdims=True))


def kick(direction: Tensor, gradient: Tensor, step_size: Tensor) -> tuple[Tensor, Tensor]:
    """The exact flow of the direction u while the gradient is constant.

    With e the unit vector along the gradient g and delta = step_size |g| / (P - 1), u becomes
    (u + e (sinh delta + (e.u) (cosh delta - 1))) / s, s = cosh delta + (e.u) sinh delta. The kinetic
    energy grows by (P - 1) log s, by which also the log volume around u on the sphere shrinks.
    Both are written with exp(-delta), because cosh overflows; g = 0 changes nothing.

    Args:
        direction: Unit vectors [C, P], P > 1.
        gradient: Gradient of the log density [C, P].
        step_size: [C, 1].

    Returns:
        (new unit vectors [C, P], growth of the kinetic energy [C]).
    """
    freedom = direction.shape[-1] - 1
    delta = step_size * tf.norm(gradient, axis=-1, keepdims=True) / freedom
    towards, decay = unit(gradient), tf.exp(-delta)
    # 1 + e.u, without cancellation where a particle flies against the gradient.
    along = 0.5 * tf.reduce_sum((direction + towards) ** 2, axis=-1, keepdims=True)
    turn = (1.0 - decay) * (along + (2.0 - along) * decay)
    stretch = 0.5 * (along + (2.0 - along) * decay**2)  # s exp(-delta)
    kinetic = freedom * (delta + tf.math.log(stretch))
    # Division by the length, not by 2 s exp(-delta), so that rounding errors do not add up.
    return unit(2.0 * decay * direction + turn * towards), kinetic[:, 0]


def fly(target: LogDensity, start: Flight, step_size: Tensor, num_steps: Tensor) -> Flight:
    """Leapfrog steps: half a kick, a move along the direction, half a kick.

    Args:
        target: z [C, P] -> [C].
        start: Flight.
        step_size: How far a step moves [C, 1].
        num_steps: Steps of every chain, int32 [C].

    Returns:
        Flight at the end; chains that need fewer steps wait for the others.
    """

    def step(index: Tensor, now: Flight) -> tuple[Tensor, Flight]:
        direction, first = kick(now.direction, now.gradient, 0.5 * step_size)
        z = now.z + step_size * direction
        log_prob, gradient = tfp.math.value_and_gradient(target, z)
        direction, second = kick(direction, gradient, 0.5 * step_size)
        new = Flight(z, direction, log_prob, gradient, now.kinetic + first + second)
        return index + 1, _where(index < num_steps, new, now)

    longest = tf.reduce_max(num_steps)
    return tf.while_loop(lambda index, _: index < longest, step, (tf.constant(0), start))[1]


def _where(chains: Tensor, new: Flight, old: Flight) -> Flight:
    """Flight whose entries are those of `new` for the `chains` [C] that are true."""

    def choose(a: Tensor, b: Tensor) -> Tensor:
        return tf.where(chains[:, None] if a.shape.rank == 2 else chains, a, b)

    return Flight(*map(choose, new, old))
