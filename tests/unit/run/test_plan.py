"""The legs of a run, and how long its blocks are."""

from tests.support.builders import plain_spec
from tfbnn.kernels import HMC
from tfbnn.run.plan import block_length, make_legs


def test_first_80_percent_adapt():
    legs = make_legs(HMC(), num_burnin_steps=1000, num_results=10, stride=3)
    warmup = [leg for leg in legs if leg.phase == "warmup"]
    assert sum(leg.length for leg in warmup if leg.adapt_step) == 800
    assert warmup[-1].length == 200 and not warmup[-1].adapt_step
    assert legs[-1].phase == "sampling" and legs[-1].length == 30
    assert not legs[-1].adapt_step and not legs[-1].renew


def test_fixed_step_and_identity_adapt_nothing():
    legs = make_legs(HMC(step_size=0.1, preconditioner="identity"), 100, 5, 1)
    assert not any(leg.adapt_step or leg.renew for leg in legs)


def test_blocks_shrink_with_the_work():
    small, large = plain_spec([2, 4, 1]), plain_spec([2, 5, 4, 1], parameterization="ntk")
    assert block_length(small, HMC(), 100, 1, 10**6) > 10 * block_length(
        large, HMC(), 10**6, 1, 10**6
    )
    assert block_length(small, HMC(), 10**12, 1, 100) == 1
