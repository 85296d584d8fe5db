"""What a run is doing, in a line: for the terminal, for files of output, for who follows a folder."""

import math
from collections.abc import Sequence

from tfbnn.diagnostics.wording import counted
from tfbnn.run.events import Event

# In the order of a run; programs are compiled before ADAM and before the chains move.
TITLES = {
    "compile": "compiling",
    "pretraining": "pretraining",
    "newton": "refining starts",
    "warmup": "warm-up",
    "sampling": "sampling",
}


def of_phase(event: Event, so_far: float | None, to_go: float) -> list[str]:
    """The parts of the line of a phase that goes on, the most important first.

    Args:
        event: Its last event.
        so_far: Seconds since the run began, or None to leave them out.
        to_go: Seconds until the run ends; NaN where they are unknown.
    """
    done, total, unit = event.count()
    left = _to_go(event, to_go)
    return [
        _with_share(event.phase, event.transition / max(event.num_transitions, 1)),
        left if so_far is None else f"{clock(so_far)} so far, {left}",
        f"{done}/{total} {unit}",
        *event.remarks(),
    ]


def of_end(event: Event) -> list[str]:
    """Those of a phase that is over, which may have ended early."""
    done, _, unit = event.count()
    return [
        _with_share(event.phase, 1.0),
        f"took {clock(event.seconds)}",
        f"{done} {unit}",
        *event.remarks(),
    ]


def of_silence(phase: str, so_far: float) -> list[str]:
    """Those of a phase that no event has come from yet."""
    return [TITLES[phase], f"{clock(so_far)} so far"]


def fitted(parts: Sequence[str], width: int | None = None) -> str:
    """The first of the parts, as many as a line of this width has room for; all without one."""
    line = "  ".join(parts)
    if width is None or len(line) <= width:
        return line
    return fitted(parts[:-1], width) if len(parts) > 1 else line[:width]


def about(seconds: float) -> str:
    """A time that nobody knows to the second, in words: "20 seconds", "3 minutes", "2.5 hours"."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{float(f'{seconds / length:.2g}'):g} {unit}"
    return counted(int(float(f"{max(seconds, 1.0):.1g}")), "second")


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, left = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def _with_share(phase: str, share: float) -> str:
    # Rounded down: what says 100 % is over.
    return f"{TITLES[phase]} {math.floor(100.0 * share)} %"


def _to_go(event: Event, seconds: float) -> str:
    if not math.isnan(seconds):
        return f"{'at most ' * event.is_open}{clock(seconds)} to go"
    if math.isnan(event.eta_seconds) or event.phase in ("warmup", "sampling"):
        return "? to go"
    return f"{clock(event.eta_seconds)} and sampling to go"
