"""`fit`: run the chains of a fit as tasks on a cluster."""

from dataclasses import fields
from typing import Any

from tfbnn.fit.model import SampledNetwork
from tfbnn.posterior.sampled_model import networks_of
from tfbnn.run.options import FitOptions
from tfbnn.run.report import Run
from tfbnn.spec.choices import is_auto
from tfbnn.spec.habits import refuse_unknown
from tfbnn.spec.rows import known_of_rows
from tfbnn.system.words import required

# Fields of FitOptions that are not among the options of `fit`.
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

    The draws are those of `BayesianMLP.fit_posterior`, bit by bit if each TensorFlow operation uses one
    thread there too. Workers use as many threads as OMP_NUM_THREADS says, which Dask sets to 1. The calling
    process finds the starts. Then each chain is a task; chains that share a program are one task. The run
    folder holds everything that tasks need and write. Dask's graph holds little more than its path. Draws
    that a task has committed are kept: if its worker is killed, or reaches the end of its lifetime, another
    worker continues the chain from its last commit.

    Args:
        model: BayesianMLP or BayesianModel, without classes of your own.
        x, y: Rows, as in `fit_posterior`.
        client: `distributed.Client` of a cluster on whose workers tfbnn is installed. Workers must
            be alike: all with a GPU or none, with the same versions.
        output: Run folder, on storage that all workers share under the same path and with file
            locks that hold between hosts.
        noise_scale, offset, groups, validation_data: As in `fit_posterior`.
        options: missing, kernel, num_chains, num_results, until, max_seconds, num_burnin_steps,
            num_steps_between_results, pretraining, initial_state, likelihood_power, effort,
            calibrate, seed, resume, commit_interval, jit_compile, verbose, callbacks: As in
            `fit_posterior`, with the same defaults. The kernel cannot be a callable. The loss of a worker
            costs at most commit_interval. Callbacks are called in this process, once per
            commit_interval, with the committed state. max_seconds is checked as often, and does not
            shorten a given warm-up.

    Returns:
        A `Run`; the draws are in `model.posterior`.

    Raises:
        ImportError: When Dask is not installed.
        TypeError, ValueError: For unusable data or settings, before a task is submitted.
        StartError, RunFolderError: As in `fit_posterior`.
        ChainError: When a chain failed: by an error of its own, or after five attempts in a row that
            committed nothing. The draws of the others are in `model.posterior`.
        ConnectionError: When the connection to the scheduler is lost. Call again with a new client and
            resume=True.
        KeyboardInterrupt: On SIGINT or SIGTERM, after all tasks have committed. The draws so far are in
            `model.posterior`. A second signal does not wait for the tasks.
    """
    if own := [name.rpartition(":")[2] for name in model.asked.own_names]:
        raise ValueError(
            "cluster.fit cannot send your code to its workers, received a model with "
            f"{', '.join(own)} of your own. Use fit_posterior."
        )
    distributed = required("distributed", "tfbnn.cluster needs Dask", "cluster")
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise TypeError(
            f"client must be a distributed.Client, not asynchronous, received {client!r}."
        )
    from tfbnn.engine.kernels.from_callable import CallableKernel
    from tfbnn.engine.kernels.registry import resolve_kernel

    if output is None:
        raise TypeError("output must be a folder that all workers share, received None.")
    refuse_unknown("cluster.fit", options, {one.name for one in fields(FitOptions)} - _OTHERS)
    options["initial_state"] = networks_of(options.get("initial_state"))
    checked = FitOptions(output=output, **options)
    kernel = checked.kernel
    if not is_auto(kernel) and isinstance(resolve_kernel(kernel), CallableKernel):
        raise ValueError(
            f"A kernel that is a callable cannot be sent to workers, received {kernel!r}. Use one "
            "of tfbnn.kernels, or fit_posterior."
        )
    from tfbnn.cluster.dask_executor import Cluster

    known = known_of_rows(model.asked, noise_scale, offset)
    return model.fit_data(x, y, known, checked, validation_data, groups, Cluster(client))
