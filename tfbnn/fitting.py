"""From rows and settings to an ensemble and the record of its run."""

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np

from tfbnn import __version__
from tfbnn.diagnostics import diagnose
from tfbnn.ensemble import Ensemble
from tfbnn.evidence import Ladder
from tfbnn.exceptions import ConvergenceWarning
from tfbnn.predict import function_draws
from tfbnn.progress import Progress
from tfbnn.rows import data_hash, reference_rows, transform_rows
from tfbnn.run import Run
from tfbnn.settings import Pretraining, describe_settings
from tfbnn.threads import single_threaded_blas
from tfbnn.training_inputs import summarise_inputs
from tfbnn.transforms import fit_pipeline
from tfbnn.validation import check_integer

__all__ = ["FitOptions", "diagnose_ensemble", "fit"]

# Rounding noise in a log density above this eats acceptance.
_ROUNDING_LIMIT = 0.05


@dataclass(frozen=True)
class FitOptions:
    """The arguments of `fit_posterior` besides data, checked."""

    kernel: object
    num_chains: int
    num_results: int
    num_burnin_steps: int
    num_steps_between_results: int
    pretraining: Pretraining | None
    seed: int
    jit_compile: bool
    verbose: object
    callbacks: tuple

    def __post_init__(self):
        for name, minimum in (
            ("num_chains", 1),
            ("num_results", 1),
            ("num_burnin_steps", 0),
            ("num_steps_between_results", 0),
            ("seed", 0),
        ):
            # Plain integers, which the model file can hold.
            value = check_integer(name, getattr(self, name), minimum=minimum)
            object.__setattr__(self, name, value)
        if self.pretraining is not None and not isinstance(self.pretraining, Pretraining):
            raise TypeError(
                f"pretraining must be a tfbnn.Pretraining or None, received {self.pretraining!r}."
            )
        tried = None if self.pretraining is None else self.pretraining.num_starts
        if tried is not None and tried < self.num_chains:
            raise ValueError(
                f"Pretraining.num_starts must be at least num_chains={self.num_chains}, received "
                f"{tried}. Leave num_starts=None for one start per chain."
            )
        if not isinstance(self.jit_compile, bool):
            raise TypeError(f"jit_compile must be True or False, received {self.jit_compile!r}.")
        if self.verbose not in ("auto", 0, 1):
            raise ValueError(f"verbose must be 'auto', 0 or 1, received {self.verbose!r}.")
        if not isinstance(self.callbacks, (list, tuple)):
            raise TypeError(f"callbacks must be a list of callables, received {self.callbacks!r}.")
        for callback in self.callbacks:
            if not callable(callback):
                raise TypeError(f"Each callback must be callable, received {callback!r}.")


def fit(spec, rows, validation, options, keep):
    """Pretrains, samples and diagnoses.

    Args:
        spec: ModelSpec.
        rows: Training Rows.
        validation: Validation Rows, or None.
        options: FitOptions.
        keep: Called with the Ensemble as soon as it exists, unless nothing was kept: an interrupt
            or a warning that raises must not lose it during the diagnosis. Called again with the
            diagnosis added.

    Returns:
        (Run, whether a KeyboardInterrupt ended the run).
    """
    began = time.perf_counter()
    x_pipeline = fit_pipeline(spec.x_transform, rows.x, "x")
    y_pipeline = fit_pipeline(spec.y_transform, rows.y, "y")
    train = transform_rows(spec, x_pipeline, y_pipeline, rows)
    training_inputs = summarise_inputs(train[0])
    held_out = None
    if validation is not None:
        held_out = transform_rows(spec, x_pipeline, y_pipeline, validation)
    elif options.pretraining is not None and options.pretraining.early_stopping:
        raise ValueError(
            "Pretraining.early_stopping needs validation rows, received validation_data=None. "
            "Pass validation_data=(x, y)."
        )

    from tfbnn.engine.kernels import resolve_kernel
    from tfbnn.engine.potential import make_data
    from tfbnn.engine.runner import run_chains
    from tfbnn.engine.starts import find_starts

    settings = resolve_kernel(options.kernel)
    settings.check_model(spec, row_noise=rows.noise is not None)
    settings.check_chains(options.num_chains)
    settings, geometry = settings.resolve(spec, len(rows.x))
    data = make_data(*train, spec.dtype)
    notify = _Notifier(options)
    seconds = {"startup": time.perf_counter() - began, "compile": 0.0, "pretraining": 0.0}
    try:
        # With more, the last bits of a factorisation would depend on what other chains are doing.
        with single_threaded_blas():
            theta, how, spent = find_starts(
                spec,
                data,
                None if held_out is None else make_data(*held_out, spec.dtype),
                options.pretraining,
                seed=options.seed,
                num_chains=options.num_chains,
                jit_compile=options.jit_compile,
                notify=notify,
            )
            result = run_chains(
                spec,
                settings,
                data,
                theta,
                seed=options.seed,
                num_results=options.num_results,
                num_burnin_steps=options.num_burnin_steps,
                num_steps_between_results=options.num_steps_between_results,
                jit_compile=options.jit_compile,
                notify=notify,
                stopped=notify.stopped,
            )
    finally:
        notify.progress.close()
    for stage in (spent, result.seconds):
        for name, value in stage.items():
            seconds[name] = seconds.get(name, 0.0) + value

    ensemble = diagnosis = ladder = None
    if result.draws.shape[1]:
        if result.rung_log_likelihood is not None:
            ladder = Ladder.measure(settings.temperatures, result.rung_log_likelihood)
        reference = rows.x if validation is None else validation.x
        ensemble = Ensemble(
            spec=spec,
            x_pipeline=x_pipeline,
            y_pipeline=y_pipeline,
            draws=result.draws,
            sample_stats=result.sample_stats,
            chain_weights=np.full(options.num_chains, 1.0 / options.num_chains),
            x_reference=reference_rows(reference),
            training_inputs=training_inputs,
            feature_names=rows.feature_names,
            row_noise=rows.noise is not None,
            classes=rows.classes,
            provenance=_provenance(rows, options, settings, result, ladder),
            readouts=result.readouts,
        )
        keep(ensemble)
        diagnosis = diagnose_ensemble(ensemble)
        keep(replace(ensemble, diagnostics=diagnosis.to_dict()))
        if diagnosis.warnings:
            count, first = len(diagnosis.warnings), diagnosis.warnings[0]
            warnings.warn(
                f"{count} diagnostics failed, first of all: {first} See run.report().",
                ConvergenceWarning,
                stacklevel=3,
            )
    run = Run(
        kernel=describe_settings(settings),
        num_chains=options.num_chains,
        num_results=result.draws.shape[1],
        num_burnin_steps=options.num_burnin_steps,
        num_steps_between_results=options.num_steps_between_results,
        accept_target=settings.accept_target(spec) if settings.adapts else None,
        accept_reason=settings.accept_reason(spec),
        acceptance_rate=result.acceptance_rate,
        step_size=result.step_size,
        num_divergent=result.num_divergent,
        num_gradients=result.num_gradients,
        start_log_prob=result.start_log_prob,
        seconds=seconds,
        pretraining=how,
        geometry=geometry,
        notes=_notes(spec, settings, train, ensemble, ladder),
        diagnosis=diagnosis,
        ladder=ladder,
    )
    return run, result.interrupted


