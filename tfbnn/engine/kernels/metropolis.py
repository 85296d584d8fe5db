"""Metropolis-Hastings around one proposal: what random walk and Langevin kernels share.

TFP's own proposals cannot adapt here: its random walk has no step size in its results, and its
Langevin kernel keeps the drift of the last step there, multiplied by a step size that may have
changed since. The accept step is TFP's.
"""

from typing import NamedTuple

from tfbnn.engine.basis.libraries import tf, tfp
from tfbnn.engine.kernels.base import (
    Kernel,
    TransitionStatistics,
    acceptance_from_log_ratio,
    is_divergent,
    unknown,
)


class Point(NamedTuple):
    """A position, and what a proposal needs to know of it.

    Attributes:
        z: Position [C, P].
        gradient: Gradient of the log density there [C, P], () where unused.
        metric: MetricTensor there, () where unused.
    """

    z: object
    gradient: object
    metric: object = ()


class ProposalResults(NamedTuple):
    """What `tfp.mcmc.MetropolisHastings` and the runner need to know of a proposal.

    Attributes:
        target_log_prob: Log density at the new position [C].
        gradient: Its gradient [C, P], () where unused.
        metric: As in Point, at the new position.
        step_size: The step size that was used [C, 1].
        log_acceptance_correction: log q(old | new) - log q(new | old), [C].
    """

    target_log_prob: object
    gradient: object
    metric: object
    step_size: object
    log_acceptance_correction: object


class Proposal(tfp.mcmc.TransitionKernel):
    """A move that is not yet accepted; subclasses give `draw` and `log_ratio`."""

    is_calibrated = False
    uses_gradient = True

    def __init__(self, target_log_prob_fn, step_size):
        """
        Args:
            target_log_prob_fn: z [C, P] -> [C].
            step_size: [C, 1], for `bootstrap_results` only; later ones travel in the results.
        """
        self.target_log_prob_fn = target_log_prob_fn
        self.step_size = step_size

    def draw(self, here, step_size, seed):
        """A new position [C, P] from the Point `here`."""
        raise NotImplementedError

    def log_ratio(self, here, there, step_size):
        """log q(here | there) - log q(there | here) of two Points, [C]."""
        raise NotImplementedError

    def metric_at(self, z):
        """What stands for `metric` in the Point at z [C, P]: nothing."""
        del z
        return ()

    def bootstrap_results(self, init_state):
        """Results at a start [C, P]."""
        value, gradient = self._evaluate(init_state)
        metric = self.metric_at(init_state)
        return ProposalResults(value, gradient, metric, self.step_size, tf.zeros_like(value))

    def one_step(self, current_state, previous_kernel_results, seed=None):
        """Proposes; returns (new position [C, P], ProposalResults there)."""
        before = previous_kernel_results
        here = Point(current_state, before.gradient, before.metric)
        z = self.draw(here, before.step_size, seed)
        value, gradient = self._evaluate(z)
        there = Point(z, gradient, self.metric_at(z))
        correction = self.log_ratio(here, there, before.step_size)
        return z, ProposalResults(value, gradient, there.metric, before.step_size, correction)

    def _evaluate(self, z):
        if self.uses_gradient:
            return tfp.math.value_and_gradient(self.target_log_prob_fn, z)
        return self.target_log_prob_fn(z), ()


class MetropolisKernel(Kernel):
    """Settings of a kernel that is one accepted or rejected proposal, named by `proposal`."""

    gradients_per_transition = 1

    def build(self, target_log_prob_fn, step_size):
        """The TFP kernel; `step_size` has shape [C, 1]."""
        return tfp.mcmc.MetropolisHastings(self.proposal(target_log_prob_fn, step_size))

    def prepare(self, results, step_size, key, adapting):
        """Kernel results with the step size [C, 1] for the next transition."""
        del key, adapting  # one step has no trajectory that could resonate, or be tuned
        inner = results.accepted_results._replace(step_size=step_size)
        return results._replace(accepted_results=inner)

    def target_log_prob(self, results):
        """Log density of the current state [C]."""
        return results.accepted_results.target_log_prob

    def statistics(self, results):
        """Statistics of the last transition; there is no momentum, hence no energy."""
        ratio = results.log_accept_ratio
        follows_gradient = self.proposal.uses_gradient
        return TransitionStatistics(
            acceptance_rate=acceptance_from_log_ratio(ratio),
            n_steps=tf.fill(ratio.shape, 1 if follows_gradient else 0),
            # A random walk that falls off the density is no integrator that fails.
            diverging=is_divergent(ratio) & follows_gradient,
            energy=unknown(ratio),
        )
