"""Plan a fit with a time limit, from the speed of a gradient on this machine or from an estimate.

These choices are stored with the run like all others, and a resumed run takes them from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import chain_groups
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.row_blocks import in_pieces
from tfbnn.engine.density.value_and_gradient import seconds_per_gradient
from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.registry import resolve_kernel
from tfbnn.engine.sampling.program import rows_of_program
from tfbnn.engine.starts.check import draw_prior
from tfbnn.engine.starts.cooling import num_operations
from tfbnn.engine.starts.newton_plan import (
    FEWEST_ITERATIONS,
    USUAL_ITERATIONS,
    NewtonPlan,
    plan_newton,
    plan_on_all_rows,
)
from tfbnn.engine.starts.noise_by_inputs import one_noise
from tfbnn.fit.choices import rules
from tfbnn.fit.choices.rules import FitSizes
from tfbnn.run.cost import estimated_pretraining_seconds, estimated_seconds, seconds_of
from tfbnn.run.deadline import Deadline
from tfbnn.run.options import FitOptions
from tfbnn.spec.choices import Choice, is_auto
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows, rows_of_chains
from tfbnn.spec.settings_json import Pretraining, describe_settings
from tfbnn.system.threads import num_cores

# Seconds to compile the sampling program, before warm-up begins.
_COMPILE_SECONDS = 3.0
# Fewer leapfrog steps hardly move a chain, and fewer transitions tune neither step size nor scales.
_FEWEST_STEPS, _ENOUGH_WARMUP, _LEAST_WARMUP = 8, 200, 30
# Fewest seconds for a plan. With less time, _PLANNED has the seconds of warm-up with sampling, of warm-up
# and of the search.
_LEAST_LEFT, _PLANNED = 3.0, (10.0, 5.0, 5.0)
# Share of the search that Levenberg-Marquardt may take: ADAM before it takes 3 of 60 s.
_SHARE_OF_POLISH = 0.9
# Share of the planned time to use, because machines slow down; and the most draws per chain to aim at.
_MARGIN, _MOST_DRAWS = 0.85, 5000


def estimated_seconds_of_all(spec: NetworkSpec, sizes: FitSizes) -> float:
    """Estimate the seconds for one gradient of every chain on the cores of a budget, from settings alone."""
    at_once = min(sizes.num_chains, rules.BUDGET_CORES)
    return _estimated_gradient(spec, sizes.num_rows) * sizes.num_chains / at_once


def _estimated_gradient(spec: NetworkSpec, num_rows: int) -> float:
    return estimated_seconds(spec, HMC(), num_rows, 1) / HMC().work(spec)


def measured_seconds(spec: NetworkSpec, rows: NetworkRows, options: FitOptions) -> float:
    """Measure the wall-clock seconds in which every chain of a run computes one gradient."""
    settings, _ = resolve_kernel(options.kernel).resolve(spec, len(rows.x))
    groups = chain_groups(options.num_chains)
    data = make_data(*rows_of_chains(spec, rows), spec.dtype)
    data, jit_compile = rows_of_program(settings, spec, data, options.jit_compile)
    num_threads = 1 if in_pieces(data) else min(len(groups), num_cores())
    potential, theta = settings.potential(spec), draw_prior(spec, options.seed, len(groups[0]))
    start = potential.coordinates(theta, data)
    seconds = seconds_per_gradient(potential, start, data, num_threads, jit_compile)
    return seconds * len(groups) / num_threads


def search_seconds(
    spec: NetworkSpec, pretraining: Pretraining, num_rows: int, num_chains: int, cores: int
) -> float:
    """Estimate the seconds of the search for starts on `cores` cores."""
    spec = one_noise(spec) or spec
    num_starts = pretraining.num_starts or num_chains
    rows_at_first = min(num_rows, pretraining.search_rows or num_rows)
    adam = estimated_pretraining_seconds(spec, pretraining, rows_at_first)
    if pretraining.num_particles is not None:  # in one program, on all cores
        operations = num_operations(spec, rows_at_first, pretraining.num_particles)
        adam, num_starts = seconds_of(operations) / cores, num_chains
    polish = plan_newton(spec, rows_at_first, pretraining)
    num_iterations = polish.num_iterations
    if pretraining.validation_split:  # held-out rows stop most starts earlier
        num_iterations = min(num_iterations, USUAL_ITERATIONS)
    flops = num_starts * num_iterations * polish.flops
    if polish.num_iterations and rows_at_first < num_rows:
        last = plan_on_all_rows(spec, num_rows)
        flops += num_chains * last.num_iterations * last.flops
    # Starts are polished one after the other, each on all cores.
    return adam * max(1.0, num_starts / cores) + seconds_of(flops) / cores


def plan_by_clock(
    options: FitOptions,
    choices: tuple[Choice, ...],
    sizes: FitSizes,
    spec: NetworkSpec,
    gradient: float,
    cores: int,
    deadline: Deadline,
    limit: str,
) -> tuple[FitOptions, tuple[Choice, ...]]:
    """Return (options that fit into a time limit, choices); only settings that were "auto" change.

    Args:
        options: FitOptions, as the rules settled them.
        choices: The choices made so far.
        sizes, spec: Sizes and spec of the fit.
        gradient: Seconds in which every chain computes one gradient.
        cores: Cores available to the search for starts.
        deadline: The time limit.
        limit: Text for the limit in reasons: "max_seconds=60 leaves".
    """
    chosen = {choice.what: choice for choice in choices}
    search = 0.0 if options.settled_pretraining is None else deadline.for_search()
    left = deadline.left() - _COMPILE_SECONDS - search
    warmup = deadline.for_warmup(left)
    if left < _LEAST_LEFT:  # no plan fits, but a resumed run needs one
        left, warmup, search = _PLANNED
        limit = f"{limit} too little time for any plan; the smallest has"
    settled: dict[str, Any] = {}

    def settle(what: str, setting: Any, why: str) -> None:
        settled[what] = setting
        text = f"{setting}" if isinstance(setting, int) else describe_settings(setting)
        chosen[what] = Choice(what, text, why)

    kernel = options.kernel
    if "kernel" in chosen and isinstance(kernel, HMC):
        steps = kernel.num_leapfrog_steps
        while steps > _FEWEST_STEPS and _ENOUGH_WARMUP * steps * gradient > _MARGIN * warmup:
            steps //= 2
        if steps < kernel.num_leapfrog_steps:
            kernel = replace(kernel, num_leapfrog_steps=steps)
            settle(
                "kernel", kernel, f"{steps} leapfrog steps, as {limit} {warmup:.0f} s for warm-up"
            )
    settings, _ = resolve_kernel(kernel).resolve(spec, sizes.num_rows)
    transition = gradient * max(settings.work(spec), 1) * len(settings.temperatures)
    if "num_burnin_steps" in chosen:
        usual, why = rules.num_burnin_steps(sizes, settings.gradients_per_transition)
        affordable = int(_MARGIN * warmup / transition)
        if affordable < usual:
            why = f"{limit} {warmup:.0f} s for warm-up, {1e3 * transition:.3g} ms a step"
            settle("num_burnin_steps", max(_LEAST_WARMUP, affordable), why)
        elif usual != options.num_burnin_steps:
            settle("num_burnin_steps", usual, why)
    pretraining = options.settled_pretraining
    if "pretraining" in chosen and pretraining is not None:
        shorter, what = _in_time(pretraining, spec, sizes, gradient, cores, search)
        if shorter != pretraining:
            why = f"{chosen['pretraining'].why}; {what}, as {limit} {search:.0f} s"
            settle("pretraining", shorter, why)
    if is_auto(options.num_steps_between_results) and is_auto(options.num_results):
        expected = (left - warmup) / transition
        stride = int(np.ceil(expected / _MOST_DRAWS))
        if stride > 1:
            why = f"{limit} time for {expected:.2g} transitions"
            settle("num_steps_between_results", stride - 1, why)
    return replace(options, **settled), tuple(chosen.values())


def affords_polish(spec: NetworkSpec, num_rows: int, options: FitOptions) -> bool:
    """Return whether a fit has time for enough of Levenberg-Marquardt to gain more than ADAM does.

    Without it, a network of more weights is better in brief fits and worse in the end. Sampled with
    input-dependent noise, 50-50 scored -2.72 per row on concrete, -1.16 on airfoil and 2.47 on the demo,
    20-20 -2.61, -1.12 and 2.53 (medians of three seeds, for 50-50 of one or two).
    """
    if spec.network.no_jacobian is not None:
        return True
    sizes = FitSizes(num_rows, spec.num_parameters, options.num_chains)
    polish = plan_newton(one_noise(spec) or spec, sizes.rows_of_search, Pretraining())
    budget, most = rules.budget(sizes, options.is_short), polish.num_iterations
    if budget is not None and most:
        core_seconds = rules.BUDGET_CORES * budget.search * budget.seconds
        most = min(most, _affordable(polish, options.num_chains, core_seconds))
    return most >= FEWEST_ITERATIONS


def _affordable(polish: NewtonPlan, num_chains: int, core_seconds: float) -> int:
    """Return the Levenberg-Marquardt iterations per chain that a search of `core_seconds` affords."""
    return int(_SHARE_OF_POLISH * core_seconds / (num_chains * seconds_of(polish.flops)))


def _in_time(
    pretraining: Pretraining,
    spec: NetworkSpec,
    sizes: FitSizes,
    gradient: float,
    cores: int,
    seconds: float,
) -> tuple[Pretraining, str]:
    """Return (settings of a search that takes at most `seconds`, text on what was changed)."""
    num_rows, num_chains = sizes.num_rows, sizes.num_chains
    at_once = num_chains / min(num_chains, cores)
    slowness = gradient / (_estimated_gradient(spec, num_rows) * at_once)
    differs: list[str] = []

    def time_needed() -> float:
        return slowness * search_seconds(spec, pretraining, num_rows, num_chains, cores)

    if time_needed() > seconds and pretraining.num_particles is not None:
        pretraining = replace(pretraining, num_particles=None)
        differs.append("ADAM in place of particles")
    if time_needed() > seconds and pretraining.num_starts is not None:
        pretraining = replace(pretraining, num_starts=None)
        differs.append("one start a chain")
    polish = plan_newton(one_noise(spec) or spec, sizes.rows_of_search, pretraining)
    most = polish.num_iterations
    if time_needed() > seconds and most:
        most = min(most, _affordable(polish, num_chains, seconds * cores / slowness))
    if pretraining.newton_iterations == "auto" and most < FEWEST_ITERATIONS:
        pretraining = rules.long_adam(pretraining)
        differs.append("ADAM in place of Levenberg-Marquardt")
    elif most < polish.num_iterations:
        pretraining = replace(pretraining, newton_iterations=most)
        differs.append(f"{most} iterations of Levenberg-Marquardt")
    if pretraining.newton_iterations == 0 and (needed := time_needed()) > seconds:
        # If ADAM were stopped before its schedule ends, its learning rate would still be large.
        epochs = max(1, int(pretraining.epochs * seconds / needed))
        pretraining = replace(pretraining, epochs=epochs)
        differs.append(f"{epochs} epochs")
    return pretraining, ", ".join(differs)
