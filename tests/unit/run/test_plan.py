"""The stages of a run, and how long its blocks are."""

import numpy as np
import pytest

from tests.support.builders import config_of_run, plain_spec
from tfbnn.kernels import HMC, PowerPosterior
from tfbnn.run.plan import Plan, Stage, block_length, make_plan, make_stages


def test_first_80_percent_adapt():
    stages = make_stages(HMC(), num_burnin_steps=1000, num_results=10, stride=3)
    warmup = [stage for stage in stages if stage.phase == "warmup"]
    assert sum(stage.length for stage in warmup if stage.adapt_step) == 800
    assert warmup[-1].length == 200 and not warmup[-1].adapt_step
    assert stages[-1].phase == "sampling" and stages[-1].length == 30
    assert not stages[-1].adapt_step and not stages[-1].renew


def test_fixed_step_and_identity_adapt_nothing():
    stages = make_stages(HMC(step_size=0.1, preconditioner="identity"), 100, 5, 1)
    assert not any(stage.adapt_step or stage.renew for stage in stages)


@pytest.mark.parametrize(
    "sizes, kernel, num_chains", [([2, 4, 1], HMC(), 1), ([2, 3000, 1], PowerPosterior(), 8)]
)
def test_the_draws_of_a_block_have_little_memory(sizes, kernel, num_chains):
    spec, rungs = plain_spec(sizes), len(kernel.temperatures)
    length = block_length(spec, kernel, num_chains, 10**6)
    memory = 8 * length * spec.layout.num_parameters * num_chains * rungs
    assert length == 4096 or 32e6 < memory <= 64e6


def test_a_block_is_no_longer_than_the_run():
    assert block_length(plain_spec([2, 4, 1]), HMC(), 1, total=100) == 64


def test_folds_of_different_length_have_the_same_blocks():
    """Else each would compile a program of its own. A run that was begun keeps its length."""
    few, many = (
        config_of_run(plain_spec([2, 4, 1]), x, x[:, :1], num_chains=1)
        for x in (np.zeros([9, 2]), np.zeros([100_000, 2]))
    )
    plan = make_plan(HMC(), few, [[0]])
    assert plan == make_plan(HMC(), many, [[0]]) and plan.block_length > 1
    assert make_plan(HMC(), few, [[0]], 3).block_length == 3


def test_the_beginning_of_a_plan_keeps_the_rules_of_its_stages():
    warmup = [Stage("warmup", 8, adapt_step=True, renew=True), Stage("warmup", 2)]
    whole, cut = (
        Plan([[0]], 16, [*warmup, Stage("sampling", 3 * count, adapt_step=True)], count, 3)
        for count in (10, 4)
    )
    assert whole.cut_to(4) == cut
