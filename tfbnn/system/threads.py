"""Threads of this process: their number, parallel work, and calls that can be abandoned.

One call of compiled code may take minutes: a compilation, or one transition of a wide network. The
main thread receives no signal during such a call, and the threads of a pool are joined when the
interpreter ends. So long calls run in daemon threads, and a caller can stop waiting for them.
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

# Time that a running call gets after a request to stop: most end within it, and their work is kept.
GRACE_SECONDS = 2.5
_at_work: set[Future[Any]] = set()


def in_background(function: Callable[..., Result], *arguments: Any) -> Future[Result]:
    """Start function(*arguments) in a daemon thread, in the context of the caller.

    Neither `exit_at_once` nor an interrupt that ends a script waits for the call. If no thread can
    start, the function is called in this thread, before this returns.
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
    thread = threading.Thread(target=work, name=f"background-{function!r:.40}", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # a limit on processes or memory
        work()
        if isinstance(error := future.exception(), KeyboardInterrupt):
            raise error from None
    return future


def awaited(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call function(*arguments) in the background, and wait for its result.

    Raises:
        KeyboardInterrupt: When the user asks to stop. The call may then continue, and its result or
            exception is lost.
    """
    future = in_background(function, *arguments)
    _wait_for([future])
    return future.result()


def each_in_background(
    function: Callable[[Item], Result], items: Sequence[Item], num_threads: int
) -> list[Result]:
    """Compute [function(item) for item in items] on `num_threads` threads, in any order.

    Raises:
        KeyboardInterrupt: As in `awaited`; no further item is started.
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
    """Wait at most GRACE_SECONDS for calls to end; return whether the user asked to stop."""
    interrupted, deadline = False, time.monotonic() + GRACE_SECONDS
    while True:
        try:
            wait(futures, timeout=max(0.0, deadline - time.monotonic()))
            return interrupted
        except KeyboardInterrupt:
            interrupted = True


def is_anything_left() -> bool:
    """Return whether background calls are still running."""
    return bool(_at_work)


def exit_at_once(code: int) -> NoReturn:
    """End the process without any cleanup, except that printed output is flushed.

    While threads compute, libraries that are unloaded would wait for them, or crash.
    """
    _flush()
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # the reader of the stream has gone
                stream.flush()


def _end_of_interpreter() -> None:
    """At exit, end an interrupted script at once by SIGINT; otherwise wait for background calls.

    Without an interrupt the process is not ended here, as the script's exit code is not known.
    """
    if is_anything_left() and isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
        _flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    wait(list(_at_work))


# This module is imported early, and functions registered first are called last at exit.
atexit.register(_end_of_interpreter)
if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_at_work.clear)


def _wait_for(futures: Collection[Future[Any]]) -> None:
    try:
        wait(futures)
    except KeyboardInterrupt:
        wait_a_little(futures)
        raise


# Number of ranks on this host, in the variables of Open MPI, of Intel MPI and MPICH, and of
# MVAPICH.
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")


def num_cores() -> int:
    """Return the number of processor cores that this process may use.

    This is the number of cores that the process is pinned to. OMP_NUM_THREADS can reduce it, as for
    BLAS. If an MPI launcher states that several ranks share the host, it is at most this rank's
    share of all cores.
    """
    cores = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    ranks = max(_whole_number(name) for name in _LOCAL_RANKS)
    asked = _whole_number("OMP_NUM_THREADS") or allowed
    return max(1, min(allowed, asked, cores // max(ranks, 1)))


def _whole_number(variable: str) -> int:
    """Read a whole number from an environment variable; 0 for any other text."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else 0


def on_all_cores(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Compute [function(item) for item in items] with one thread per core.

    NumPy and TensorFlow compute outside the interpreter's lock. BLAS uses one thread meanwhile: its
    own threads would wait for each other on small matrices and on busy cores.

    Args:
        function: Function that is called once per item, in any order, in any thread.
        items: Arguments of the function.
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
    """Limit every BLAS call of this process to one thread while active; needs threadpoolctl.

    Several threads may use it at the same time, and leave in any order. The number of BLAS threads
    belongs to the whole process, so the last thread restores the original number.
    """
    with _blas_lock:
        # SciPy brings a BLAS library of its own.
        controller = None if _blas_limits else _controller("scipy.linalg" in sys.modules)
        _release_control(controller)
        limits = None if controller is None else controller.limit(limits=1, user_api="blas")
        _blas_limits.append(limits)
    try:
        yield
    finally:
        with _blas_lock:
            # The first entry holds the original limits, and the last thread to leave takes it.
            limits = _blas_limits.pop()
            _release_control(limits)
            if limits is not None:
                limits.restore_original_limits()
                _release_control(limits)  # or other threads of the user could not set limits


def _release_control(limits: Any) -> None:
    """Let the next thread that changes limits do so, if there are any.

    From threadpoolctl 3.8 on, all threads but the first that changed them are ignored.
    """
    if limits is not None:
        import threadpoolctl

        openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
        if hasattr(openblas, "clear_controlling_thread"):
            openblas.clear_controlling_thread(force=True)


@cache
def _controller(with_scipy: bool) -> Any:
    """Return the controller of the loaded BLAS libraries, or None without threadpoolctl."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
