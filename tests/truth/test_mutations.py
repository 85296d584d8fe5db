"""The suite tests itself: seeded bugs have to be seen, and nothing else.

The statistics tier seeds every bug and asks the check that has to see it. The slow tier asks every check that
could, also of kernels without fault; `benchmarks/studies/mutations/run.py` makes a table of it.
"""

import pytest

from tests.support.bugs.mutation import checks_for, examine, named_check, seeded
from tests.support.bugs.table import BUGS, HARMLESS


@pytest.mark.statistics
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if not bug.survives])
def test_the_named_check_sees(name):
    bug = BUGS[name]
    with seeded(bug):
        alarm, seen = examine(named_check(bug))
    assert alarm, seen


def test_there_are_enough_bugs():
    """Who adds a bug that nothing sees has to say why, and can do so once in sixteen."""
    survivors = [name for name, bug in BUGS.items() if bug.survives]
    assert len(BUGS) >= 16 and 16 * len(survivors) <= len(BUGS)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_seen_or_explained(name):
    bug = BUGS[name]
    with seeded(bug):
        seen = {what: examine(check) for what, check in checks_for(bug).items()}
    assert any(alarm for alarm, _ in seen.values()) != bool(bug.survives), seen


@pytest.mark.statistics
@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("size", ["", pytest.param(", large", marks=pytest.mark.slow)])
@pytest.mark.parametrize("test", ["B skewed", "B joint"])
def test_a_harmless_change_raises_no_alarm(name, size, test):
    """Layer B judges the law of the draws. (Layer A pins how they come about, and objects.)"""
    bug = HARMLESS[name]
    with seeded(bug):
        alarm, seen = examine(checks_for(bug)[test + size])
    assert not alarm, seen
