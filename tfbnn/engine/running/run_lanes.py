"""Lanes take turns: phases, threads, progress, stops, and a commit at the end."""

import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.sampling.block import BlockControl
from tfbnn.run.progress import make_event
from tfbnn.run.result import PHASES
from tfbnn.system.threads import num_cores


def compile_block(program, lane):
    """Compiles the block by running it with no transitions."""
    control = BlockControl(*map(tf.constant, (0, 0, program.stride, False, False)))
    keys = tf.zeros([program.block_length, 2], tf.int32)
    program.block(program.data, lane.state, keys, control)


def run_lanes(program, lanes, notify, phases, seconds):
    """Advances all lanes to their ends, as far as nothing stops them, and commits.

    Args:
        program: The Program.
        lanes: The lanes.
        notify: As in `run_chains`.
        phases: Dict phase -> seconds, to which those spent now are added as they pass.
        seconds: Dict to which "compile" is added.

    Returns:
        Dict with interrupted and failures, as in SamplingResult.
    """
    began = time.perf_counter()
    failures, stopped, interrupted = {}, False, False
    try:
        compile_block(program, lanes[0])
        seconds["compile"] += time.perf_counter() - began
        for phase in PHASES:
            if not stopped:
                stopped = _run_phase(phase, lanes, program, notify, phases, failures)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        interrupted |= _commit(lanes, failures)
    return {"interrupted": interrupted, "failures": failures}


def _run_phase(phase, lanes, program, notify, phases, failures):
    """Advances all lanes to the end of a phase; returns whether a callback stopped the run.

    Lanes take turns on as many threads as there are cores: compiled blocks run outside the
    interpreter lock, and two one-chain programs on two threads finish sooner than one after the
    other with two threads each.
    """
    began, earlier = time.perf_counter(), phases[phase]
    lanes = [lane for lane in lanes if tuple(lane.chains) not in failures]
    waiting = [lane for lane in lanes if lane.is_in(phase)]
    running, stopped = {}, False
    num_threads = max(min(len(waiting), num_cores()), 1)
    pool = ThreadPoolExecutor(num_threads)
    try:
        while waiting or running:
            while waiting and len(running) < num_threads:
                lane = waiting.pop(0)
                running[pool.submit(lane.advance)] = lane
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                lane = running[future]
                if _has_failed(future, lane, failures):
                    lanes.remove(lane)
                elif lane.is_in(phase) and not stopped:
                    waiting.append(lane)
                del running[future]
            phases[phase] = earlier + time.perf_counter() - began
            if lanes and not stopped:
                counters = [lane.counters() for lane in lanes]
                if notify(make_event(phase, counters, program, phases[phase])):
                    stopped, waiting = True, []
    finally:
        interrupted = _finish(pool)
        for future, lane in running.items():
            _has_failed(future, lane, failures)
        if interrupted:
            raise KeyboardInterrupt
    return stopped


def _has_failed(future, lane, failures):
    """Whether the block of a lane failed, which is taken down."""
    if future.exception() is not None:
        failures[tuple(lane.chains)] = future.exception()
    return future.exception() is not None


def _commit(lanes, failures):
    """Commits what the lanes have; returns whether the user asked to stop meanwhile.

    In threads of their own, which no signal reaches. Those whose last block failed keep the commit
    before it.
    """
    lanes = [
        lane for lane in lanes if lane.is_between_blocks and tuple(lane.chains) not in failures
    ]
    pool = ThreadPoolExecutor(1)
    commits = [(lane, pool.submit(lane.sink.commit, lane)) for lane in lanes]
    interrupted = _finish(pool)
    for lane, commit in commits:
        if commit.exception() is not None:
            failures[tuple(lane.chains)] = commit.exception()
    return interrupted


def _finish(pool):
    """Waits for what was submitted, however often the user asks to stop; whether they did."""
    interrupted = False
    while True:
        try:
            pool.shutdown(wait=True)
            return interrupted
        except KeyboardInterrupt:
            interrupted = True
