"""Threads of this process: how many there may be, and work shared among them."""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from tfbnn.system.aside import Item, Result, each_aside

# How many ranks of a job share this host, as Open MPI, Intel MPI and MPICH, and MVAPICH say it.
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")


def num_cores() -> int:
    """Number of processor cores this process may use.

    The cores it is pinned to, or fewer where OMP_NUM_THREADS says so, as for BLAS, or where an MPI
    launcher says that others of its ranks share the host: never more than its share of all cores.
    """
    cores = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    ranks = max(_whole_number(name) for name in _LOCAL_RANKS)
    asked = _whole_number("OMP_NUM_THREADS") or allowed
    return max(1, min(allowed, asked, cores // max(ranks, 1)))


def _whole_number(variable: str) -> int:
    """What an environment variable says, 0 where it is no whole number."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else 0


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
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1 and (controller := _controller()) is not None:
                self._limits = controller.limit(limits=1, user_api="blas")

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._limits is not None:
                self._limits.restore_original_limits()


_blas = _SingleThreadedBlas()


@cache
def _controller() -> Any:
    """threadpoolctl's controller; None where it is missing, which costs time and changes nothing."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
