"""Samples as ArviZ data."""

from __future__ import annotations

from typing import Any

from tfbnn.engine.functional.samples import Samples
from tfbnn.posterior.arviz_data import SAMPLE, Group, Variable, Variables, arviz_object


def to_arviz(samples: Samples) -> Any:
    """See `Samples.to_arviz`."""
    posterior: Variables = {"theta": Variable((*SAMPLE, "param"), samples.draws, "positions")}
    for name, values in samples.quantities.items():
        dims = (f"{name}_dim_{axis}" for axis in range(values.ndim - len(SAMPLE)))
        posterior.setdefault(name, Variable((*SAMPLE, *dims), values, ""))
    statistics = {name: Variable(SAMPLE, v, "") for name, v in samples.sample_stats.items()}
    attributes = {
        "kernel": samples.kernel,
        "seed": samples.seed,
        "num_burnin_steps": samples.num_burnin_steps,
        "num_steps_between_results": samples.num_steps_between_results,
        "warmup": "its draws are not kept",
        "ended": samples.ended,
        "biased": samples.bias,
    }
    said = {name: value for name, value in attributes.items() if value is not None}
    return arviz_object(
        {"posterior": Group(posterior, said), "sample_stats": Group(statistics)}, {}
    )
