"""What is told of a run after every block: to the progress line and to the user's callbacks."""

import math
import sys
import time
import warnings

import numpy as np

from tfbnn.exceptions import ConvergenceWarning
from tfbnn.run.result import PHASES

_SPARSE_SECONDS = 30.0
_LIVE_SECONDS = 0.2


class Progress:
    """Prints events of a run to a stream.

    A terminal gets one line that is rewritten; anything else gets a plain line at most every 30 s
    and one at the end of each phase that lasted that long. A stream that fails is given up, and
    the run goes on.
    """

    def __init__(self, verbose="auto", stream=None):
        """
        Args:
            verbose: "auto" or 1 as described; 0 for silence.
            stream: Where to print, standard error by default.
        """
        self.stream = stream if stream is not None else sys.stderr
        self.silent = verbose in (0, False)
        self.live = not self.silent and bool(getattr(self.stream, "isatty", lambda: False)())
        self.last_time = time.monotonic()
        self.last_phase = None
        self.width = 0

    def __call__(self, event):
        """Shows one event dict, if it is time to."""
        if self.silent:
            return
        now = time.monotonic()
        if self.live and event["phase"] != self.last_phase and self.last_phase is not None:
            self._write("\n")
            self.width = 0
        self.last_phase = event["phase"]
        due = _LIVE_SECONDS if self.live else _SPARSE_SECONDS
        finished = event["transition"] >= event["num_transitions"]
        if now - self.last_time < due and not (finished and (self.live or event["seconds"] > due)):
            return
        self.last_time = now
        line = describe(event)
        if self.live:
            self._write("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            self._write(line + "\n")

    def close(self):
        """Ends the live line."""
        if self.live and self.width:
            self._write("\n")
            self.width = 0

    def _write(self, text):
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError, UnicodeError):
            self.silent = True


def describe(event):
    """One line for an event dict."""
    done, total = event["transition"], event["num_transitions"]
    parts = [
        f"{event['phase']:<11} {100.0 * done / max(total, 1):3.0f} %",
        f"{done}/{total}",
        f"{_clock(event['seconds'])} elapsed",
        f"{_clock(event['eta_seconds'])} left",
    ]
    if "acceptance_rate" in event:
        parts.append(f"acceptance {event['acceptance_rate']:.2f}")
        parts.append(f"step {event['step_size']:.3g}")
        if event["num_divergent"]:
            parts.append(f"{event['num_divergent']} divergent")
    elif math.isfinite(event.get("validation_log_likelihood", math.nan)):
        parts.append(f"validation log likelihood {event['validation_log_likelihood']:.3f}")
    return "  ".join(parts)


def _clock(seconds):
    if not math.isfinite(seconds):
        return "?"
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


# A chain that has accepted nothing for so many transitions is named in the events of the run.
_STANDING_STILL = 20


def make_event(phase, lanes, program, seconds):
    """The event of a run after a block, JSON-able but for NaN.

    Args:
        phase: The phase that the block belongs to.
        lanes: The counters (`tfbnn.engine.sampling.lane.Lane.counters`) of the lanes to report on.
        program: Their Program.
        seconds: Spent in the phase so far.
    """
    total = program.num_transitions(phase)
    done = float(np.mean([lane["transitions"][phase] for lane in lanes]))
    return {
        "phase": phase,
        "transition": int(done),
        "num_transitions": total,
        "num_chains": sum(len(lane["chains"]) for lane in lanes),
        "num_kept": min(lane["transitions"]["sampling"] for lane in lanes) // program.stride,
        "seconds": seconds,
        "eta_seconds": seconds * (total - done) / done if done else float("nan"),
        "acceptance_rate": _known(np.mean, lanes, "recent_acceptance"),
        "step_size": _known(np.median, lanes, "step_size"),
        "num_divergent": sum(sum(lane["num_divergent"]) for lane in lanes),
        "num_gradients": sum(sum(lane["num_gradients"][phase]) for lane in lanes),
        "standing_still": [
            chain
            for lane in lanes
            for chain, refused in zip(lane["chains"], lane["num_refused"])
            if refused >= _STANDING_STILL
        ],
        "lanes": lanes,
    }


def current_phase(lanes, program):
    """The first phase that some lane, by its counters, has not finished; the last at the end."""
    for phase in PHASES:
        end = program.num_transitions(phase)
        if any(lane["transitions"][phase] < end for lane in lanes):
            return phase
    return PHASES[-1]


def nothing_counted(chains):
    """The counters of a lane that has made no transition."""
    zeros, unknown = [0] * len(chains), [None] * len(chains)
    return {
        "chains": list(chains),
        "transition": 0,
        "transitions": dict.fromkeys(PHASES, 0),
        "acceptance_sum": dict.fromkeys(PHASES, zeros),
        "num_gradients": dict.fromkeys(PHASES, zeros),
        "num_divergent": zeros,
        "num_refused": zeros,
        "recent_acceptance": unknown,
        "step_size": unknown,
    }


def _known(average, lanes, name):
    values = [value for lane in lanes for value in lane[name] if value is not None]
    return float(average(values)) if values else float("nan")


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
