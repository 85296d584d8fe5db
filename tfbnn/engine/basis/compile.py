"""The only module that calls tf.function, and the policy for devices and threads."""

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from tfbnn.engine.basis.libraries import is_forked, tf
from tfbnn.system.threads import num_cores

_functions = weakref.WeakSet[Any]()
# Whether the function being traced in this thread is compiled by XLA.
_for_xla = ContextVar("_for_xla", default=False)


def compiled(function: Callable[..., Any], *, jit_compile: bool, signature: Any = None) -> Any:
    """Compile a pure function of tensors to a `tf.function`, with XLA if `jit_compile` is true.

    With a `signature`, a list of tf.TensorSpec, one program serves all shapes that it allows.
    """

    @wraps(function)
    def traced(*arguments: Any, **named: Any) -> Any:
        # A function that is called inside an XLA program is part of it, compiled separately or not.
        token = _for_xla.set(jit_compile or _for_xla.get())
        try:
            return function(*arguments, **named)
        finally:
            _for_xla.reset(token)

    wrapped = tf.function(
        traced, jit_compile=jit_compile, autograph=False, input_signature=signature
    )
    # Every model has its own program, and TensorFlow would warn that one program is traced
    # repeatedly.
    wrapped._omit_frequent_tracing_warning = True
    _functions.add(wrapped)
    return wrapped


def xla_compiles() -> bool:
    """Check whether the operations created now become part of a program that XLA compiles.

    Operations that are fast there, such as products of padded matrices, may be slow elsewhere.
    """
    return _for_xla.get()


def num_traces() -> int:
    """Count the traces of all existing compiled functions; tests use it to detect retracing."""
    return sum(function.experimental_get_tracing_count() for function in _functions)


def has_gpu() -> bool:
    """Check whether TensorFlow sees a GPU; chains are batched there, and separate on a CPU."""
    return not is_forked() and bool(tf.config.get_visible_devices("GPU"))


def devices() -> list[str]:
    """Return the names of all GPUs, or of the logical CPU devices."""
    return [one.name for one in tf.config.list_logical_devices("GPU" if has_gpu() else "CPU")]


def chain_groups(
    num_chains: int, *, apart: bool = True, many_devices: bool = False, most: int | None = None
) -> list[list[int]]:
    """Split the chains into groups that share a program.

    All chains form one group on a GPU, unless `many_devices`, or if `apart` is false. Otherwise
    every chain is a group of its own, or there are `most` groups of about the same size if there
    are more chains than that.
    """
    if not apart or (has_gpu() and not many_devices):
        return [list(range(num_chains))]
    count = num_chains if most is None else min(num_chains, most)
    ends = [group * num_chains // count for group in range(count + 1)]
    return [list(range(*span)) for span in zip(ends, ends[1:])]


def limit_threads() -> None:
    """Let each TensorFlow operation use `num_cores` threads.

    Dask sets OMP_NUM_THREADS to 1 for its workers, whose operations then use one.
    """
    threading = tf.config.threading
    try:
        threading.set_intra_op_parallelism_threads(num_cores())
        threading.set_inter_op_parallelism_threads(num_cores())
    except RuntimeError:
        pass  # TensorFlow is already in use in this process, with other thread settings
