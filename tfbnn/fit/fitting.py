"""From rows and settings to an ensemble and the record of its run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.verdict import CALIBRATED, USABLE
from tfbnn.exceptions import VerdictWarning
from tfbnn.fit.assemble import (
    check_can_be_saved,
    is_pretrained,
    make_ensemble,
    measure_ladder,
    origin_of,
    unsampled_ensemble,
)
from tfbnn.fit.choices.choose import choose, choose_by_clock
from tfbnn.fit.job import (
    Job,
    calibrated_at_the_end,
    judged_predictions,
    make_goal,
    notes,
    time_to_take,
)
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.fit_checking import diagnose_ensemble
from tfbnn.posterior.provenance import Provenance
from tfbnn.run.cost import most_results
from tfbnn.run.counters import Seconds
from tfbnn.run.deadline import in_time
from tfbnn.run.definition import FitDefinition, Starts
from tfbnn.run.events import History
from tfbnn.run.options import FitOptions
from tfbnn.run.report import Run
from tfbnn.run.result import SamplingResult, nothing_sampled
from tfbnn.run.stores import opened_session
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows, Rows
from tfbnn.spec.settings_json import Pretraining, describe_settings
from tfbnn.system.threads import single_threaded_blas
from tfbnn.system.words import warn

Keep = Callable[[Ensemble], None]


def fit(
    spec: NetworkSpec,
    rows: Rows,
    validation: Rows | None,
    options: FitOptions,
    keep: Keep,
    place: Place | None = None,
) -> tuple[Run, SamplingResult]:
    """Pretrains, samples and diagnoses, or goes on with a run in its folder.

    Args:
        spec: NetworkSpec, as asked for: the ensemble has it with all that is open settled.
        rows: Training Rows.
        validation: Validation Rows, or None.
        options: FitOptions.
        keep: Called with the Ensemble as soon as it exists: an interrupt or a warning that raises
            must not lose it during the diagnosis. Called again with the diagnosis added, for which
            an interrupted run has no time. Where no draw was kept, it is that of the pretrained
            networks, which says so.
        place: Where chains are to run, by default in this process.
    """
    place = place or Place()
    job = _settle(spec, rows, validation, options, place)
    spec, options = job.definition.spec, job.options
    startup = Seconds(startup=time.perf_counter() - options.began)
    starts, result = place.sample(job)
    ensemble = diagnosis = ladder = None
    uncalibrated: tuple[str, ...] = ()
    if result.draws.shape[1]:
        ladder = measure_ladder(job.definition, result)
        ensemble = make_ensemble(job.definition, job.transformed, result, ladder)
        keep(ensemble)
        if not result.interrupted:
            if job.definition.calibrate:
                ensemble, uncalibrated = calibrated_at_the_end(ensemble, rows)
                keep(ensemble)
            diagnosis = _diagnose(ensemble, job, keep)
    elif (is_pretrained(job.definition) or result.ended) and not result.failures:
        keep(unsampled_ensemble(job.definition, job.transformed, starts.theta, result))
    settings = job.settings
    accept_target, accept_reason = settings.accept_target(spec)
    run = Run(
        kernel=describe_settings(settings),
        num_chains=len(result.draws),
        num_results=result.draws.shape[1],
        num_burnin_steps=result.warmup_cut or job.definition.sampling.num_burnin_steps,
        num_steps_between_results=job.definition.sampling.num_steps_between_results,
        accept_target=accept_target if settings.adapts else None,
        accept_reason=accept_reason,
        acceptance_rate=result.acceptance_rate,
        step_size=result.step_size,
        num_divergent=result.num_divergent,
        num_gradients=result.num_gradients,
        start_log_prob=result.start_log_prob,
        seconds=asdict(startup + starts.seconds + result.seconds),
        pretraining=starts.text,
        geometry=job.geometry,
        notes=(*notes(job, result, ensemble, ladder), *result.notes, *uncalibrated),
        choices=job.definition.provenance.choices or (),
        diagnosis=diagnosis,
        calibration=None if ensemble is None else ensemble.calibration,
        ladder=ladder,
        ended=result.ended,
        until=None if (until := job.definition.sampling.until) is None else str(until),
        folder=_folder_of(options),
        history=job.history.to_dict(),
    )
    return run, result


def _folder_of(options: FitOptions) -> str | None:
    """The run folder; None where a run ended in the search for its starts, and so has none."""
    from tfbnn.storage import RunFolder

    output = options.output
    return None if output is None or RunFolder.around(output) is None else str(output)


class Place:
    """Where the chains of a fit run: in this process; subclasses are other places."""

    def environment(self, options: FitOptions) -> dict[str, Any]:
        """What decides the bits of a run besides settings and data, see `describe_environment`."""
        from tfbnn.engine.basis.seeds import describe_environment

        return describe_environment()

    def seconds_per_gradient(
        self, spec: NetworkSpec, rows: NetworkRows, options: FitOptions
    ) -> float | None:
        """Seconds in which every chain of a run makes a gradient; None where they are not measured."""
        from tfbnn.fit.choices.by_clock import measured_seconds

        return measured_seconds(spec, rows, options)

    def sample(self, job: Job) -> tuple[Starts, SamplingResult]:
        """Finds starts, unless a run folder has them, and runs the chains."""
        from tfbnn.engine.density.data import make_data
        from tfbnn.engine.running.driver import run_chains, starts_of
        from tfbnn.engine.starts.find import log_prob_of

        definition, options = job.definition, job.options
        with opened_session(definition, options) as session:
            starts = session.found and session.found.starts
            result = session.finished_result(definition.sampling)
            if starts is not None and result is not None:
                return starts, result
            data = make_data(*job.transformed.train, definition.spec.dtype)
            notify = job.notifier()
            if session.found is None:
                notify.progress.say(time_to_take(definition, job.settings))
            try:
                # With more, the last bits of a factorisation would depend on what other chains are
                # doing.
                with single_threaded_blas():
                    starts = starts or starts_of(definition, job.transformed, data, notify)
                    result = run_chains(
                        definition, job.settings, data, starts, session, notify, job.goal
                    )
                result = in_time(result, notify.out_of_time)
            except KeyboardInterrupt:
                # Before the chains moved, in this process.
                if starts is None:
                    raise
                result = session.committed_result(fewest=1) or nothing_sampled(
                    log_prob_of(definition.spec, data, starts.theta), interrupted=True
                )
                result = replace(result, interrupted=True)
            finally:
                notify.close()
        return starts, result


def _diagnose(ensemble: Ensemble, job: Job, keep: Keep) -> Diagnosis:
    """The Diagnosis of an ensemble, which is kept with it; warns unless error bars hold."""
    rows, judged = job.transformed, judged_predictions(ensemble, job.definition.validation)
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
    place: Place,
) -> Job:
    """The Job of a fit.

    Raises:
        TypeError, ValueError: When model, kernel and options do not go together.
    """
    from tfbnn.engine.density.densities import check_own_densities
    from tfbnn.engine.kernels import kernel_to_json, resolve_kernel
    from tfbnn.engine.starts.given import given_starts

    check_early_stopping(options.pretraining, validation)
    check_own_densities(spec)
    chosen = choose(spec, options, rows, validation)
    asked = resolve_kernel(chosen.options.kernel)
    asked.check_model(chosen.spec, row_noise=rows.noise is not None)
    asked.check_chains(options.num_chains)
    if isinstance(chosen.spec, KerasSpec):
        from tfbnn.engine.export.forward import check_keras_forward

        check_keras_forward(chosen.spec)
    chosen = choose_by_clock(chosen, place.seconds_per_gradient)
    spec, options, transformed, choices, _ = chosen
    pretraining, given = options.settled_pretraining, None
    asked = resolve_kernel(options.kernel)
    num_rows = len(rows.x) + spec.num_earlier
    settings, geometry = asked.resolve(spec, num_rows)
    environment = place.environment(options)
    is_limited = options.limit is not None
    budget = most_results(spec, settings, options, num_rows, options.effort, is_limited)
    sampling = options.sampling(budget)
    if options.initial_state is not None:
        given = given_starts(spec, options.initial_state, sampling, transformed.train)
    definition = FitDefinition(
        spec=spec,
        rows=rows,
        validation=validation,
        kernel=kernel_to_json(asked),
        pretraining=pretraining,
        sampling=sampling,
        environment=environment,
        temperatures=settings.temperatures,
        calibrate=options.calibrate is True,
        effort=options.effort,
        provenance=Provenance().stating(
            seed=options.seed,
            kernel=repr(settings),
            bias=settings.bias_note,
            max_tree_depth=getattr(settings, "max_tree_depth", None),
            adapts_step_size=settings.adapts,
            pretraining=repr(pretraining),
            **({} if given is None else {"initial_state": given.text}),
            choices=choices,
            num_burnin_steps=options.num_burnin_steps,
            num_steps_between_results=sampling.num_steps_between_results,
            jit_compile=options.jit_compile,
            **origin_of(options, rows, environment),
        ),
        initial_state=given,
    )
    check_can_be_saved(definition, transformed)
    goal = make_goal(definition, transformed, settings)
    return Job(definition, transformed, settings, geometry, options, goal, History())


def check_early_stopping(pretraining: Pretraining | str | None, validation: Rows | None) -> None:
    """Refuses early stopping without rows to stop by, of settings that are not "auto".

    Raises:
        ValueError: Says so.
    """
    if validation is not None or not isinstance(pretraining, Pretraining):
        return
    if pretraining.early_stopping and not pretraining.validation_split:
        raise ValueError(
            "Pretraining.early_stopping needs validation rows, received validation_data=None. "
            "Pass validation_data=(x, y), or give validation_split."
        )
