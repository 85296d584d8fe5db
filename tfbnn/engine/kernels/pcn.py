"""The preconditioned Crank-Nicolson algorithm."""

from dataclasses import dataclass

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.kernels.metropolis import MetropolisKernel, Point, Proposal
from tfbnn.system.arrays import Array


class CrankNicolsonProposal(Proposal):
    """Proposal z' = a z + sqrt(1 - a^2) eps, eps ~ N(0, I), a = exp(-s^2 / 2), s the step size."""

    uses_gradient = False

    def kept(self, step_size: Tensor) -> Tensor:
        """Return the share a of the position that a proposal keeps."""
        return tf.exp(-0.5 * step_size**2)

    def draw(self, here: Point, step_size: Tensor, seed: Tensor) -> Tensor:
        """Draw a new position [C, P]."""
        noise = tf.random.stateless_normal(here.z.shape, seed, dtype=here.z.dtype)
        # expm1, because 1 - a^2 loses its digits for short steps.
        return self.kept(step_size) * here.z + tf.sqrt(-tf.math.expm1(-(step_size**2))) * noise

    def log_ratio(self, here: Point, there: Point, step_size: Tensor) -> Tensor:
        """Compute log q(here | there) - log q(there | here) [C], the log ratio of N(0, I) densities.

        The proposal q leaves N(0, I) invariant and is reversible with respect to it.
        """
        # The sums of squares have the magnitude of P, their difference only that of its root.
        return float64_sum(0.5 * (there.z - here.z) * (there.z + here.z))


@dataclass(frozen=True, kw_only=True)
class PCN(MetropolisKernel, name="pcn"):
    """Preconditioned Crank-Nicolson, a random walk z' = sqrt(1 - beta^2) z + beta eps that keeps the prior.

    For a density exp(-Phi) with respect to N(0, I), a proposal is accepted with probability
    min(1, exp(Phi(z) - Phi(z'))). The number of weights does not enter, and every proposal is
    accepted where the rows carry no information. No gradients are taken, so `n_steps` is 0.

    In `Repriorised`, Phi varies less the wider the network is, and in theory the acceptance at a
    fixed step tends to 1 with the width. Measured, it was 0.07 with 16 units, and 0.45 with 256 as
    with 1024 (`benchmarks/results/pcn.md`). Steps are as long as the best determined direction
    allows, and equally long in all directions. HMC made four times as many effective draws per
    second there, and is the better choice for many rows or narrow networks.

    `step_size` is s in sqrt(1 - beta^2) = exp(-s^2 / 2). It can grow without limit, and proposals
    then become independent of the current position. For short steps it is about beta: 0.1 means
    beta = 0.0998. It is adapted up to 3, where a proposal keeps 1 % of a position.

    z is theta divided by the fixed scales of its priors, so a Normal prior becomes N(0, I). The
    readout of `Repriorised` is already N(0, I), and so are the weights with parameterization="ntk".
    The kernel is exact for any density: deviations of the prior from N(0, I), such as a Laplace
    prior, a mean or a learned noise scale, are part of Phi.

    Attributes:
        preconditioner: "auto" (default), which means "prior", or "prior", or "identity", with which
            z is theta.
        target_accept_prob: Default 0.234, that of a random walk. For normal densities in 100
            dimensions of which the likelihood determines 3, 10 and 50, chains moved furthest at
            acceptances of 0.40, 0.25 and 0.23, and at least 0.8 times as far with any acceptance
            between these.

    The other attributes are described in `TunedKernel`.

    Raises:
        ValueError: For other preconditioners, in whose coordinates the prior is not N(0, I).

    References:
        Cotter, Roberts, Stuart and White 2013, Stat. Sci. 28, 424, arXiv:1202.0709. Pezzetti, Favaro
        and Peluchetti 2024, arXiv:2408.14325, for wide networks in repriorised coordinates. Roberts,
        Gelman and Gilks 1997, Ann. Appl. Probab. 7, 110, for the target acceptance.
    """

    accept_targets = (0.234, 0.234)
    preconditioners = ("auto", "prior", "identity")
    no_whitening = "proposals keep N(0, I)"
    largest_step_size = 3.0
    proposal = CrankNicolsonProposal

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return the leapfrog step, because the number of directions that rows determine is unknown."""
        return np.minimum(leapfrog_step, leapfrog_step.dtype.type(self.largest_step_size))


def float64_sum(terms: Tensor) -> Tensor:
    """Sum terms [C, P] to [C] in float64, and convert the result back."""
    return tf.cast(tf.reduce_sum(tf.cast(terms, tf.float64), axis=-1), terms.dtype)
