"""HMC with a trajectory length learned from all chains by the ChEES criterion."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.adaptation import select
from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.base import TunedKernel
from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    acceptance_from_log_ratio,
    with_next,
)
from tfbnn.system.arrays import Array

# ADAM without momentum, as in Hoffman, Radul and Sountsov 2021, but with twice the learning rate:
# in a warm-up window of some hundred transitions, the length may have to grow by a factor of 100.
_LEARNING_RATE, _DECAY = 0.05, 0.95
# First trajectory length, in steps.
_FIRST_STEPS = 10.0
# Below this acceptance, the end of a trajectory carries no information about the dynamics.
_LOWEST_ACCEPTANCE = 1e-4


class TrajectoryLength(NamedTuple):
    """State of ADAM on the log of the trajectory length, all scalars.

    Attributes:
        log_length: Log of the length to try next.
        log_average: Log of the averaged length, used once adaptation is over.
        square: Running mean of squared gradients.
        count: Number of updates.
    """

    log_length: Tensor
    log_average: Tensor
    square: Tensor
    count: Tensor

    def update(self, gradient: Tensor, log_limit: Tensor) -> "TrajectoryLength":
        """Make one step uphill, at most to `log_limit`."""
        count = self.count + 1.0
        square = _DECAY * self.square + (1.0 - _DECAY) * gradient**2
        scale = tf.sqrt(square / (1.0 - _DECAY**count))
        step = _LEARNING_RATE * tf.math.divide_no_nan(gradient, scale)
        log_length = tf.minimum(self.log_length + step, log_limit)
        weight = count**-0.5  # as in TFP
        log_average = weight * log_length + (1.0 - weight) * self.log_average
        return TrajectoryLength(log_length, log_average, square, count)


class ChEESResults(NamedTuple):
    """Results of a transition, used by the next transition and by the report.

    Attributes:
        hmc: Results of `tfp.mcmc.HamiltonianMonteCarlo`.
        length: TrajectoryLength.
        share: Share of the length that the next trajectory covers, scalar.
        adapting: Whether the length adapts after the next transition, scalar.
    """

    hmc: Results
    length: TrajectoryLength
    share: Tensor
    adapting: Tensor


@dataclass(eq=False)
class ChEESKernel(TransitionKernel):
    """TFP's HMC with an update of the trajectory length after each transition.

    Attributes:
        step_size: Step size [C, 1], the same for all chains.
        trajectory_length, max_leapfrog_steps: As in ChEESHMC.
    """

    is_calibrated = True

    trajectory_length: float | None
    max_leapfrog_steps: int

    def __post_init__(self) -> None:
        self.hmc = HMC(num_leapfrog_steps=1).build(self.target_log_prob_fn, self.step_size)

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [C, P]."""
        step_size = self.step_size[0, 0]
        zero = tf.zeros_like(step_size)
        length = zero + (self.trajectory_length or _FIRST_STEPS * step_size)
        log_length = tf.math.log(length)
        length = TrajectoryLength(log_length, log_length, square=zero, count=zero)
        hmc = self.hmc.bootstrap_results(init_state)
        return ChEESResults(hmc, length, share=tf.ones_like(zero), adapting=tf.constant(False))

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Make one transition; return (position [C, P], ChEESResults)."""
        end, hmc = self.hmc.one_step(z, before.hmc, seed=seed)
        gradient = before.share * _criterion_gradient(z, hmc)
        step_size = before.hmc.accepted_results.step_size[0, 0]
        log_limit = tf.math.log(self.max_leapfrog_steps * step_size)
        learned = before.length.update(gradient, log_limit)
        length = select(before.adapting, learned, before.length)
        return end, before._replace(hmc=hmc, length=length)


def _criterion_gradient(start: Tensor, hmc: Results) -> Tensor:
    """Compute the acceptance-weighted derivative of the ChEES criterion along the trajectories; scalar."""
    (velocity,) = hmc.proposed_results.final_momentum
    acceptance = acceptance_from_log_ratio(hmc.log_accept_ratio)

    def criterion(time: Tensor) -> Tensor:
        end = hmc.proposed_state + time[:, None] * velocity
        return tfp.experimental.mcmc.chees_criterion(start, end, acceptance, None)

    _, gradient = tfp.math.value_and_gradient(criterion, tf.zeros_like(acceptance))
    usable = (acceptance > _LOWEST_ACCEPTANCE) & tf.math.is_finite(gradient)
    weight = tf.where(usable, acceptance, 0.0)
    lesson = tf.reduce_sum(weight * tf.where(usable, gradient, 0.0))
    return tf.math.divide_no_nan(lesson, tf.reduce_sum(weight))


@dataclass(frozen=True, kw_only=True)
class ChEESHMC(TunedKernel, name="chees_hmc"):
    """HMC with a trajectory length that all chains learn together by the ChEES criterion.

    Each transition draws t uniform on (0, T), the same for all chains, and makes ceil(t /
    step_size) leapfrog steps. During adaptation, T follows the gradient of ChEES: the squared
    change of the squared distance from the mean over chains. ChEES is largest for trajectories
    whose ends forget how far out they began. After adaptation, T is fixed to its average. Every
    window of warm-up starts again from ten steps, because its coordinates are new.

    All chains advance in one program, even on a CPU. They share the step size, the trajectory
    length and the coordinates, which are scaled by the mean of the chains' variances. The step size
    follows the harmonic mean of the acceptance rates, so one chain that cannot move makes it
    smaller. Results depend on the number of chains, and with more chains the length is learned
    faster.

    Attributes:
        trajectory_length: Longest trajectory T, in preconditioned coordinates; the mean trajectory
            is half as long. None (default): learned. A number is used unchanged. It is required if
            `step_size` is given and not adapted, because then nothing is learned.
        max_leapfrog_steps: Most leapfrog steps per transition; default 512. This limit holds for
            every T.

    The other attributes are described in `TunedKernel`; `preconditioner` is "auto" (default,
    meaning "diagonal"), "diagonal", "prior" or "identity". At least two chains are needed.

    Raises:
        ValueError: For preconditioner="gauss_newton", for a fixed step size without trajectory
            length, and in a fit with one chain.

    References:
        Hoffman, Radul and Sountsov 2021, AISTATS, PMLR 130, 3907.
    """

    trajectory_length: float | None = None
    max_leapfrog_steps: int = 512

    couples_chains = has_memory = True
    preconditioners = ("auto", "diagonal", "prior", "identity")
    no_whitening = (
        "whitened, every chain would have its own coordinates, and lengths would not compare"
    )
    accept_targets = HMC.accept_targets

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("trajectory_length", above=0)
        if self.trajectory_length is None and not self.adapts:
            raise ValueError(
                "trajectory_length must be given with a step_size that is not adapted, received "
                f"None with step_size={self.step_size}. Give it, or use adapt_step_size=True."
            )
        self._check_integer("max_leapfrog_steps", minimum=1)

    @property
    def gradients_per_transition(self) -> int:
        # A guess, because lengths adapt; it only serves to estimate the time of a run.
        return min(self.max_leapfrog_steps, 64)

    def pooled_acceptance(self, acceptance: Tensor) -> Tensor:
        """Return the harmonic mean of the acceptance rates, repeated for every chain [C]."""
        floor = np.finfo(acceptance.dtype.as_numpy_dtype).tiny
        harmonic = 1.0 / tf.reduce_mean(1.0 / tf.maximum(acceptance, floor))
        return tf.fill(acceptance.shape, harmonic)

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return the smallest of the chains' leapfrog steps, repeated for every chain."""
        return np.full_like(leapfrog_step, leapfrog_step.min())

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the kernel; `step_size` has shape [C, 1] and is the same for all chains."""
        return ChEESKernel(
            target_log_prob_fn, step_size, self.trajectory_length, self.max_leapfrog_steps
        )

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the kernel results for the next transition, with its number of steps."""
        adapting &= self.trajectory_length is None
        log_length = tf.where(adapting, before.length.log_length, before.length.log_average)
        share = tf.random.stateless_uniform([], key, dtype=step_size.dtype)
        steps = tf.math.ceil(share * tf.exp(log_length) / step_size[0, 0])
        steps = tf.cast(tf.clip_by_value(steps, 1.0, float(self.max_leapfrog_steps)), tf.int32)
        hmc = with_next(before.hmc, step_size=step_size, num_leapfrog_steps=steps)
        return before._replace(hmc=hmc, share=share, adapting=adapting)

    def target_log_prob(self, results: Results) -> Tensor:
        """Return the log density of the current state [C]."""
        return results.hmc.accepted_results.target_log_prob

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition."""
        return HMC().statistics(results.hmc)
