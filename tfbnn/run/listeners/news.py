"""Numbers of an event under the names that loggers and callbacks of Keras get."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# By the phase of the event.
_IN_CHAINS = ("acceptance_rate", "step_size", "num_divergent", "num_kept")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "newton": ("log_prob",),
    "warmup": _IN_CHAINS,
    "sampling": _IN_CHAINS,
}
AT_LOOKS = ("rhat", "ess")
VALIDATION_LOSS = "val_loss"

NAMES = (VALIDATION_LOSS, "log_prob", *_IN_CHAINS, *AT_LOOKS)


class News:
    """What an event tells that is a number, and new: R-hat and ESS once for every look at draws."""

    def __init__(self) -> None:
        self._num_judged = 0

    def __call__(self, event: Mapping[str, Any]) -> dict[str, float]:
        """Dict name -> finite number, names out of NAMES.

        Args:
            event: What callbacks get.
        """
        found = {name: event[name] for name in _NAMES.get(event["phase"], ())}
        if "validation_log_likelihood" in event:
            found[VALIDATION_LOSS] = -event["validation_log_likelihood"]
        if event.get("num_judged", 0) != self._num_judged:
            self._num_judged = event["num_judged"]
            found |= {name: event[name] for name in AT_LOOKS}
        return {name: float(value) for name, value in found.items() if math.isfinite(value)}
