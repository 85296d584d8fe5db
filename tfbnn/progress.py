"""Shows how far a run is: one live line on a terminal, a line every 30 seconds elsewhere."""

import math
import sys
import time

__all__ = ["Progress"]

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
