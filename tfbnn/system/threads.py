"""Threads of this process: how many there may be, and work shared among them."""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from tfbnn.system.aside import Item, Result, each_aside


def num_cores() -> int:
    """Number of processor cores this process may use.

    The cores it is pinned to, or fewer where OMP_NUM_THREADS says so, as for BLAS.
    """
    pinned = hasattr(os, "sched_getaffinity")
    allowed = len(os.sched_getaffinity(0)) if pinned else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(allowed, int(asked)) if asked.isdecimal() and int(asked) > 0 else allowed


def on_all_cores(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """[function(item) for item in items], on as many threads as there are cores.

    NumPy and TensorFlow compute outside the interpreter's lock. BLAS gets one thread meanwhile:
    its own threads would wait for each other on small matrices and on busy cores.

    Args:
        function: Called once per item, in any order, in any thread.
        items: A list.
    """
    count = min(num_cores(), len(items))
    if count < 2:
        return [function(item) for item in items]
    with single_threaded_blas():
        return each_aside(function, items, count)


def single_threaded_blas() -> AbstractContextManager[None]:
    """A context in which BLAS calls, from any thread, use one thread each; needs threadpoolctl.

    Threads may be in it at the same time, and leave in any order: the last one restores what was.
    """
    return _blas


class _SingleThreadedBlas:
    """Counts who is inside, because the number of BLAS threads belongs to the whole process."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._restore = _limit_blas()

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore()


_blas = _SingleThreadedBlas()


def _limit_blas() -> Callable[[], None]:
    """Gives BLAS one thread; returns what gives it back those it had."""
    controller = _controller()
    if controller is None:
        return lambda: None
    restore: Callable[[], None] = controller.limit(
        limits=1, user_api="blas"
    ).restore_original_limits
    return restore


@cache
def _controller() -> Any:
    """threadpoolctl's controller; None where it is missing, which costs time and changes nothing."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
