"""What the sampler did, and whether chains moved at all: without that no other number means much."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tfbnn.diagnostics.problem import About, Problem, Remedy, Spoils
from tfbnn.diagnostics.wording import counted, named, percent
from tfbnn.system.arrays import Array

# Statistics of the sampler by name, each [C, S].
Stats = Mapping[str, Array]

MIN_DRAWS = 4
# Chains that stand still accept all or nothing.
_ACCEPTED = 0.5


@dataclass(frozen=True, eq=False)
class Sampled:
    """What the sampler did.

    Attributes:
        draws: [C, S, P].
        stats: Dict of [C, S] arrays with any of lp, acceptance_rate, n_steps and diverging.
        num_transitions: Of all chains, that the draws were kept from.
        max_tree_depth: Limit of the sampler, or None.
        adapts: Whether warm-up tuned the step size.
        is_adjusted: Whether acceptance means something.
    """

    draws: Array
    stats: Stats
    num_transitions: int
    max_tree_depth: int | None
    adapts: bool
    is_adjusted: bool

    @property
    def num_chains(self) -> int:
        return len(self.draws)

    @property
    def num_draws(self) -> int:
        """Per chain."""
        return int(self.draws.shape[1])

    @property
    def acceptance(self) -> Array:
        """Mean acceptance rate [C], NaN where it is not known or says nothing."""
        if "acceptance_rate" not in self.stats or not self.is_adjusted or not self.num_draws:
            return np.full(self.num_chains, np.nan)
        rates: Array = np.asarray(self.stats["acceptance_rate"], dtype=float).mean(axis=1)
        return rates

    @property
    def has_finite_density(self) -> Array:
        """Whose log densities are finite, as those that nobody knows are taken to be [C]."""
        if "lp" not in self.stats:
            return np.ones(self.num_chains, bool)
        finite: Array = np.isfinite(np.asarray(self.stats["lp"], dtype=float)).all(axis=1)
        return finite

    @property
    def has_step(self) -> bool:
        """Whether the kernel has a step size, which those of the user's own keep to themselves."""
        steps = self.stats.get("step_size")
        return steps is None or not np.isnan(steps).all()

    @property
    def stands_still(self) -> Array:
        """Which chains never moved [C]."""
        if self.num_draws < 2:
            return np.zeros(self.num_chains, bool)
        still = np.all(self.draws == self.draws[:, :1], axis=(1, 2))
        moveless: Array = still | (self.acceptance <= 0)
        return moveless


def find_causes(sampled: Sampled) -> Iterator[Problem]:
    """Yields what makes all numbers of the chains meaningless."""
    yield from _too_little(sampled)
    yield from _unmoved(sampled)
    yield from _biased(sampled)


def _too_little(sampled: Sampled) -> Iterator[Problem]:
    if sampled.num_draws < MIN_DRAWS:
        yield Problem(
            f"The chains have only {counted(sampled.num_draws, 'draw')} each, too few for any "
            "convergence number",
            "",
            Remedy(num_results=100, times=100 / max(sampled.num_draws, 1)),
            Spoils.MEANS,
            About.MOVEMENT,
        )
    if sampled.num_chains < 2:
        yield Problem(
            "There is only 1 chain, which cannot see other modes",
            "R-hat compares its two halves. Chains from separate starts would tell whether all find "
            "the same predictions.",
            Remedy("num_chains=4 or more"),
            Spoils.ERROR_BARS,
            About.MOVEMENT,
        )


def _unmoved(sampled: Sampled) -> Iterator[Problem]:
    still, accepted = sampled.stands_still, sampled.acceptance > _ACCEPTED
    small = np.flatnonzero(still & accepted)
    if small.size:
        yield Problem(
            f"{named('Chain', small)} never moved though {percent(sampled.acceptance[small].mean())} "
            "of the proposals were accepted: the step is too small",
            "Steps below the resolution of the numbers leave every weight as it is, and such "
            "proposals are always accepted. With a fixed step size a diagonal preconditioner makes "
            "small steps smaller still: it scales the weights by how far they came.",
            other_step(sampled, "larger"),
            Spoils.MEANS,
            About.MOVEMENT,
        )
    stuck = np.flatnonzero(still & ~accepted)
    if stuck.size:
        yield Problem(
            f"{named('Chain', stuck)} never moved: no proposal was accepted, the step is too large",
            "All their draws are one point.",
            other_step(sampled, "smaller"),
            Spoils.MEANS,
            About.MOVEMENT,
        )


def _biased(sampled: Sampled) -> Iterator[Problem]:
    if not sampled.is_adjusted:
        yield Problem(
            "The kernel is biased: its draws follow the posterior up to an error that no number here "
            "shows",
            "It accepts every proposal, so that the error of its steps stays.",
            Remedy("an adjusted kernel, or compare with a run at half the step_size"),
            Spoils.ERROR_BARS,
            About.MOVEMENT,
        )


def other_step(sampled: Sampled, kind: str) -> Remedy:
    """What to do for a "larger" or "smaller" step."""
    if not sampled.has_step:
        return Remedy(f"{kind} steps of your own kernel")
    if sampled.adapts:  # it should have found one: rounding, or a start far out
        return Remedy("dtype='float64', another seed, or a larger num_burnin_steps")
    return Remedy(f"a {kind} step_size, or step_size=None: the run then finds its own")
