"""Random-walk Metropolis."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.kernels.metropolis import MetropolisKernel, Proposal


class RandomWalkProposal(Proposal):
    """z' = z + s * eps, eps ~ N(0, I), s the step size."""

    uses_gradient = False

    def draw(self, here, step_size, seed):
        """A new position [C, P]."""
        return here.z + step_size * tf.random.stateless_normal(
            here.z.shape, seed, dtype=here.z.dtype
        )

    def log_ratio(self, here, there, step_size):
        """Zero [C]: the proposal is symmetric."""
        del there, step_size
        return tf.zeros(here.z.shape[:1], here.z.dtype)


@dataclass(frozen=True, kw_only=True)
class RandomWalkMetropolis(MetropolisKernel):
    """Random-walk Metropolis: theta' = theta + s * eps in preconditioned coordinates.

    `step_size` is s, the standard deviation of the step in every coordinate. No gradients are
    taken, so `n_steps` is 0. The attributes are described in `Kernel`.

    References:
        Metropolis et al. 1953, J. Chem. Phys. 21, 1087. Roberts, Gelman and Gilks 1997, Ann. Appl.
        Probab. 7, 110, for the target acceptance of 0.234 and the scaling 2.38 / sqrt(P).
    """

    accept_targets = (0.234, 0.234)
    proposal = RandomWalkProposal

    def first_step_size(self, leapfrog_step, num_parameters):
        """The scaling of Roberts, Gelman and Gilks, in units of the leapfrog step."""
        return leapfrog_step * leapfrog_step.dtype.type(2.38 / num_parameters**0.5)
