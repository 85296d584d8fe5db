"""From rows and settings to an ensemble and the record of its run."""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np

from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.exceptions import ConvergenceWarning
from tfbnn.fit.assemble import make_ensemble, measure_ladder
from tfbnn.posterior.diagnosing import diagnose_ensemble
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.provenance import Provenance
from tfbnn.run.counters import Seconds
from tfbnn.run.definition import RunDefinition, Starts
from tfbnn.run.evidence import Ladder
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier
from tfbnn.run.report import Run
from tfbnn.run.result import SamplingResult
from tfbnn.run.session import opened_session
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.rows import Rows, TransformedRows, data_hash
from tfbnn.spec.settings_json import Pretraining, describe_settings
from tfbnn.system.threads import single_threaded_blas

# Rounding noise in a log density above this eats acceptance.
_ROUNDING_LIMIT = 0.05

Keep = Callable[[Ensemble], None]


class Place(Protocol):
    """Where the chains of a fit run."""

    def environment(self, options: FitOptions) -> dict[str, Any]:
        """What decides the bits of a run besides settings and data, see `describe_environment`."""

    def sample(
        self,
        definition: RunDefinition,
        transformed: TransformedRows,
        settings: Any,
        options: FitOptions,
    ) -> tuple[Starts, SamplingResult]:
        """Finds starts, unless a run folder has them, and runs the chains.

        Args:
            definition: RunDefinition.
            transformed: TransformedRows.
            settings: Kernel settings, with a definite preconditioner.
            options: FitOptions.
        """


def fit(
    spec: ModelSpec,
    rows: Rows,
    validation: Rows | None,
    options: FitOptions,
    keep: Keep,
    place: Place | None = None,
) -> tuple[Run, SamplingResult]:
    """Pretrains, samples and diagnoses, or goes on with a run in its folder.

    Args:
        spec: ModelSpec.
        rows: Training Rows.
        validation: Validation Rows, or None.
        options: FitOptions.
        keep: Called with the Ensemble as soon as it exists, unless nothing was kept: an interrupt
            or a warning that raises must not lose it during the diagnosis. Called again with the
            diagnosis added, for which an interrupted run has no time.
        place: Where chains are to run, by default in this process.
    """
    began = time.perf_counter()
    transformed = TransformedRows.learn(spec, rows, validation)
    if validation is None and options.pretraining is not None:
        _check_early_stopping(options.pretraining)
    place = place or ThisProcess()
    definition, settings, geometry = _define(spec, rows, validation, options, place)
    startup = Seconds(startup=time.perf_counter() - began)
    starts, result = place.sample(definition, transformed, settings, options)
    ensemble = diagnosis = ladder = None
    if result.draws.shape[1]:
        ladder = measure_ladder(definition, result)
        ensemble = make_ensemble(definition, transformed, result, ladder)
        keep(ensemble)
        diagnosis = None if result.interrupted else _diagnose(ensemble, keep)
    accept_target, accept_reason = settings.accept_target(spec)
    run = Run(
        kernel=describe_settings(settings),
        num_chains=len(result.draws),
        num_results=result.draws.shape[1],
        num_burnin_steps=options.num_burnin_steps,
        num_steps_between_results=options.num_steps_between_results,
        accept_target=accept_target if settings.adapts else None,
        accept_reason=accept_reason,
        acceptance_rate=result.acceptance_rate,
        step_size=result.step_size,
        num_divergent=result.num_divergent,
        num_gradients=result.num_gradients,
        start_log_prob=result.start_log_prob,
        seconds=asdict(startup + starts.seconds + result.seconds),
        pretraining=starts.text,
        geometry=geometry,
        notes=(*_notes(spec, settings, transformed.train, ensemble, ladder), *result.notes),
        diagnosis=diagnosis,
        ladder=ladder,
    )
    return run, result


class ThisProcess:
    """The Place that runs chains where it is called."""

    def environment(self, options: FitOptions) -> dict[str, Any]:
        from tfbnn.engine.basis.environment import describe_environment

        return describe_environment()

    def sample(
        self,
        definition: RunDefinition,
        transformed: TransformedRows,
        settings: Any,
        options: FitOptions,
    ) -> tuple[Starts, SamplingResult]:
        from tfbnn.engine.density.potential import make_data
        from tfbnn.engine.running.begin_elsewhere import starts_of
        from tfbnn.engine.running.driver import run_chains

        with opened_session(definition, options) as session:
            starts = session.found and session.found.starts
            result = session.committed_result(options.num_results)
            if starts is not None and result is not None:
                return starts, result
            data = make_data(*transformed.train, definition.spec.dtype)
            notify = Notifier(options.verbose, options.callbacks)
            try:
                # With more, the last bits of a factorisation would depend on what other chains are
                # doing.
                with single_threaded_blas():
                    starts = starts or starts_of(definition, transformed, data, notify)
                    result = run_chains(definition, settings, data, starts, session, notify)
            except KeyboardInterrupt:
                # Before the chains moved, in this process.
                result = session.committed_result(fewest=1)
                if starts is None or result is None:
                    raise
                result = replace(result, interrupted=True)
            finally:
                notify.progress.close()
        return starts, result


