"""`fit`: the chains of a run as tasks on a cluster."""

import os
import shutil
import time
from dataclasses import fields, replace
from typing import Any

from tfbnn.cluster import tasks
from tfbnn.cluster.crew import LaneTasks, Tasks
from tfbnn.cluster.tasks import required
from tfbnn.data.frames import column_names_of
from tfbnn.fit.fitting import Place
from tfbnn.fit.handing_on import known_from
from tfbnn.fit.job import Job
from tfbnn.fit.model import SampledNetwork
from tfbnn.posterior.sampled_model import networks_of
from tfbnn.run.course import Course, Judged
from tfbnn.run.deadline import in_time
from tfbnn.run.definition import Starts
from tfbnn.run.description import (
    check_same_run,
    definition_to_arrays,
    definition_to_json,
    extend_run,
    read_beginning,
    read_definition,
    take_down_end,
)
from tfbnn.run.options import FitOptions
from tfbnn.run.plan import make_plan
from tfbnn.run.report import Run
from tfbnn.run.result import SamplingResult
from tfbnn.run.stores import FolderStore, find_run, finished_result, result_of
from tfbnn.spec.choices import is_auto
from tfbnn.spec.habits import hint
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows, rows_to_fit
from tfbnn.storage import RunFolder
from tfbnn.storage.run.folder import PREPARATION
from tfbnn.system.atomic import make_folder

# Fields of FitOptions that are no arguments here.
_OTHERS = {"output", "column_names", "began"}


def fit(
    model: SampledNetwork,
    x: Any,
    y: Any,
    *,
    client: Any,
    output: Any,
    noise_scale: Any = None,
    groups: Any = None,
    validation_data: Any = None,
    **options: Any,
) -> Run:
    """Samples the posterior given the rows (x, y) on a cluster, chain by chain.

    As `BayesianMLP.fit_posterior`, whose draws these are, bit by bit where an operation of
    TensorFlow has one thread, as on workers it has (as many as OMP_NUM_THREADS says, which Dask
    sets to 1). A task finds the starts; then each chain is a task (chains that share a program are
    one). Everything tasks need and make is in the run folder, and little but its path in Dask's
    graph. What a task has committed outlives it: a chain whose worker was killed, or reached the
    end of its lifetime, goes on elsewhere from its last commit.

    Args:
        model: BayesianMLP.
        x, y: Rows, as in `fit_posterior`.
        client: `distributed.Client` of a cluster on whose workers tfbnn is installed. Workers must
            be alike: all with a GPU or none, with the same versions.
        output: Run folder, on storage that all workers share under the same path and with file
            locks that hold between hosts.
        noise_scale, groups, validation_data: As in `fit_posterior`.
        options: missing, kernel, num_chains, num_results, until, max_seconds, num_burnin_steps,
            num_steps_between_results, pretraining, initial_state, likelihood_power, effort,
            calibrate, seed, resume, commit_interval, jit_compile, verbose, callbacks: As in
            `fit_posterior`, defaults too. The kernel cannot be a callable; commit_interval is what the
            loss of a worker can cost; callbacks are called here, once per commit_interval and after
            what was committed.

    Returns:
        A `Run`; the draws are in `model.posterior`.

    Raises:
        ImportError: Without Dask.
        TypeError, ValueError: For unusable data or settings, before a task is submitted.
        StartError, RunFolderError: As in `fit_posterior`.
        ChainError: When a chain failed: an error of its own, or five attempts in a row that
            committed nothing. The draws of the others are in `model.posterior`.
        ConnectionError: When the scheduler is gone. Call again with a new client and resume=True.
        KeyboardInterrupt: On SIGINT or SIGTERM, when all tasks have committed; draws kept so far
            are in `model.posterior`. A second one does not wait for the tasks.
    """
    if own := [name.rpartition(":")[2] for name in model.spec.own_names]:
        raise ValueError(
            "Tasks on a cluster import no code of a run's author, received a model with "
            f"{', '.join(own)} of your own. Use fit_posterior."
        )
    if not isinstance(client, required("distributed").Client) or client.asynchronous:
        raise TypeError(
            f"client must be a distributed.Client, not asynchronous, received {client!r}."
        )
    from tfbnn.engine.kernels import resolve_kernel
    from tfbnn.engine.kernels.from_callable import CallableKernel

    if output is None:
        raise TypeError("output must be a folder that all workers share, received None.")
    names = {field.name for field in fields(FitOptions)} - _OTHERS
    for name in options.keys() - names:
        raise TypeError(
            f"options of cluster.fit are {', '.join(sorted(names))}, received {name}."
            f"{hint(name, names)}"
        )
    options["initial_state"] = networks_of(options.get("initial_state"))
    earlier = known_from(model, options["initial_state"])
    of_targets = column_names_of(y, earlier and earlier.target_names)
    checked = FitOptions(output=output, column_names=of_targets, **options)
    kernel = checked.kernel
    if not is_auto(kernel) and isinstance(resolve_kernel(kernel), CallableKernel):
        raise ValueError(
            f"A kernel that is a callable cannot be sent to workers, received {kernel!r}. Use one "
            "of tfbnn.kernels, or fit_posterior."
        )
    data = x, y, noise_scale, validation_data
    rows, validation = rows_to_fit(model.spec, *data, earlier, checked.missing, groups)
    return model.fit_rows(rows, validation, checked, Cluster(client))


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
            course = Course(plan.num_results) if goal is None else Judged(goal, store)
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
