"""Holds seeded bugs, and kernels without fault, against the checks of the suite."""

from contextlib import contextmanager
from functools import partial

import pytest
import test_engine
import test_potential
import test_sampling
from invariance import ALARM, joint_p, smallest_p
from kernel_cases import CASES, HIERARCHICAL, record
from kernel_checks import checks_of

from tfbnn.engine.block import make_block

__all__ = ["LARGE", "SHARED", "checks_for", "examine", "seeded"]

# Draws of the large invariance tests.
LARGE = 20_000


def check_densities():
    """A1 where weights have prior scales that are learned, and fixed ones other than 1."""
    for name in ("hierarchical", "mixed_priors"):
        test_potential.test_density_equals_numpy(
            name, dtype="float64", tolerance=1e-10, with_row_noise=False
        )


# Checks that belong to no kernel.
SHARED = {
    "A density against NumPy": check_densities,
    "B hierarchical": lambda: joint_p(HIERARCHICAL)[0],
    "engine: keys are distinct": test_engine.TestKeys().test_a_million_keys_are_distinct,
    "engine: chains have numbers of their own": test_sampling.TestBits().test_chains_have_numbers_of_their_own,
    "engine: step size stands still": test_sampling.test_step_size_stands_still_while_sampling,
    "engine: thinned run replayed": test_sampling.TestBits().test_thinning_keeps_every_third_transition,
}


def checks_for(bug):
    """Dict from the name of a check to the check, of all that could see a bug.

    A check takes no arguments. It returns p and means that p below ALARM is an alarm, or raises an
    AssertionError.
    """
    found = {name: SHARED[name] for name in bug.shared}
    if bug.case is not None:
        found |= {
            f"A {what}": partial(check, bug.case) for what, check in checks_of(bug.case).items()
        }
        found |= statistical_checks(bug.case)
    return found


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
    with pytest.MonkeyPatch.context() as patch:
        bug.patch(patch)
        yield
    _forget()


def _forget():
    record.cache_clear()
    make_block.cache_clear()


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
    """The size of an error from the message of numpy.testing, or the first words of another."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    sizes = [line for line in lines if line.startswith(("Max absolute", "Mismatched"))]
    return (sizes or lines or ["AssertionError"])[-1]
