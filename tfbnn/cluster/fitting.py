"""`fit`: the chains of a run as tasks on a cluster."""

from dataclasses import fields
from typing import Any

from tfbnn.cluster.tasks import required
from tfbnn.fit.model import SampledNetwork
from tfbnn.posterior.sampled_model import networks_of
from tfbnn.run.options import FitOptions
from tfbnn.run.report import Run
from tfbnn.spec.choices import is_auto
from tfbnn.spec.habits import hint
from tfbnn.spec.rows import known_of_rows

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
    offset: Any = None,
    groups: Any = None,
    validation_data: Any = None,
    **options: Any,
) -> Run:
    """Sample the posterior given the rows (x, y) on a cluster, chain by chain.

    As `BayesianMLP.fit_posterior`, whose draws these are, bit by bit where an operation of
    TensorFlow has one thread, as on workers it has (as many as OMP_NUM_THREADS says, which Dask
    sets to 1). The process that calls finds the starts; then each chain is a task (chains that share
    a program are one). Everything tasks need and make is in the run folder, and little but its path
    in Dask's graph. What a task has committed outlives it: a chain whose worker was killed, or
    reached the end of its lifetime, goes on elsewhere from its last commit.

    Args:
        model: BayesianMLP.
        x, y: Rows, as in `fit_posterior`.
        client: `distributed.Client` of a cluster on whose workers tfbnn is installed. Workers must
            be alike: all with a GPU or none, with the same versions.
        output: Run folder, on storage that all workers share under the same path and with file
            locks that hold between hosts.
        noise_scale, offset, groups, validation_data: As in `fit_posterior`.
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
    if own := [name.rpartition(":")[2] for name in model.asked.own_names]:
        raise ValueError(
            "cluster.fit cannot send your code to its workers, received a model with "
            f"{', '.join(own)} of your own. Use fit_posterior."
        )
    if not isinstance(client, required("distributed").Client) or client.asynchronous:
        raise TypeError(
            f"client must be a distributed.Client, not asynchronous, received {client!r}."
        )
    from tfbnn.engine.kernels.from_callable import CallableKernel
    from tfbnn.engine.kernels.registry import resolve_kernel

    if output is None:
        raise TypeError("output must be a folder that all workers share, received None.")
    names = {field.name for field in fields(FitOptions)} - _OTHERS
    for name in options.keys() - names:
        raise TypeError(
            f"options of cluster.fit are {', '.join(sorted(names))}, received {name}."
            f"{hint(name, names)}"
        )
    options["initial_state"] = networks_of(options.get("initial_state"))
    checked = FitOptions(output=output, **options)
    kernel = checked.kernel
    if not is_auto(kernel) and isinstance(resolve_kernel(kernel), CallableKernel):
        raise ValueError(
            f"A kernel that is a callable cannot be sent to workers, received {kernel!r}. Use one "
            "of tfbnn.kernels, or fit_posterior."
        )
    from tfbnn.cluster.executor import Cluster

    known = known_of_rows(model.asked, noise_scale, offset)
    return model.fit_data(x, y, known, checked, validation_data, groups, Cluster(client))
