"""Underdamped Langevin: HMC of one leapfrog step whose momentum persists."""

from dataclasses import dataclass
from typing import NamedTuple

from tfbnn.data.validation import check_number
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
    """Results of a transition, for the next one and for the report.

    Attributes:
        target_log_prob: Log density of the current state [C].
        gradient: Its gradient [C, P].
        momentum: Momentum of the current state [C, P], to be refreshed in part.
        step_size: Leapfrog step [C, 1].
        persistence: Share of the momentum that the next refreshment keeps, scalar; zero at the
            start, where there is no momentum yet.
        is_accepted: Whether the last proposal was accepted [C].
        log_accept_ratio: Minus its energy error [C].
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
    """Refreshes part of the momentum, makes a leapfrog step, accepts it or reverses.

    Attributes:
        is_calibrated: `adjusted` of UnderdampedLangevin.
        persistence: As there.
    """

    is_calibrated: bool
    persistence: float

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Results at a start [C, P]."""
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
        """One transition; returns (position [C, P], UnderdampedResults)."""
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
            # Leapfrog and flip of the momentum is its own inverse; only so is a rejection exact.
            momentum=tf.where(moves, end, -start),
            persistence=tf.constant(self.persistence, start.dtype),
            is_accepted=accepted,
            log_accept_ratio=log_ratio,
        )

    def _leapfrog(self, z: Tensor, momentum: Tensor, before: Results) -> tuple[Tensor, ...]:
        """(position, momentum, log density, gradient) after one step."""
        half = momentum + 0.5 * before.step_size * before.gradient
        z = z + before.step_size * half
        value, gradient = tfp.math.value_and_gradient(self.target_log_prob_fn, z)
        return z, half + 0.5 * before.step_size * gradient, value, gradient


@dataclass(frozen=True, kw_only=True)
class UnderdampedLangevin(AdjustableKernel, name="underdamped_langevin"):
    """Underdamped Langevin dynamics: partial refreshment of the momentum, then one leapfrog step.

    The splitting is OBABO, whose two adjacent half refreshments are made as one. With friction
    gamma, `persistence` is exp(-gamma * step_size). One gradient per transition. Energies are not
    reported: E-BFMI judges momenta that are drawn anew every time.

    Attributes:
        adjusted: Accept or reject, default True; False gives biased draws. Adjusted, every step is
            accepted or rejected, and the momentum is reversed by a rejection. False accepts every
            step but divergent ones: the draws then have a bias of the order of step_size^2, and the
            report says so.
        persistence: Share a of the momentum that a transition keeps; default 0.9. It becomes
            p' = a p + sqrt(1 - a^2) eps, so that with 0.9 the direction lasts for about ten steps.
            0 is MALA with h = step_size^2.
        bias_tolerance: Unadjusted only: the share by which variances may be off, root mean square over
            principal directions of a normal density; the step size adapts until the energy errors
            are as large as goes with it, see `tfbnn.engine.kernels.transition`. None (default): until
            0.99 of the steps would have been accepted.

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
        share = check_number("persistence", self.persistence, minimum=0, below=1)
        object.__setattr__(self, "persistence", share)

    @property
    def accept_targets(self) -> tuple[float, float]:
        """For smooth and for ReLU-like activations.

        Adjusted: a rejection turns the chain round, so it should be no more frequent than
        refreshments; on normal densities of 50 and 500 dimensions the best acceptance for a
        persistence of 0.9 was between 0.76 and 0.94. Not adjusted: the acceptance that would have
        been, as a measure of the bias; with a tolerance what stands for the energy error that is
        allowed.
        """
        if self.bias_tolerance is not None:
            return ERROR_TARGET, ERROR_TARGET
        return (0.85, 0.85) if self.adjusted else (0.99, 0.99)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Return the kernel; `step_size` has shape [C, 1]."""
        return UnderdampedKernel(target_log_prob_fn, step_size, self.adjusted, self.persistence)

    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the last transition."""
        ratio, error_variance = results.log_accept_ratio, None
        if self.bias_tolerance is not None:
            size = results.momentum.shape[-1]
            error_variance = size * energy_variance_of(self.bias_tolerance)
        return ratio_statistics(ratio, tf.fill(ratio.shape, 1), error_variance)
