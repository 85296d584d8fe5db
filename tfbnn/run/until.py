"""Stopping rules of a run, and their text and JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from tfbnn.data.validation import check_number
from tfbnn.system.words import did_you_mean

# Draws per chain at the first check. Fewer draws tell nothing about convergence, so a run that may have more
# keeps at least so many.
FIRST_LOOK = 100


# Effective sample size that no run reaches, of rules under which only the time limit leaves draws out.
UNREACHABLE = 1e300


@dataclass(frozen=True, kw_only=True)
class Until:
    """Stopping rule that ends a run as soon as its draws are good enough.

    Draws are checked in function space, by the criteria of the verdict of `run.report()`, with `ess` and
    `rhat` in place of its limits. At 95 % of the reference inputs R-hat must be at most `rhat`, and at all
    of them at most three times as far from 1. The smaller of bulk and tail effective sample size must
    nowhere be below `ess`. The chains must agree on the log density. Checks are made at 100, 200, 400,
    600, 800, 1200, 1600, ... draws per chain. These numbers are fixed, so that the same draws are kept on
    any machine, at any speed and in any number of parts.

    Attributes:
        ess: Effective sample size over all chains, default 400.
        rhat: Largest R-hat, above 1, default 1.01.
        max_seconds: Wall-clock seconds from the call to the end, with compilation, pretraining and
            calibration; a resumed run has them anew. The fit is planned for this limit: pretraining takes
            at most a third and warm-up at most a third. Settings that are "auto" are chosen from the speed
            of a gradient on this machine, so the draws depend on the clock. None (default): no limit.
        score_change: End a run also when doubling the number of draws changes the mean log density of a
            training row, as if left out, by no more than this. It is checked from half of the maximum
            number of draws on. None (default): not used.
    """

    ess: float = 400
    rhat: float = 1.01
    max_seconds: float | None = None
    score_change: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value, above = getattr(self, field.name), 1 if field.name == "rhat" else 0
            # Only what is None by default may be None. A run folder can hold plain numbers.
            if value is not None or field.default is not None:
                number = check_number(field.name, value, above=above)
                object.__setattr__(self, field.name, number)

    @classmethod
    def from_json(cls, entry: dict[str, Any] | None) -> Until | None:
        """Read a rule from the dict of `vars`, or None."""
        return None if entry is None else cls(**entry)

    def __str__(self) -> str:
        limits = list(vars(self).items())
        if self.ess == UNREACHABLE:
            limits = [(name, value) for name, value in limits if name not in ("ess", "rhat")]
        return ",".join(f"{name}={value:.10g}" for name, value in limits if value is not None)


# The rule for "auto" if the number of draws is open.
ENOUGH = Until(score_change=0.01)
# The words for `until` in commands. In Python, "none" is None.
WORDS = ("auto", "converged", "none")


def until_of_text(text: str) -> Until | str | None:
    """Read "ess=400,rhat=1.01,max_seconds=600", "auto", "converged", or "none", which is None.

    Raises:
        ValueError: For other words, and for numbers out of range.
    """
    if text in WORDS:
        return None if text == "none" else text
    names = [field.name for field in fields(Until)]
    settings: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        try:
            if name not in names or name in settings:
                raise ValueError
            settings[name] = float(number)
        except ValueError:
            raise ValueError(
                f"until must be {', '.join(WORDS)} or {','.join(f'{one}=X' for one in names)}, each at most "
                f"once, received {text!r}.{'' if name in names else did_you_mean(name, names)}"
            ) from None
    return Until(**settings)


def with_limit(until: Until | str | None, max_seconds: float) -> Until:
    """Return `until` with a limit in seconds.

    Raises:
        ValueError: When `until` has another limit, and for until=None, which requests every draw.
    """
    if until is None:
        raise ValueError(
            f"max_seconds={max_seconds} may end a run early, and until=None asks for exactly "
            "num_results draws. Leave until out; num_results is then the most that is kept."
        )
    if isinstance(until, str):
        return Until(max_seconds=max_seconds)
    if until.max_seconds not in (None, max_seconds):
        raise ValueError(
            f"max_seconds must be given once, received {max_seconds} and {until.max_seconds:g} in "
            "until. Leave one of them out."
        )
    return replace(until, max_seconds=max_seconds)


def next_look(num_results: int) -> int:
    """Return the number of draws per chain at the next check, after `num_results` draws.

    The numbers are 100, 200, 400, and from there on alternate between steps of a half and of a third. A
    check costs as much as it has draws. With a geometric list all checks together cost a few times the
    last one. Doubling alone would double the cost of a run that just misses a check; these steps add at
    most half of it.
    """
    double = FIRST_LOOK
    while double <= num_results:
        double *= 2
    between = 3 * double // 4
    return between if double > 4 * FIRST_LOOK and between > num_results else double
