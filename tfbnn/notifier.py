"""Hands events of a run to the progress line and to the user's callbacks."""

import warnings

import numpy as np

from tfbnn.exceptions import ConvergenceWarning
from tfbnn.progress import Progress

__all__ = ["Notifier"]


class Notifier:
    """Called with an event; true once a callback asks to stop."""

    def __init__(self, verbose, callbacks):
        """
        Args:
            verbose: As in `Progress`.
            callbacks: Callables; one that raises is called no more.
        """
        self.progress = Progress(verbose)
        self.callbacks = list(callbacks)
        self.stopped = False
        self._warned = set()

    def __call__(self, event):
        self.progress(event)
        self._warn_of_standing_chains(event)
        for callback in list(self.callbacks):
            self.stopped |= self._call(callback, event)
        return self.stopped

    def _warn_of_standing_chains(self, event):
        new = sorted(set(event.get("standing_still", ())) - self._warned)
        if new:
            self._warned.update(new)
            warnings.warn(
                f"{'Chain' if len(new) == 1 else 'Chains'} {', '.join(map(str, new))} accepted none "
                f"of the last proposals of the {event['phase']} phase. If that goes on, its draws "
                "are one point: use a smaller step_size, dtype='float64' or another seed.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _call(self, callback, event):
        try:
            answer = callback(dict(event))
            return isinstance(answer, (bool, np.bool_)) and bool(answer)
        except Exception as error:
            # A day of sampling is worth more than a callback.
            self.callbacks.remove(callback)
            warnings.warn(
                f"The callback {callback!r} raised {error!r}; the run goes on without it.",
                RuntimeWarning,
                stacklevel=2,
            )
            return False
