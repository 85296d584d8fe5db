"""The limits that end a run, their text and their JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from tfbnn.data.validation import check_number
from tfbnn.system.words import did_you_mean

# Nothing is known of fewer draws per chain, and a run that is given more keeps at least so many.
FIRST_LOOK = 100


@dataclass(frozen=True, kw_only=True)
class Until:
    """Ends a run as soon as its draws are good enough.

    They are judged in function space, by what the verdict of `run.report()` asks of chains, with
    `ess` and `rhat` in the place of its limits: 95 % of the reference inputs have an R-hat of at
    most `rhat` and all of them one of at most three times as far from 1; nowhere is the smaller of
    bulk and tail effective sample size below `ess`; chains agree on the log density. Looks are
    taken at 100, 200, 400, 600, 800, 1200, 1600, ... draws per chain: at fixed numbers, so that the
    same draws are kept wherever, however fast and in how many parts a run is made.

    Attributes:
        ess: Effective sample size over all chains, default 400.
        rhat: Largest R-hat, above 1, default 1.01.
        max_seconds: Wall-clock seconds from the call to the end, with compilation, pretraining and
            calibration; a resumed run has them anew. The fit plans by them: pretraining takes at
            most a third and warm-up at most a third, and what is "auto" is chosen by the speed of
            a gradient on this machine, so the draws depend on the clock. None (default): no limit.
        score_change: From half of the most draws on, ends a run also when twice as many draws move the
            mean log density of a training row, as if left out, by no more than this. None (default): no
            such end.
    """

    ess: float = 400
    rhat: float = 1.01
    max_seconds: float | None = None
    score_change: float | None = None

    def __post_init__(self) -> None:
        check_number("ess", self.ess, above=0)
        check_number("rhat", self.rhat, above=1)
        for name in ("max_seconds", "score_change"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0)
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                # Plain numbers, which a run folder can hold.
                object.__setattr__(self, field.name, float(value))

    @classmethod
    def from_json(cls, entry: dict[str, Any] | None) -> Until | None:
        """Read what `vars` gave, or None."""
        return None if entry is None else cls(**entry)

    def __str__(self) -> str:
        limits = vars(self).items()
        return ",".join(f"{name}={value:.10g}" for name, value in limits if value is not None)


# What "auto" stands for where the number of draws is left open.
ENOUGH = Until(score_change=0.01)
# The words for it in commands; in Python None stands for "none".
WORDS = ("auto", "converged", "none")


def until_of_text(text: str) -> Until | str | None:
    """Read "ess=400,rhat=1.01,max_seconds=600", "auto", "converged", or "none", which is None.

    Raises:
        ValueError: For other words and numbers out of range.
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


def check_until(until: Any) -> None:
    """Refuse what is neither "auto", nor "converged", nor None, nor an Until.

    Raises:
        TypeError: In that case.
    """
    is_word = isinstance(until, str) and until in WORDS and until != "none"
    if not (until is None or is_word or isinstance(until, Until)):
        raise TypeError(
            f"until must be 'auto', 'converged', a tfbnn.Until or None, received {until!r}. Use for "
            "example tfbnn.Until(ess=1000)."
        )


def with_limit(until: Until | str | None, max_seconds: float) -> Until:
    """Return `until` with a limit in seconds.

    Raises:
        ValueError: For another limit in `until`, and for until=None, which asks for every draw.
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
    """Return the first number of draws per chain, after so many, at which a run is looked at.

    100, 200, 400, and from there on in steps of a half and a third. A look costs as much as it has
    draws, so that with a geometric list all of them cost a few times the last; doubling alone would
    cost a run that just misses one as much again as it has, this half of it at most.
    """
    double = FIRST_LOOK
    while double <= num_results:
        double *= 2
    between = 3 * double // 4
    return between if double > 4 * FIRST_LOOK and between > num_results else double
