"""A fit with all settings settled: its stopping rule, time estimates and notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tfbnn.diagnostics.agreement import Agreement
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.diagnostics.wording import counted, megabytes
from tfbnn.engine.density.data import num_pieces
from tfbnn.engine.kernels.registry import resolve_kernel
from tfbnn.fit.assemble import ensemble_without_draws
from tfbnn.fit.choices import rules
from tfbnn.fit.choices.by_clock import search_seconds
from tfbnn.fit.choices.choose import settle_options, sizes_of
from tfbnn.posterior.calibration.calibrating import calibrate_by_leaving_out
from tfbnn.posterior.calibration.left_out import left_out_score
from tfbnn.posterior.calibration.misfit_features import MOST_FEATURES
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.fit_checking import check_held_out
from tfbnn.posterior.prediction import function_of_chains, target_tiles
from tfbnn.run.config import FitConfig
from tfbnn.run.cost import estimated_seconds, most_results
from tfbnn.run.evidence import Ladder
from tfbnn.run.options import FitOptions, Sampling
from tfbnn.run.plan import Planned
from tfbnn.run.result import Kept, Result
from tfbnn.run.stopping import StoppingRule
from tfbnn.spec.choices import AUTO
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.open_spec import OpenSpec
from tfbnn.spec.rows import Rows, evenly_spaced
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array
from tfbnn.system.threads import num_cores

# Most rows of a calibration. They determine the length of error bars to a hundredth, and take a minute
# with the draws of a short run of a million rows.
_MOST_ROWS = 2**16
# For the time of calibration and diagnosis on two cores, by draws and rows, weights and reference
# inputs (benchmarks/results/limits.md): up to 8 s there.
_MOST_SEEN, _NUM_REFERENCE = 1000, 200
# Most rows used to check whether more draws change predictions.
_MOST_SCORED = 500
_SECONDS_OF_R_HAT = 2.5e-7
_LEAST_SECONDS, _SECONDS_OF_A_VALUE, _SECONDS_OF_A_FLOP = 0.5, 1e-7, 1.2e-11


def calibrated_at_the_end(ensemble: Ensemble, rows: Rows) -> tuple[Ensemble, tuple[str, ...]]:
    """Calibrate the error bars of an ensemble by its own rows, at the end of a fit.

    A failure is returned as a note and raises no error, because the fit may have taken a day.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows of its fit, original units.

    Returns:
        (Calibrated ensemble, no notes), or (the unchanged ensemble, a note with the reason).
    """
    try:
        part = rows.part(_MOST_ROWS)
        found = calibrate_by_leaving_out(
            ensemble, ensemble.transform(part), AUTO, row_groups=part.groups
        )
    except ValueError as error:
        return ensemble, (f"Error bars are those of the posterior, not calibrated: {error}",)
    return replace(ensemble, calibration=found), ()


def seconds_to_end(config: FitConfig, num_results: int) -> float:
    """Estimate the seconds for calibration and diagnosis of `num_results` draws per chain."""
    draws = num_results * config.sampling.num_chains
    calibrated = min(config.num_rows, _MOST_ROWS) if config.calibrate else 0
    seen = calibrated + min(config.num_rows, _MOST_SEEN)
    judged = config.spec.num_parameters + _NUM_REFERENCE
    of_a_row = _SECONDS_OF_A_VALUE + 2.0 * config.spec.network.num_products * _SECONDS_OF_A_FLOP
    # Cost of leverage: the derivatives of four networks in their weights, computed twice.
    squares = min(config.spec.num_parameters, MOST_FEATURES) ** 2 if config.calibrate else 0
    of_a_row += 24 * squares / max(draws, 1) * _SECONDS_OF_A_FLOP
    return _LEAST_SECONDS + draws * (seen * of_a_row + judged * _SECONDS_OF_R_HAT)


def judged_predictions(ensemble: Ensemble, validation: Rows | None) -> Predictions | None:
    """Check whether error bars hold on rows that did not calibrate them.

    Args:
        ensemble: Ensemble, calibrated or not.
        validation: Validation rows of the fit, original units, or None.

    Returns:
        Predictions from validation rows. Without them, from the rows of the calibration, in halves. None
        without either.
    """
    found = None if validation is None else check_held_out(ensemble, validation, "validation rows")
    if found is not None and (found.coverage or ensemble.spec.has_counts):  # which have no other
        return found
    return None if ensemble.calibration is None else ensemble.calibration.checked


def make_rule(config: FitConfig, is_budget: bool) -> StoppingRule | None:
    """Return the StoppingRule of a run, or None for a run with a fixed number of draws.

    Args:
        config: FitConfig.
        is_budget: Whether the maximum number of draws is the budget of the run.
    """
    sampling = config.sampling
    if sampling.until is None:
        return None
    without_draws = ensemble_without_draws(config)
    x_reference = without_draws.x_pipeline.forward(without_draws.x_reference)

    def measure(kept: Kept, superchains: Array | None) -> Agreement:
        function = function_of_chains(without_draws.with_draws(kept.draws), x_reference)
        return Agreement.measure(function, kept.statistics["lp"], superchains)

    train = config.transformed.train
    scored = train.taken(evenly_spaced(len(train.x), _MOST_SCORED))

    def score(draws: Array) -> float:
        return left_out_score(without_draws.with_draws(draws), scored)

    return StoppingRule(sampling.until, sampling.num_results, measure, is_budget, score)


class Job(NamedTuple):
    """A fit with all settings settled.

    Attributes:
        config: FitConfig.
        settings: Its kernel, with a definite preconditioner.
        geometry: One line on the preconditioner and the reason for it.
        options: FitOptions.
        rule: Stopping rule, or None for a fixed number of draws.
    """

    config: FitConfig
    settings: Any
    geometry: str
    options: FitOptions
    rule: StoppingRule | None


# Above these limits files are unwieldy and predictions slow.
_MANY_DRAWS, _LARGE_BYTES = 4000, 50e6
# Rounding noise in the log density above this lowers the acceptance.
_ROUNDING_LIMIT = 0.05


def notes(
    job: Job,
    result: Result,
    ensemble: Ensemble | None,
    ladder: Ladder | None,
) -> Iterator[str]:
    """Yield notes for the report: target of sampling, gaps of a ladder, short warm-up, float32, size."""
    spec, sampling = job.config.spec, job.config.sampling
    yield from spec.notes
    yield from filter(None, (job.settings.bias_note, spec.coarsening_note))
    if ladder is not None:
        yield from ladder.notes()
    if result.warmup_cut is not None:
        asked = sampling.num_burnin_steps
        yield f"Warm-up was cut short at {result.warmup_cut} of {asked} steps, to leave time for draws."
    if ensemble is None:
        return
    rounding = _rounding_note(job, ensemble)
    if rounding is not None:
        yield rounding
    # The user did not request so many draws, and predictions do not need them.
    count, num_bytes = ensemble.num_draws, ensemble.draws.nbytes
    if job.rule is not None and (count > _MANY_DRAWS or num_bytes > _LARGE_BYTES):
        yield (
            f"{count} draws are more than predictions need, and take {megabytes(num_bytes)} in memory and "
            "in a file. model.compress(), or tfbnn compress, keeps fewer that predict the same."
        )


def _rounding_note(job: Job, ensemble: Ensemble) -> str | None:
    """Return a note on numerical precision if the noise is too small for float32."""
    spec = job.config.spec
    if spec.dtype == "float64" or not spec.has_additive_noise:
        return None
    rows, last = job.config.transformed.train, ensemble.with_draws(ensemble.draws[:, -1:])
    # Each output is rounded at about 2e-7 of its size; errors add like a random walk.
    squares = np.zeros(last.num_draws)
    for tile in target_tiles(last, rows):
        scale = np.broadcast_to(tile.fitted, tile.location.shape)
        squares += np.square(rows.y[tile.span] / scale).sum(axis=(1, 2))
    rounding = 2e-7 * float(np.median(squares) * spec.likelihood_power) ** 0.5
    if rounding < _ROUNDING_LIMIT:
        return None
    return (
        f"float32 rounds the log density by about {rounding:.2g} at the noise and number of these rows, "
        "which lowers acceptance: use dtype='float64'."
    )


def estimated_fit_seconds(
    spec: NetworkSpec | OpenSpec, options: FitOptions, num_rows: int
) -> float:
    """Estimate the maximum seconds of pretraining and sampling on the cores of this process.

    Imports and compilation are not included. The estimate is right within a factor of a few, and reads
    no clock. It runs no pilot, and without one the rules treat the rows as noisy. If the pilot of the
    fit finds little noise, the fit takes longer trajectories, Levenberg-Marquardt, and maybe more starts.

    Args:
        spec: NetworkSpec, or an OpenSpec, of which the first network is used.
        options: FitOptions, whose kernel is not built by the user. Open options are settled from sizes
            alone, as the rules do for noisy rows.
        num_rows: Training rows N.
    """
    spec = spec.first if isinstance(spec, OpenSpec) else spec
    sizes = sizes_of(spec, num_rows, options)
    planned = rules.budget(sizes, options.is_short)
    if planned is not None:
        seconds = options.effort * planned.seconds
        return seconds if options.limit is None else min(seconds, options.limit)
    options, _ = settle_options(options, sizes)
    settings, _ = resolve_kernel(options.kernel).resolve(spec, num_rows)
    budget = most_results(spec, settings, options, num_rows, options.effort)
    sampling = options.sampling(budget)
    seconds = _seconds(spec, settings, sampling, options.settled_pretraining, num_rows)
    return seconds if sampling.limit is None else min(seconds, sampling.limit)


def time_to_take(config: FitConfig, settings: Planned) -> str:
    """Return a sentence on the maximum time of a run, and on what may end it earlier.

    Args:
        config: FitConfig.
        settings: Its kernel, with a definite preconditioner.
    """
    sampling, pretraining = config.sampling, config.pretraining
    seconds = _seconds(config.spec, settings, sampling, pretraining, config.num_rows)
    until = sampling.until
    path = _path(config, settings)
    draws = f"{sampling.num_chains} chains x {sampling.num_results} draws"
    if until is None:
        return f"About {_about(seconds)} after compiling: {draws}.{path}"
    enough = f"as soon as {str(replace(until, max_seconds=None)).replace(',', ', ')} is reached"
    if until.max_seconds is not None:
        return f"At most {until.max_seconds:.6g} seconds, less {enough}.{path}"
    return f"About {_about(seconds)} at most after compiling: up to {draws}, fewer {enough}.{path}"


def _path(config: FitConfig, settings: Planned) -> str:
    """Return a sentence on the rows used by the search and by the chains, if the search uses a sample."""
    num_rows, pretraining = config.num_rows, config.pretraining
    if pretraining is None or num_rows <= (pretraining.search_rows or num_rows):
        return ""
    gradients = settings.work(config.spec)
    return (
        f" Starts are sought on {pretraining.search_rows} of {num_rows} rows; chains see all rows in "
        f"each of about {gradients:.3g} gradients per transition (full batch)."
    )


def _seconds(
    spec: NetworkSpec,
    settings: Planned,
    sampling: Sampling,
    pretraining: Pretraining | None,
    num_rows: int,
) -> float:
    cores = num_cores()
    seconds = estimated_seconds(spec, settings, num_rows, sampling.num_transitions)
    # A chain uses at most one core, or one core per piece of a very large table.
    gains = sampling.jit_compile and settings.gains_from_xla(spec, num_rows)
    at_once = num_pieces(num_rows, gains)
    seconds *= max(1.0 / at_once, sampling.num_chains / cores)
    if pretraining is None:
        return seconds
    return seconds + search_seconds(spec, pretraining, num_rows, sampling.num_chains, cores)


def _about(seconds: float) -> str:
    """Format an approximate time in words: "20 seconds", "3 minutes", "2.5 hours"."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{float(f'{seconds / length:.2g}'):g} {unit}"
    return counted(int(float(f"{max(seconds, 1.0):.1g}")), "second")
