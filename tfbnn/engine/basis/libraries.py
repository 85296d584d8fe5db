"""TensorFlow and TensorFlow Probability: set up in one place, imported at first use.

So the settings of a kernel, which stand in one file with what it does, can be read where TensorFlow
takes seconds to import or is not installed.
"""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tfbnn.system.extras import required


class _Library:
    """Stands for a module and imports it when an attribute is asked for."""

    def __init__(self, name: str, need: str, set_up: Callable[[Any], None] | None = None) -> None:
        self._name, self._need, self._set_up = name, need, set_up
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.load(), attribute)

    def load(self) -> ModuleType:
        """The module.

        Raises:
            ImportError: When it is not installed, with the command that installs it.
        """
        if self._module is None:
            module = required(self._name, self._need, "fit")
            if self._set_up is not None:
                self._set_up(module)
            self._module = module
        return self._module


def _set_up_tensorflow(tensorflow: Any) -> None:
    # TensorFloat-32 keeps 10 bits of a product's factors: far too few for acceptance ratios.
    tensorflow.config.experimental.enable_tensor_float_32_execution(False)


# TensorFlow prints its build flags and missing GPU libraries to standard error on import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = _Library("tensorflow", "Sampling, log_prob and SavedModel need TensorFlow", _set_up_tensorflow)
tfp = _Library("tensorflow_probability", "Sampling needs TensorFlow Probability")

# Names for readers: neither library says anything of its types.
Tensor = Any
# The named tuple of tensors that a kernel of `tfp.mcmc` hands to its next transition.
Results = Any
# z [C, P] -> log density [C].
LogDensity = Callable[[Tensor], Tensor]