def _diagnose(ensemble: Ensemble, keep: Keep) -> Diagnosis:
    """The Diagnosis of an ensemble, which is kept with it; warns of what failed."""
    diagnosis = diagnose_ensemble(ensemble)
    keep(replace(ensemble, diagnostics=diagnosis.to_dict()))
    if diagnosis.warnings:
        count, first = len(diagnosis.warnings), diagnosis.warnings[0]
        warnings.warn(
            f"{count} diagnostics failed, first of all: {first} See run.report().",
            ConvergenceWarning,
            stacklevel=5,
        )
    return diagnosis


def _check_early_stopping(pretraining: Pretraining) -> None:
    if pretraining.early_stopping:
        raise ValueError(
            "Pretraining.early_stopping needs validation rows, received validation_data=None. "
            "Pass validation_data=(x, y)."
        )


def _define(
    spec: ModelSpec, rows: Rows, validation: Rows | None, options: FitOptions, place: Place
) -> tuple[RunDefinition, Any, str]:
    """(RunDefinition, kernel settings with a definite preconditioner, why that one) of a fit.

    Raises:
        TypeError, ValueError: When model, kernel and options do not go together.
    """
    from tfbnn.engine.kernels import kernel_to_json, resolve_kernel
    from tfbnn.engine.running.driver import check_workers

    asked = resolve_kernel(options.kernel)
    asked.check_model(spec, row_noise=rows.noise is not None)
    asked.check_chains(options.num_chains)
    settings, geometry = asked.resolve(spec, len(rows.x))
    environment = place.environment(options)
    definition = RunDefinition(
        spec=spec,
        rows=rows,
        validation=validation,
        kernel=kernel_to_json(asked),
        pretraining=options.pretraining,
        sampling=options.sampling,
        environment=environment,
        temperatures=settings.temperatures,
        provenance=Provenance().stating(
            seed=options.seed,
            kernel=repr(settings),
            bias=settings.bias_note,
            max_tree_depth=getattr(settings, "max_tree_depth", None),
            pretraining=repr(options.pretraining),
            num_burnin_steps=options.num_burnin_steps,
            num_steps_between_results=options.num_steps_between_results,
            jit_compile=options.jit_compile,
            num_training_rows=len(rows.x),
            data_sha256=data_hash(rows),
            versions=environment["versions"],
            **options.column_names,
        ),
    )
    check_workers(options.num_workers, settings)
    return definition, settings, geometry


def _notes(
    spec: ModelSpec,
    settings: Any,
    train: tuple[Any, ...],
    ensemble: Ensemble | None,
    ladder: Ladder | None,
) -> tuple[str, ...]:
    """What the report says besides numbers: bias, a ladder with gaps, float32 that is too short."""
    bias = () if settings.bias_note is None else (settings.bias_note,)
    gaps = () if ladder is None else ladder.notes()
    return (*bias, *gaps, *_precision_notes(spec, train, ensemble))


def _precision_notes(
    spec: ModelSpec, train: tuple[Any, ...], ensemble: Ensemble | None
) -> tuple[str, ...]:
    """A remark on numerical precision, where the noise is small for float32."""
    if ensemble is None or spec.dtype == "float64":
        return ()
    y, noise = train[1], train[2]
    scale = np.inf if noise is None else float(np.median(noise))
    if spec.layout.num_noise:
        learned = float(np.exp(np.median(ensemble.log_noise_scale)))
        scale = learned if noise is None else np.hypot(learned, scale)
    elif noise is None and spec.likelihood.noise_scale is not None:
        scale = float(np.min(spec.likelihood.noise_scale))
    # Each output is rounded at about 2e-7 of its size; errors add like a random walk.
    rounding = np.sqrt(y.size) * 2e-7 * float(np.sqrt(np.mean(y**2))) / scale
    if rounding < _ROUNDING_LIMIT:
        return ()
    return (
        f"float32 rounds the log density by about {rounding:.2g} at this noise scale "
        f"({scale:.2g}) and number of rows, which lowers acceptance: use dtype='float64'.",
    )
