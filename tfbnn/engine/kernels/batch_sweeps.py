"""One sweep over mini-batches and back, by UBU steps.

Between kicks by gradients the motion of free particles with friction is solved exactly. The error of a
sweep is of second order in the step size, noise of the batches included, because what one half does too
much the other undoes.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from tfbnn.engine.basis.libraries import Results, Tensor, tf
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    accepts,
    minus_infinity_for_nan,
    partly_refreshed,
)


class Correction(NamedTuple):
    """What is added to the gradients of batches, so that they differ less; it has the mean zero.

    Attributes:
        centre: The point at which batches are compared [C, P].
        shift: By how much their gradients there fall short of the mean of all: [num_batches, C, P],
            or [0, C, P] without control variates.
        bend: The same of their second derivatives [num_batches, C, P, P], or [0, C, P, P].
    """

    centre: Tensor
    shift: Tensor
    bend: Tensor

    def added(self, gradient: Tensor, z: Tensor, index: Tensor) -> Tensor:
        """The gradient [C, P] of batch `index` at z [C, P], corrected."""
        if self.shift.shape[0]:
            gradient += tf.gather(self.shift, index)
        if self.bend.shape[0]:
            gradient += tf.linalg.matvec(tf.gather(self.bend, index), z - self.centre)
        return gradient


class SweepResults(NamedTuple):
    """What a transition leaves for the next one, and what it reports.

    Attributes:
        target_log_prob: Log density of the current state, of all rows [C].
        velocity: [C, P].
        step_size: [C, 1].
        correction: Correction of the gradients of batches.
        persistence: Share of the velocity that the next transition begins with, scalar: zero at the
            start, where there is none yet, then one.
        is_accepted: Whether the last sweep did not diverge [C].
        log_accept_ratio: Minus the size of its energy error [C].
    """

    target_log_prob: Tensor
    velocity: Tensor
    step_size: Tensor
    correction: Correction
    persistence: Tensor
    is_accepted: Tensor
    log_accept_ratio: Tensor


class FreeFlight(NamedTuple):
    """The exact flow U of dz = v dt, dv = -friction v dt + sqrt(2 friction) dW, all [C, 1].

    With normal numbers e and f, v becomes keep v + spread e, and z gains move v + along e + across f.
    """

    keep: Tensor
    move: Tensor
    spread: Tensor
    along: Tensor
    across: Tensor

    @classmethod
    def lasting(cls, time: Tensor, friction: float) -> Self:
        """That of a time [C, 1]; in float64, as the spreads of short ones are small differences."""
        elapsed = tf.cast(time, tf.float64)
        fades = -tf.math.expm1(-friction * elapsed)
        spread = tf.sqrt(-tf.math.expm1(-2.0 * friction * elapsed))
        move, along = fades / friction, fades**2 / (friction * spread)
        variance = 2.0 / friction * (elapsed - 2.0 * move + spread**2 / (2.0 * friction))
        across = tf.sqrt(tf.maximum(variance - along**2, 0.0))
        return cls(*(tf.cast(a, time.dtype) for a in (1.0 - fades, move, spread, along, across)))

    def fly(self, z: Tensor, velocity: Tensor, seed: Tensor) -> tuple[Tensor, Tensor]:
        """(position, velocity) at its end, [C, P] both."""
        e, f = tf.unstack(tf.random.stateless_normal([2, *z.shape], seed, dtype=z.dtype))
        z = z + self.move * velocity + self.along * e + self.across * f
        return z, self.keep * velocity + self.spread * e


@dataclass(eq=False)
class SweepKernel(TransitionKernel):
    """A sweep over all batches in a random order, and back.

    Attributes:
        target_log_prob_fn: z [C, P] -> [C], with the methods `log_prob` and `parts` of `Target`.
        step_size: [C, 1], for `bootstrap_results` only; later ones travel in the results.
        num_batches, friction: As in SMSUBU.
        num_derivatives: How many derivatives of batches are compared: none, the first, or two.
    """

    target_log_prob_fn: Any
    step_size: Tensor
    num_batches: int
    friction: float
    num_derivatives: int

    is_calibrated = False

    def __post_init__(self) -> None:
        # Here, outside of all loops, rows are put into their batches.
        self._parts = self.target_log_prob_fn.parts(self.num_batches)

    def bootstrap_results(self, init_state: Tensor, centre: Tensor | None = None) -> Results:
        """Results at a start [C, P]; batches are compared at the centre [C, P], by default there too."""
        value = self.target_log_prob_fn.log_prob(init_state)
        return SweepResults(
            target_log_prob=value,
            velocity=tf.zeros_like(init_state),
            step_size=self.step_size,
            correction=self._correction(init_state if centre is None else centre),
            persistence=tf.zeros([], init_state.dtype),
            is_accepted=tf.ones_like(value, tf.bool),
            log_accept_ratio=tf.zeros_like(value),
        )

    def _correction(self, z: Tensor) -> Correction:
        """That which compares batches at a point [C, P]."""
        kinds = {"shift": z.shape, "bend": [*z.shape, z.shape[-1]]}
        parts = {name: tf.zeros([0, *shape], z.dtype) for name, shape in kinds.items()}
        if self.num_derivatives >= 1:
            parts["shift"] = self._short_of_mean(self._parts.gradient, z)
        if self.num_derivatives >= 2:
            parts["bend"] = self._short_of_mean(self._parts.hessian, z)
        return Correction(centre=z, **parts)

    def _short_of_mean(self, derivative: Any, z: Tensor) -> Tensor:
        """By how much a derivative of the parts at z falls short of their mean [num_batches, ...]."""
        values = tf.map_fn(
            lambda index: derivative(z, index),
            tf.range(self.num_batches),
            fn_output_signature=z.dtype,
            parallel_iterations=1,
        )
        return tf.reduce_mean(values, axis=0) - values

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """One transition; returns (position [C, P], SweepResults)."""
        order_seed, velocity_seed, noise_seed = tf.unstack(tf.random.split(seed, 3))
        start = partly_refreshed(before.velocity, before.persistence, velocity_seed)
        new, end, work = self._sweep(z, start, before, order_seed, noise_seed)
        value = self.target_log_prob_fn.log_prob(new)
        error = value - before.target_log_prob - tf.cast(work, value.dtype)
        log_ratio = minus_infinity_for_nan(-tf.abs(error))
        accepted = accepts(log_ratio, seed, adjusted=False)
        moves = accepted[:, None]
        return tf.where(moves, new, z), before._replace(
            target_log_prob=tf.where(accepted, value, before.target_log_prob),
            velocity=tf.where(moves, end, -start),
            persistence=tf.ones_like(before.persistence),
            is_accepted=accepted,
            log_accept_ratio=log_ratio,
        )

    def _sweep(
        self, z: Tensor, velocity: Tensor, before: Any, order_seed: Tensor, noise_seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(position, velocity, gain in log density by the gradients along the way [C])."""
        step, count = before.step_size, 2 * self.num_batches
        half = FreeFlight.lasting(0.5 * step, self.friction)
        visits = _there_and_back(self.num_batches, order_seed)
        seeds = tf.random.split(noise_seed, 2 * count)

        def ubu(index: Tensor, z: Tensor, velocity: Tensor, work: Tensor) -> tuple[Tensor, ...]:
            middle, velocity = half.fly(z, velocity, seeds[2 * index])
            gradient = self._parts.gradient(middle, visits[index])
            gradient = before.correction.added(gradient, middle, visits[index])
            end, velocity = half.fly(middle, velocity + step * gradient, seeds[2 * index + 1])
            gain = tf.reduce_sum(gradient * (end - z), axis=-1)
            return index + 1, end, velocity, work + tf.cast(gain, tf.float64)

        _, z, velocity, work = tf.while_loop(
            lambda index, *_: index < count,
            ubu,
            (tf.constant(0), z, velocity, tf.zeros(z.shape[:1], tf.float64)),
            parallel_iterations=1,
        )
        return z, velocity, work


def _there_and_back(count: int, seed: Tensor) -> Tensor:
    """Numbers below `count` in a random order, then in the reverse order [2 count]."""
    order = tf.argsort(tf.random.stateless_uniform([count], seed), stable=True)
    return tf.concat([order, order[::-1]], axis=0)
