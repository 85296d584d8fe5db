"""Lanes take turns: phases, threads, progress, stops, and a commit at the end."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.sampling.block import BlockControl
from tfbnn.engine.sampling.lane import Lane
from tfbnn.run.counters import Clock
from tfbnn.run.events import Event, SamplingEvent
from tfbnn.run.plan import PHASES
from tfbnn.run.result import Ending, Failures
from tfbnn.system.threads import num_cores

Notify = Callable[[Event], bool]


def compile_block(lane: Lane) -> None:
    """Compiles the block of a lane by running it with no transitions."""
    program = lane.program
    control = BlockControl(*map(tf.constant, (0, 0, program.plan.stride, False, False)))
    keys = tf.zeros([program.plan.block_length, 2], tf.int32)
    program.block(program.data, lane.state, keys, control)


def run_lanes(lanes: list[Lane], notify: Notify, clock: Clock, stopped: bool = False) -> Ending:
    """Advances all lanes to their ends, as far as nothing stops them, and commits.

    Args:
        lanes: The lanes, which share a program.
        notify: Called with an event between blocks; true stops the run.
        clock: Clock of the run.
        stopped: Whether the run was stopped already, so that nothing is to be sampled.
    """
    failures: Failures = {}
    interrupted = False
    try:
        if not stopped:
            with clock.measure("compile"):
                compile_block(lanes[0])
        for phase in PHASES:
            if not stopped:
                stopped = _run_phase(phase, lanes, notify, clock, failures)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        interrupted |= _commit(lanes, failures)
    return Ending(interrupted, failures)


def _run_phase(
    phase: str, lanes: list[Lane], notify: Notify, clock: Clock, failures: Failures
) -> bool:
    """Advances all lanes to the end of a phase; returns whether a callback stopped the run.

    Lanes take turns on as many threads as there are cores: compiled blocks run outside the
    interpreter lock, and two one-chain programs on two threads finish sooner than one after the
    other with two threads each.
    """
    plan = lanes[0].program.plan
    lanes = [lane for lane in lanes if tuple(lane.chains) not in failures]
    waiting = [lane for lane in lanes if lane.is_in(phase)]
    running: dict[Future[None], Lane] = {}
    stopped = False
    num_threads = max(min(len(waiting), num_cores()), 1)
    pool = ThreadPoolExecutor(num_threads)
    with clock.measure(phase):
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
                if lanes and not stopped:
                    counters = [lane.counters for lane in lanes]
                    seconds = clock.seconds.phases[phase]
                    if notify(SamplingEvent.of(phase, counters, plan, seconds)):
                        stopped, waiting = True, []
        finally:
            interrupted = _finish(pool)
            for future, lane in running.items():
                _has_failed(future, lane, failures)
            if interrupted:
                raise KeyboardInterrupt
    return stopped


def _has_failed(future: Future[None], lane: Lane, failures: Failures) -> bool:
    """Whether the block of a lane failed, which is taken down."""
    error = future.exception()
    if error is not None:
        failures[tuple(lane.chains)] = error
    return error is not None


def _commit(lanes: list[Lane], failures: Failures) -> bool:
    """Commits what the lanes have; returns whether the user asked to stop meanwhile.

    In threads of their own, which no signal reaches. Those whose last block failed keep the commit
    before it.
    """
    pool = ThreadPoolExecutor(1)
    commits = {
        pool.submit(lane.sink.commit, lane): lane
        for lane in lanes
        if lane.is_between_blocks and tuple(lane.chains) not in failures
    }
    interrupted = _finish(pool)
    for commit, lane in commits.items():
        _has_failed(commit, lane, failures)
    return interrupted


def _finish(pool: ThreadPoolExecutor) -> bool:
    """Waits for what was submitted, however often the user asks to stop; whether they did."""
    interrupted = False
    while True:
        try:
            pool.shutdown(wait=True)
            return interrupted
        except KeyboardInterrupt:
            interrupted = True
