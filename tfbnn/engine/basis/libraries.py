"""Lazy imports and setup of TensorFlow, TensorFlow Probability and Keras.

Each library is imported at its first use. The settings of a kernel, which share a file with its
code, can therefore be read without TensorFlow, which takes seconds to import or may not be
installed.
"""

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from tfbnn.system.processes import only_news
from tfbnn.system.words import required


class _Library:
    """Proxy of a module that imports it when an attribute is first requested."""

    def __init__(self, name: str, need: str, set_up: Callable[[Any], None] | None = None) -> None:
        self._name, self._need, self._set_up = name, need, set_up
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.load(), attribute)

    def load(self) -> ModuleType:
        """Import and return the module.

        The first import is quiet, see `only_news`. If the user has already imported the library or
        set TF_CPP_MIN_LOG_LEVEL, this is left unchanged.

        Raises:
            ImportError: If it is not installed, with the command that installs it.
            RuntimeError: In a process forked from one that had used TensorFlow. The threads of
                TensorFlow do not exist there, and every operation would wait for them forever.
        """
        if _forked:
            raise RuntimeError(
                "TensorFlow does not work here, as it was used before this process was forked. Use "
                "multiprocessing.get_context('spawn'), or TensorFlow only in child processes. A "
                "BayesianMLP can predict without it."
            )
        if self._module is None:
            with nullcontext() if self._name in sys.modules else only_news():
                module = required(self._name, self._need, "fit")
                if self._set_up is not None:
                    self._set_up(module)
            self._module = module
        return self._module


# Whether this process was forked from one in which TensorFlow had started its threads.
_forked = False


def is_forked() -> bool:
    """Check whether this process was forked after TensorFlow was used, so that it cannot work here."""
    return _forked


def _after_fork() -> None:
    global _forked
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    _forked = _forked or (context is not None and getattr(context, "_initialized", True))


# This function does not exist on systems without fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def load_scipy() -> None:
    """Load SciPy's BLAS, so that `single_threaded_blas` limits it, too."""
    import scipy.linalg  # noqa: F401


def _set_up_tensorflow(tensorflow: Any) -> None:
    load_scipy()
    # TensorFloat-32 keeps 10 bits of a product's factors, far too few for acceptance ratios.
    tensorflow.config.experimental.enable_tensor_float_32_execution(False)
    # The first call logs missing drivers; here it is silenced.
    tensorflow.config.list_physical_devices("GPU")


# This hides information and warnings in TensorFlow's log. Messages during the import, about build
# flags and missing GPU libraries, are written before TensorFlow reads it.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = _Library("tensorflow", "Sampling, log_prob and SavedModel need TensorFlow", _set_up_tensorflow)
tfp = _Library("tensorflow_probability", "Sampling needs TensorFlow Probability")
keras = _Library("keras", "Keras models need Keras")

# Type names for readers only, because neither library has type annotations.
Tensor = Any
# Named tuple of tensors that a `tfp.mcmc` kernel passes to its next transition.
Results = Any
# Function from z [C, P] to the log density [C].
LogDensity = Callable[[Tensor], Tensor]
