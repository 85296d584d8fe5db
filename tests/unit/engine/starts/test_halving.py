"""How starts are halved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfbnn
from tfbnn.engine.starts.newton import NewtonState
from tfbnn.engine.starts.newton_plan import Halving, NewtonPlan, plan_halving
from tfbnn.engine.starts.polishing import finalists

pytestmark = pytest.mark.fast

AUTO = tfbnn.Pretraining()


def halving(most=181, num_starts=8, num_chains=4, has_holdout=False, settings=AUTO):
    return plan_halving(
        NewtonPlan(most, "dense", ""), settings, num_starts, num_chains, has_holdout
    )


def state(*log_prob):
    return NewtonState(np.zeros(1), np.zeros(1), 1.0, list(log_prob), np.zeros(1), [])


def test_finalists_have_half_of_what_others_are_spared():
    found = halving()
    assert found == Halving(num_starts=8, num_finalists=4, first=40, last=181 + 141 // 2)
    assert found.num_iterations == 320 + 4 * (251 - 40)


@pytest.mark.parametrize(
    "different",
    [
        {"num_starts": 4},
        {"num_chains": 9},
        {"most": 40},
        {"has_holdout": True},
        {"settings": tfbnn.Pretraining(newton_iterations=181)},
    ],
)
def test_without_a_trial_each_start_has_one_round(different):
    found = halving(**different)
    count, most = different.get("num_starts", 8), different.get("most", 181)
    assert found == Halving(count, 0, most, most)
    assert found.num_iterations == count * most


@given(st.integers(0, 400), st.integers(1, 40), st.integers(1, 8))
def test_a_trial_never_costs_more_than_all_starts_to_the_end(most, num_starts, num_chains):
    found = halving(most, num_starts, num_chains)
    assert found.num_iterations <= num_starts * most
    assert found.last >= most


def test_finalists_are_those_that_were_best_after_their_first_round():
    """However far they have come since; and a start that ended early is judged by where it ended."""
    found = Halving(num_starts=4, num_finalists=2, first=2, last=9)
    reached = [state(0.0, 1.0, 2.0, 99.0), state(0.0, 5.0), state(0.0, 1.0, 3.0), state(np.nan)]
    assert finalists(found, reached) == [1, 2]
