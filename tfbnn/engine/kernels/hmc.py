"""Hamiltonian Monte Carlo with trajectories of fixed, jittered length."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.base import TunedKernel
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    ratio_statistics,
    with_next,
)
from tfbnn.spec.density_spec import Sampled


@dataclass(frozen=True, kw_only=True)
class HMC(TunedKernel, name="hmc"):
    """Hamiltonian Monte Carlo (leapfrog, Metropolis-corrected), by `tfp.mcmc`.

    Attributes:
        num_leapfrog_steps: Leapfrog steps and thus gradients per transition; default 64.
        trajectory_jitter: Jitter of the step size; default 0.2; 0 disables it. Each transition
            multiplies the step size by 1 + jitter * u, with u uniform on (-1, 1), so that no
            trajectory length resonates with the target.

    The other attributes are described in `TunedKernel`. By default, adaptation aims at an
    acceptance of 0.651 (smooth activations) or 0.6 (ReLU-like), and at 0.8 in whitened coordinates.

    References:
        Duane et al. 1987, Phys. Lett. B 195, 216. Neal 2011, arXiv:1206.1901.
    """

    num_leapfrog_steps: int = 64
    trajectory_jitter: float = 0.2

    # Smooth: the optimum for long products (Beskos et al. 2013, arXiv:1001.4460). ReLU-like: Dinh et
    # al. 2024 find an optimum of 0.45 and accept 0.4 to 0.75. Near its stability limit a real
    # network accepts all or nothing, and with a target of 0.45 every third transition diverged.
    accept_targets = (0.651, 0.6)
    # Chains leave the point at which they were whitened, and errors then grow steeply: with a
    # target of 0.651, sampling accepted 0.08 to 0.30 on neutralinos. With 0.8 it accepts 0.3 to 0.9
    # (benchmarks/results/geometry.md).
    whitened_target = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("num_leapfrog_steps", minimum=1)
        self._check_number("trajectory_jitter", minimum=0, below=1)

    @property
    def gradients_per_transition(self) -> int:
        return self.num_leapfrog_steps

    def accept_target(self, spec: Sampled) -> tuple[float, str]:
        """Return the target acceptance rate of adaptation for the model `spec`, and the reason."""
        if self.target_accept_prob is None and self.preconditioner == "gauss_newton":
            return self.whitened_target, "default in whitened coordinates"
        return super().accept_target(spec)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the TFP kernel; `step_size` has shape [C, 1]."""
        return tfp.mcmc.HamiltonianMonteCarlo(
            target_log_prob_fn,
            step_size=step_size,
            num_leapfrog_steps=self.num_leapfrog_steps,
            # Without this the kernel would ignore the step size that `prepare` sets.
            store_parameters_in_results=True,
        )

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the kernel results with a jittered step size [C, 1] for the next transition."""
        if self.trajectory_jitter:
            spread = tf.random.stateless_uniform(step_size.shape, key, -1.0, 1.0, step_size.dtype)
            step_size = step_size * (1.0 + self.trajectory_jitter * spread)
        return with_next(before, step_size=step_size)

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition."""
        proposed = results.proposed_results
        # The momentum that belongs to the current state of the chain.
        (initial,), (final,) = proposed.initial_momentum, proposed.final_momentum
        momentum = tf.where(results.is_accepted[:, None], final, initial)
        kinetic = 0.5 * tf.reduce_sum(momentum**2, axis=-1)
        ratio = results.log_accept_ratio
        steps = tf.fill(ratio.shape, tf.cast(proposed.num_leapfrog_steps, tf.int32))
        energy = kinetic - results.accepted_results.target_log_prob
        return ratio_statistics(ratio, steps)._replace(energy=energy)
