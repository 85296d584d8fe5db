"""A cluster as the place where the chains of a fit run."""

import os
import shutil
import time
from dataclasses import replace
from typing import Any

from tfbnn.cluster import tasks
from tfbnn.cluster.crew import LaneTasks, Tasks
from tfbnn.fit.fitting import Place
from tfbnn.fit.job import Job
from tfbnn.run.course import Judged, Straight
from tfbnn.run.deadline import in_time
from tfbnn.run.definition import Starts
from tfbnn.run.description import (
    check_same_run,
    definition_to_arrays,
    definition_to_json,
    extend_run,
    read_beginning,
    take_down_end,
)
from tfbnn.run.options import FitOptions
from tfbnn.run.plan import make_plan
from tfbnn.run.reading import read_definition
from tfbnn.run.result import SamplingResult
from tfbnn.run.session import find_run
from tfbnn.run.stores import FolderStore, finished_result, result_of
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.storage import RunFolder
from tfbnn.storage.run.folder import PREPARATION
from tfbnn.system.atomic import make_folder


class Cluster(Place):
    """The place whose chains tasks on a cluster run."""

    def __init__(self, client: Any) -> None:
        """
        Args:
            client: `distributed.Client`.
        """
        self._client = client

    def environment(self, options: FitOptions) -> dict[str, Any]:
        """That of the run in the folder, or of a worker; tasks compare it with theirs."""
        folder = RunFolder.find(str(options.output))
        if folder is not None:
            return read_definition(folder).environment
        return dict(self._client.submit(tasks.environment, pure=False).result())

    def seconds_per_gradient(
        self, spec: NetworkSpec, rows: NetworkRows, options: FitOptions
    ) -> None:
        """Not measured: the workers are other machines."""

    def sample(self, job: Job) -> tuple[Starts, SamplingResult]:
        definition, options = job.definition, job.options
        began, path = time.perf_counter(), os.path.realpath(str(options.output))
        folder = find_run(str(options.output), definition, options.resume)
        if folder is None:
            make_folder(path)  # shows now what would fail in a task
            self._prepare(job, path)
            folder = RunFolder.open(path)
            check_same_run(folder, definition)  # another call may have made it
        beginning, result = read_beginning(folder), finished_result(folder, definition.sampling)
        if result is None:
            extend_run(folder, definition.sampling)
            plan = make_plan(job.settings, definition, *beginning.layout)
            store = FolderStore(folder, options.commit_interval)
            crew = LaneTasks(plan, self._client, store)
            before = crew.seconds()
            notify, goal = job.notifier(), job.goal
            course = Straight(plan.num_results) if goal is None else Judged(goal, store)
            try:
                notify.announce("compile")
                ending = crew.follow(course, notify)
            finally:
                notify.close()
            if course.ended is not None:
                ending = replace(ending, ended=course.ended)
                if not ending.failures:  # else whoever resumes goes on with the chains that failed
                    take_down_end(folder, course.ended)
            seconds = crew.seconds().elapsed(began, before)
            result = result_of(store, plan, beginning.start_log_prob, seconds, ending)
            result = in_time(result, notify.out_of_time)
        return beginning.starts, result

    def _prepare(self, job: Job, path: str) -> None:
        """Has a task find the starts and make the run folder, by a definition that lies in it."""
        definition, staging = job.definition, os.path.join(path, PREPARATION)
        # What a call has left that was killed. A task of it may make another run yet, which is refused.
        shutil.rmtree(staging, ignore_errors=True)
        content, arrays = definition_to_json(definition), definition_to_arrays(definition)
        folder = RunFolder.create(staging, content, arrays, 1)
        plan = make_plan(job.settings, definition, [list(range(job.options.num_chains))])
        call = tasks.prepare, folder.path, folder.run_id, path
        try:
            ending = Tasks(plan, self._client, {0: call}, path).run([0], lambda event: False)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        if ending.interrupted:
            raise KeyboardInterrupt
        for error in ending.failures.values():
            raise error
