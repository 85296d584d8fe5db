"""Computation of the diagnosis of a run from its draws."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.diagnostics import statistics
from tfbnn.diagnostics.advice import Sampled, find_causes, find_problems
from tfbnn.diagnostics.agreement import mean_gaps
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.fit_advice import find_effects, find_misfits
from tfbnn.diagnostics.fit_check import FitCheck
from tfbnn.diagnostics.problem import ABOVE_FIRST, About, Problem, Severity, verdict_of
from tfbnn.diagnostics.sample_stats import STATISTICS
from tfbnn.diagnostics.verdict import Predictions


def diagnose(
    draws: ArrayLike,
    function_draws: ArrayLike,
    sample_stats: Mapping[str, ArrayLike],
    *,
    max_tree_depth: int | None = None,
    num_divergent: int | None = None,
    transitions_per_draw: int = 1,
    adapts: bool | None = None,
    is_adjusted: bool = True,
    fit: FitCheck | None = None,
    superchains: ArrayLike | None = None,
) -> Diagnosis:
    """Compute all convergence numbers of a run and find its problems.

    Args:
        draws: [C, S, P] weight draws.
        function_draws: [C, S, N_ref, K] network outputs at reference inputs under these weights.
        sample_stats: Dict of [C, S] arrays; the keys lp, acceptance_rate, n_steps, diverging and
            energy are used if present, others ignored.
        max_tree_depth: The limit of the sampler, or None if it has none; a trajectory of
            2**max_tree_depth - 1 steps or more counts as cut short.
        num_divergent: Divergent transitions of the whole run, those between kept draws included;
            by default those among the kept draws.
        transitions_per_draw: Transitions per kept draw.
        adapts: Whether warm-up tuned the step size; None if unknown, which counts as True.
        is_adjusted: Whether proposals are accepted or rejected, so that acceptance has a meaning.
        fit: Agreement of the model with its data, or None if it was not checked.
        superchains: Number of the superchain of each chain [C], as `statistics.rhat` takes it.

    Returns:
        Diagnosis. Numbers that need an absent key are NaN, and num_divergent is zero.
    """
    draws, function_draws = np.asarray(draws), np.asarray(function_draws)
    stats = {key: np.asarray(sample_stats[key]) for key in STATISTICS if key in sample_stats}
    absent = np.full(draws.shape[:2], np.nan)
    log_probs = stats.get("lp", absent)
    diagnosis = Diagnosis(
        rhat_function=statistics.rhat(function_draws, superchains),
        ess_function=statistics.bulk_ess(function_draws),
        tail_ess_function=statistics.tail_ess(function_draws),
        rhat_parameters=statistics.rhat(draws, superchains),
        ess_parameters=statistics.bulk_ess(draws),
        rhat_log_prob=float(statistics.rhat(log_probs, superchains)),
        ess_log_prob=float(statistics.bulk_ess(log_probs)),
        mean_gap=mean_gaps(function_draws),
        ebfmi=statistics.ebfmi(stats.get("energy", absent)),
        num_divergent=(
            int(np.sum(stats.get("diverging", False))) if num_divergent is None else num_divergent
        ),
        num_transitions=draws.shape[0] * draws.shape[1] * transitions_per_draw,
        fit=fit,
    )
    num_starts = len(draws) if superchains is None else len(np.unique(superchains))
    sampled = Sampled(draws, stats, max_tree_depth, adapts is not False, is_adjusted, num_starts)
    causes = _about(About.MOVEMENT, find_causes(sampled))
    found = (*causes, *find_problems(diagnosis, sampled))
    return dataclasses.replace(diagnosis, problems=_problems(found, fit))


def judged_by(diagnosis: Diagnosis, predictions: Predictions) -> Diagnosis:
    """Return the diagnosis of a model with its predictions judged by other rows."""
    fit = diagnosis.fit and dataclasses.replace(diagnosis.fit, predictions=predictions)
    return dataclasses.replace(diagnosis, fit=fit, problems=_problems(diagnosis.problems, fit))


def _problems(of_chains: Sequence[Problem], fit: FitCheck | None) -> tuple[Problem, ...]:
    """Return all problems, causes before their effects, each with a remedy.

    Args:
        of_chains: Problems of the chains, in this order; other problems are ignored.
        fit: FitCheck from which the other problems follow.
    """
    causes = [problem for problem in of_chains if problem.about == About.MOVEMENT]
    chains = [problem for problem in of_chains if problem.about == About.CHAINS]
    misfits = _about(About.MODEL, find_misfits(fit) if fit else ())
    spoiled = verdict_of(misfits)
    # An effect that is no worse than the misfits follows from them.
    effects = _about(About.MODEL, find_effects(fit) if fit else ())
    effects = [one for one in effects if not spoiled or one.severity > spoiled]
    if verdict_of(causes) >= Severity.MEANS:  # nothing is known of chains that do not move
        misfits, chains, effects = map(_advised_above, (misfits, chains, effects))
    elif spoiled == Severity.MEANS:  # more draws of such a model are of no use
        chains = _advised_above(chains)
    else:  # later problems may follow from the first
        serious = [problem for problem in chains if problem.severity]
        others = [problem for problem in chains if not problem.severity]
        chains = [*serious[:1], *_advised_above(serious[1:]), *others]
    found = (*causes, *misfits, *chains, *effects)
    # Problems of severity NOTHING come last.
    return tuple(sorted(found, key=lambda problem: problem.severity == Severity.NOTHING))


def _about(what: About, problems: Iterable[Problem]) -> list[Problem]:
    return [dataclasses.replace(problem, about=what) for problem in problems]


def _advised_above(problems: list[Problem]) -> list[Problem]:
    return [dataclasses.replace(problem, remedy=ABOVE_FIRST) for problem in problems]
