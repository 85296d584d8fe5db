"""The No-U-Turn sampler."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor
from tfbnn.engine.kernels.no_u_turn import NoUTurnKernel
from tfbnn.engine.kernels.transition import TransitionKernel, TransitionStatistics
from tfbnn.engine.kernels.tuned import TunedKernel

# A million gradients for one transition: no step size that was adapted needs as many.
_MAX_TREE_DEPTH = 20


@dataclass(frozen=True, kw_only=True)
class NUTS(TunedKernel, name="nuts"):
    """The No-U-Turn sampler with multinomial sampling of trajectories.

    A trajectory doubles, to the left or to the right, until it or one of its dyadic parts turns
    back: until the momentum at an end points against the sum of the momenta. As in Stan, each half
    is also asked together with the neighbouring point of the other: without that, trajectories of a
    normal density in 500 whitened dimensions had 510 steps instead of 15 wherever eight steps are
    half a period, at an acceptance of 0.77. Points are drawn by exp(-energy error) within a half,
    and the new half is preferred to the old one. A leaf whose energy error is above 1000, or not a
    number, ends the trajectory without the half that it is in. Chains of a batch end by
    themselves; the batch goes on until the last has.

    Attributes:
        max_tree_depth: A transition takes at most 2**max_tree_depth - 1 leapfrog steps; default
            10, at most 20. Memory grows with it by five vectors a chain.

    The other attributes are described in `TunedKernel`.

    References:
        Hoffman and Gelman 2014, JMLR 15, 1593. Betancourt 2017, arXiv:1701.02434 (weights, and
        turns by sums of momenta). Phan, Pradhan and Jankowiak 2019, arXiv:1912.11554, and Lao et
        al. 2020, arXiv:2002.01184 (trees without recursion).
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
        # Trees rarely saturate; this guess only serves to estimate the time of a run.
        return min(2**self.max_tree_depth - 1, 127)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """The kernel; `step_size` has shape [C, 1]."""
        return NoUTurnKernel(target_log_prob_fn, step_size, self.max_tree_depth)

    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the last transition."""
        return TransitionStatistics(
            results.acceptance_rate, results.n_steps, results.diverging, results.energy
        )
