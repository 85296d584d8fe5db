"""A fit with nothing left open: its stopping rule, estimates of its time, and notes."""

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
from tfbnn.posterior.prediction import function_of_chains
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

# As many rows say how long error bars are, to a hundredth of their length, and take a minute with the
# draws of a short run of a million rows.
_MOST_ROWS = 2**16
# For the time that this and the diagnosis take on two cores, by draws and rows, weights and reference
# inputs (benchmarks/results/limits.md): up to 8 s there.
_MOST_SEEN, _NUM_REFERENCE = 1000, 200
# Rows that tell whether more draws change predictions.
_MOST_SCORED = 500
_SECONDS_OF_R_HAT = 5e-7
_LEAST_SECONDS, _SECONDS_OF_A_VALUE, _SECONDS_OF_A_FLOP = 0.5, 1e-7, 1.2e-11


def calibrated_at_the_end(ensemble: Ensemble, rows: Rows) -> tuple[Ensemble, tuple[str, ...]]:
    """Return (the ensemble with error bars that its rows calibrate, or as it was; a note on why not).

    A fit may have taken a day: what its rows cannot tell is said, and never an error.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows of its fit, original units.
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
    """About how long calibration and diagnosis of so many draws per chain take."""
    draws = num_results * config.sampling.num_chains
    calibrated = min(config.num_rows, _MOST_ROWS) if config.calibrate else 0
    seen = calibrated + min(config.num_rows, _MOST_SEEN)
    judged = min(config.spec.num_parameters, _MOST_SEEN) + _NUM_REFERENCE
    of_a_row = _SECONDS_OF_A_VALUE + 2.0 * config.spec.num_products * _SECONDS_OF_A_FLOP
    # Derivatives of four networks in their weights, twice.
    squares = min(config.spec.num_parameters, MOST_FEATURES) ** 2 if config.calibrate else 0
    of_a_row += 24 * squares / max(draws, 1) * _SECONDS_OF_A_FLOP
    return _LEAST_SECONDS + draws * (seen * of_a_row + judged * _SECONDS_OF_R_HAT)


def judged_predictions(ensemble: Ensemble, validation: Rows | None) -> Predictions | None:
    """Check whether error bars hold, by rows that calibrated nothing.

    Args:
        ensemble: Ensemble, calibrated or not.
        validation: Validation rows of the fit, original units, or None.

    Returns:
        Predictions by validation rows, else by those that calibrated, in halves; None without either.
    """
    found = None if validation is None else check_held_out(ensemble, validation, "validation rows")
    if found is not None and found.coverage:
        return found
    return None if ensemble.calibration is None else ensemble.calibration.checked


def make_rule(config: FitConfig, is_budget: bool) -> StoppingRule | None:
    """Return the StoppingRule of a run, or None of one that just has a number of draws.

    Args:
        config: FitConfig.
        is_budget: Whether its most draws are what a run can afford.
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
    """A fit once all that was left open is settled.

    Attributes:
        config: FitConfig.
        settings: Its kernel, with a definite preconditioner.
        geometry: A line on the preconditioner and why that one.
        options: FitOptions.
        rule: When the run is over, or None where it just has a number of draws.
    """

    config: FitConfig
    settings: Any
    geometry: str
    options: FitOptions
    rule: StoppingRule | None


# From here on a file is unwieldy, and predictions take their time.
_MANY_DRAWS, _LARGE_BYTES = 4000, 50e6
# Rounding noise in a log density above this eats acceptance.
_ROUNDING_LIMIT = 0.05


def notes(
    job: Job,
    result: Result,
    ensemble: Ensemble | None,
    ladder: Ladder | None,
) -> Iterator[str]:
    """Labels of what was sampled, gaps of a ladder, short warm-up and float32."""
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
    # Draws that nobody asked for by their number, and that predictions do not need.
    count, num_bytes = ensemble.num_draws, ensemble.draws.nbytes
    if job.rule is not None and (count > _MANY_DRAWS or num_bytes > _LARGE_BYTES):
        yield (
            f"{count} draws are more than predictions need, and take {megabytes(num_bytes)} in memory and "
            "in a file. model.compress(), or tfbnn compress, keeps fewer that predict the same."
        )


