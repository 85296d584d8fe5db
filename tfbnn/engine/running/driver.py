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
from tfbnn.engine.running.thread_executor import Threads
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
from tfbnn.system.signals import signals_held
from tfbnn.system.threads import awaited, single_threaded_blas
from tfbnn.system.words import warn


def starts_of(config: FitConfig, data: Data, notify: Notifier) -> Starts:
    """Return the Starts of a run: the given ones, or those that a search finds.

    Args:
        config: FitConfig.
        data: Tensors of the training rows.
        notify: Notifier; when it stops the search, the best starts so far are returned.
    """
    pretraining, sampling = config.pretraining, config.sampling
    if config.initial_state is not None:
        return config.initial_state
    with notify.within(notify.deadline.for_search()):
        return find_starts(config.spec, config.transformed, data, pretraining, sampling, notify)


class Backend(Protocol):
    """Other machines on which chains advance, with one thread per operation.

    Without a backend, chains advance on threads of this process.
    """

    def environment(self, options: FitOptions) -> dict[str, Any]:
        """Return the environment that determines the bits of a run, see `describe_environment`."""

    def executor(self, program: Program, store: Store, clock: Clock) -> Executor:
        """Return the Executor for the chain groups of a program, which writes draws to a store."""


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
    """Begin a run, or resume the run in its folder.

    Args:
        config: RunConfig.
        settings: Kernel settings with the chosen preconditioner.
        options: FitOptions.
        notify: Notifier; it is closed at the end.
        rule: StoppingRule; by default the run ends with its last draw.
        data: Function that returns the tensors of the training rows, if there are any.
        find: Function that returns the Starts of a new run.
        backend: Backend on which the chains advance, by default threads of this process.

    Raises:
        StartError: If a chain cannot move from its start.
        RunFolderError, RunLockedError: If the folder is damaged or in use, or its run has another
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
            # With several threads, the last bits of a factorisation would depend on the other
            # chains.
            with single_threaded_blas():
                starts = starts or find(tensors)
                result = run_chains(config, settings, tensors, starts, store, notify, rule, backend)
        except KeyboardInterrupt:
            # The interrupt came before the chains moved in this process.
            if starts is None:
                raise
            result = replace(_so_far(config, tensors, starts, store), interrupted=True)
        finally:
            with signals_held():
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

    A failed chain does not end the others. The result then has their draws and names the failed
    chain.

    Args:
        config, settings, rule, backend: As in `run`.
        data: Tensors of the training rows, if there are any.
        starts: Starts of the chains.
        store: Store for the draws, with the part of the run that is already there.
        notify: Notifier. If it has already stopped, or the search for starts was interrupted,
            nothing is sampled, no run is begun, and the existing part is returned.

    Raises:
        StartError, RunFolderError, RunLockedError: As in `run`.
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
    with signals_held() as hold:  # an interrupt would lose the draws of a run in memory
        if not ending.failures:  # otherwise a resumed run must continue the failed chains
            store.ended = ending.ended
        # Read only chain groups that did not fail, or all if every one failed.
        kept = store.read(executor.healthy or range(len(plan.groups)))
        result = gather_result(kept, start_log_prob, executor.seconds, ending, starts.superchains)
    return replace(result, interrupted=result.interrupted or bool(hold.seen))


def _so_far(config: RunConfig, data: Data, starts: Starts, store: Store) -> Result:
    """Return the committed result of a run, or its starts, which can predict without compilation."""
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
    """Open chain groups at their last commits, or at their starts.

    Args:
        stack: ExitStack that releases the chain groups; each has one writer at a time.
        program: Program of the chain groups.
        store: Store for their draws.
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


# Allowed relative difference between programs that are compiled differently.
_TOLERANCE = {"float32": 1e-5, "float64": 1e-9}


def _check_begun(spec: DensitySpec, begun: Beginning, store: Store) -> None:
    """Check that a log density is that of the run in a store."""
    value_and_gradient = make_value_and_gradient(FunctionDensity(spec), no_rows(spec.dtype))
    now, _ = value_and_gradient(begun.starts.theta)
    _refuse_other_values(spec, now, begun.start_log_prob, "the starts")
    # At the starts, perhaps a mode, many densities are alike.
    drawn = store.committed_result(fewest=1)
    if drawn is not None:
        last = drawn.draws[:, -1]
        now, gradient = value_and_gradient(last)
        then, largest = drawn.sample_stats["lp"][:, -1], abs(begun.start_log_prob).max()
        # A steep density changes by this much if the positions change by their rounding.
        steep = 4.0 * np.finfo(spec.dtype).eps * np.nansum(np.abs(gradient * last), axis=-1)
        rounding = steep + _TOLERANCE[spec.dtype] * largest
        _refuse_other_values(spec, now, then, "the last draws", rounding)


def _refuse_other_values(
    spec: Sampled, now: Array, then: Array, where: str, rounding: Array | float = 0.0
) -> None:
    """Check that a log density has the recorded values.

    Args:
        spec: The log density, with its functions.
        now, then: Log densities now, and those of the run, at the same positions [C].
        where: Description of the positions, for messages.
        rounding: Rounding error of the values besides that of their own magnitude.

    Raises:
        RunFolderError: If they differ.
    """
    tolerance = _TOLERANCE[spec.dtype]
    if not np.allclose(now, then, rtol=tolerance, atol=tolerance + rounding):
        raise RunFolderError(
            f"log_prob is not the one that the run was begun with: at {where} it is {now} here and "
            f"was {then} there. Pass the same {' and '.join(spec.own_names)} of the same data, "
            "or another folder."
        )
