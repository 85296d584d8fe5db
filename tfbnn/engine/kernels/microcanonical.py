"""Microcanonical sampling, with particles of speed one instead of momenta of random length.

With U minus the log density, the isokinetic flow of (z, u), |u| = 1, dz = u dt,
du = -(I - u u^T) grad U dt / (P - 1), leaves exp(-U) times the uniform density of directions
invariant.
Robnik, De Luca, Silverstein and Seljak 2023, JMLR 24, 311 (arXiv:2212.08549).
"""

from dataclasses import dataclass
from typing import NamedTuple

from tfbnn.engine.basis.adaptation import RunningMoments, restart_moments, select
from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.base import AdjustableKernel
from tfbnn.engine.kernels.transition import (
    ERROR_TARGET,
    TransitionKernel,
    TransitionStatistics,
    accepts,
    energy_variance_of,
    minus_infinity_for_nan,
    partly_refreshed,
    ratio_statistics,
)
from tfbnn.system.arrays import Array


class Flight(NamedTuple):
    """Positions and directions of particles, and the kinetic energy gained since the start.

    Attributes:
        z: Positions [C, P].
        direction: Unit vectors u [C, P].
        log_prob: Log density at z [C].
        gradient: Gradient of the log density [C, P].
        kinetic: Growth of the kinetic energy since the start [C].
    """

    z: Tensor
    direction: Tensor
    log_prob: Tensor
    gradient: Tensor
    kinetic: Tensor


def unit(vector: Tensor) -> Tensor:
    """Divide vectors [C, P] by their lengths; zero stays zero."""
    return tf.math.divide_no_nan(vector, tf.norm(vector, axis=-1, keepdims=True))


