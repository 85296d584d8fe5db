"""When a run is over that ends as soon as its draws are good enough."""

from tfbnn.diagnostics.agreement import Agreement
from tfbnn.fit.assemble import ensemble_without_draws
from tfbnn.posterior.prediction import function_of_chains
from tfbnn.run.cost import most_results
from tfbnn.run.course import Goal, Standing
from tfbnn.run.definition import FitDefinition
from tfbnn.run.plan import Planned
from tfbnn.run.result import Kept
from tfbnn.spec.rows import TransformedRows


def make_goal(
    definition: FitDefinition, transformed: TransformedRows, settings: Planned
) -> Goal | None:
    """The Goal of a run, or None of one that just has a number of draws.

    Args:
        definition: FitDefinition.
        transformed: Its TransformedRows.
        settings: Its kernel, with a definite preconditioner.
    """
    sampling = definition.sampling
    until = sampling.until
    if until is None:
        return None
    without_draws = ensemble_without_draws(definition, transformed)
    x_reference = without_draws.x_pipeline.forward(without_draws.x_reference)

    def judge(kept: Kept) -> Standing:
        ensemble = without_draws.with_draws(kept.draws)
        found = Agreement.measure(function_of_chains(ensemble, x_reference), kept.statistics["lp"])
        rhat = found.decisive_rhat(until.rhat)
        is_enough = found.is_enough(until.ess, until.rhat)
        return Standing(is_enough, found.text(until.rhat), rhat, found.smallest_ess)

    num_rows, effort = definition.num_rows, definition.effort
    budget = most_results(
        definition.spec, settings, sampling, num_rows, effort, sampling.is_limited
    )
    return Goal(sampling.num_results, judge, is_budget=sampling.num_results == budget)
