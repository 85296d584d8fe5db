"""A cluster as the place where the chains of a fit run."""

import os
import shutil
import time

from tfbnn.cluster import tasks
from tfbnn.cluster.attempts import Attempts
from tfbnn.cluster.stop_sign import StopSign
from tfbnn.cluster.watch import Watch
from tfbnn.exceptions import RunFolderError
from tfbnn.run.definition import RunDefinition, check_same_run
from tfbnn.run.progress import Notifier
from tfbnn.run.session import read_starts
from tfbnn.storage import RunFolder
from tfbnn.storage.run.folder import PREPARATION

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
            return RunDefinition.read(folder).environment
        return self._client.submit(tasks.environment, pure=False).result()

    def sample(self, definition, transformed, settings, options, recording):
        """Finds starts, unless a run folder has them, and runs the chains, all in tasks."""
        began, path = time.perf_counter(), os.path.realpath(options.output)
        stop = StopSign(path)
        if recording.folder is None:
            self._prepare(definition, options, path, stop)
            recording.folder = RunFolder.open(path)
            check_same_run(recording.folder, definition)  # another call may have made it
            recording.starts = read_starts(recording.folder)
        # Takes down that a run is to have more results.
        recording.begin(**recording.plan, in_workers=True, start_log_prob=None)
        return recording.starts, self._advance(definition, options, recording.folder, stop, began)

    def _prepare(self, definition, options, path, stop):
        """Has the run folder made, by a definition that lies in it."""
        staging = os.path.join(path, PREPARATION)
        folder = RunFolder.find(staging)
        if folder is None:
            folder = RunFolder.create(staging, definition.to_json(), definition.to_arrays(), 1)
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

    def _advance(self, definition, options, folder, stop, began):
        """Runs the lanes; returns the SamplingResult."""
        from tfbnn.engine.running.advance import program_of
        from tfbnn.engine.running.driver import committed_result

        program = program_of(definition, **folder.description["plan"])
        notify = Notifier(options.verbose, options.callbacks)
        watch = Watch(program, folder, options.commit_interval, notify)
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
        seconds = watch.spent_seconds()
        sampling = sum(seconds.values()) - sum(earlier.values())
        seconds["startup"] = max(time.perf_counter() - began - sampling, 0.0)
        others = {"start_log_prob": folder.arrays["start_log_prob"], "seconds": seconds}
        ended = {
            "interrupted": interrupted,
            "failures": {tuple(program.groups[n]): e for n, e in attempts.failures.items()},
            "notes": tuple(
                f"The task of chains {program.groups[lane]} was tried again {count} times ({error})."
                for (lane, error), count in attempts.repeated.items()
            ),
        }
        return committed_result(program, folder, others, ended)
