"""Estimate the cost of a run from its settings: operations, and seconds of a core."""

import math

import numpy as np

from tfbnn.run.options import Sampling
from tfbnn.run.plan import LONGEST_BLOCK, Planned, power_of_two
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.settings_json import Pretraining

# Operations of a core in about a second.
_FLOPS_PER_CALL = 4e10
# Overhead of an empty step, some microseconds, and of a gradient. A gradient of 277 rows by 460 weights takes
# 40 microseconds.
_FLOPS_OF_AN_EMPTY_STEP, _FLOPS_BESIDE = 2e5, 8e5

# Overhead of a step of ADAM, which gathers its rows, and the factor on the arithmetic of its products.
_FLOPS_BESIDE_A_BATCH, _TIMES_OF_A_BATCH = 1e6, 4.0

# Largest cost of a run that ends when chains agree: four minutes of two cores. For networks of fifty units
# this estimate is between right and two times too long.
_BUDGET_SECONDS = 480.0
_DRAWS_BYTES = 1e9
_FEWEST_RESULTS, _MOST_RESULTS = 100, 6_400


def affordable_steps(flops_per_step: float) -> int:
    """Return the number of steps that take about a second, a power of two, from settings alone."""
    flops = flops_per_step + _FLOPS_OF_AN_EMPTY_STEP
    return power_of_two(min(_FLOPS_PER_CALL / flops, LONGEST_BLOCK))


def seconds_of(flops: float) -> float:
    """Estimate the seconds that one core takes for `flops` operations."""
    return flops / _FLOPS_PER_CALL


def estimated_seconds(
    spec: Sampled, settings: Planned, num_rows: int, num_transitions: int
) -> float:
    """Estimate the seconds of `num_transitions` of a chain on one core, from settings alone."""
    # One product forward and two backward: 6 operations per weight and row.
    products = spec.network.num_products * len(settings.temperatures)
    flops = float(6.0 * num_rows * products + _FLOPS_BESIDE)
    return seconds_of(num_transitions * (flops * settings.work(spec)))


def most_results(
    spec: Sampled,
    settings: Planned,
    numbers: Sampling,
    num_rows: int,
    effort: float = 1.0,
    budget: float | None = None,
) -> int:
    """Return the most draws per chain of a run without a fixed number of draws.

    This is the number that its budget affords. The budget is a number of gradients times rows times
    weights, in seconds of a core as `estimated_seconds` counts them, by default 480; no clock is read.
    It includes warm-up. The memory of the draws is limited as well.

    Args:
        spec: Spec that is sampled.
        settings: Kernel settings.
        numbers: Numbers of the run. If they have a limit in seconds, the budget is not used.
        num_rows: Training rows N.
        effort: Share of the budget, and of the largest number, to use.
        budget: The budget of a fit that is planned for less time.
    """
    chain_seconds = effort * (budget or _BUDGET_SECONDS) / numbers.num_chains
    second = estimated_seconds(spec, settings, num_rows, 1)
    affordable = (chain_seconds / second - numbers.num_burnin_steps) / numbers.stride
    draw_bytes = numbers.num_chains * spec.num_parameters * np.dtype(spec.dtype).itemsize
    most = min(
        affordable if numbers.limit is None else math.inf,
        _DRAWS_BYTES / draw_bytes,
        _MOST_RESULTS * (effort if numbers.limit is None else 1.0),
    )
    return max(int(most), _FEWEST_RESULTS)


def estimated_pretraining_seconds(spec: Sampled, pretraining: Pretraining, num_rows: int) -> float:
    """Estimate the seconds of the epochs of one chain on one core, from settings alone."""
    batch_size = min(pretraining.batch_size or num_rows, num_rows)
    num_steps = pretraining.epochs * math.ceil(num_rows / batch_size)
    products = 6.0 * batch_size * spec.network.num_products
    return seconds_of(num_steps * (_TIMES_OF_A_BATCH * products + _FLOPS_BESIDE_A_BATCH))
