"""A short run that shows which chains are hopeless, so that they start where the best ones are.

It is a resampling step of sequential Monte Carlo (Del Moral, Doucet and Jasra 2006, J. R. Stat. Soc. B
68, 411), made once, with weights of basins instead of particles.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from tfbnn.diagnostics.wording import named
from tfbnn.engine.basis import seeds
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.network import function_of_networks
from tfbnn.engine.kernels import kernel_from_json
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.engine.running.driver import run_chains
from tfbnn.posterior.basins.finding import MOST_PARAMETERS, RowsTarget, find_basins
from tfbnn.posterior.basins.record import Basins
from tfbnn.run.counters import Seconds
from tfbnn.run.definition import FitDefinition, Starts
from tfbnn.run.options import Sampling
from tfbnn.run.progress import Notifier
from tfbnn.run.result import Failures
from tfbnn.run.stores import Session
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import TransformedRows, reference_rows
from tfbnn.spec.symmetries import random_copies
from tfbnn.system.arrays import Array

# Basins with less than e^-20 of the mass of the best would get no draw of any run.
HOPELESS_NATS = 20.0
# Of the transitions of warm-up; and the draws that they are followed by.
_SHARE_OF_WARMUP, _SHARE_OF_DRAWS = 4, 8
_FEWEST_DRAWS, _MOST_DRAWS = 16, 200


def check_restart(spec: NetworkSpec, settings: Kernel) -> None:
    """Refuses a restart of what cannot be scouted.

    Raises:
        ValueError: Says what.
    """
    what = None
    if isinstance(settings, CallableKernel):
        what = "a kernel that was given as a callable"
    elif len(settings.temperatures) > 1:
        what = "a ladder of power posteriors, which finds basins by itself"
    elif spec.gauss_newton_obstacle is not None:
        what = f"this network, whose basins cannot be weighed: {spec.gauss_newton_obstacle}"
    elif spec.layout.num_parameters > MOST_PARAMETERS:
        what = f"{spec.layout.num_parameters} parameters, at most {MOST_PARAMETERS} can be weighed"
    if what is not None:
        raise ValueError(f"restart='best' does not go with {what}. Use restart=None.")


def restarted(
    definition: FitDefinition,
    transformed: TransformedRows,
    data: Data,
    starts: Starts,
    notify: Notifier,
) -> Starts:
    """The Starts after scouting: where chains got to, hopeless ones at draws of the best basin.

    Args:
        definition: FitDefinition, with a restart.
        transformed: TransformedRows.
        data: Tensors of the training rows.
        starts: Starts to scout from.
        notify: Notifier; when it asks to stop, the starts stay as they are.
    """
    began, spec, sampling = time.perf_counter(), definition.spec, definition.sampling
    settings, _ = kernel_from_json(definition.kernel).resolve(spec, definition.num_rows)
    scouts = replace(definition, sampling=_scouting(sampling))
    try:
        result = run_chains(scouts, settings, data, starts, Session(), notify)
        if result.interrupted or notify.stopped:
            return starts._replace(interrupted=result.interrupted)
        if result.failures:
            spent = Seconds(pretraining=time.perf_counter() - began)
            text = f"restart='best' moved no chain: {_failed(result.failures)} while scouting"
            return starts._replace(seconds=starts.seconds + spent, restarted=text)
        target = RowsTarget(spec, transformed.train)
        rows = definition.rows if definition.validation is None else definition.validation
        x_reference = transformed.x_pipeline.forward(reference_rows(rows.x))
        basins = find_basins(
            result.draws, function_of_networks(spec, result.draws, x_reference), target
        )
    except KeyboardInterrupt:
        return starts._replace(interrupted=True)
    log_prob = result.sample_stats["lp"].mean(axis=1)
    theta, text = moved(spec, result.draws, log_prob, basins, sampling.seed)
    spent = Seconds(pretraining=time.perf_counter() - began)
    return starts._replace(
        theta=theta.astype(spec.dtype),
        text=f"{starts.text}; {scouts.sampling.num_transitions} transitions of scouting",
        seconds=starts.seconds + spent,
        restarted=text,
    )


def _failed(failures: Failures) -> str:
    chains, error = next(iter(failures.items()))
    return f"{named('chain', np.array(chains))} failed ({type(error).__name__}: {error})"


def _scouting(sampling: Sampling) -> Sampling:
    """What of a run its scouts do."""
    warmup = sampling.num_burnin_steps
    return replace(
        sampling,
        # The run itself must not repeat their random numbers.
        seed=int(seeds.generator(sampling.seed, "scouting", 0).integers(2**31)),
        num_burnin_steps=warmup // _SHARE_OF_WARMUP,
        num_results=min(max(warmup // _SHARE_OF_DRAWS, _FEWEST_DRAWS), _MOST_DRAWS),
        num_steps_between_results=0,
        until=None,
        restart=None,
    )


def judged(basins: Basins, log_prob: Array, num_parameters: int) -> tuple[int, Array]:
    """(The best basin, by how many nats each chain is below it [C], less what it is given of doubt).

    By the masses, two errors taken off, where bridge sampling tells them. Else by the log densities,
    one nat per parameter taken off: to have as much mass after all, a basin so much lower would have
    to be wider than the best by a factor of e in every parameter.

    Args:
        basins: Basins of the scouts.
        log_prob: Their mean log densities [C].
        num_parameters: P.
    """
    if basins.is_bridged.all():
        return basins.surest, basins.nats_below(basins.surest)[basins.labels]
    best = int(basins.labels[np.argmax(log_prob)])
    return best, log_prob[basins.labels == best].mean() - log_prob - num_parameters


def moved(
    spec: NetworkSpec, draws: Array, log_prob: Array, basins: Basins, seed: int
) -> tuple[Array, str]:
    """(Where chains are to go on [C, P], what was done, in words)."""
    basin, below = judged(basins, log_prob, draws.shape[2])
    best = np.flatnonzero(basins.labels == basin)
    hopeless = np.flatnonzero((below > HOPELESS_NATS) & (basins.labels != basin))
    theta = draws[:, -1].copy()
    if not len(hopeless):
        return theta, (
            f"restart='best' moved no chain: none was found {HOPELESS_NATS:.0f} nats below the best"
        )
    # Chains of one donor start from draws that are far from each other.
    num_draws = draws.shape[1]
    step = max(1, num_draws // (1 + -(-len(hopeless) // len(best))))
    for number, chain in enumerate(hopeless):
        round_, donor = divmod(number, len(best))
        source = draws[best[donor], -1 - (1 + round_) * step % num_draws]
        generator = seeds.generator(seed, "restart", int(chain))
        theta[chain] = random_copies(spec, source[None], generator)[0]
    found = (
        f"chain {best[0]} alone, so that nothing but one start speaks for it"
        if len(best) == 1
        else f"{named('chain', best)}"
    )
    text = named("chain", hopeless)
    return theta, (
        f"restart='best' moved {text}, {below[hopeless].min():.3g} nats or more below with all doubts taken "
        f"off, to the best basin, found by {found}. "
        "R-hat says whether chains mix in there, not whether there are others"
    )
