"""Advance one chain group of a run in a folder, as cluster tasks do."""

from contextlib import ExitStack
from dataclasses import replace

from tfbnn.engine.basis.seeds import describe_environment
from tfbnn.engine.density.data import make_data, no_rows
from tfbnn.engine.kernels.registry import kernel_from_json
from tfbnn.engine.running.driver import open_groups
from tfbnn.engine.running.executor import Notify
from tfbnn.engine.running.thread_executor import Threads
from tfbnn.engine.sampling.program import Program, make_program, plan_chains
from tfbnn.run.config import FitConfig, GroupLayout, RunConfig
from tfbnn.run.counters import Clock
from tfbnn.run.description import read_beginning, read_config, refuse_differences
from tfbnn.run.stores import FolderStore, committed_counters
from tfbnn.spec.rows import learn_transforms, rows_of_chains
from tfbnn.storage.run.folder import RunFolder
from tfbnn.system.threads import single_threaded_blas


def advance_group(
    path: str,
    index: int,
    *,
    commit_interval: float = 30.0,
    notify: Notify = lambda event: False,
    num_results: int | None = None,
) -> bool:
    """Advance one chain group to its end, or until `notify` stops it, and commit.

    All required data are in the folder, so any process may call this function any number of times.
    A chain group continues from its last commit, and a finished one is left unchanged. The draws
    are those of `fit_posterior` in one process, bit by bit with the same number of threads per
    operation.

    Args:
        path: The run folder.
        index: Number of the chain group.
        commit_interval: As in `fit_posterior`.
        notify: Called with an Event about once a second; a true result ends the call.
        num_results: Draws per chain at which to stop, by default the largest number of the run.

    Returns:
        Whether the chain group has reached that number.

    Raises:
        RunLockedError: If another process is working on this chain group.
        RunFolderError: If the folder is damaged, or the run was begun with other versions or on
            another kind of device.
        ValueError: If the kernel is a callable, which only the process that defines it can run.
        KeyboardInterrupt: After committing, on SIGINT or if a signal handler raises it.
        Exception: The error that made a block or a commit fail; the last commit is intact.
    """
    folder = RunFolder.open(path)
    config = read_config(folder)
    refuse_differences(folder, config.environment, describe_environment())
    if num_results is not None:
        sampling = replace(config.sampling, num_results=num_results)
        config = replace(config, sampling=sampling)
    store = FolderStore(config, folder, commit_interval)
    (counters,) = committed_counters(folder, [index])
    if counters.transition >= config.sampling.num_transitions:
        return True
    beginning, clock = read_beginning(folder), Clock(store.seconds([index]))
    program = _program_of(config, beginning.layout)
    with ExitStack() as stack, single_threaded_blas():
        (group,) = open_groups(stack, program, store, [index], beginning.starts.theta, clock)
        ending = Threads([group], clock).run(store, None, notify)
    for error in ending.failures.values():
        raise error
    if ending.interrupted:
        raise KeyboardInterrupt
    return group.stage is None


def _program_of(config: RunConfig, layout: GroupLayout) -> Program:
    settings = kernel_from_json(config.kernel)
    settings, _ = settings.resolve(config.spec, config.num_rows)
    data = no_rows(config.spec.dtype)
    if isinstance(config, FitConfig):
        # `config.transformed` would stay in memory while the chains advance.
        rows = rows_of_chains(config.spec, learn_transforms(config.spec, config.rows, None).train)
        data = make_data(*rows, config.spec.dtype)
    return make_program(settings, config, data, plan_chains(settings, config, layout))
