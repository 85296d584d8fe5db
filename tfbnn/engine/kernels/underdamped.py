"""Underdamped Langevin: HMC with one leapfrog step and a persistent momentum."""

from dataclasses import dataclass
from typing import NamedTuple

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


class UnderdampedResults(NamedTuple):
    """Results of a transition, used by the next transition and by the report.

    Attributes:
        target_log_prob: Log density of the current state [C].
        gradient: Gradient of the log density there [C, P].
        momentum: Momentum of the current state [C, P], before the partial refreshment.
        step_size: Leapfrog step [C, 1].
        persistence: Share of the momentum that the next refreshment keeps, scalar; zero at the
            start, where there is no momentum yet.
        is_accepted: Whether the last proposal was accepted [C].
        log_accept_ratio: Minus the energy error of the last proposal [C].
    """

    target_log_prob: Tensor
    gradient: Tensor
    momentum: Tensor
    step_size: Tensor
    persistence: Tensor
    is_accepted: Tensor
    log_accept_ratio: Tensor


@dataclass(eq=False)
class UnderdampedKernel(TransitionKernel):
    """Kernel that refreshes part of the momentum, makes a leapfrog step, and accepts or reverses.

    Attributes:
        is_calibrated: `adjusted` of UnderdampedLangevin.
        persistence: `persistence` of UnderdampedLangevin.
    """

    is_calibrated: bool
    persistence: float

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [C, P]."""
        value, gradient = tfp.math.value_and_gradient(self.target_log_prob_fn, init_state)
        return UnderdampedResults(
            target_log_prob=value,
            gradient=gradient,
            momentum=tf.zeros_like(init_state),
            step_size=self.step_size,
            persistence=tf.zeros([], init_state.dtype),
            is_accepted=tf.ones_like(value, tf.bool),
            log_accept_ratio=tf.zeros_like(value),
        )

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Make one transition; return (position [C, P], UnderdampedResults)."""
        noise_seed, accept_seed = tf.unstack(tf.random.split(seed, 2))
        start = partly_refreshed(before.momentum, before.persistence, noise_seed)
        new, end, value, gradient = self._leapfrog(z, start, before)
        kinetic = 0.5 * tf.reduce_sum(start**2 - end**2, axis=-1)
        log_ratio = minus_infinity_for_nan(value - before.target_log_prob + kinetic)
        accepted = accepts(log_ratio, accept_seed, self.is_calibrated)
        moves = accepted[:, None]
        return tf.where(moves, new, z), before._replace(
            target_log_prob=tf.where(accepted, value, before.target_log_prob),
            gradient=tf.where(moves, gradient, before.gradient),
            # A leapfrog step with a flip of the momentum is its own inverse. The flip after a
            # rejection makes the kernel exact.
            momentum=tf.where(moves, end, -start),
            persistence=tf.constant(self.persistence, start.dtype),
            is_accepted=accepted,
            log_accept_ratio=log_ratio,
        )

    def _leapfrog(self, z: Tensor, momentum: Tensor, before: Results) -> tuple[Tensor, ...]:
        """Make one leapfrog step; return (position, momentum, log density, gradient) after it."""
        half = momentum + 0.5 * before.step_size * before.gradient
        z = z + before.step_size * half
        value, gradient = tfp.math.value_and_gradient(self.target_log_prob_fn, z)
        return z, half + 0.5 * before.step_size * gradient, value, gradient


@dataclass(frozen=True, kw_only=True)
class UnderdampedLangevin(AdjustableKernel, name="underdamped_langevin"):
    """Underdamped Langevin dynamics: partial refreshment of the momentum, then one leapfrog step.

    The splitting is OBABO, with its two adjacent half refreshments combined into one. With friction
    gamma, `persistence` is exp(-gamma * step_size). A transition takes one gradient. Energies are
    not reported, because E-BFMI assumes momenta that are redrawn every time.

    Attributes:
        adjusted: Accept or reject, default True; False gives biased draws. True accepts or rejects
            every step, and a rejection reverses the momentum. False accepts every step except
            divergent ones. The draws then have a bias of the order of step_size^2, and the report
            says so.
        persistence: Share of the momentum that a transition keeps; default 0.9. With the share a, the
            momentum becomes p' = a p + sqrt(1 - a^2) eps, so that with 0.9 the direction lasts for
            about ten steps. 0 is MALA with h = step_size^2.
        bias_tolerance: Unadjusted only: allowed relative error of variances, root mean square over
            principal directions of a normal density; the step size adapts to the corresponding
            energy error, see `tfbnn.engine.kernels.transition`. None (default): until 0.99 of the
            steps would have been accepted.

    The other attributes are described in `TunedKernel`.

    References:
        Horowitz 1991, Phys. Lett. B 268, 247 (adjusted, with the flip). Bussi and Parrinello 2007,
        Phys. Rev. E 75, 056707 (the splitting). Robnik, Cohn-Gordon and Seljak 2024, arXiv:2412.08876
        (the bias by the energy error).
    """

    persistence: float = 0.9

    gradients_per_transition = 1
    bias_without_tolerance = "of the order of step_size^2"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("persistence", minimum=0, below=1)

    @property
    def accept_targets(self) -> tuple[float, float]:
        """Target acceptance rates, for smooth and for ReLU-like activations.

        Adjusted: a rejection reverses the chain, so it should be no more frequent than
        refreshments. On normal densities of 50 and 500 dimensions the best acceptance for a
        persistence of 0.9 was between 0.76 and 0.94. Unadjusted: the acceptance that a Metropolis
        step would have had, as a measure of the bias. With a tolerance: the value that corresponds
        to the allowed energy error.
        """
        if self.bias_tolerance is not None:
            return ERROR_TARGET, ERROR_TARGET
        return (0.85, 0.85) if self.adjusted else (0.99, 0.99)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the kernel; `step_size` has shape [C, 1]."""
        return UnderdampedKernel(target_log_prob_fn, step_size, self.adjusted, self.persistence)

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition."""
        ratio, error_variance = results.log_accept_ratio, None
        if self.bias_tolerance is not None:
            size = results.momentum.shape[-1]
            error_variance = size * energy_variance_of(self.bias_tolerance)
        return ratio_statistics(ratio, tf.fill(ratio.shape, 1), error_variance)
