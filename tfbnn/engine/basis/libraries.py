"""TensorFlow, TensorFlow Probability and Keras: set up in one place, imported at first use.

So the settings of a kernel, which stand in one file with what it does, can be read where TensorFlow
takes seconds to import or is not installed.
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
    """Stands for a module and imports it when an attribute is asked for."""

    def __init__(self, name: str, need: str, set_up: Callable[[Any], None] | None = None) -> None:
        self._name, self._need, self._set_up = name, need, set_up
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.load(), attribute)

    def load(self) -> ModuleType:
        """Return the module.

        The first import is quiet, see `only_news`. Where the user has imported the library before,
        or has set TF_CPP_MIN_LOG_LEVEL, that stays as it is.

        Raises:
            ImportError: When it is not installed, with the command that installs it.
            RuntimeError: In a process that was forked from one that had used TensorFlow: its threads
                are not there, and every operation would wait for them without end.
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


# Whether this process was forked from one in which TensorFlow had begun its threads.
_forked = False


def is_forked() -> bool:
    """Return whether this process was forked from one that had used TensorFlow, which does not work here."""
    return _forked


def _after_fork() -> None:
    global _forked
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    _forked = _forked or (context is not None and getattr(context, "_initialized", True))


# There is no such call where processes cannot be forked.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _set_up_tensorflow(tensorflow: Any) -> None:
    # TensorFloat-32 keeps 10 bits of a product's factors: far too few for acceptance ratios.
    tensorflow.config.experimental.enable_tensor_float_32_execution(False)
    # Asked here, as the first to ask hears of drivers that are not installed.
    tensorflow.config.list_physical_devices("GPU")


# Information and warnings of TensorFlow's log are left out; what it says while it is imported, of its
# build flags and of absent GPU libraries, comes before it looks at this.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = _Library("tensorflow", "Sampling, log_prob and SavedModel need TensorFlow", _set_up_tensorflow)
tfp = _Library("tensorflow_probability", "Sampling needs TensorFlow Probability")
keras = _Library("keras", "Keras models need Keras")

# Names for readers: neither library says anything of its types.
Tensor = Any
# The named tuple of tensors that a kernel of `tfp.mcmc` hands to its next transition.
Results = Any
# z [C, P] -> log density [C].
LogDensity = Callable[[Tensor], Tensor]
