"""The No-U-Turn sampler."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    acceptance_from_log_ratio,
)
from tfbnn.engine.kernels.tuned import TunedKernel

# TFP tabulates a matrix of 2**depth x 2**depth entries before it starts: 134 MB here.
_MAX_TREE_DEPTH = 12


@dataclass(frozen=True, kw_only=True)
class NUTS(TunedKernel, name="nuts"):
    """The No-U-Turn sampler with multinomial sampling of trajectories, by `tfp.mcmc`.

    Attributes:
        max_tree_depth: A transition takes at most 2**max_tree_depth - 1 leapfrog steps; default
            10.

    The other attributes are described in `TunedKernel`.

    References:
        Hoffman and Gelman 2014, JMLR 15, 1593. Betancourt 2017, arXiv:1701.02434.
    """

    max_tree_depth: int = 10

    # Averaged over a trajectory, acceptance has its optimum higher: Hoffman and Gelman 2014, 0.65
    # to 0.8; the upper end copes with varying curvature.
    accept_targets = (0.8, 0.7)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("max_tree_depth", minimum=1)
        if self.max_tree_depth > _MAX_TREE_DEPTH:
            raise ValueError(
                f"max_tree_depth must be at most {_MAX_TREE_DEPTH}, received "
                f"max_tree_depth={self.max_tree_depth}."
            )

    @property
    def gradients_per_transition(self) -> int:
        # Trees rarely saturate; this guess only sets how many transitions share a block.
        return min(2**self.max_tree_depth - 1, 127)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """The TFP kernel; `step_size` has shape [C, 1]."""
        return tfp.mcmc.NoUTurnSampler(
            target_log_prob_fn, step_size=step_size, max_tree_depth=self.max_tree_depth
        )

    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the last transition."""
        acceptance = acceptance_from_log_ratio(results.log_accept_ratio)
        steps = tf.cast(results.leapfrogs_taken, tf.int32)
        # TFP's energy is minus the Hamiltonian.
        return TransitionStatistics(acceptance, steps, results.has_divergence, -results.energy)
