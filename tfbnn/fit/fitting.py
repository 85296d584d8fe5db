"""Run a fit: from rows and settings to an ensemble and the record of its run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.verdict import CALIBRATED, USABLE
from tfbnn.exceptions import VerdictWarning
from tfbnn.fit.assemble import (
    define,
    is_pretrained,
    make_ensemble,
    unsampled_ensemble,
)
from tfbnn.fit.choices import rules
from tfbnn.fit.choices.choose import choose, plan, sizes_of
from tfbnn.fit.job import (
    Job,
    calibrated_at_the_end,
    judged_predictions,
    make_rule,
    notes,
    seconds_to_end,
    time_to_take,
)
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.fit_checking import diagnose_ensemble
from tfbnn.run.config import Starts
from tfbnn.run.cost import most_results
from tfbnn.run.counters import Seconds
from tfbnn.run.deadline import Deadline
from tfbnn.run.events import Columns
from tfbnn.run.evidence import Ladder
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier
from tfbnn.run.report import Run
from tfbnn.run.result import Result
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import Rows, rows_of_chains
from tfbnn.spec.settings_json import describe_settings
from tfbnn.system.signals import signals_held
from tfbnn.system.words import warn

if TYPE_CHECKING:
    from tfbnn.engine.running.driver import Backend

Keep = Callable[[Ensemble], None]


def fit(
    spec: NetworkSpec,
    rows: Rows,
    validation: Rows | None,
    options: FitOptions,
    keep: Keep,
    backend: Backend | None = None,
) -> tuple[Run, Result]:
    """Pretrain, sample and diagnose, or continue the run in a run folder.

    Args:
        spec: NetworkSpec as requested. The spec of the ensemble has all open settings settled.
        rows: Training Rows.
        validation: Validation Rows, or None.
        options: FitOptions.
        keep: Called with the Ensemble as soon as it exists, so that an interrupt or a warning that
            raises cannot lose it during the diagnosis. Called again with the diagnosis added, except
            for an interrupted run, which is not diagnosed. If no draw was kept, the Ensemble holds the
            pretrained networks and says so.
        backend: Backend that advances the chains. The default uses threads of this process.
    """
    job = _settle(spec, rows, validation, options, backend)
    startup = Seconds(startup=time.perf_counter() - job.options.began)
    starts, result, history = _sample(job, backend)
    with signals_held() as hold:  # an interrupt would lose the draws of a run in memory
        ladder = Ladder.measure(job.config.temperatures, result.rung_log_likelihood)
        ensemble = _kept(job, starts, result, ladder, keep)
    result = replace(result, interrupted=result.interrupted or bool(hold.seen))
    ensemble, diagnosis, uncalibrated = _judged(job, rows, ensemble, result, keep)
    settings, sampling = job.settings, job.config.sampling
    accept_target, accept_reason = settings.accept_target(job.config.spec)
    run = Run(
        kernel=describe_settings(settings),
        num_chains=len(result.draws),
        num_results=result.draws.shape[1],
        num_burnin_steps=result.warmup_cut or sampling.num_burnin_steps,
        num_steps_between_results=sampling.num_steps_between_results,
        accept_target=accept_target if settings.adapts else None,
        accept_reason=accept_reason,
        acceptance_rate=result.acceptance_rate,
        step_size=result.step_size,
        num_divergent=result.num_divergent,
        num_gradients=result.num_gradients,
        geometry=job.geometry,
        choices=job.config.provenance.choices or (),
        ended=result.ended,
        until=None if sampling.until is None else str(sampling.until),
        folder=_folder_of(job.options),
        start_log_prob=result.start_log_prob,
        seconds=asdict(startup + starts.seconds + result.seconds),
        pretraining=starts.text,
        notes=(*notes(job, result, ensemble, ladder), *result.notes, *uncalibrated),
        diagnosis=diagnosis,
        calibration=None if ensemble is None else ensemble.calibration,
        ladder=ladder,
        history=history,
    )
    return run, result


def _kept(
    job: Job, starts: Starts, result: Result, ladder: Ladder | None, keep: Keep
) -> Ensemble | None:
    """Keep the Ensemble of the draws and return it; without draws keep one of the starts."""
    if not result.draws.shape[1]:
        if (is_pretrained(job.config) or result.ended) and not result.failures:
            keep(unsampled_ensemble(job.config, starts.theta, result))
        return None
    ensemble = make_ensemble(job.config, result, ladder)
    keep(ensemble)
    return ensemble


def _judged(
    job: Job, rows: Rows, ensemble: Ensemble | None, result: Result, keep: Keep
) -> tuple[Ensemble | None, Diagnosis | None, tuple[str, ...]]:
    """Return (the calibrated Ensemble, its Diagnosis, notes on why it is not calibrated).

    Without draws, and after an interrupt, the ensemble is neither calibrated nor diagnosed.
    """
    if ensemble is None or result.interrupted:
        return ensemble, None, ()
    uncalibrated: tuple[str, ...] = ()
    if job.config.calibrate:
        ensemble, uncalibrated = calibrated_at_the_end(ensemble, rows)
        keep(ensemble)
    return ensemble, _diagnose(ensemble, job, keep), uncalibrated


def _folder_of(options: FitOptions) -> str | None:
    """Return the run folder. None if the run ended during the search for starts and so has no folder."""
    from tfbnn.storage.run.folder import RunFolder

    output = options.output
    return None if output is None or RunFolder.around(output) is None else str(output)


def _sample(job: Job, backend: Backend | None) -> tuple[Starts, Result, dict[str, Columns]]:
    """Find starts, unless a run folder has them, and run the chains. Return also the history of events."""
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.running.driver import run, starts_of

    config, options, settings = job.config, job.options, job.settings
    deadline = Deadline(options.limit, options.began, partial(seconds_to_end, config))
    notify = Notifier(options.verbose, options.callbacks, deadline)

    def find(data: Any) -> Starts:
        if backend is None:  # the speed of any other backend is unknown
            notify.progress.say(time_to_take(config, settings))
        return starts_of(config, data, notify)

    seen = rows_of_chains(config.spec, config.transformed.train)
    data = partial(make_data, *seen, config.spec.dtype)
    starts, result = run(config, settings, options, notify, job.rule, data, find, backend)
    return starts, result, notify.history


def _diagnose(ensemble: Ensemble, job: Job, keep: Keep) -> Diagnosis:
    """Return the Diagnosis of an ensemble and keep it there. Warn unless the error bars hold."""
    rows = job.config.transformed
    judged = judged_predictions(ensemble, job.config.validation)
    diagnosis = diagnose_ensemble(ensemble, None, rows.train, judged, rows.groups)
    keep(replace(ensemble, diagnostics=diagnosis.to_dict()))
    if diagnosis.verdict not in (USABLE, CALIBRATED):
        warn(
            f"Verdict on these draws: {diagnosis.headline}. See run.report().",
            VerdictWarning,
        )
    return diagnosis


def _settle(
    spec: NetworkSpec,
    rows: Rows,
    validation: Rows | None,
    options: FitOptions,
    backend: Backend | None,
) -> Job:
    """Return the Job of a fit, with all open settings settled.

    Raises:
        TypeError, ValueError: When model, kernel and options do not go together.
    """
    from tfbnn.engine.basis.seeds import describe_environment
    from tfbnn.engine.kernels.registry import kernel_to_json, resolve_kernel
    from tfbnn.fit.given import given_starts

    chosen = choose(spec, options, rows, validation)
    asked = resolve_kernel(chosen.options.kernel)
    asked.check_model(chosen.spec, row_noise=rows.noise is not None)
    asked.check_chains(options.num_chains)
    if isinstance(chosen.spec, KerasSpec):
        from tfbnn.engine.export.tensorflow_forward import check_keras_forward

        check_keras_forward(chosen.spec)
    chosen = plan(chosen, has_clock=backend is None)
    spec, options, given = chosen.spec, chosen.options, None
    asked = resolve_kernel(options.kernel)
    sizes = sizes_of(spec, len(rows.x), options)
    settings, geometry = asked.resolve(spec, sizes.num_rows)
    planned = rules.budget(sizes, options.is_short)
    budget = most_results(
        spec,
        settings,
        options,
        sizes.num_rows,
        options.effort,
        planned and planned.chain_seconds,
    )
    sampling = options.sampling(budget)
    if options.initial_state is not None:
        given = given_starts(spec, options.initial_state, sampling, chosen.transformed.train)
    stated = {} if given is None else {"initial_state": given.text}
    config = define(
        chosen,
        rows,
        validation,
        sampling,
        describe_environment() if backend is None else backend.environment(options),
        stated
        | dict(
            kernel=repr(settings),
            bias=settings.bias_note,
            max_tree_depth=getattr(settings, "max_tree_depth", None),
            adapts_step_size=settings.adapts,
            num_burnin_steps=options.num_burnin_steps,
            num_steps_between_results=sampling.num_steps_between_results,
        ),
        kernel=kernel_to_json(asked),
        temperatures=settings.temperatures,
        calibrate=options.calibrate is True,
        effort=options.effort,
        initial_state=given,
    )
    rule = make_rule(config, is_budget=sampling.num_results == budget)
    return Job(config, settings, geometry, options, rule)
