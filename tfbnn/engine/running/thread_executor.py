"""Executor that advances chain groups on threads of this process and commits at the end."""

import math
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.running.executor import Executor, Notify
from tfbnn.engine.sampling import work
from tfbnn.engine.sampling.block import BlockControl
from tfbnn.engine.sampling.chain_group import ChainGroup
from tfbnn.run.counters import Clock, Seconds
from tfbnn.run.deadline import Deadline
from tfbnn.run.events import Event
from tfbnn.system.signals import signals_held
from tfbnn.system.threads import awaited, in_background, num_cores, wait_a_little


def compile_block(group: ChainGroup) -> None:
    """Compile the block of a chain group by running it without transitions."""
    program = group.program
    control = BlockControl(*map(tf.constant, (0, 0, 0, program.plan.stride, False, False)))
    keys = tf.zeros([program.plan.block_length, 2], tf.int32)
    program.block(program.data, group.state, keys, control)


class Threads(Executor):
    """Executor whose chain groups take turns, block by block, on one thread per core.

    Compiled blocks run outside the interpreter lock, and two one-chain programs on two threads
    finish sooner than one after the other with two threads each. No chain group begins a phase
    before all have ended the previous one.

    The size of a block is chosen from the previous block so that it takes about a second (`work`).
    `notify` is called about once a second, whether a block has ended or not.
    """

    def __init__(
        self, groups: list[ChainGroup], clock: Clock, deadline: Deadline = Deadline()
    ) -> None:
        """Make a Threads executor.

        Args:
            groups: Chain groups, which share a program.
            clock: Clock of the run.
            deadline: Time limit; when the share of warm-up is over, warm-up ends as tuned so far.
        """
        plan = groups[0].program.plan
        self._groups = {plan.groups.index(group.chains): group for group in groups}
        super().__init__(plan)
        self._count()
        self.running: dict[Future[None], int] = {}
        self._clock, self._deadline = clock, deadline
        self._phase, self._is_compiled = "sampling", False
        self._num_threads = min(len(groups), num_cores())
        self._affordable = dict.fromkeys(self._groups, work.FIRST)
        # A killed process may have cut the warm-up of only some chain groups.
        if any(one.warmup_cut is not None for one in self.counters.values()):
            self._cut_warmup()

    def warm_up(self, notify: Notify) -> bool:
        """Advance all chain groups to the end of warm-up, which is cut when its time is over."""
        if not self.warms_up():
            return False
        self._phase = "warmup"
        if self._deadline.max_seconds < math.inf:
            self._compile()
            self.pauses_at = time.perf_counter() + self._deadline.for_warmup()
        stops = self.go_to(0, notify)
        self.pauses_at = math.inf
        # Without time for a draw, warm-up is left as it is, for a resumed run to go on with.
        if not stops and self.warms_up() and not (stops := self._deadline.is_over()):
            self._cut_warmup()
            for group in self.healthy:
                self._groups[group].sink.commit(self._groups[group])
            stops = self.go_to(0, notify)
        self._phase = "sampling"
        return stops

    def aim(self, num_results: int) -> None:
        super().aim(num_results)
        for group in self._groups.values():
            group.aim(num_results)

    def _compile(self) -> None:
        if self._is_compiled:
            return
        with self._clock.measure("compile"):
            awaited(compile_block, next(iter(self._groups.values())))
        self._is_compiled = True

    def _cut_warmup(self) -> None:
        for group in self._groups.values():
            if group.is_in("warmup") and group.counters.warmup_cut is None:
                length = self.plan.warmup_cut_after(group.counters.transition)
                if length < self.plan.num_transitions("warmup"):
                    group.cut_warmup(length)
        self._count()

    @property
    def seconds(self) -> Seconds:
        return self._clock.seconds

    def has_room(self) -> bool:
        return len(self.running) < self._num_threads

    def start(self, group: int) -> None:
        self._compile()
        self._clock.count_as(self._phase)
        self.running[in_background(self._advance, group)] = group

    def reports(self) -> Iterator[Event]:
        ended = wait(self.running, timeout=work.BLOCK_SECONDS, return_when=FIRST_COMPLETED).done
        for future in ended:
            number = self.running.pop(future)
            if not self._has_failed(future, number) and self._groups[number].is_in(self._phase):
                self.go_on([number])
        self._count()
        yield from self.event(self._phase, self._clock.seconds.phases[self._phase])

    def stop(self) -> bool:
        """Wait briefly for running blocks, abandon them, and commit the chain groups.

        The commits run in a separate thread, which no signal reaches.
        """
        interrupted = wait_a_little(self.running)
        self._clock.count_as("")
        for future, number in self.running.items():
            if future.done():
                self._has_failed(future, number)
        with signals_held() as hold:
            in_background(self._leave_and_commit).result()
        return interrupted or bool(hold.seen)

    def _leave_and_commit(self) -> None:
        for number, group in self._groups.items():
            group.leave()
            error = self.failures.get(number)
            if error is None or isinstance(error, OSError):  # of a commit, which can be repeated
                try:
                    group.sink.commit(group)
                except Exception as failed:
                    self.failures[number] = error or failed

    def _count(self) -> None:
        self.counters = {number: group.counters for number, group in self._groups.items()}

    def _advance(self, number: int) -> None:
        """Run one block of a chain group, and choose the size of the next one."""
        began = time.perf_counter()
        made = self._groups[number].advance(self._affordable[number])
        self._affordable[number] = work.next_work(made, time.perf_counter() - began)

    def _has_failed(self, future: Future[None], number: int) -> bool:
        """Record a failed block or commit of a chain group; return whether it failed."""
        error = future.exception()
        if error is not None:
            self.failures[number] = error
        return error is not None
