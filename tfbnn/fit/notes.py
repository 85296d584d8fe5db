"""What the report of a fit says besides its numbers."""

from __future__ import annotations

import numpy as np

from tfbnn.diagnostics.wording import megabytes
from tfbnn.fit.job import Job
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.run.evidence import Ladder
from tfbnn.run.result import SamplingResult

# From here on a file is unwieldy, and predictions take their time.
_MANY_DRAWS, _LARGE_BYTES = 4000, 50e6
# Rounding noise in a log density above this eats acceptance.
_ROUNDING_LIMIT = 0.05


def notes(
    job: Job,
    result: SamplingResult,
    ensemble: Ensemble | None,
    ladder: Ladder | None,
) -> tuple[str, ...]:
    """Labels of what was sampled, gaps of a ladder, short warm-up and float32."""
    labels = (job.settings.bias_note, job.definition.spec.coarsening_note)
    said = [label for label in labels if label is not None]
    gaps = () if ladder is None else ladder.notes()
    return (
        *job.definition.spec.notes,
        *said,
        *gaps,
        *_warmup_notes(job, result),
        *_precision_notes(job, ensemble),
        *_size_notes(job, ensemble),
    )


def _warmup_notes(job: Job, result: SamplingResult) -> tuple[str, ...]:
    """A remark on a warm-up that a limit has cut short."""
    if result.warmup_cut is None:
        return ()
    asked = job.definition.sampling.num_burnin_steps
    return (f"Warm-up cut short at {result.warmup_cut} of {asked} steps: its time was over.",)


def _size_notes(job: Job, ensemble: Ensemble | None) -> tuple[str, ...]:
    """A remark on draws that nobody asked for by their number, and that predictions do not need."""
    if ensemble is None or job.goal is None:
        return ()
    count, num_bytes = ensemble.num_draws, ensemble.draws.nbytes
    if count <= _MANY_DRAWS and num_bytes <= _LARGE_BYTES:
        return ()
    return (
        f"The convergence of {count} draws is known, predictions need fewer: they take "
        f"{megabytes(num_bytes)} in memory and about as much in a file. model.compress(), or tfbnn "
        "compress, chooses those that predict alike.",
    )


def _precision_notes(job: Job, ensemble: Ensemble | None) -> tuple[str, ...]:
    """A remark on numerical precision, where the noise is small for float32."""
    spec = job.definition.spec
    if ensemble is None or spec.dtype == "float64":
        return ()
    _, y, noise = job.transformed.train
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
        return ()
    return (
        f"float32 rounds the log density by about {rounding:.2g} at this noise scale "
        f"({scale:.2g}) and number of rows, which lowers acceptance: use dtype='float64'.",
    )
