"""Metropolis-Hastings with one proposal, the common base of random walk and Langevin kernels.

TFP's own proposals cannot adapt here. Its random walk has no step size in its results. Its Langevin
kernel stores the drift of the last step in the results, multiplied by a step size that may have
changed since. The accept step is that of TFP.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.base import TunedKernel
from tfbnn.engine.kernels.transition import TransitionKernel, TransitionStatistics, ratio_statistics


class Point(NamedTuple):
    """A position with the quantities that a proposal needs there.

    Attributes:
        z: Position [C, P].
        gradient: Gradient of the log density at z [C, P]; () if unused.
        metric: MetricTensor at z; () if unused.
    """

    z: Tensor
    gradient: Tensor
    metric: Tensor = ()


class ProposalResults(NamedTuple):
    """Results of a proposal, for `tfp.mcmc.MetropolisHastings` and the runner.

    Attributes:
        target_log_prob: Log density at the new position [C].
        gradient: Gradient of the log density there [C, P]; () if unused.
        metric: Metric at the new position, as in Point.
        step_size: Step size of the proposal [C, 1].
        log_acceptance_correction: log q(old | new) - log q(new | old), [C].
    """

    target_log_prob: Tensor
    gradient: Tensor
    metric: Tensor
    step_size: Tensor
    log_acceptance_correction: Tensor


class Proposal(TransitionKernel):
    """Proposed move before the accept step; subclasses define `draw` and `log_ratio`."""

    is_calibrated = False
    uses_gradient = True

    @abstractmethod
    def draw(self, here: Point, step_size: Tensor, seed: Tensor) -> Tensor:
        """Draw a new position [C, P] from the Point `here`."""

    @abstractmethod
    def log_ratio(self, here: Point, there: Point, step_size: Tensor) -> Tensor:
        """Compute log q(here | there) - log q(there | here) of two Points, [C]."""

    def metric_at(self, z: Tensor) -> Any:
        """Return the `metric` of the Point at z [C, P]: none here."""
        return ()

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [C, P]."""
        value, gradient = self._evaluate(init_state)
        metric = self.metric_at(init_state)
        return ProposalResults(value, gradient, metric, self.step_size, tf.zeros_like(value))

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Draw a proposal; return (new position [C, P], ProposalResults there)."""
        here = Point(z, before.gradient, before.metric)
        end = self.draw(here, before.step_size, seed)
        value, gradient = self._evaluate(end)
        there = Point(end, gradient, self.metric_at(end))
        correction = self.log_ratio(here, there, before.step_size)
        return end, ProposalResults(value, gradient, there.metric, before.step_size, correction)

    def _evaluate(self, z: Tensor) -> tuple[Tensor, Tensor]:
        if self.uses_gradient:
            return tfp.math.value_and_gradient(self.target_log_prob_fn, z)
        return self.target_log_prob_fn(z), ()


class MetropolisKernel(TunedKernel):
    """Settings of a kernel that makes one proposal and accepts or rejects it.

    The class attribute `proposal` is the class of the proposal.
    """

    proposal: ClassVar[type[Proposal]]
    gradients_per_transition = 1

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the TFP kernel; `step_size` has shape [C, 1]."""
        return tfp.mcmc.MetropolisHastings(self.proposal(target_log_prob_fn, step_size))

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition; there is no momentum, hence no energy."""
        ratio = results.log_accept_ratio
        follows_gradient = self.proposal.uses_gradient
        statistics = ratio_statistics(ratio, tf.fill(ratio.shape, int(follows_gradient)))
        # A random walk into very low density is not a failure of an integrator.
        return statistics._replace(diverging=statistics.diverging & follows_gradient)
