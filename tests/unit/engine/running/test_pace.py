"""A block is given work that stays prompt, whatever transitions cost; the tests turn the clock."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfbnn.engine.sampling.work import BLOCK_SECONDS, FIRST, Work, next_work

LONGEST = 4096


def run_block(at_most, gradients, seconds):
    """(what a block does of transitions that take so many gradients and seconds, how long it takes).

    As the compiled one: it looks at its limits before every transition but the first.
    """
    made, lasted = Work(0, 0), 0.0
    for number, (count, duration) in enumerate(zip(gradients, seconds)):
        num_transitions = min(at_most.transitions, LONGEST)
        if number and (number >= num_transitions or made.gradients >= at_most.gradients):
            break
        made, lasted = Work(number + 1, made.gradients + int(count)), lasted + duration
    return made, lasted


def run(gradients, seconds):
    """Blocks of a chain group from its first transition to its last: [(work, seconds, longest of one)]."""
    at_most, blocks, done = FIRST, [], 0
    while done < len(gradients):
        made, lasted = run_block(at_most, gradients[done:], seconds[done:])
        blocks.append((made, lasted, seconds[done : done + made.transitions].max()))
        done, at_most = done + made.transitions, next_work(made, lasted)
    return blocks


@given(
    per_gradient=st.floats(1e-6, 10.0),
    overhead=st.floats(0.0, 1.0),
    depths=st.lists(st.tuples(st.integers(0, 10), st.integers(1, 100)), min_size=1, max_size=9),
)
def test_no_block_is_long_beyond_one_transition(per_gradient, overhead, depths):
    """Trees of NUTS that are a thousand times deeper here than there, and what each costs besides."""
    gradients = np.concatenate([np.full(times, 2**depth) for depth, times in depths])
    seconds = per_gradient * (gradients + overhead)
    for _, lasted, longest in run(gradients, seconds):
        assert lasted <= (1.0 + overhead) * BLOCK_SECONDS + longest + 1e-9


@pytest.mark.parametrize("gradients", [0, 1], ids=["without gradients", "with a dear metric"])
@pytest.mark.parametrize("duration", [1e-4, 0.3, 100.0])
def test_transitions_rule_where_gradients_say_nothing(gradients, duration):
    num_transitions = {1e-4: 20_000, 0.3: 100, 100.0: 10}[duration]
    blocks = run(np.full(num_transitions, gradients), np.full(num_transitions, duration))
    lasted = np.array([seconds for _, seconds, _ in blocks])
    assert lasted.max() <= max(BLOCK_SECONDS, duration) + 1e-9
    # Neither are they shorter than they need to be, but for the first ones and the last.
    ample = min(BLOCK_SECONDS, LONGEST * duration)
    assert np.all(lasted[4:-1] >= 0.6 * ample)


def test_fast_groups_reach_full_blocks_soon():
    blocks = run(np.full(10_000, 8), np.full(10_000, 5e-5))
    assert [made.transitions for made, _, _ in blocks[:4]] == [1, 16, 256, LONGEST]


def test_the_next_block_follows_the_time_of_the_last():
    assert next_work(Work(1000, 8000), 71.0) == Work(14, 112)
    assert next_work(Work(1, 1023), 71.0) == Work(1, 14)
    assert next_work(Work(1, 64), 64 * 0.1) == Work(1, 10)
    assert next_work(Work(2, 6), 0.0) == Work(32, 96)  # no time by the clock
