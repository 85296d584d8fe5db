"""The only place that calls tf.function, and the policy for devices and threads."""

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from tfbnn.engine.basis.libraries import is_forked, tf
from tfbnn.system.threads import num_cores

_functions = weakref.WeakSet[Any]()
# Whether what is being traced in this thread goes to XLA.
_for_xla = ContextVar("_for_xla", default=False)


def compiled(function: Callable[..., Any], *, jit_compile: bool, signature: Any = None) -> Any:
    """Compile a pure function of tensors, a `tf.function`, with XLA when `jit_compile` is true.

    With a `signature`, a list of tf.TensorSpec, one program is for all shapes that it allows.
    """

    @wraps(function)
    def traced(*arguments: Any, **named: Any) -> Any:
        # What a program for XLA calls is part of it, compiled for itself or not.
        token = _for_xla.set(jit_compile or _for_xla.get())
        try:
            return function(*arguments, **named)
        finally:
            _for_xla.reset(token)

    wrapped = tf.function(
        traced, jit_compile=jit_compile, autograph=False, input_signature=signature
    )
    # Every model has a program of its own, and TensorFlow takes them for one that is traced again.
    wrapped._omit_frequent_tracing_warning = True
    _functions.add(wrapped)
    return wrapped


def xla_compiles() -> bool:
    """Return whether the operations made now become part of a program that XLA compiles.

    What is fast there, such as a product of padded matrices, may be slow elsewhere.
    """
    return _for_xla.get()


def num_traces() -> int:
    """Return how often living compiled functions have been traced; tests watch it for retracing."""
    return sum(function.experimental_get_tracing_count() for function in _functions)


def has_gpu() -> bool:
    """Return whether TensorFlow sees a GPU; chains are batched there and kept apart on a CPU."""
    return not is_forked() and bool(tf.config.get_visible_devices("GPU"))


def devices() -> list[str]:
    """Names of all GPUs, or of the CPU; of several, where TensorFlow was told to have them."""
    return [one.name for one in tf.config.list_logical_devices("GPU" if has_gpu() else "CPU")]


def chain_groups(
    num_chains: int, *, apart: bool = True, many_devices: bool = False, most: int | None = None
) -> list[list[int]]:
    """Chains that share a program: all of them on the one GPU or unless `apart`, else none.

    With more chains than the `most` groups there may be, so many of about the same size.
    """
    if not apart or (has_gpu() and not many_devices):
        return [list(range(num_chains))]
    count = num_chains if most is None else min(num_chains, most)
    ends = [group * num_chains // count for group in range(count + 1)]
    return [list(range(*span)) for span in zip(ends, ends[1:])]


def limit_threads() -> None:
    """Give an operation of TensorFlow as many threads as this process may use.

    Dask sets OMP_NUM_THREADS to 1 for its workers: more of them would share these cores.
    """
    threading = tf.config.threading
    try:
        threading.set_intra_op_parallelism_threads(num_cores())
        threading.set_inter_op_parallelism_threads(num_cores())
    except RuntimeError:
        pass  # TensorFlow was in use before in this process, with threads of another's choice
