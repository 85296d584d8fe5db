"""The preconditioned Crank-Nicolson Langevin algorithm."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.kernels.metropolis import Point
from tfbnn.engine.kernels.pcn import PCN, CrankNicolsonProposal, float64_sum


class LangevinCrankNicolsonProposal(CrankNicolsonProposal):
    """Proposal z' = a z + (1 - a) f(z) + sqrt(1 - a^2) eps, f = z + grad log density.

    The share a is that of CrankNicolsonProposal. In terms of Cotter's delta,
    (2 + delta) z' = (2 - delta) z + 2 delta f + sqrt(8 delta) eps.
    """

    uses_gradient = True

    def pull(self, point: Point) -> Tensor:
        """Return f [C, P], minus the gradient of Phi; it is zero for the density N(0, I)."""
        return point.z + point.gradient

    def draw(self, here: Point, step_size: Tensor, seed: Tensor) -> Tensor:
        """Draw a new position [C, P]."""
        share = -tf.math.expm1(-0.5 * step_size**2)
        return super().draw(here, step_size, seed) + share * self.pull(here)

    def log_ratio(self, here: Point, there: Point, step_size: Tensor) -> Tensor:
        """Compute log q(here | there) - log q(there | here) [C].

        The contribution of f to the ratio is exactly zero if f is zero. It needs no difference of
        sums of P squares, as the difference of two normal log densities would.
        """
        kept = self.kept(step_size)
        forward, backward = self.pull(here), self.pull(there)
        mixed = backward * (here.z - kept * there.z) - forward * (there.z - kept * here.z)
        squares = 0.5 * (1.0 - kept) * (forward - backward) * (forward + backward)
        return super().log_ratio(here, there, step_size) + float64_sum(
            (mixed + squares) / (1.0 + kept)
        )


@dataclass(frozen=True, kw_only=True)
class PCNL(PCN, name="pcnl"):
    """Preconditioned Crank-Nicolson Langevin: PCN with proposals that follow the gradient of Phi.

    The proposal is z' = sqrt(1 - beta^2) z - (1 - sqrt(1 - beta^2)) grad Phi(z) + beta eps. For
    short steps it is MALA's proposal. For long steps it is independent of z if the density is N(0,
    I). A transition takes one gradient. `step_size`, `preconditioner` and z are those of `PCN`.

    Attributes:
        target_accept_prob: Default 0.574, that of MALA. On the densities listed in `PCN` the best
            acceptances were between 0.56 and 0.76.

    The other attributes are described in `PCN` and `TunedKernel`.

    Raises:
        ValueError: As in PCN.

    References:
        Cotter, Roberts, Stuart and White 2013, Stat. Sci. 28, 424, arXiv:1202.0709, section 4.
        Pezzetti, Favaro and Peluchetti 2024, arXiv:2408.14325. Roberts and Rosenthal 1998, J. R. Stat.
        Soc. B 60, 255, for the target acceptance.
    """

    accept_targets = (0.574, 0.574)
    proposal = LangevinCrankNicolsonProposal
