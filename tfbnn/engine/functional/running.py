"""Settles and runs what `tfbnn.sample` is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfbnn.engine.basis.environment import describe_environment
from tfbnn.engine.density.data import no_rows
from tfbnn.engine.functional.quantities import agreement_of, quantities_of
from tfbnn.engine.kernels import kernel_to_json, resolve_kernel
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.running.driver import run_chains
from tfbnn.engine.running.same_density import check_same_density
from tfbnn.run.course import Goal, Standing
from tfbnn.run.deadline import Deadline, in_time
from tfbnn.run.definition import InitialState, RunDefinition, Starts
from tfbnn.run.events import History
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier
from tfbnn.run.result import Kept, SamplingResult
from tfbnn.run.session import Session, opened_session
from tfbnn.spec.density_spec import DensitySpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import single_threaded_blas


def settle(
    spec: DensitySpec, theta: Array, options: FitOptions
) -> tuple[RunDefinition, Kernel, str]:
    """(What decides the draws, the kernel with a definite preconditioner, a line on the latter).

    Raises:
        TypeError, ValueError: When density, kernel and options do not go together.
    """
    asked = resolve_kernel(options.kernel)
    asked.check_model(spec, row_noise=False)
    asked.check_chains(options.num_chains)
    settings, geometry = asked.resolve(spec, num_rows=0)
    if len(settings.temperatures) > 1 and len(spec.functions) == 1:
        raise ValueError(
            f"{type(settings).__name__} tempers the likelihood and not the prior: log_prob must be a "
            "pair (log_prior, log_likelihood), received one function."
        )
    definition = RunDefinition(
        spec=spec,
        kernel=kernel_to_json(asked),
        sampling=options.sampling(budget=0),
        environment=describe_environment(),
        temperatures=settings.temperatures,
        initial_state=InitialState(theta, "given as initial_state"),
    )
    return definition, settings, geometry


def run_density(
    spec: DensitySpec,
    theta: Array,
    definition: RunDefinition,
    settings: Kernel,
    options: FitOptions,
    quantities: Callable[[Array], Any] | None,
) -> tuple[SamplingResult, History]:
    """Runs the chains, or goes on with them; what came of it, and its history.

    Args:
        spec, theta: The log density and its starts.
        definition, settings: As `settle` made them.
        options: FitOptions.
        quantities: What `until` judges, as in `tfbnn.sample`.

    Raises:
        RunFolderError: Also when the log density has other values than those the run began with.
    """
    history, until = History(), definition.sampling.until
    with opened_session(definition, options) as session:
        starts = _starts(spec, theta, session)
        finished = session.finished_result(definition.sampling)
        if finished is not None:
            return finished, history
        deadline = Deadline.of(until, options.began)
        notify = Notifier(options.verbose, options.callbacks, deadline, history)
        data = no_rows(spec.dtype)
        try:
            with single_threaded_blas():
                goal = _goal(definition, quantities)
                result = run_chains(definition, settings, data, starts, session, notify, goal)
        finally:
            notify.close()
    return in_time(result, notify.out_of_time), history


def _starts(spec: DensitySpec, theta: Array, session: Session) -> Starts:
    """Those of the run that is there, held to this log density, or those that were given."""
    if session.found is None:
        return Starts(theta, "given as initial_state")
    begun = session.found
    check_same_density(spec, begun.starts.theta, begun.start_log_prob, "the starts")
    # At the starts, a mode perhaps, many densities are alike.
    drawn = session.committed_result(fewest=1)
    if drawn is not None:
        last, then = drawn.draws[:, -1], drawn.sample_stats["lp"][:, -1]
        largest = float(abs(begun.start_log_prob).max())
        check_same_density(spec, last, then, "the last draws", largest)
    return begun.starts


def _goal(definition: RunDefinition, quantities: Callable[[Array], Any] | None) -> Goal | None:
    until = definition.sampling.until
    if until is None:
        return None

    def judge(kept: Kept) -> Standing:
        found = agreement_of(quantities_of(kept.draws, quantities), kept.statistics["lp"])
        rhat = found.decisive_rhat(until.rhat)
        is_enough = found.is_enough(until.ess, until.rhat)
        return Standing(is_enough, found.text(until.rhat), rhat, found.smallest_ess)

    return Goal(definition.sampling.num_results, judge, is_budget=False)
