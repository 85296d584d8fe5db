"""A cluster as the place where the chains of a fit run."""

import os
import shutil
import time

from tfbnn.cluster import tasks
from tfbnn.cluster.attempts import Attempts
from tfbnn.cluster.stop_sign import StopSign
from tfbnn.cluster.watch import Watch
from tfbnn.exceptions import RunFolderError
from tfbnn.run.description import (
    check_same_run,
    definition_to_arrays,
    definition_to_json,
    extend_run,
    read_beginning,
    read_definition,
)
from tfbnn.run.plan import make_plan
from tfbnn.run.progress import Notifier
from tfbnn.run.result import Ending
from tfbnn.run.session import find_run
from tfbnn.run.stores import FolderStore, committed_result, result_of
from tfbnn.storage import RunFolder
from tfbnn.storage.run.folder import PREPARATION
from tfbnn.system.atomic import make_folder

_FOR_STARTS = "Use a longer lifetime of workers, or less pretraining: it cannot go on where it was."
_FOR_CHAINS = "Use a smaller commit_interval, or a longer lifetime of workers."


class Cluster:
    """A place for chains to run, see `tfbnn.fit.fitting.ThisProcess`."""

    def __init__(self, client):
        """
        Args:
            client: `distributed.Client`.
        """
        self._client = client

    def environment(self, options):
        """That of the run in the folder, or of a worker; tasks compare it with theirs."""
        folder = RunFolder.find(options.output)
        if folder is not None:
            return read_definition(folder).environment
        return self._client.submit(tasks.environment, pure=False).result()

    def sample(self, definition, transformed, settings, options):
        """Finds starts, unless a run folder has them, and runs the chains, all in tasks."""
        began, path = time.perf_counter(), os.path.realpath(options.output)
        stop = StopSign(path)
        folder = find_run(options.output, definition, options.resume)
        if folder is None:
            make_folder(path)  # shows now what would fail in a task
            self._prepare(definition, options, path, stop)
            folder = RunFolder.open(path)
            check_same_run(folder, definition)  # another call may have made it
        beginning = read_beginning(folder)
        result = committed_result(folder, options.num_results)
        if result is None:
            extend_run(folder, options.num_results)
            plan = make_plan(
                settings,
                definition.spec,
                len(definition.rows.x),
                definition.sampling,
                *beginning.layout,
            )
            store = FolderStore(folder, options.commit_interval)
            seconds, ending = self._advance(plan, options, folder, stop, began)
            result = result_of(store, plan, beginning.start_log_prob, seconds, ending)
        return beginning.starts, result

    def _prepare(self, definition, options, path, stop):
        """Has the run folder made, by a definition that lies in it."""
        staging = os.path.join(path, PREPARATION)
        folder = RunFolder.find(staging)
        if folder is None:
            folder = RunFolder.create(
                staging, definition_to_json(definition), definition_to_arrays(definition), 1
            )
        elif options.resume:
            check_same_run(folder, definition)
        else:
            raise RunFolderError(
                f"{path!r} holds a run that was being prepared. Pass resume=True to go on with it, "
                "or another folder."
            )
        call = (tasks.prepare, staging, folder.run_id, path, stop.path)
        attempts = Attempts(self._client, {"starts": call}, lambda name: 0, stop, _FOR_STARTS)
        attempts.run()
        for error in attempts.failures.values():
            raise error
        shutil.rmtree(staging, ignore_errors=True)

    def _advance(self, plan, options, folder, stop, began):
        """Runs the lanes; returns (Seconds, Ending)."""
        notify = Notifier(options.verbose, options.callbacks)
        watch = Watch(plan, folder, options.commit_interval, notify)
        calls = {
            lane: (
                tasks.advance, folder.path, folder.run_id, lane, options.commit_interval, stop.path
            )
            for lane in range(folder.num_lanes)
        }  # fmt: skip
        earlier = watch.spent_seconds()
        attempts = Attempts(self._client, calls, watch.transitions, stop, _FOR_CHAINS)
        interrupted = False
        try:
            attempts.run(watch.look)
            if not notify.stopped:
                watch.report()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            notify.progress.close()
        failures = {tuple(plan.groups[n]): error for n, error in attempts.failures.items()}
        notes = tuple(
            f"The task of chains {plan.groups[lane]} was tried again {count} times ({error})."
            for (lane, error), count in attempts.repeated.items()
        )
        seconds = watch.spent_seconds().elapsed(began, earlier)
        return seconds, Ending(interrupted, failures, notes)
