"""The report of `Samples`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tfbnn.diagnostics.wording import LABEL_WIDTH, counted, percent, text_width, wrapped
from tfbnn.engine.functional.samples import Samples
from tfbnn.system.arrays import Array

# Of more quantities the table has those with the largest R-hat.
_MOST_LINES = 20
_COLUMNS = ("mean", "sd", "mcse", "rhat", "bulk_ess", "tail_ess")


def describe(samples: Samples, width: int | None) -> str:
    """The lines of `Samples.report`."""
    width = text_width() if width is None else width
    lines = [
        wrapped(f"{label + ':':<{LABEL_WIDTH}}", text, width) for label, text in _facts(samples)
    ]
    return "\n".join([*lines, *_table(samples)])


def _facts(samples: Samples) -> Iterator[tuple[str, str]]:
    yield "verdict", samples.verdict
    if samples.bias is not None:
        yield "BIASED", samples.bias
    if samples.ended is not None:
        yield "ended", samples.ended
    skipped = samples.num_steps_between_results
    yield (
        "draws",
        f"{counted(samples.num_chains, 'chain')} x {samples.num_results} of "
        f"{samples.draws.shape[-1]} numbers ({samples.draws.dtype}) after {samples.num_burnin_steps} "
        f"transitions of warm-up{f', {skipped} skipped after each' if skipped else ''}; seed "
        f"{samples.seed}",
    )
    yield "kernel", samples.kernel
    yield "coordinates", samples.geometry
    divergent = int(samples.num_divergent.sum())
    total = samples.num_chains * samples.num_results * (skipped + 1)
    yield (
        "transitions",
        f"acceptance {_span(samples.acceptance_rate)}, step size {_span(samples.step_size)}, "
        f"{divergent} divergent ({percent(divergent / max(total, 1))}), "
        f"{int(samples.num_gradients['sampling'].sum())} gradients",
    )
    if samples.log_evidence is not None:
        yield (
            "evidence",
            f"its logarithm is {samples.log_evidence.stepping_stone} by stepping stones, "
            f"{samples.log_evidence.thermodynamic} by thermodynamic integration",
        )
    for note in samples.notes:
        yield "note", note
    spent = ", ".join(f"{name} {s:.1f}" for name, s in samples.seconds.items() if s >= 0.05)
    yield "seconds", spent or "under 0.05"


def _span(values: Array) -> str:
    low, high = np.min(values), np.max(values)
    if np.isnan(low):
        return "not known of this kernel"
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _table(samples: Samples) -> Iterator[str]:
    if not samples.quantities:
        return
    summary = samples.summary
    names = summary["name"]
    # Undefined ones first: they are the first to look at.
    worst = np.argsort(-np.nan_to_num(summary["rhat"], nan=np.inf), kind="stable")
    chosen = np.sort(worst[:_MOST_LINES])
    if len(names) > _MOST_LINES:
        yield f"The {_MOST_LINES} of {len(names)} quantities with the largest R-hat:"
    label = max(len(str(names[index])) for index in chosen)
    yield "  ".join([" " * label, *(f"{name:>9}" for name in _COLUMNS)])
    for index in chosen:
        numbers = [summary[name][index] for name in _COLUMNS]
        cells = [f"{number:9.4g}" for number in numbers[:4]]
        cells += [f"{number:9.0f}" for number in numbers[4:]]
        yield "  ".join([f"{names[index]:<{label}}", *cells])
