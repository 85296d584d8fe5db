"""The Metropolis-adjusted Langevin algorithm."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.kernels.metropolis import MetropolisKernel, Point, Proposal
from tfbnn.system.arrays import Array


class LangevinProposal(Proposal):
    """Langevin proposal z' ~ N(z + (h / 2) grad, h I), h the step size."""

    def mean(self, point: Point, step_size: Tensor) -> Tensor:
        """Return the mean [C, P] of the proposal from a Point."""
        return point.z + 0.5 * step_size * point.gradient

    def draw(self, here: Point, step_size: Tensor, seed: Tensor) -> Tensor:
        """Draw a new position [C, P]."""
        noise = tf.random.stateless_normal(here.z.shape, seed, dtype=here.z.dtype)
        return self.mean(here, step_size) + tf.sqrt(step_size) * noise

    def log_ratio(self, here: Point, there: Point, step_size: Tensor) -> Tensor:
        """Compute log q(here | there) - log q(there | here) [C]; the normalisers cancel."""
        forward = (there.z - self.mean(here, step_size)) ** 2
        backward = (here.z - self.mean(there, step_size)) ** 2
        return 0.5 * tf.reduce_sum((forward - backward) / step_size, axis=-1)


@dataclass(frozen=True, kw_only=True)
class MALA(MetropolisKernel, name="mala"):
    """Metropolis-adjusted Langevin algorithm: theta' ~ N(theta + (h / 2) M grad, h M).

    `step_size` is h, the variance of the proposal in preconditioned coordinates, as in TFP's
    `MetropolisAdjustedLangevinAlgorithm`. In libraries with a step size epsilon, h = epsilon^2: one
    leapfrog step of HMC of size epsilon is this kernel. M is set by `preconditioner`; the proposal
    is made in coordinates in which M is the identity. A transition takes one gradient. The
    attributes are described in `TunedKernel`.

    References:
        Roberts and Tweedie 1996, Bernoulli 2, 341. Roberts and Rosenthal 1998, J. R. Stat. Soc. B
        60, 255, for the target acceptance of 0.574. It holds for smooth densities and is also used
        for ReLU-like activations, for which no optimum is known.
    """

    accept_targets = (0.574, 0.574)
    proposal = LangevinProposal

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return h = epsilon^2, with which this kernel is one leapfrog step of size epsilon."""
        return leapfrog_step**2