def diagnose_ensemble(ensemble, x_reference=None):
    """Diagnosis of an ensemble at reference inputs [R, D], by default those saved with it."""
    x = ensemble.x_reference if x_reference is None else x_reference
    function = function_draws(ensemble, x)
    function = function.reshape(ensemble.num_chains, ensemble.num_results, *function.shape[1:])
    provenance, statistics = ensemble.provenance, dict(ensemble.sample_stats)
    skipped = provenance.get("num_steps_between_results") or 0
    if skipped:
        # E-BFMI compares successive transitions; between thinned ones it says nothing.
        del statistics["energy"]
    return diagnose(
        ensemble.draws,
        function,
        statistics,
        max_tree_depth=provenance.get("max_tree_depth"),
        num_divergent=provenance.get("num_divergent"),
        transitions_per_draw=skipped + 1,
    )


class _Notifier:
    """Hands events to the progress line and the callbacks; true once one of them asks to stop."""

    def __init__(self, options):
        self.progress = Progress(options.verbose)
        self.callbacks = list(options.callbacks)
        self.stopped = False

    def __call__(self, event):
        self.progress(event)
        for callback in list(self.callbacks):
            self.stopped |= self._call(callback, event)
        return self.stopped

    def _call(self, callback, event):
        try:
            answer = callback(dict(event))
            return isinstance(answer, (bool, np.bool_)) and bool(answer)
        except Exception as error:
            # A day of sampling is worth more than a callback.
            self.callbacks.remove(callback)
            warnings.warn(
                f"The callback {callback!r} raised {error!r}; the run goes on without it.",
                RuntimeWarning,
                stacklevel=2,
            )
            return False


def _provenance(rows, options, settings, result, ladder):
    import tensorflow
    import tensorflow_probability

    return {
        "seed": options.seed,
        "kernel": repr(settings),
        "bias": settings.bias_note,
        "log_evidence": None if ladder is None else ladder.log_evidence.to_dict(),
        "max_tree_depth": getattr(settings, "max_tree_depth", None),
        "pretraining": repr(options.pretraining),
        "num_results_requested": options.num_results,
        "num_burnin_steps": options.num_burnin_steps,
        "num_steps_between_results": options.num_steps_between_results,
        "num_divergent": int(result.num_divergent.sum()),
        "jit_compile": options.jit_compile,
        "num_training_rows": len(rows.x),
        "data_sha256": data_hash(rows),
        "versions": {
            "tfbnn": __version__,
            "numpy": np.__version__,
            "tensorflow": tensorflow.__version__,
            "tensorflow_probability": tensorflow_probability.__version__,
        },
    }


def _notes(spec, settings, train, ensemble, ladder):
    """What the report says besides numbers: bias, a ladder with gaps, float32 that is too short."""
    bias = () if settings.bias_note is None else (settings.bias_note,)
    gaps = () if ladder is None else ladder.notes()
    return (*bias, *gaps, *_precision_notes(spec, train, ensemble))


def _precision_notes(spec, train, ensemble):
    """A remark on numerical precision, where the noise is small for float32."""
    if ensemble is None or spec.dtype == "float64":
        return ()
    y, noise = train[1], train[2]
    scale = np.inf if noise is None else float(np.median(noise))
    if spec.layout.num_noise:
        learned = float(np.exp(np.median(ensemble.log_noise_scale)))
        scale = learned if noise is None else np.hypot(learned, scale)
    elif noise is None and hasattr(spec.likelihood, "noise_scale"):
        scale = float(np.min(spec.likelihood.noise_scale))
    # Each output is rounded at about 2e-7 of its size; errors add like a random walk.
    rounding = np.sqrt(y.size) * 2e-7 * float(np.sqrt(np.mean(y**2))) / scale
    if rounding < _ROUNDING_LIMIT:
        return ()
    return (
        f"float32 rounds the log density by about {rounding:.2g} at this noise scale "
        f"({scale:.2g}) and number of rows, which lowers acceptance: use dtype='float64'.",
    )
