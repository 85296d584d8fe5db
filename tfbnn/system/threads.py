"""Threads of this process: how many, work shared among them, and calls that a stop leaves behind.

One call of compiled code may take minutes: a compilation, or one transition of a wide network. The
main thread hears of no signal inside of it, and a pool's threads are joined when the interpreter
ends. So long calls are made in daemon threads, and whoever waits for them can stop waiting.
"""

import atexit
import contextlib
import contextvars
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import cache
from typing import Any, NoReturn, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# What a stop grants a call that is being made: most end within it, and their work is kept.
GRACE_SECONDS = 2.5
_at_work: set[Future[Any]] = set()


def in_background(function: Callable[..., Result], *arguments: Any) -> Future[Result]:
    """Begin function(*arguments) in a thread of its own, in the context of the caller.

    Neither `exit_at_once` nor an interrupt that ends a script waits for it.
    """
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function, *arguments)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            _at_work.discard(future)

    _at_work.add(future)
    threading.Thread(target=work, name=f"background-{function!r:.40}", daemon=True).start()
    return future


def awaited(function: Callable[..., Result], *arguments: Any) -> Result:
    """Return function(*arguments), made in the background.

    Raises:
        KeyboardInterrupt: When the user asked to stop; the call may go on then, and what it
            returns, or raises, is lost.
    """
    future = in_background(function, *arguments)
    _wait_for([future])
    return future.result()


def each_in_background(
    function: Callable[[Item], Result], items: Sequence[Item], num_threads: int
) -> list[Result]:
    """Return [function(item) for item in items], made on so many threads, in any order.

    Raises:
        KeyboardInterrupt: As `awaited`; no further item is begun.
    """
    results: list[Any] = [None] * len(items)
    numbers, taking, is_over = iter(range(len(items))), threading.Lock(), threading.Event()

    def work() -> None:
        while not is_over.is_set():
            with taking:
                number = next(numbers, None)
            if number is None:
                return
            try:
                results[number] = function(items[number])
            except BaseException:
                is_over.set()
                raise

    futures = [in_background(work) for _ in range(min(num_threads, len(items)))]
    try:
        _wait_for(futures)
    finally:
        is_over.set()
    for future in futures:
        future.result()
    return results


def wait_a_little(futures: Collection[Future[Any]]) -> bool:
    """Wait until calls have ended, for GRACE_SECONDS at most; return whether the user asks to stop."""
    interrupted, deadline = False, time.monotonic() + GRACE_SECONDS
    while True:
        try:
            wait(futures, timeout=max(0.0, deadline - time.monotonic()))
            return interrupted
        except KeyboardInterrupt:
            interrupted = True


def is_anything_left() -> bool:
    """Return whether calls are still being made that nobody waits for."""
    return bool(_at_work)


def exit_at_once(code: int) -> NoReturn:
    """End the process, with what it has printed, and nothing else.

    While threads compute, libraries wait for them when they are unloaded, or crash.
    """
    _flush()
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # whoever read it has gone
                stream.flush()


def _end_of_interpreter() -> None:
    """End a script that an interrupt ends, now, as Python would; else wait for what is left.

    The exit code that a script asked for is not known here.
    """
    if is_anything_left() and isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
        _flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    wait(list(_at_work))


# As early as this is imported, it is called after what else is to be done at the end.
atexit.register(_end_of_interpreter)


def _wait_for(futures: Collection[Future[Any]]) -> None:
    try:
        wait(futures)
    except KeyboardInterrupt:
        wait_a_little(futures)
        raise


# How many ranks of a job share this host, as Open MPI, Intel MPI and MPICH, and MVAPICH say it.
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")


def num_cores() -> int:
    """Return the number of processor cores this process may use.

    The cores it is pinned to, or fewer where OMP_NUM_THREADS says so, as for BLAS, or where an MPI
    launcher says that others of its ranks share the host: never more than its share of all cores.
    """
    cores = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    ranks = max(_whole_number(name) for name in _LOCAL_RANKS)
    asked = _whole_number("OMP_NUM_THREADS") or allowed
    return max(1, min(allowed, asked, cores // max(ranks, 1)))


def _whole_number(variable: str) -> int:
    """Read an environment variable, 0 where it is no whole number."""
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
    count = 1 if len(items) < 2 else min(num_cores(), len(items))
    if count < 2:
        return [function(item) for item in items]
    with single_threaded_blas():
        return each_in_background(function, items, count)


_blas_lock = threading.Lock()
_blas_limits: list[Any] = []


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """While active, BLAS calls, from any thread, use one thread each; needs threadpoolctl.

    Threads may be in it at the same time, and leave in any order: the last one restores what was, as the
    number of BLAS threads belongs to the whole process.
    """
    with _blas_lock:
        controller = None if _blas_limits else _controller()
        _blas_limits.append(controller and controller.limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _blas_lock:
            # Those who leave before take what is behind the limits of the first.
            limits = _blas_limits.pop()
            if limits is not None:
                limits.restore_original_limits()


@cache
def _controller() -> Any:
    """Return threadpoolctl's controller; None where it is missing, which costs time and changes nothing."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
