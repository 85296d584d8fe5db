"""Advance lanes on threads of this process, with a commit at the end."""

import math
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.running.crew import Crew, Notify
from tfbnn.engine.sampling import work
from tfbnn.engine.sampling.block import BlockControl
from tfbnn.engine.sampling.lane import Lane
from tfbnn.run.counters import Clock, Seconds
from tfbnn.run.deadline import Deadline
from tfbnn.run.events import Event
from tfbnn.system.threads import aside, awaited, num_cores, wait_a_little


def compile_block(lane: Lane) -> None:
    """Compiles the block of a lane by running it with no transitions."""
    program = lane.program
    control = BlockControl(*map(tf.constant, (0, 0, 0, program.plan.stride, False, False)))
    keys = tf.zeros([program.plan.block_length, 2], tf.int32)
    program.block(program.data, lane.state, keys, control)


class Threads(Crew):
    """Lanes take turns, block by block, on as many threads as there are cores.

    Compiled blocks run outside the interpreter lock, and two one-chain programs on two threads
    finish sooner than one after the other with two threads each. No lane begins a phase before all
    have ended the one before it.

    A block does what takes about a second by the block before it (`work`). `notify` hears of the
    run as often, whether a block has ended or not.
    """

    def __init__(self, lanes: list[Lane], clock: Clock, deadline: Deadline = Deadline()) -> None:
        """
        Args:
            lanes: The lanes, which share a program.
            clock: Clock of the run.
            deadline: Warm-up ends when its share of this limit is over, with what it has tuned.
        """
        plan = lanes[0].program.plan
        self._lanes = {plan.groups.index(lane.chains): lane for lane in lanes}
        super().__init__(plan)
        self._count()
        self.running: dict[Future[None], int] = {}
        self._clock, self._deadline = clock, deadline
        self._phase, self._is_compiled = "sampling", False
        self._num_threads = min(len(lanes), num_cores())
        self._affordable = dict.fromkeys(self._lanes, work.FIRST)
        # A process that was killed may have cut only some of the lanes.
        if any(one.warmup_cut is not None for one in self.counters.values()):
            self._cut_warmup()

    def warm_up(self, notify: Notify) -> bool:
        """Take all lanes to the end of warm-up, which is cut where its time is over."""
        if not self._warms_up():
            return False
        self._phase = "warmup"
        if self._deadline.is_finite:
            self._compile()
            self.pauses_at = time.perf_counter() + self._deadline.for_warmup()
        stops = self.go_to(0, notify)
        self.pauses_at = math.inf
        if not stops and self._warms_up():
            self._cut_warmup()
            for lane in self.healthy:
                self._lanes[lane].sink.commit(self._lanes[lane])
            stops = self.go_to(0, notify)
        self._phase = "sampling"
        return stops

    def aim(self, num_results: int) -> None:
        super().aim(num_results)
        for lane in self._lanes.values():
            lane.aim(num_results)

    def _warms_up(self) -> bool:
        return any(map(self.plan.is_warming_up, self.counted))

    def _compile(self) -> None:
        if self._is_compiled:
            return
        with self._clock.measure("compile"):
            awaited(compile_block, next(iter(self._lanes.values())))
        self._is_compiled = True

    def _cut_warmup(self) -> None:
        for lane in self._lanes.values():
            if lane.is_in("warmup") and lane.counters.warmup_cut is None:
                length = self.plan.warmup_cut_after(lane.counters.transition)
                if length < self.plan.num_transitions("warmup"):
                    lane.cut_warmup(length)
        self._count()

    @property
    def seconds(self) -> Seconds:
        return self._clock.seconds

    def has_room(self) -> bool:
        return len(self.running) < self._num_threads

    def start(self, lane: int) -> None:
        self._compile()
        self._clock.count_as(self._phase)
        self.running[aside(self._advance, lane)] = lane

    def reports(self) -> Iterator[Event]:
        ended = wait(self.running, timeout=work.BLOCK_SECONDS, return_when=FIRST_COMPLETED).done
        for future in ended:
            number = self.running.pop(future)
            if not self._has_failed(future, number) and self._lanes[number].is_in(self._phase):
                self.go_on([number])
        self._count()
        yield from self.event(self._phase, self._clock.seconds.phases[self._phase])

    def stop(self) -> bool:
        """Waits a little for the blocks that run, leaves them, and commits what the lanes have.

        The latter in a thread of its own, which no signal reaches.
        """
        interrupted = wait_a_little(self.running)
        self._clock.count_as("")
        for future, number in self.running.items():
            if future.done():
                self._has_failed(future, number)
        pool = ThreadPoolExecutor(1)
        commits = {
            pool.submit(_leave_and_commit, lane): number
            for number, lane in self._lanes.items()
            if number not in self.failures
        }
        interrupted |= _finish(pool)
        for commit, number in commits.items():
            self._has_failed(commit, number)
        return interrupted

    def _count(self) -> None:
        self.counters = {number: lane.counters for number, lane in self._lanes.items()}

    def _advance(self, number: int) -> None:
        """Runs one block of a lane, and says what the next one may do."""
        began = time.perf_counter()
        made = self._lanes[number].advance(self._affordable[number])
        self._affordable[number] = work.next_work(made, time.perf_counter() - began)

    def _has_failed(self, future: Future[None], number: int) -> bool:
        """Record a failed block or commit of a lane; return whether it failed."""
        error = future.exception()
        if error is not None:
            self.failures[number] = error
        return error is not None


def _leave_and_commit(lane: Lane) -> None:
    lane.leave()
    lane.sink.commit(lane)


def _finish(pool: ThreadPoolExecutor) -> bool:
    """Waits for what was submitted, however often the user asks to stop; whether they did."""
    interrupted = False
    while True:
        try:
            pool.shutdown(wait=True)
            return interrupted
        except KeyboardInterrupt:
            interrupted = True
