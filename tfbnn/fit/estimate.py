"""How long a fit will take, told from its settings."""

from dataclasses import replace

from tfbnn.diagnostics.wording import counted
from tfbnn.engine.density.data import num_pieces
from tfbnn.engine.kernels import resolve_kernel
from tfbnn.fit.choices.by_clock import search_seconds
from tfbnn.fit.choices.choose import settle_options, sizes_of
from tfbnn.run.cost import estimated_seconds, most_results
from tfbnn.run.definition import FitDefinition
from tfbnn.run.options import FitOptions, Sampling
from tfbnn.run.plan import Planned
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.threads import num_cores


def estimated_fit_seconds(spec: NetworkSpec, options: FitOptions, num_rows: int) -> float:
    """About how long pretraining and sampling take at most on the cores of this process.

    Neither imports nor compilation are in it. It is right within a factor of a few, and reads no
    clock. It makes no pilot, without which the rules take the rows for noisy: a fit whose pilot finds
    little noise takes longer trajectories, Levenberg-Marquardt, and maybe more starts.

    Args:
        spec: NetworkSpec.
        options: FitOptions, whose kernel is none that the user built. What is open in them is
            settled by sizes alone, which is what the rules choose for noisy rows.
        num_rows: Training rows N.
    """
    options, _ = settle_options(options, sizes_of(spec, num_rows, options))
    settings, _ = resolve_kernel(options.kernel).resolve(spec, num_rows)
    budget = most_results(spec, settings, options, num_rows, options.effort)
    sampling = options.sampling(budget)
    return _seconds(spec, settings, sampling, options.settled_pretraining, num_rows)


def time_to_take(definition: FitDefinition, settings: Planned) -> str:
    """A sentence on how long a run will take at most, and on what may end it before.

    Args:
        definition: FitDefinition.
        settings: Its kernel, with a definite preconditioner.
    """
    sampling, pretraining = definition.sampling, definition.pretraining
    seconds = _seconds(definition.spec, settings, sampling, pretraining, definition.num_rows)
    until = sampling.until
    path = _path(definition, settings)
    draws = f"{sampling.num_chains} chains x {sampling.num_results} draws"
    if until is None:
        return f"About {_about(seconds)} after compiling: {draws}.{path}"
    enough = f"as soon as {str(replace(until, max_seconds=None)).replace(',', ', ')} is reached"
    if until.max_seconds is not None:
        return f"At most {_about(until.max_seconds)}, less {enough}.{path}"
    return f"About {_about(seconds)} at most after compiling: up to {draws}, fewer {enough}.{path}"


def _path(definition: FitDefinition, settings: Planned) -> str:
    """A sentence on which rows are seen by what, of a run whose starts are sought on a sample of them."""
    num_rows, pretraining = definition.num_rows, definition.pretraining
    if pretraining is None or num_rows <= (pretraining.search_rows or num_rows):
        return ""
    gradients = settings.work(definition.spec)
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
    splits_rows = settings.splits_rows(spec, num_rows, sampling.jit_compile)
    at_once = num_pieces(num_rows, splits_rows)
    seconds *= max(1.0 / at_once, sampling.num_chains / cores)
    if pretraining is None:
        return seconds
    return seconds + search_seconds(spec, pretraining, num_rows, sampling.num_chains)


def _about(seconds: float) -> str:
    """A time that nobody knows to the second, in words: "20 seconds", "3 minutes", "2.5 hours"."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{float(f'{seconds / length:.2g}'):g} {unit}"
    return counted(int(float(f"{max(seconds, 1.0):.1g}")), "second")
