"""Random-walk Metropolis."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.kernels.metropolis import MetropolisKernel, Point, Proposal
from tfbnn.system.arrays import Array


class RandomWalkProposal(Proposal):
    """Random-walk proposal z' = z + s * eps, eps ~ N(0, I), s the step size."""

    uses_gradient = False

    def draw(self, here: Point, step_size: Tensor, seed: Tensor) -> Tensor:
        """Draw a new position [C, P]."""
        noise = tf.random.stateless_normal(here.z.shape, seed, dtype=here.z.dtype)
        return here.z + step_size * noise

    def log_ratio(self, here: Point, there: Point, step_size: Tensor) -> Tensor:
        """Return zero [C], because the proposal is symmetric."""
        return tf.zeros(here.z.shape[:1], here.z.dtype)


@dataclass(frozen=True, kw_only=True)
class RandomWalkMetropolis(MetropolisKernel, name="random_walk_metropolis"):
    """Random-walk Metropolis: theta' = theta + s * eps in preconditioned coordinates.

    `step_size` is s, the standard deviation of the step in every coordinate. No gradients are
    taken, so `n_steps` is 0. The attributes are described in `TunedKernel`.

    References:
        Metropolis et al. 1953, J. Chem. Phys. 21, 1087. Roberts, Gelman and Gilks 1997, Ann. Appl.
        Probab. 7, 110, for the target acceptance of 0.234 and the scaling 2.38 / sqrt(P).
    """

    accept_targets = (0.234, 0.234)
    proposal = RandomWalkProposal

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return the optimal scaling of Roberts, Gelman and Gilks, times the leapfrog step."""
        return leapfrog_step * leapfrog_step.dtype.type(2.38 / num_parameters**0.5)
