"""Threads of this process: how many there may be, and work shared among them."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

__all__ = ["num_cores", "on_all_cores", "single_threaded_blas"]


def num_cores():
    """Number of processor cores this process may use.

    The cores it is pinned to, or fewer where OMP_NUM_THREADS says so, as for BLAS.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(allowed, int(asked)) if asked.isdecimal() and int(asked) > 0 else allowed


def on_all_cores(function, items):
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
    with single_threaded_blas(), ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, items))


def single_threaded_blas():
    """A context in which BLAS calls, from any thread, use one thread each."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