def kick(direction: Tensor, gradient: Tensor, step_size: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the exact flow of the direction u at constant gradient.

    With e the unit vector along the gradient g and delta = step_size |g| / (P - 1), u becomes
    (u + e (sinh delta + (e.u) (cosh delta - 1))) / s, s = cosh delta + (e.u) sinh delta. The kinetic
    energy grows by (P - 1) log s, and the log volume around u on the sphere shrinks by the same
    amount. Both are written with exp(-delta), because cosh overflows. g = 0 changes nothing.

    Args:
        direction: Unit vectors [C, P], P > 1.
        gradient: Gradient of the log density [C, P].
        step_size: Step sizes [C, 1].

    Returns:
        (new unit vectors [C, P], growth of the kinetic energy [C]).
    """
    freedom = direction.shape[-1] - 1
    delta = step_size * tf.norm(gradient, axis=-1, keepdims=True) / freedom
    towards, decay = unit(gradient), tf.exp(-delta)
    # 1 + e.u, without cancellation if a particle moves against the gradient.
    along = 0.5 * tf.reduce_sum((direction + towards) ** 2, axis=-1, keepdims=True)
    turn = (1.0 - decay) * (along + (2.0 - along) * decay)
    stretch = 0.5 * (along + (2.0 - along) * decay**2)  # s exp(-delta)
    kinetic = freedom * (delta + tf.math.log(stretch))
    # Divide by the length, not by 2 s exp(-delta), so that rounding errors do not add up.
    return unit(2.0 * decay * direction + turn * towards), kinetic[:, 0]


def fly(target: LogDensity, start: Flight, step_size: Tensor, num_steps: Tensor) -> Flight:
    """Make leapfrog steps: half a kick, a move along the direction, half a kick.

    Args:
        target: Log density z [C, P] -> [C].
        start: Flight.
        step_size: Distance that a step moves [C, 1].
        num_steps: Number of steps of every chain, int32 [C].

    Returns:
        Flight at the end. Chains with fewer steps wait for the others.
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
    """Return a Flight with the entries of `new` where `chains` [C] is true, else those of `old`."""

    def choose(a: Tensor, b: Tensor) -> Tensor:
        return tf.where(chains[:, None] if a.shape.rank == 2 else chains, a, b)

    return Flight(*map(choose, new, old))


# Weight of unit variances in the trajectory length, in draws: successive draws are correlated.
_PRIOR_DRAWS = 50.0
# Squared energy error per parameter and step of the published unadjusted sampler.
_ENERGY_VARIANCE = 5e-4


class MicrocanonicalResults(NamedTuple):
    """Results of a transition, used by the next transition and by the report.

    Attributes:
        target_log_prob: Log density of the current state [C].
        gradient: Gradient of the log density [C, P].
        direction: Unit vectors [C, P]; zero at the start, where there is no direction yet.
        step_size: Distance that a step moves [C, 1].
        num_steps: Number of steps of the trajectory, int32 [C].
        persistence: Share of the direction that the next refreshment keeps [C, 1].
        adapting: Whether the moments are updated in the next transition, scalar.
        moments: Running moments of the positions, for the trajectory length.
        is_accepted: Whether the last proposal was accepted [C].
        log_accept_ratio: Minus the energy error of the last proposal [C].
    """

    target_log_prob: Tensor
    gradient: Tensor
    direction: Tensor
    step_size: Tensor
    num_steps: Tensor
    persistence: Tensor
    adapting: Tensor
    moments: RunningMoments
    is_accepted: Tensor
    log_accept_ratio: Tensor


@dataclass(eq=False)
class MicrocanonicalKernel(TransitionKernel):
    """Kernel that refreshes the direction, flies, and accepts the end or reverses at the start.

    Attributes:
        is_calibrated: `adjusted` of Microcanonical.
    """

    is_calibrated: bool

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [C, P].

        Raises:
            ValueError: For P = 1.
        """
        if init_state.shape[-1] < 2:
            raise ValueError(
                "Microcanonical needs at least two parameters, received P = 1: on a line there are "
                "only two directions, and no gradient can turn one into the other. Use kernel='hmc'."
            )
        value, gradient = tfp.math.value_and_gradient(self.target_log_prob_fn, init_state)
        return MicrocanonicalResults(
            target_log_prob=value,
            gradient=gradient,
            direction=tf.zeros_like(init_state),
            step_size=self.step_size,
            num_steps=tf.ones_like(value, tf.int32),
            persistence=tf.zeros_like(self.step_size),
            adapting=tf.constant(False),
            moments=restart_moments(init_state.shape, init_state.dtype),
            is_accepted=tf.ones_like(value, tf.bool),
            log_accept_ratio=tf.zeros_like(value),
        )

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Make one transition; return (position [C, P], MicrocanonicalResults)."""
        noise_seed, accept_seed = tf.unstack(tf.random.split(seed, 2))
        # Treated as momenta of unit variance, of which only the direction is kept.
        momentum = before.direction * before.direction.shape[-1] ** 0.5
        start = Flight(
            z=z,
            direction=unit(partly_refreshed(momentum, before.persistence, noise_seed)),
            log_prob=before.target_log_prob,
            gradient=before.gradient,
            kinetic=tf.zeros_like(before.target_log_prob),
        )
        end = fly(self.target_log_prob_fn, start, before.step_size, before.num_steps)
        log_ratio = minus_infinity_for_nan(end.log_prob - start.log_prob - end.kinetic)
        accepted = accepts(log_ratio, accept_seed, self.is_calibrated)
        moves = accepted[:, None]
        z = tf.where(moves, end.z, z)
        return z, before._replace(
            target_log_prob=tf.where(accepted, end.log_prob, start.log_prob),
            gradient=tf.where(moves, end.gradient, start.gradient),
            direction=tf.where(moves, end.direction, -start.direction),
            moments=select(before.adapting, before.moments.update(z), before.moments),
            is_accepted=accepted,
            log_accept_ratio=log_ratio,
        )


@dataclass(frozen=True, kw_only=True)
class Microcanonical(AdjustableKernel, name="microcanonical"):
    """Microcanonical HMC (adjusted) and microcanonical Langevin (unadjusted).

    A particle moves at speed one through the preconditioned coordinates and is turned by the
    gradient. The step size is therefore the distance of a step, for every density. Leapfrog steps
    take one gradient each.

    Adjusted: a transition draws a new direction and makes a random number of steps, uniform on
    1, ..., 2 n - 1 with n = trajectory_length / step_size. It accepts the end or stays. The map is
    reversible, and its energy error is the log volume it loses minus the log density it gains, so
    this is exact. Unadjusted: a transition is one step, before which a share of the direction is
    replaced. Energies are not reported, because E-BFMI needs momenta that are refreshed.

    Attributes:
        adjusted: Accept or reject, default True; False gives biased draws. True accepts or rejects
            whole trajectories. False accepts every step except divergent ones, and the report says
            that the draws are biased.
        trajectory_length: Distance over which a direction persists, in preconditioned coordinates.
            This is the mean length of adjusted trajectories; unadjusted, the distance over which
            all but 1 / e of the direction is replaced. None (default): sqrt(P), corrected during
            warm-up. sqrt(P) is right for coordinates of unit variance. Adaptation corrects it to
            the root of the chain's summed variances. It remains sqrt(P) if a step size is given and
            not adapted. The published tuners then switch to the autocorrelation length, which short
            windows determine too poorly; this step is left out.
        max_leapfrog_steps: Most leapfrog steps per transition; default 512.
        energy_variance: Unadjusted only: average squared energy error of a step, per parameter,
            that the step size adapts to; default 5e-4, as published.
        bias_tolerance: Unadjusted only, in place of `energy_variance`: allowed relative error of
            variances, root mean square over principal directions of a normal density; default None.
            The published 5e-4 corresponds to 0.05, see `tfbnn.engine.kernels.transition`.

    The other attributes are described in `TunedKernel`. Adjusted, adaptation aims at an acceptance
    of 0.9, as published. Unadjusted, there is no acceptance. Adaptation then uses
    exp(-error^2 / (2 P energy_variance)) instead, and aims at its mean for normal errors of that
    variance, 0.707.

    References:
        Robnik, De Luca, Silverstein and Seljak 2023, JMLR 24, 311 (arXiv:2212.08549): the dynamics
        and the unadjusted sampler. Robnik, Cohn-Gordon and Seljak 2025, arXiv:2503.01707: the
        adjusted one, with trajectories of random length and its target acceptance.
    """

    trajectory_length: float | None = None
    max_leapfrog_steps: int = 512
    energy_variance: float = _ENERGY_VARIANCE

    has_memory = True  # the moments that determine its length
    bias_without_tolerance = "that grows with the step size"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("trajectory_length", above=0)
        self._check_integer("max_leapfrog_steps", minimum=1)
        self._check_number("energy_variance", above=0)
        if self.bias_tolerance is not None and self.energy_variance != _ENERGY_VARIANCE:
            raise ValueError(
                f"bias_tolerance={self.bias_tolerance:g} and energy_variance={self.energy_variance:g} "
                "both choose the step size. Pass one of them."
            )

    @property
    def aimed_energy_variance(self) -> float:
        """Squared energy error per parameter and step that adaptation aims at."""
        if self.bias_tolerance is None:
            return self.energy_variance
        return energy_variance_of(self.bias_tolerance)

    @property
    def gradients_per_transition(self) -> int:
        # A guess, because lengths adapt; it only serves to estimate the time of a run.
        return min(self.max_leapfrog_steps, 64) if self.adjusted else 1

    @property
    def accept_targets(self) -> tuple[float, float]:
        """Target acceptance rates, for smooth and for ReLU-like activations."""
        return (0.9, 0.9) if self.adjusted else (ERROR_TARGET, ERROR_TARGET)

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return sqrt(P) times the leapfrog step, the distance that it moves with its momentum."""
        return leapfrog_step * leapfrog_step.dtype.type(num_parameters**0.5)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the kernel; `step_size` has shape [C, 1]."""
        return MicrocanonicalKernel(target_log_prob_fn, step_size, self.adjusted)

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the kernel results for the next transition, with its number of steps or its refreshment."""
        before = before._replace(step_size=step_size, adapting=adapting)
        mean_steps = self.length(before)[:, None] / step_size
        if not self.adjusted:
            return before._replace(persistence=tf.exp(-1.0 / mean_steps))
        share = tf.random.stateless_uniform(step_size.shape, key, dtype=step_size.dtype)
        steps = tf.math.ceil(share * (2.0 * mean_steps - 1.0))
        steps = tf.clip_by_value(steps, 1.0, float(self.max_leapfrog_steps))
        return before._replace(num_steps=tf.cast(steps[:, 0], tf.int32))

    def length(self, results: MicrocanonicalResults) -> Tensor:
        """Compute the trajectory lengths [C]."""
        if self.trajectory_length is not None:
            return tf.ones_like(results.target_log_prob) * self.trajectory_length
        squares, count = results.moments.squares, results.moments.count
        total = tf.reduce_sum(squares, axis=-1) + _PRIOR_DRAWS * squares.shape[-1]
        return tf.sqrt(total / (count + _PRIOR_DRAWS))

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition."""
        error_variance = None
        if not self.adjusted:
            error_variance = results.gradient.shape[-1] * self.aimed_energy_variance
        return ratio_statistics(results.log_accept_ratio, results.num_steps, error_variance)
