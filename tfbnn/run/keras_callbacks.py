"""Support of Keras callbacks in a run. They are recognised by their methods; Keras is not imported."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

# Names of the numbers in the logs: those of the chains, and those of the checks.
_IN_CHAINS = ("acceptance_rate", "step_size", "num_divergent", "num_kept")
_AT_LOOKS = ("rhat", "ess")
NAMES = ("val_loss", "log_prob", *_IN_CHAINS, *_AT_LOOKS)

# Callbacks that need parts of a Keras model which a run does not have, and their replacements.
_INSTEAD = {
    "ModelCheckpoint": "output=FOLDER keeps the draws of a run on the way",
    "BackupAndRestore": "output=FOLDER and resume=True go on with a run that was stopped",
    "SwapEMAWeights": "predictions average over draws already",
    "ReduceLROnPlateau": "tfbnn.Pretraining has a learning_rate_schedule",
    "LearningRateScheduler": "tfbnn.Pretraining has a learning_rate_schedule",
}


def is_keras_callback(callback: Any) -> bool:
    """Return whether an object has the methods that Keras calls, and is not itself callable."""
    methods = (getattr(callback, name, None) for name in ("set_model", "on_epoch_end"))
    return not callable(callback) and all(map(callable, methods))


def check_callback(callback: Any) -> None:
    """Check that a callback can be used with a run.

    Raises:
        TypeError: For an object that is neither callable nor a Keras callback.
        ValueError: For a Keras callback that cannot do its work here.
        ImportError: For TensorBoard when it is not installed.
    """
    if isinstance(callback, type) or not (callable(callback) or is_keras_callback(callback)):
        raise TypeError(
            "Each callback must be callable as callback(event: dict), or a callback of Keras, "
            f"received {callback!r}."
        )
    if not is_keras_callback(callback):
        return
    for kind in type(callback).__mro__:
        if kind.__name__ in _INSTEAD:
            raise ValueError(
                f"{kind.__name__} needs the optimiser or the weights of a Keras model, which a run "
                f"has none of: {_INSTEAD[kind.__name__]}. Leave it out."
            )
        if kind.__name__ == "TensorBoard" and find_spec("tensorboard") is None:
            raise ImportError(
                "The callback TensorBoard writes nothing without TensorBoard, which is not installed: "
                "pip install tensorboard."
            )
    if getattr(callback, "restore_best_weights", False):
        raise ValueError(
            "restore_best_weights=True would undo draws, of which a run keeps all. Use "
            "restore_best_weights=False."
        )
    monitor = getattr(callback, "monitor", None)
    if monitor is not None and monitor not in NAMES:
        raise ValueError(f"monitor must be one of {', '.join(NAMES)}, received {monitor!r}.")


class KerasListener:
    """Passes the events of a run to a Keras callback; every event is an epoch."""

    def __init__(self, callback: Any) -> None:
        """Make a KerasListener.

        Args:
            callback: Callback of Keras 3 or earlier, already checked.
        """
        self._callback = callback
        # Stands for the trained model; it has the attributes that callbacks may use.
        self._training = SimpleNamespace(stop_training=False, optimizer=None, metrics=())
        self._num_judged = self._num_epochs = 0

    def __repr__(self) -> str:
        return repr(self._callback)

    def __call__(self, event: dict[str, Any]) -> bool:
        """Pass an event as an epoch. Return whether the callback requests to stop."""
        callback, epoch = self._callback, self._num_epochs
        if epoch == 0:
            self._begin()
        self._num_epochs += 1
        callback.on_epoch_begin(epoch, {})
        logs = self._logs(event)
        # A callback with a monitor counts the epochs that have its number, and would warn of others.
        if getattr(callback, "monitor", None) in (None, *logs):
            callback.on_epoch_end(epoch, logs)
        return bool(self._training.stop_training)

    def close(self) -> None:
        """Tell the callback that the run is over."""
        if self._num_epochs:
            self._callback.on_train_end({})

    def _logs(self, event: Mapping[str, Any]) -> dict[str, float]:
        """Return the finite numbers of an event; R-hat and ESS once for every check of the draws."""
        names = {"newton": ("log_prob",), "warmup": _IN_CHAINS, "sampling": _IN_CHAINS}
        found = {name: event[name] for name in names.get(event["phase"], ())}
        if "validation_log_likelihood" in event:
            found["val_loss"] = -event["validation_log_likelihood"]
        if event.get("num_judged", 0) != self._num_judged:
            self._num_judged = event["num_judged"]
            found |= {name: event[name] for name in _AT_LOOKS}
        return {name: float(value) for name, value in found.items() if math.isfinite(value)}

    def _begin(self) -> None:
        callback = self._callback
        callback.set_params({"verbose": 0, "epochs": None, "steps": None})
        callback.set_model(self._training)
        callback.on_train_begin({})
        # A callback that writes a table takes its columns from the first epoch, which has only a few.
        if getattr(callback, "keys", ()) is None:
            callback.keys = list(NAMES)