def _rounding_note(job: Job, ensemble: Ensemble) -> str | None:
    """Return a remark on numerical precision, where the noise is small for float32."""
    spec = job.config.spec
    if spec.dtype == "float64" or not spec.has_additive_noise:
        return None
    _, y, noise = job.config.transformed.train
    scale = np.inf if noise is None else float(np.median(noise))
    if spec.layout.num_noise:
        learned = float(np.exp(np.median(ensemble.log_noise_scale)))
        scale = learned if noise is None else np.hypot(learned, scale)
    elif noise is None and spec.likelihood.noise_scale is not None:
        scale = float(np.min(spec.likelihood.noise_scale))
    # Each output is rounded at about 2e-7 of its size; errors add like a random walk.
    rounding = np.sqrt(y.size) * 2e-7 * float(np.sqrt(np.mean(y**2))) / scale
    rounding *= spec.likelihood_power**0.5
    if rounding < _ROUNDING_LIMIT:
        return None
    return (
        f"float32 rounds the log density by about {rounding:.2g} at this noise scale "
        f"({scale:.2g}) and number of rows, which lowers acceptance: use dtype='float64'."
    )


def estimated_fit_seconds(
    spec: NetworkSpec | OpenSpec, options: FitOptions, num_rows: int
) -> float:
    """About how long pretraining and sampling take at most on the cores of this process.

    Neither imports nor compilation are in it. It is right within a factor of a few, and reads no
    clock. It makes no pilot, without which the rules take the rows for noisy: a fit whose pilot finds
    little noise takes longer trajectories, Levenberg-Marquardt, and maybe more starts.

    Args:
        spec: NetworkSpec, or an OpenSpec, of which the first network counts.
        options: FitOptions, whose kernel is none that the user built. What is open in them is
            settled by sizes alone, which is what the rules choose for noisy rows.
        num_rows: Training rows N.
    """
    spec = spec.first if isinstance(spec, OpenSpec) else spec
    sizes = sizes_of(spec, num_rows, options)
    planned = rules.budget(sizes, options.is_short)
    if planned is not None:
        return options.effort * planned.seconds
    options, _ = settle_options(options, sizes)
    settings, _ = resolve_kernel(options.kernel).resolve(spec, num_rows)
    budget = most_results(spec, settings, options, num_rows, options.effort)
    sampling = options.sampling(budget)
    seconds = _seconds(spec, settings, sampling, options.settled_pretraining, num_rows)
    return seconds if sampling.limit is None else min(seconds, sampling.limit)


def time_to_take(config: FitConfig, settings: Planned) -> str:
    """Return a sentence on how long a run will take at most, and on what may end it before.

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
        return f"At most {_about(until.max_seconds)}, less {enough}.{path}"
    return f"About {_about(seconds)} at most after compiling: up to {draws}, fewer {enough}.{path}"


def _path(config: FitConfig, settings: Planned) -> str:
    """Return a sentence on which rows are seen by what, of a run whose starts are sought on a sample of them."""
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
    # A chain has no more than one core, or one for each piece of very many rows.
    gains = sampling.jit_compile and settings.gains_from_xla(spec, num_rows)
    at_once = num_pieces(num_rows, gains)
    seconds *= max(1.0 / at_once, sampling.num_chains / cores)
    if pretraining is None:
        return seconds
    return seconds + search_seconds(spec, pretraining, num_rows, sampling.num_chains, cores)


def _about(seconds: float) -> str:
    """Return a time that nobody knows to the second, in words: "20 seconds", "3 minutes", "2.5 hours"."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{float(f'{seconds / length:.2g}'):g} {unit}"
    return counted(int(float(f"{max(seconds, 1.0):.1g}")), "second")
