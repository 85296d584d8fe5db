"""Holds seeded bugs, and kernels without fault, against the checks of the suite."""

import sys
from contextlib import contextmanager
from functools import partial

import pytest

from tests.support.kernels.cases import CASES, record
from tests.support.kernels.checks import checks_of
from tests.support.kernels.invariance import ALARM, joint_p, smallest_p

__all__ = [
    "LARGE",
    "case_checks",
    "checks_for",
    "examine",
    "named_check",
    "seeded",
    "statistical_checks",
]

# Draws of the large invariance tests.
LARGE = 20_000


def checks_for(bug):
    """Dict from the name of a check to the check, of all that could see a bug.

    A check takes no arguments. It raises an AssertionError, or returns p, and p below ALARM is an
    alarm.
    """
    return bug.checks if bug.case is None else bug.checks | case_checks(bug.case)


def named_check(bug):
    """The check that has to see a bug in the default run."""
    return checks_for(bug)[bug.seen_by or next(iter(bug.checks), "B skewed")]


def case_checks(name):
    """All checks of a case: layer A, and layer B in two sizes."""
    exact = {f"A {what}": partial(check, name) for what, check in checks_of(name).items()}
    return exact | statistical_checks(name)


def statistical_checks(name):
    """Layer B of a case: both targets, small and large."""
    case = CASES[name]
    return {
        "B skewed": lambda: smallest_p(case)[0],
        "B joint": lambda: joint_p(case)[0],
        "B skewed, large": lambda: smallest_p(case, LARGE)[0],
        "B joint, large": lambda: joint_p(case, LARGE)[0],
    }


@contextmanager
def seeded(bug):
    """The library with a bug in it; nothing compiled or recorded outlives either version."""
    _forget()
    try:
        with pytest.MonkeyPatch.context() as patch:
            bug.patch(patch)
            yield
    finally:
        _forget()


def _forget():
    record.cache_clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("tfbnn.engine."):
            for thing in vars(module).values():
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def examine(check):
    """(whether a check raises the alarm, p or what else it saw in a few words)."""
    try:
        p = check()
    except AssertionError as error:
        return True, _summary(str(error))
    if p is None:
        return False, "passed"
    return bool(p < ALARM), f"{p:.0e}" if p > 0 else "< 1e-300"


def _summary(message):
    """Return the size of an error by numpy.testing, or the first line of another message."""
    for line in map(str.strip, message.splitlines()):
        if line.startswith("Max absolute difference"):
            return f"off by {float(line.split(':')[1]):.1e}"
    first = message.strip().splitlines()[:1]
    return first[0] if first else "failed"
