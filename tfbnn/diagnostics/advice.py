"""Sentences about what is wrong with a run, by how much, and what to do next.

The limits 1.01 for R-hat and 100 per chain for the effective sample sizes are those of Vehtari,
Gelman, Simpson, Carpenter and Burkner (2021), arXiv:1903.08008; that of 0.3 for E-BFMI is
customary (Betancourt 2016, arXiv:1604.00695).
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.system.arrays import Array

# Statistics of the sampler by name, each [C, S].
Stats = Mapping[str, Array]

_RHAT_LIMIT = 1.01
_ESS_PER_CHAIN = 100
_EBFMI_LIMIT = 0.3
# Chains of one mode differ in mean log density by a fraction of its standard deviation.
_LOG_PROB_GAP = 3.0
_MIN_DRAWS = 4


def find_problems(
    diagnosis: Diagnosis, draws: Array, stats: Stats, max_tree_depth: int | None, transitions: int
) -> tuple[str, ...]:
    """Lists the problems of a run, the most serious first.

    Args:
        diagnosis: Diagnosis with the numbers of the run.
        draws: [C, S, P].
        stats: Dict of [C, S] arrays with any of lp, acceptance_rate, n_steps and diverging.
        max_tree_depth: Limit of the sampler, or None.
        transitions: Transitions of all chains that the draws were kept from.

    Returns:
        Tuple of sentences, empty if nothing was found.
    """
    num_chains, num_draws = draws.shape[:2]
    return (
        *_too_little(num_chains, num_draws),
        *_unmoved(draws, stats),
        *_low_log_prob(stats),
        *_undefined(diagnosis),
        *_high_rhat(diagnosis, num_chains),
        *_low_ess(diagnosis, num_chains),
        *_divergences(diagnosis, transitions),
        *_low_ebfmi(diagnosis),
        *_long_trajectories(stats, max_tree_depth),
    )


def _too_little(num_chains: int, num_draws: int) -> Iterator[str]:
    if num_draws < 4:
        yield (
            f"There are only {num_draws} draws per chain, too few for any convergence number: "
            "draw at least 100 per chain."
        )
    if num_chains < 2:
        yield (
            f"There is only {num_chains} chain, so that R-hat compares its two halves and cannot "
            "see other modes: run at least four chains from separate starting points."
        )


def _unmoved(draws: Array, stats: Stats) -> Iterator[str]:
    unmoved = np.all(draws == draws[:, :1], axis=(1, 2)) if draws.shape[1] > 1 else False
    if "acceptance_rate" in stats:
        unmoved = unmoved | np.all(stats["acceptance_rate"] <= 0, axis=1)
    if np.any(unmoved):
        yield (
            f"{_chains(np.flatnonzero(unmoved))} never moved (no proposal was accepted): lower the "
            "step size or lengthen the warm-up, and start again from another point."
        )


def _low_log_prob(stats: Stats) -> Iterator[str]:
    """Names chains whose log density is not finite or far below that of the others."""
    if "lp" not in stats:
        return
    log_probs = np.asarray(stats["lp"], dtype=float)
    finite = np.isfinite(log_probs).all(axis=1)
    if not finite.all():
        yield (
            f"{_chains(np.flatnonzero(~finite))} visited a log density that is not finite: check "
            "the data for extreme values, and lower the step size."
        )
    # The spread of a chain needs a few draws to mean anything.
    if np.sum(finite) < 2 or log_probs.shape[1] < _MIN_DRAWS:
        return
    indices, log_probs = np.flatnonzero(finite), log_probs[finite]
    means, spreads = log_probs.mean(axis=1), log_probs.std(axis=1)
    for position, index in enumerate(indices):
        gap = np.median(np.delete(means, position)) - means[position]
        spread = np.median(np.delete(spreads, position))
        if gap > _LOG_PROB_GAP * spread:
            yield (
                f"Chain {index} is stuck or in a worse mode: its mean log density "
                f"{means[position]:.6g} is {gap:.3g} below the median of the other chains, whose "
                f"standard deviation is {spread:.3g}. Restart it from another point or lengthen "
                "the warm-up before its draws are pooled with the others."
            )


def _undefined(diagnosis: Diagnosis) -> Iterator[str]:
    count = int(np.isnan(diagnosis.rhat_function).sum())
    if count:
        yield (
            f"{count} of {diagnosis.rhat_function.size} reference outputs have no R-hat, because "
            "their draws are constant, not finite or too few: look at the predictions there."
        )


def _high_rhat(diagnosis: Diagnosis, num_chains: int) -> Iterator[str]:
    rhats = diagnosis.rhat_function
    high = rhats > _RHAT_LIMIT
    if high.any():
        # One chain, of which the two halves disagree, has nothing to weigh.
        weigh = (
            " Chains that stay in modes of their own can be weighted by how well they predict "
            "held-out rows, which is not the posterior: model.stack_chains."
        )
        yield (
            f"R-hat in function space is above {_RHAT_LIMIT} for {high.sum()} of {rhats.size} "
            f"reference outputs, the largest is {rhats[high].max():.4g}: the chains do not agree "
            "on the predictions yet. Lengthen the warm-up, draw more, and compare the log "
            "densities of the chains. Judge by these numbers rather than by R-hat of the weights, "
            "which is secondary: permuted hidden units and flipped signs leave the function "
            "unchanged." + weigh * (num_chains > 1)
        )
    if diagnosis.rhat_log_prob > _RHAT_LIMIT:
        yield (
            f"R-hat of the log density is {diagnosis.rhat_log_prob:.4g}, above {_RHAT_LIMIT}: the "
            "chains are not at the same level yet. Lengthen the warm-up or draw more."
        )


def _low_ess(diagnosis: Diagnosis, num_chains: int) -> Iterator[str]:
    limit = _ESS_PER_CHAIN * num_chains
    for name, sizes in (("Bulk", diagnosis.ess_function), ("Tail", diagnosis.tail_ess_function)):
        low = sizes < limit
        if low.any():
            yield (
                f"{name} effective sample size in function space is below {limit} "
                f"({_ESS_PER_CHAIN} per chain) for {low.sum()} of {sizes.size} reference outputs, "
                f"the smallest is {sizes[low].min():.0f}: once R-hat is near one, draw about "
                f"{np.ceil(limit / sizes[low].min()):.0f} times as many."
            )


def _divergences(diagnosis: Diagnosis, num_transitions: int) -> Iterator[str]:
    count = diagnosis.num_divergent
    if count:
        yield (
            f"{count} of {num_transitions} transitions ({100 * count / num_transitions:.2g} %) "
            "diverged, which biases the draws near strong curvature: raise the target acceptance "
            "rate, so that the step size falls, or choose a less concentrated prior."
        )


def _low_ebfmi(diagnosis: Diagnosis) -> Iterator[str]:
    low = np.flatnonzero(diagnosis.ebfmi < _EBFMI_LIMIT)
    if low.size:
        values = ", ".join(f"{diagnosis.ebfmi[index]:.2g}" for index in low)
        yield (
            f"E-BFMI is below {_EBFMI_LIMIT} in {_chains(low).lower()} ({values}): the momentum "
            "draws hardly change the energy, so that tails are explored slowly. Lengthen the "
            "warm-up, or use a prior with lighter tails or fixed scales."
        )


def _long_trajectories(stats: Stats, max_tree_depth: int | None) -> Iterator[str]:
    if max_tree_depth is None or "n_steps" not in stats:
        return
    share = np.mean(stats["n_steps"] >= 2**max_tree_depth - 1)
    if share > 0:
        yield (
            f"{100 * share:.2g} % of the trajectories reached the largest tree depth "
            f"{max_tree_depth} ({2**max_tree_depth - 1} steps) and were cut short: raise "
            "max_tree_depth, or lengthen the warm-up so that the step size and mass matrix fit."
        )


def _chains(indices: Array) -> str:
    noun = "Chain" if len(indices) == 1 else "Chains"
    return f"{noun} {', '.join(str(index) for index in indices)}"
