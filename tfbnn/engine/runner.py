"""Runs the chains: phases, threads, progress, stops."""

import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfbnn.engine.block import BlockControl, make_block
from tfbnn.engine.compile import chain_groups
from tfbnn.engine.completion import make_completion
from tfbnn.engine.lane import PHASES, Lane
from tfbnn.engine.result import gather_result
from tfbnn.engine.rungs import of_posterior
from tfbnn.engine.schedule import block_length, make_legs
from tfbnn.engine.start import check_start, make_value_and_gradient
from tfbnn.threads import num_cores

__all__ = ["Program", "run_chains"]

# A transition of a network with fewer parameters times rows than this is overhead, which so many
# chains or more had better share in one program (benchmarks/results/small_network_speed.md). With
# fewer chains, a thread each is as fast, and keeps their draws independent of each other's number.
_TINY, _MANY_CHAINS = 1000, 8

_STATISTICS_DTYPES = {
    "lp": np.float64,
    "acceptance_rate": np.float32,
    "step_size": np.float32,
    "n_steps": np.int32,
    "diverging": bool,
    "energy": np.float64,
}


@dataclass(frozen=True)
class Program:
    """What all lanes of a run share."""

    spec: object
    settings: object
    data: object
    seed: int
    legs: list
    stride: int
    block_length: int
    block: object
    potential: object
    value_and_gradient: object
    complete: object


def run_chains(
    spec,
    settings,
    data,
    theta,
    *,
    seed,
    num_results,
    num_burnin_steps,
    num_steps_between_results,
    jit_compile,
    notify,
    stopped,
):
    """Warms up and samples all chains.

    Args:
        spec: ModelSpec.
        settings: Kernel settings.
        data: Data tensors.
        theta: Starts [C, P].
        seed: The user's seed.
        num_results, num_burnin_steps, num_steps_between_results: As in `fit_posterior`.
        jit_compile: Whether XLA compiles the block.
        notify: Called with an event dict between blocks; true stops the run.
        stopped: Whether the run was stopped already, so that nothing is to be sampled.

    Returns:
        SamplingResult.

    Raises:
        StartError: When a chain cannot move from its start.
    """
    num_chains, stride = len(theta), num_steps_between_results + 1
    tiny = data.x.shape[-1] * theta.shape[1] < _TINY
    together = settings.couples_chains or (tiny and num_chains >= _MANY_CHAINS)
    groups = chain_groups(num_chains, apart=not together)

    began = time.perf_counter()
    temperatures, potential = settings.temperatures, settings.potential(spec)
    jit_compile = jit_compile and settings.gains_from_xla(spec, data.x.shape[-1])
    value_and_gradient = make_value_and_gradient(potential, data, jit_compile, temperatures)
    start = potential.coordinates(theta, data)
    at_start = [value_and_gradient(np.repeat(start[g], len(temperatures), axis=0)) for g in groups]
    start_log_prob, gradient = (
        of_posterior(np.concatenate(parts), temperatures) for parts in zip(*at_start)
    )
    check_start(potential, data, theta, start_log_prob, gradient)

    total = num_burnin_steps + num_results * stride
    length = block_length(spec, settings, data.x.shape[-1], len(groups[0]), total)
    program = Program(
        spec=spec,
        settings=settings,
        data=data,
        seed=seed,
        legs=make_legs(settings, num_burnin_steps, num_results, stride),
        stride=stride,
        block_length=length,
        block=make_block(spec, settings, -(-length // stride) + 1, jit_compile),
        potential=potential,
        value_and_gradient=value_and_gradient,
        complete=make_completion(potential, data, seed),
    )
    draws = np.empty((num_chains, num_results, theta.shape[1]), theta.dtype)
    statistics = {
        name: np.empty((num_chains, num_results), dtype)
        for name, dtype in _STATISTICS_DTYPES.items()
    }
    if len(temperatures) > 1:
        statistics["rung_log_likelihood"] = np.empty((num_chains, num_results, len(temperatures)))
    for name, (shape, dtype) in potential.found(data).items():
        statistics[name] = np.empty((num_chains, num_results, *shape), dtype)
    seconds = {"compile": time.perf_counter() - began}
    began = time.perf_counter()
    lanes = [Lane(program, group, start[group], draws, statistics) for group in groups]
    seconds["startup"] = time.perf_counter() - began
    began = time.perf_counter()
    if not stopped:
        _compile(program, lanes[0])
    seconds["compile"] += time.perf_counter() - began

    interrupted = False
    for phase in PHASES:
        began = time.perf_counter()
        if not (stopped or interrupted):
            stopped, interrupted = _run_phase(phase, lanes, program, notify)
        seconds[phase] = time.perf_counter() - began
    return gather_result(lanes, draws, statistics, start_log_prob, seconds, interrupted)


def _compile(program, lane):
    """Compiles the block by running it with no transitions."""
    control = BlockControl(*map(tf.constant, (0, 0, program.stride, False, False)))
    keys = tf.zeros([program.block_length, 2], tf.int32)
    program.block(program.data, lane.state, keys, control)


def _run_phase(phase, lanes, program, notify):
    """Advances all lanes to the end of a phase; returns (stopped by a callback, interrupted).

    Lanes take turns on as many threads as there are cores: compiled blocks run outside the
    interpreter lock, and two one-chain programs on two threads finish sooner than one after the
    other with two threads each.
    """
    began = time.perf_counter()
    waiting = [lane for lane in lanes if _is_in(lane, phase)]
    running, stopped, interrupted = {}, False, False
    num_threads = min(len(lanes), num_cores())
    pool = ThreadPoolExecutor(num_threads)
    try:
        while waiting or running:
            while waiting and len(running) < num_threads:
                lane = waiting.pop(0)
                running[pool.submit(lane.advance)] = lane
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                lane = running.pop(future)
                future.result()
                if _is_in(lane, phase) and not stopped:
                    waiting.append(lane)
            event = _event(phase, lanes, program, time.perf_counter() - began)
            if not stopped and notify(event):
                stopped, waiting = True, []
    except KeyboardInterrupt:
        interrupted = True
    finally:
        interrupted |= _finish(pool)
    return stopped, interrupted


def _finish(pool):
    """Waits for blocks in flight, however often the user asks to stop; whether they did."""
    interrupted = False
    while True:
        try:
            pool.shutdown(wait=True)
            return interrupted
        except KeyboardInterrupt:
            interrupted = True


def _is_in(lane, phase):
    return lane.leg is not None and lane.leg.phase == phase


def _event(phase, lanes, program, seconds):
    total = sum(leg.length for leg in program.legs if leg.phase == phase)
    done = np.mean([lane.phase_transitions[phase] for lane in lanes])
    return {
        "phase": phase,
        "transition": int(done),
        "num_transitions": total,
        "num_chains": sum(len(lane.chains) for lane in lanes),
        "num_kept": min(lane.num_kept for lane in lanes),
        "seconds": seconds,
        "eta_seconds": seconds * (total - done) / done if done else float("nan"),
        "acceptance_rate": float(np.nanmean([lane.recent_acceptance for lane in lanes]))
        if any(np.isfinite(lane.recent_acceptance) for lane in lanes)
        else float("nan"),
        "step_size": float(np.median(np.concatenate([lane.step_size for lane in lanes]))),
        "num_divergent": int(sum(lane.num_divergent.sum() for lane in lanes)),
        "num_gradients": int(sum(lane.num_gradients[phase].sum() for lane in lanes)),
    }
