"""Make ensembles from draws, after a fit or from a run folder, and read runs to be resumed.

Needs no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbnn.data.training_inputs import TrainingInputs, summarise_inputs
from tfbnn.diagnostics.sample_stats import STATISTICS
from tfbnn.exceptions import NotFittedError, RunFolderError
from tfbnn.posterior.conditioned import GivenRows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.provenance import GIVEN_STARTS, PRETRAINED, Provenance
from tfbnn.run.config import FitConfig
from tfbnn.run.description import read_fit_config
from tfbnn.run.evidence import Ladder
from tfbnn.run.options import FitOptions, Sampling
from tfbnn.run.result import Result
from tfbnn.run.stores import committed_result
from tfbnn.run.until import UNREACHABLE, Until, with_limit
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.rows import (
    MAX_REFERENCE_ROWS,
    Rows,
    data_hash,
    evenly_spaced,
    merged_digests,
    row_digests,
)
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

if TYPE_CHECKING:
    from tfbnn.fit.choices.choose import Chosen


def make_ensemble(
    config: FitConfig,
    result: Result,
    ladder: Ladder | None,
) -> Ensemble:
    """Return the Ensemble of the draws of a run.

    Args:
        config: FitConfig.
        result: Result.
        ladder: Ladder of a PowerPosterior, or None.
    """
    cut = {} if result.warmup_cut is None else {"num_burnin_steps": result.warmup_cut}
    shared = {} if result.superchains is None else {"superchains": result.superchains.tolist()}
    until = config.sampling.until
    return Ensemble(
        **_described(config),
        row_digests=_digests(config),
        draws=result.draws,
        sample_stats=result.sample_stats,
        chain_weights=np.full(len(result.draws), 1.0 / len(result.draws)),
        training_inputs=_training_inputs(config),
        provenance=config.provenance.stating(
            num_results_requested=config.sampling.num_results,
            num_divergent=_divergent(result, config.sampling.stride),
            log_evidence=None if ladder is None else ladder.log_evidence.to_dict(),
            until=until and str(until),
            ended=result.ended,
            sampling_seconds=sum(result.seconds.phases.values()),
            **cut,
            **shared,
        ),
        readouts=result.readouts,
    )


def _training_inputs(config: FitConfig) -> TrainingInputs:
    """Return the summary of the training rows, and of the earlier rows that the prior contains.

    This computes the eigenvectors of a covariance.
    """
    x, earlier = config.transformed.train.x, config.spec.earlier
    if earlier is None:
        return summarise_inputs(x)
    # The weights are those of the likelihood, to its power; all rows count alike here.
    kept = earlier.weights.values * (earlier.num_rows / earlier.weights.values.sum())
    weights = np.concatenate([kept, np.ones(len(x))])
    return summarise_inputs(np.concatenate([earlier.x.values, x]), weights)


def _divergent(result: Result, stride: int) -> int:
    """Return the number of divergent transitions of the draws.

    It is approximate if draws were thinned and cut: the number of all transitions times the share kept.
    """
    if stride == 1 and "diverging" in result.sample_stats:
        return int(np.sum(result.sample_stats["diverging"]))
    kept = result.draws.shape[1] * stride
    shares = np.minimum(kept / np.maximum(result.num_sampled, 1), 1.0)
    return round(float(np.sum(result.num_divergent * shares)))


def _digests(config: FitConfig) -> Array:
    """Return digests of the rows of the fit, and of the earlier fits that the prior contains."""
    digests, earlier = row_digests(config.rows), config.spec.earlier
    if earlier is None or earlier.digests is None:
        return digests
    return merged_digests(digests, earlier.digests.values.astype(digests.dtype))


def is_pretrained(config: FitConfig) -> bool:
    """Return whether the chains of a run start from networks fitted to its rows."""
    settings = config.pretraining
    return settings is not None and bool(settings.epochs or settings.newton_iterations)


def unsampled_ensemble(config: FitConfig, theta: Array, result: Result) -> Ensemble:
    """Return the Ensemble of the starts theta [C, P] of a run that ended before its first draw."""
    networks = replace(result, draws=theta[:, None], readouts=None)
    what = PRETRAINED if is_pretrained(config) else GIVEN_STARTS
    origin = f"{what}: {result.ended or 'the run was stopped before its first draw'}"
    return without_chains(config, networks, result.start_log_prob[:, None], origin)


def without_chains(
    config: FitConfig,
    result: Result,
    log_prob: Array,
    origin: str,
    mode: Array | None = None,
) -> Ensemble:
    """Return an Ensemble whose networks were not drawn by chains; its provenance states this.

    Statistics that only a kernel knows are NaN or 0.

    Args:
        config: FitConfig.
        result: Result with draws [C, S, P] of a run that sampled nothing.
        log_prob: Log densities of the draws [C, S], NaN if unknown.
        origin: Text for `Provenance.not_sampled` on what the draws are.
        mode: As in `Ensemble`.
    """
    statistics: dict[str, Array] = {}
    for name, kind in STATISTICS.items():
        dtype = np.dtype(kind.dtype)
        statistics[name] = np.full(log_prob.shape, np.nan if dtype.kind == "f" else 0, dtype)
    statistics["lp"][:] = log_prob
    ensemble = make_ensemble(config, replace(result, sample_stats=statistics), None)
    provenance = ensemble.provenance.stating(not_sampled=origin)
    return replace(ensemble, provenance=provenance, mode=mode)


def define(
    chosen: Chosen,
    rows: Rows,
    validation: Rows | None,
    sampling: Sampling,
    environment: dict[str, Any],
    stated: dict[str, Any],
    **others: Any,
) -> FitConfig:
    """Return the FitConfig of a fit with all settings settled, checked to fit into a file.

    Args:
        chosen: Chosen.
        rows, validation: Rows of the fit; the latter may be None.
        sampling, environment, others: Fields of that name.
        stated: Entries of its Provenance besides those of every fit.

    Raises:
        ValueError: When no file could hold the model.
    """
    options, pretraining = chosen.options, chosen.options.settled_pretraining
    config = FitConfig(
        spec=chosen.spec,
        rows=rows,
        validation=validation,
        pretraining=pretraining,
        sampling=sampling,
        environment=environment,
        provenance=Provenance().stating(
            seed=options.seed,
            pretraining=repr(pretraining),
            choices=chosen.choices,
            jit_compile=options.jit_compile,
            num_training_rows=len(rows.x),
            data_sha256=data_hash(rows),
            versions=environment["versions"],
            **options.column_names,
            **stated,
        ),
        **others,
    )
    # Otherwise the transforms would be learned again, with the same warnings.
    config.__dict__["transformed"] = chosen.transformed
    from tfbnn.storage.model.contents import check_can_be_written

    try:
        check_can_be_written(ensemble_without_draws(config))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"The model of this fit could not be saved: {error} Shorten the names of columns or the "
            "labels of classes, or use a Keras model with fewer frozen weights."
        ) from error
    return config


def ensemble_without_draws(config: FitConfig) -> Ensemble:
    """Return the Ensemble of a run before it has draws."""
    nothing = np.empty(0)
    return Ensemble(
        **_described(config),
        draws=nothing,
        sample_stats={},
        chain_weights=nothing,
        training_inputs=TrainingInputs(nothing, nothing, nothing, nothing, nothing),
        provenance=config.provenance,
    )


def _described(config: FitConfig) -> dict[str, Any]:
    """Return the fields of the Ensemble that are known before there are draws."""
    rows, validation, earlier = config.rows, config.validation, config.spec.earlier
    transformed = config.transformed
    seen = rows.x if validation is None else validation.x
    if earlier is not None:
        seen = np.concatenate([transformed.x_pipeline.inverse(earlier.x.values), seen])
    return {
        "x_reference": seen[evenly_spaced(len(seen), MAX_REFERENCE_ROWS)],
        "spec": config.spec,
        "x_pipeline": transformed.x_pipeline,
        "y_pipeline": transformed.y_pipeline,
        "feature_names": rows.feature_names,
        "row_noise": rows.noise is not None,
        "classes": rows.classes,
        "vector_target": rows.vector_target,
        "coding": rows.coding,
        "given": GivenRows(*transformed.train) if isinstance(config.spec, InfiniteSpec) else None,
    }


def load_run(path: StrPath, custom: Sequence[Any] = ()) -> tuple[Ensemble, Rows]:
    """Return the Ensemble of the draws that a run has committed so far, and the training Rows.

    Draws are cut to those that every chain has.

    Args:
        path: Folder of a run that is finished, interrupted or still running.
        custom: User-defined classes that the model may have.

    Raises:
        RunFolderError: When the folder holds no run, or is damaged.
        NotFittedError: When no draw is committed yet.
    """
    from tfbnn.storage.model.contents import from_arrays, to_arrays
    from tfbnn.storage.run.folder import RunFolder

    folder = RunFolder.open(path)
    try:
        config = read_fit_config(folder, custom)
        result = committed_result(folder, fewest=1)
        if result is None:
            raise NotFittedError(
                f"The run in {folder.path!r} has not committed a draw of every chain yet. Wait for it, "
                "or go on with it: tfbnn resume."
            )
        ladder = Ladder.measure(config.temperatures, result.rung_log_likelihood)
        arrays = to_arrays(make_ensemble(config, result, ladder))
        # This applies the checks of a model file.
        return from_arrays(arrays, custom=custom), config.rows
    except (NotFittedError, RunFolderError, MemoryError):
        raise
    except Exception as error:
        # Any other error that a crafted folder causes is reported as a fault of the folder.
        raise RunFolderError(
            f"{folder.path!r} is not a run that can be loaded ({type(error).__name__}: {error})."
        ) from error


def read_run(
    folder: StrPath,
    *,
    num_results: int | None = None,
    until: Until | str | None = "auto",
    max_seconds: float | None = None,
    custom: Sequence[Any] = (),
    **options: Any,
) -> tuple[FitConfig, FitOptions]:
    """Read the folder of a run as the arguments of a fit that continues it.

    Args:
        folder: The run folder.
        num_results, until, max_seconds, custom: As in `tfbnn.resume`.
        options: Fields of FitOptions that do not affect the draws: commit_interval, verbose, callbacks.
    """
    from tfbnn.engine.kernels.registry import kernel_from_json
    from tfbnn.storage.run.folder import RunFolder

    config = read_fit_config(RunFolder.open(folder), custom)
    begun = config.sampling
    if begun.until is not None and begun.until.ess == UNREACHABLE:  # the limit of an earlier resume
        begun = replace(begun, until=None)
    rule: Any = until
    if until == "auto":
        rule = begun.until if num_results is None else None
    if num_results is None and (rule is None) == (begun.until is None):
        num_results = begun.num_results
    limit = begun.limit if max_seconds is None else max_seconds
    if until == "auto" and limit is not None:
        # Only the limit may leave out some of a fixed number of draws.
        rule = replace(rule or Until(ess=UNREACHABLE), max_seconds=limit)
    elif max_seconds is not None:
        rule = with_limit(rule, max_seconds)
    return config, FitOptions(
        kernel=kernel_from_json(config.kernel),
        pretraining=config.pretraining,
        calibrate=config.calibrate,
        effort=config.effort,
        initial_state=config.initial_state,
        likelihood_power=config.spec.likelihood_power,
        output=folder,
        resume=True,
        column_names=config.provenance.column_names,
        num_results="auto" if num_results is None else num_results,
        until=rule,
        **begun.numbers,
        **options,
    )
