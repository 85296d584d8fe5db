"""Problems of the chains of a run: what they are, their size, and the next step.

The limits of R-hat and of the effective sample sizes are those of `agreement`; that of 0.3 for
E-BFMI is customary (Betancourt 2016, arXiv:1604.00695).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tfbnn.diagnostics.agreement import (
    ESS_LIMIT,
    GAP_LIMIT,
    RHAT_LIMIT,
    Agreement,
    are_many,
    largest_rhat,
)
from tfbnn.diagnostics.diagnosis import Diagnosis, upper
from tfbnn.diagnostics.problem import (
    TIMES_TO_WARM_UP,
    Problem,
    Remedy,
    Severity,
    round_up,
)
from tfbnn.diagnostics.statistics import MIN_DRAWS
from tfbnn.diagnostics.wording import counted, named, percent
from tfbnn.system.arrays import Array

# Separates chains that stand still: they accept nearly all or no proposals.
_ACCEPTED = 0.5


@dataclass(frozen=True, eq=False)
class Sampled:
    """Record of the sampler.

    Attributes:
        draws: [C, S, P].
        stats: Dict of [C, S] arrays with any of lp, acceptance_rate, n_steps and diverging.
        max_tree_depth: Limit of the sampler, or None.
        adapts: Whether warm-up tuned the step size.
        is_adjusted: Whether acceptance has a meaning.
        num_starts: Number of starts that share nothing.
    """

    draws: Array
    stats: Mapping[str, Array]
    max_tree_depth: int | None
    adapts: bool
    is_adjusted: bool
    num_starts: int

    @property
    def num_draws(self) -> int:
        """Number of draws per chain."""
        return int(self.draws.shape[1])

    @property
    def acceptance(self) -> Array:
        """Mean acceptance rate [C], NaN if it is unknown or has no meaning."""
        if "acceptance_rate" not in self.stats or not self.is_adjusted or not self.num_draws:
            return np.full(len(self.draws), np.nan)
        return np.asarray(self.stats["acceptance_rate"], dtype=float).mean(axis=1)

    @property
    def has_finite_density(self) -> Array:
        """Mask of the chains whose log densities are finite or unknown [C]."""
        if "lp" not in self.stats:
            return np.ones(len(self.draws), bool)
        return np.isfinite(np.asarray(self.stats["lp"], dtype=float)).all(axis=1)

    @property
    def stands_still(self) -> Array:
        """Mask of the chains that never moved [C]."""
        if self.num_draws < 2:
            return np.zeros(len(self.draws), bool)
        still = np.all(self.draws == self.draws[:, :1], axis=(1, 2))
        return still | (self.acceptance <= 0)


def find_causes(sampled: Sampled) -> Iterator[Problem]:
    """Yield the problems that make all numbers of the chains meaningless."""
    if sampled.num_draws < MIN_DRAWS:
        yield Problem(
            f"The chains have only {counted(sampled.num_draws, 'draw')} each, too few for any "
            "convergence number",
            Remedy(num_results=100, times=100 / max(sampled.num_draws, 1)),
            Severity.MEANS,
        )
    if len(sampled.draws) < 2:
        yield Problem(
            "There is only 1 chain, which cannot see other modes",
            Remedy("num_chains=4 or more"),
            why="R-hat compares its two halves. Chains from separate starts would tell whether all find "
            "the same predictions.",
        )
    elif sampled.num_starts < 2:
        yield Problem(
            "All chains start from one network or population, the best that was found or given: R-hat "
            "cannot see other modes",
            Remedy("another seed, or several networks as initial_state"),
            why="Chains that share a start agree where it is, whether or not the posterior has more.",
        )
    still, accepted = sampled.stands_still, sampled.acceptance > _ACCEPTED
    small, stuck = np.flatnonzero(still & accepted), np.flatnonzero(still & ~accepted)
    # If none moved, there are a few networks and no draws, whatever their error bars.
    severity = Severity.DRAWS if still.all() else Severity.MEANS
    if small.size:
        yield Problem(
            f"{named('Chain', small)} never moved though {percent(sampled.acceptance[small].mean())} "
            "of the proposals were accepted: the step is too small",
            other_step(sampled, "larger"),
            severity,
            why="Steps below the resolution of the numbers leave every weight as it is, and such "
            "proposals are always accepted. With a fixed step size a diagonal preconditioner makes "
            "small steps smaller still: it scales the weights by how far they came.",
        )
    if stuck.size:
        yield Problem(
            f"{named('Chain', stuck)} never moved: no proposal was accepted, the step is too large",
            other_step(sampled, "smaller"),
            severity,
            why="All their draws are the same point.",
        )
    if not sampled.is_adjusted:
        yield Problem(
            "The kernel is biased: its draws follow the posterior up to an error that no number here "
            "shows",
            Remedy("an adjusted kernel, or compare with a run at half the step_size"),
            why="It accepts every proposal, so that the error of its steps stays.",
        )


def other_step(sampled: Sampled, kind: str) -> Remedy:
    """Return advice to take a "larger" or "smaller" step."""
    steps = sampled.stats.get("step_size")
    if steps is not None and np.isnan(steps).all():  # user-defined kernels do not record it
        return Remedy(f"{kind} steps of your own kernel")
    if sampled.adapts:  # tuning failed: rounding, or a start far out
        return Remedy("dtype='float64', another seed, or a larger num_burnin_steps")
    return Remedy(f"a {kind} step_size, or step_size=None to let the run tune it")


_DIVERGENT_LIMIT = 0.01
_EBFMI_LIMIT = 0.3
# Chains of one mode differ in mean log density by a fraction of its standard deviation.
_LOG_PROB_GAP = 3.0
# A tuned sampler accepts neither more than the first nor less than the second.
_HIGH_ACCEPTANCE, _LOW_ACCEPTANCE = 0.9, 0.2
# Largest factor of more draws that is advised: chains that have hardly moved say little beyond it.
_MOST_TIMES = 16
# Chains that would need more draws will not leave their modes in a run of bearable length.
_MOST_DRAWS = 100_000


def find_problems(diagnosis: Diagnosis, sampled: Sampled) -> Iterator[Problem]:
    """Yield the problems of the chains, causes before their effects."""
    moves = not sampled.stands_still.any()  # else this explains the rest
    yield from _not_finite(sampled)
    if moves:
        yield from _divergences(diagnosis, sampled)
    yield from _low_log_prob(sampled)
    if moves:
        yield from _undefined(diagnosis, sampled)
        yield from _disagreement(diagnosis, sampled)
        yield from _low_ebfmi(diagnosis, sampled)
        yield from _long_trajectories(sampled)


def _not_finite(sampled: Sampled) -> Iterator[Problem]:
    """Yield a problem if chains have a log density that is not finite."""
    finite = sampled.has_finite_density
    if not finite.all():
        yield Problem(
            f"{named('Chain', np.flatnonzero(~finite))} visited a log density that is not finite",
            Remedy("look for extreme values in the data, or a kernel with a smaller step_size"),
            why="Predictions of such draws may be wild.",
        )


def _low_log_prob(sampled: Sampled) -> Iterator[Problem]:
    """Yield a problem if chains have a log density far below that of the others."""
    # A spread needs draws that differ, and a comparison other chains.
    usable = np.flatnonzero(sampled.has_finite_density & ~sampled.stands_still)
    if "lp" not in sampled.stats or len(usable) < 2 or sampled.num_draws < MIN_DRAWS:
        return
    log_probs = np.asarray(sampled.stats["lp"], dtype=float)
    means, spreads = log_probs[usable].mean(axis=1), log_probs[usable].std(axis=1)
    others = [np.arange(len(usable)) != index for index in range(len(usable))]
    gaps = np.array([np.median(means[rest]) for rest in others]) - means
    limits = np.array([np.median(spreads[rest]) for rest in others])
    low = gaps > _LOG_PROB_GAP * limits
    if low.any():
        chains, sizes = usable[low], ", ".join(f"{gap:.3g}" for gap in gaps[low])
        state = "is stuck or in a worse mode" if len(chains) == 1 else "are stuck or in worse modes"
        yield Problem(
            f"{named('Chain', chains)} {state}: log density {sizes} below the median of the others",
            Remedy(f"another seed{', or more num_burnin_steps' * sampled.adapts}"),
            why=f"The standard deviation within the others is {limits[low].max():.3g}. Such draws widen and "
            "shift the pooled predictions.",
        )


def _undefined(diagnosis: Diagnosis, sampled: Sampled) -> Iterator[Problem]:
    count, size = int(np.isnan(diagnosis.rhat_function).sum()), diagnosis.rhat_function.size
    if count and sampled.num_draws >= MIN_DRAWS:  # too few draws are reported already
        yield Problem(
            f"{count} of {size} reference outputs have no R-hat: their draws are constant or not finite",
            Remedy("check the predictions there: model.predict(model.posterior.x_reference)"),
            Severity.MEANS if are_many(np.isnan(diagnosis.rhat_function)) else Severity.ERROR_BARS,
        )


def _disagreement(diagnosis: Diagnosis, sampled: Sampled) -> Iterator[Problem]:
    """Yield a problem if chains disagree, on the predictions first, or are too short."""
    rhats, gaps = upper(diagnosis.rhat_function), upper(diagnosis.mean_gap)
    agreement = Agreement(
        diagnosis.rhat_function,
        diagnosis.ess_function,
        diagnosis.tail_ess_function,
        diagnosis.rhat_log_prob,
    )
    # Means that are so far apart are of no use.
    apart, unlike = are_many(diagnosis.mean_gap >= GAP_LIMIT), agreement.are_unlike()
    smallest = agreement.smallest_ess
    faults = []
    if unlike:
        faults.append(f"R-hat of the predictions up to {rhats['max']:.4g} (limit {RHAT_LIMIT})")
    if apart:
        faults.append(f"their means up to {gaps['q95']:.2g} error bars apart (limit 1/3)")
    if smallest < ESS_LIMIT:
        faults.append(f"effective sample size {smallest:.0f} (limit {ESS_LIMIT})")
    if faults:
        what = "The chains do not agree yet" if unlike or apart else "There are too few draws"
        yield Problem(
            f"{what}: {', '.join(faults)}",
            _go_on(sampled, smallest, can_weigh=bool(unlike and len(sampled.draws) > 1)),
            Severity.MEANS if apart else Severity.ERROR_BARS,
            why=_on_disagreement(diagnosis),
        )
    elif agreement.differ_in_density():
        yield Problem(
            f"The chains agree on the predictions, not yet on the log density: R-hat "
            f"{diagnosis.rhat_log_prob:.4g} (limit {largest_rhat():.4g})",
            _go_on(sampled, smallest),
        )


def _on_disagreement(diagnosis: Diagnosis) -> str:
    rhats, size = diagnosis.rhat_function, diagnosis.rhat_function.size
    bulk, tail = diagnosis.ess_function, diagnosis.tail_ess_function
    return (
        f"R-hat in function space is above {RHAT_LIMIT} for {(rhats > RHAT_LIMIT).sum()} of {size} "
        "reference outputs. For error bars it must be below at 95 % of them, and below "
        f"{largest_rhat():.4g} everywhere. "
        f"The effective sample size is below {ESS_LIMIT} for {(bulk < ESS_LIMIT).sum()} (bulk) and "
        f"{(tail < ESS_LIMIT).sum()} (tail) of them. "
        "R-hat of the weights is secondary: permuted hidden units and flipped signs leave the function "
        "unchanged."
    )


def _divergences(diagnosis: Diagnosis, sampled: Sampled) -> Iterator[Problem]:
    count, total = diagnosis.num_divergent, diagnosis.num_transitions
    if count > _DIVERGENT_LIMIT * total:
        kernel = "HMC" if sampled.max_tree_depth is None else "NUTS"
        remedy = Remedy(
            f"a higher target_accept_prob, such as kernel={kernel}(target_accept_prob=0.95), or a less "
            "concentrated prior",
            times=TIMES_TO_WARM_UP,
        )
        if not sampled.adapts:
            remedy = other_step(sampled, "smaller")
        yield Problem(
            f"{count} of {total} transitions ({percent(count / total)}) diverged",
            remedy,
            why="A step was too long for the curvature there, and such places are visited too rarely.",
        )


def _low_ebfmi(diagnosis: Diagnosis, sampled: Sampled) -> Iterator[Problem]:
    low = np.flatnonzero(diagnosis.ebfmi < _EBFMI_LIMIT)
    if low.size:
        values = ", ".join(f"{diagnosis.ebfmi[index]:.2g}" for index in low)
        yield Problem(
            f"E-BFMI is below {_EBFMI_LIMIT} in {named('chain', low)} ({values}): tails are explored "
            "slowly",
            Remedy("a larger num_burnin_steps, or a prior with lighter tails or fixed scales")
            if sampled.adapts
            else Remedy(num_results=2 * sampled.num_draws, times=2.0),
            why="The momentum draws hardly change the energy.",
        )


def _long_trajectories(sampled: Sampled) -> Iterator[Problem]:
    depth = sampled.max_tree_depth
    if depth is None or "n_steps" not in sampled.stats:
        return
    share = float(np.mean(sampled.stats["n_steps"] >= 2**depth - 1))
    if share > 0:
        yield Problem(
            f"{percent(share)} of the trajectories reached the largest tree depth {depth} "
            f"({2**depth - 1} steps) and were cut short",
            Remedy(f"kernel=NUTS(max_tree_depth={depth + 1})"),
            Severity.NOTHING,
            why="That costs efficiency, not correctness.",
        )


def _go_on(sampled: Sampled, smallest: float, can_weigh: bool = False) -> Remedy:
    """Return advice that makes chains agree: another step if a fixed one is at fault, else more draws.

    A number of draws is followed exactly: `until` holds only if it is given.

    Args:
        sampled: Sampled.
        smallest: The smallest effective sample size.
        can_weigh: Whether the chains could be weighted instead.
    """
    accepted = np.median(sampled.acceptance)
    if not sampled.adapts and (accepted > _HIGH_ACCEPTANCE or accepted < _LOW_ACCEPTANCE):
        return other_step(sampled, "larger" if accepted > _HIGH_ACCEPTANCE else "smaller")
    times = min(max(ESS_LIMIT / max(smallest, 1.0), 2.0), _MOST_TIMES)
    num_results = round_up(times * sampled.num_draws)
    if not can_weigh:
        return Remedy(num_results=num_results, times=times)
    if num_results > _MOST_DRAWS:
        return Remedy(
            "model.stack_chains: the chains stay in modes of their own, and more draws will not help"
        )
    return Remedy(
        "if the chains still disagree, model.basins() estimates the posterior mass of each; "
        "model.stack_chains weights them by held-out scores, which is not the posterior",
        num_results=num_results,
        times=times,
    )
