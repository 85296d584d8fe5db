"""Run the chains of a fit, in memory or in a run folder."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from tfbnn.engine.density.data import Data, no_rows
from tfbnn.engine.density.potential import FunctionDensity
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.running.executor import Executor
from tfbnn.engine.running.threads import Threads
from tfbnn.engine.sampling.chain_group import ChainGroup
from tfbnn.engine.sampling.program import Program, check_starts, make_program, plan_chains
from tfbnn.engine.starts.find import find_starts, log_prob_of
from tfbnn.exceptions import RunFolderError
from tfbnn.run.config import Beginning, FitConfig, RunConfig, Starts
from tfbnn.run.counters import Clock, Counters
from tfbnn.run.deadline import in_time
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier
from tfbnn.run.result import Result, gather_result, nothing_sampled
from tfbnn.run.stopping import StoppingRule
from tfbnn.run.stores import Sink, Store, open_store
from tfbnn.spec.density_spec import DensitySpec, Sampled
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited, single_threaded_blas
from tfbnn.system.words import warn


def starts_of(config: FitConfig, data: Data, notify: Notifier) -> Starts:
    """Return the Starts of a run: those that were given or that a search finds.

    Args:
        config: FitConfig.
        data: Tensors of the training rows.
        notify: Notifier; when it asks to stop, they are as good as they are then.
    """
    pretraining, sampling = config.pretraining, config.sampling
    if config.initial_state is not None:
        return config.initial_state
    with notify.within(notify.deadline.for_search()):
        return find_starts(config.spec, config.transformed, data, pretraining, sampling, notify)


class Backend(Protocol):
    """Other machines that chains advance on, with one thread per operation.

    Without one, they advance on threads of this process.
    """

    def environment(self, options: FitOptions) -> dict[str, Any]:
        """Return what decides the bits of a run besides settings and data, see `describe_environment`."""

    def executor(self, program: Program, store: Store, clock: Clock) -> Executor:
        """Return the Executor of the chain groups of a program, whose draws go to a store."""


def run(
    config: RunConfig,
    settings: Kernel,
    options: FitOptions,
    notify: Notifier,
    rule: StoppingRule | None,
    data: Callable[[], Data],
    find: Callable[[Data], Starts],
    backend: Backend | None = None,
) -> tuple[Starts, Result]:
    """Begin a run, or go on with the one in its folder.

    Args:
        config: RunConfig.
        settings: Its kernel, with a definite preconditioner.
        options: FitOptions.
        notify: Notifier, which is closed.
        rule: When the run is over, by default with its last draw.
        data: Returns the tensors of its training rows, if it has any.
        find: Returns the Starts of a run that is to begin.
        backend: Where the chains advance, by default on threads of this process.

    Raises:
        StartError: When a chain cannot move from its start.
        RunFolderError, RunLockedError: When the folder is damaged or in use, or its run has another
            log density.
    """
    with open_store(config, options) as store:
        starts = None
        if store.found is not None:
            if isinstance(config.spec, DensitySpec):
                _check_begun(config.spec, store.found, store)
            starts, result = store.found.starts, store.finished_result()
            if result is not None:
                return starts, result
        tensors = data()
        try:
            # With more, the last bits of a factorisation would depend on what other chains are doing.
            with single_threaded_blas():
                starts = starts or find(tensors)
                result = run_chains(config, settings, tensors, starts, store, notify, rule, backend)
        except KeyboardInterrupt:
            # Before the chains moved, in this process.
            if starts is None:
                raise
            result = replace(_so_far(config, tensors, starts, store), interrupted=True)
        finally:
            notify.close()
    return starts, in_time(result, notify.deadline.passed)


def run_chains(
    config: RunConfig,
    settings: Kernel,
    data: Data,
    starts: Starts,
    store: Store,
    notify: Notifier,
    rule: StoppingRule | None = None,
    backend: Backend | None = None,
) -> Result:
    """Warm up and sample all chains.

    A chain that fails does not end the others: the result then has their draws and names it.

    Args:
        config, settings, rule, backend: As in `run`.
        data: Tensors of its training rows, if it has any.
        starts: Where the chains start.
        store: Where draws go, and what there is of the run to go on from.
        notify: Notifier; when it was stopped already, or the search for starts was interrupted,
            nothing is sampled and no run begun; what there is of one already is returned.

    Raises:
        StartError, RunFolderError, RunLockedError: As `run`.
    """
    if starts.interrupted or notify.stopped:
        return _so_far(config, data, starts, store)
    clock, found = Clock(), store.found
    notify.announce("compile")
    with clock.measure("compile"):
        layout = None if found is None else found.layout
        plan = plan_chains(settings, config, layout, many_devices=backend is not None)
        program = make_program(settings, config, data, plan)
        start_log_prob = awaited(check_starts, program, starts.theta)
        if found is not None and config.spec.own_names:
            then = found.start_log_prob
            _refuse_other_values(config.spec, start_log_prob, then, "the starts")
    if found is not None and found.in_workers and backend is None:
        warn(
            "The run was begun with one thread per operation, as on a cluster, and goes on with several: "
            "its draws may differ in the last bits from those of a run that nothing interrupted."
        )
    store.begin(plan, Beginning(starts, start_log_prob, plan.layout, backend is not None))
    clock.add(store.seconds(range(len(plan.groups))))
    with ExitStack() as stack:
        with clock.measure("startup"):
            if backend is None:
                indices = range(len(plan.groups))
                groups = open_groups(stack, program, store, indices, starts.theta, clock)
                executor: Executor = Threads(groups, clock, notify.deadline)
            else:
                executor = backend.executor(program, store, clock)
        if rule is not None:
            rule = replace(rule, superchains=starts.superchains)
        ending = executor.run(store, rule, notify)
    if not ending.failures:  # else whoever resumes goes on with the chains that failed
        store.ended = ending.ended
    # Only chain groups that did not fail count, or all where every one did.
    kept = store.read(executor.healthy or range(len(plan.groups)))
    return gather_result(kept, start_log_prob, executor.seconds, ending, starts.superchains)


def _so_far(config: RunConfig, data: Data, starts: Starts, store: Store) -> Result:
    """Return what a run has committed, or its starts: to predict with, they need no compiled program."""
    return store.committed_result(fewest=1) or nothing_sampled(
        log_prob_of(config.spec, data, starts.theta), starts.interrupted
    )


def open_groups(
    stack: ExitStack,
    program: Program,
    store: Store,
    indices: Sequence[int],
    theta: Array,
    clock: Clock,
) -> list[ChainGroup]:
    """Chain groups where their last commits left them, or at their starts.

    Args:
        stack: ExitStack that gives the chain groups back, of which each has one writer at a time.
        program: Their Program.
        store: Where their draws go.
        indices: Numbers of the chain groups.
        theta: Starts of all chains [C, P].
        clock: Clock of the run.
    """
    groups = []
    for index in indices:
        sink, chains = stack.enter_context(store.sink(index, clock)), program.plan.groups[index]
        groups.append(awaited(_open_group, program, chains, theta[chains], sink))
    return groups


def _open_group(program: Program, chains: list[int], theta: Array, sink: Sink) -> ChainGroup:
    group, checkpoint = ChainGroup(program, chains, theta, sink), sink.checkpoint
    if checkpoint is not None:
        group.restore(checkpoint.arrays, Counters.from_json(checkpoint.counters))
        if group.num_kept != checkpoint.num_draws:
            raise RunFolderError(
                f"The checkpoint of chains {chains} contradicts itself: {checkpoint.num_draws} draws "
                f"are committed, {group.num_kept} follow from its transitions."
            )
    return group


# Relative; what programs compiled otherwise may differ by.
_TOLERANCE = {"float32": 1e-5, "float64": 1e-9}


def _check_begun(spec: DensitySpec, begun: Beginning, store: Store) -> None:
    """Refuse a log density that is not the one of the run in a store."""
    value_and_gradient = make_value_and_gradient(FunctionDensity(spec), no_rows(spec.dtype))
    now, _ = value_and_gradient(begun.starts.theta)
    _refuse_other_values(spec, now, begun.start_log_prob, "the starts")
    # At the starts, a mode perhaps, many densities are alike.
    drawn = store.committed_result(fewest=1)
    if drawn is not None:
        now, _ = value_and_gradient(drawn.draws[:, -1])
        then, largest = drawn.sample_stats["lp"][:, -1], float(abs(begun.start_log_prob).max())
        _refuse_other_values(spec, now, then, "the last draws", largest)


def _refuse_other_values(
    spec: Sampled, now: Array, then: Array, where: str, largest: float = 0.0
) -> None:
    """Refuse a log density with other values than those taken down.

    Args:
        spec: The log density, with its functions.
        now, then: Log densities here, and those that the run had, at the same positions [C].
        where: What the positions are, for messages.
        largest: Size of log densities that were subtracted on the way to these.

    Raises:
        RunFolderError: When they differ.
    """
    tolerance = _TOLERANCE[spec.dtype]
    if not np.allclose(now, then, rtol=tolerance, atol=tolerance * (1.0 + largest)):
        raise RunFolderError(
            f"log_prob is not the one that the run was begun with: at {where} it is {now} here and "
            f"was {then} there. Pass the same {' and '.join(spec.own_names)} of the same data, "
            "or another folder."
        )
