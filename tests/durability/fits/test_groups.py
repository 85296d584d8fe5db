"""A chain group that goes on from a snapshot makes the very draws of one that was never interrupted."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import tfbnn
from tests.support.builders import config_of_run
from tests.support.marks import statistics_but
from tfbnn.engine.density.data import make_data
from tfbnn.engine.kernels.registry import (
    available,
    kernel_from_json,
    kernel_to_json,
    resolve_kernel,
)
from tfbnn.engine.sampling.chain_group import ChainGroup
from tfbnn.engine.sampling.program import make_program
from tfbnn.engine.sampling.work import Work
from tfbnn.engine.starts.check import draw_prior
from tfbnn.exceptions import RunFolderError
from tfbnn.kernels import HMC, NUTS, SMMALA, ChEESHMC, Microcanonical, PowerPosterior, Repriorised
from tfbnn.run.counters import Counters
from tfbnn.run.plan import make_plan

# Of other kernels the defaults.
SMALL = {
    "chees_hmc": ChEESHMC(max_leapfrog_steps=4),
    "hmc": HMC(num_leapfrog_steps=3),
    "microcanonical": Microcanonical(max_leapfrog_steps=4),
    "nuts": NUTS(max_tree_depth=2),
    "power_posterior": PowerPosterior("mala", num_temperatures=3),
    "repriorised": Repriorised(HMC(num_leapfrog_steps=3)),
    "smmala": SMMALA(metric="gauss_newton"),
}
BLOCK = 5
# XLA takes seconds for each kernel, and what belongs to the state of a kernel does not depend on it.
WITH_XLA = [("hmc", True)]
# Those of one proposal and one step of acceptance have the state of SMMALA but for its metric, and
# `repriorised` is in the test of any block.
ALIKE = {"hmc", "mala", "pcn", "pcnl", "random_walk_metropolis", "repriorised", "truncated_mala"}


class Draws:
    """A sink that keeps draws and statistics in lists."""

    def __init__(self):
        self.draws, self.statistics = [], []

    def append(self, draws, statistics):
        self.draws.extend(draws)
        self.statistics.append(statistics)

    def after_block(self, group, phase_ended):
        pass


def make_groups(name, count, stride=2, kernel=None, jit_compile=True):
    """Chain groups of two chains with a short warm-up whose windows end within it, and twelve draws."""
    prior = tfbnn.priors.Uniform(-2, 2) if name == "truncated_mala" else tfbnn.priors.Normal(1.0)
    spec = tfbnn.BayesianMLP([1, 2, 1], prior=prior, dtype="float64").spec
    x = np.linspace(-1, 1, 6)[:, None]
    kernel = kernel or SMALL.get(name) or resolve_kernel(name)
    settings, _ = kernel.resolve(spec, len(x))
    theta = draw_prior(spec, 1, 2)
    config = config_of_run(
        spec,
        x,
        np.sin(2 * x),
        seed=3,
        num_chains=2,
        num_results=12,
        num_burnin_steps=40,
        num_steps_between_results=stride - 1,
        jit_compile=jit_compile,
    )
    plan = make_plan(settings, config, [[0, 1]], BLOCK)
    data = make_data(x, np.sin(2 * x), None, spec.dtype)
    program = make_program(settings, config, data, plan)
    return [ChainGroup(program, [0, 1], theta, Draws()) for _ in range(count)]


def run_to_the_end(group):
    """Snapshots at the ends of all blocks, and the number of draws then."""
    snapshots = []
    while group.stage is not None:
        group.advance()
        snapshots.append((group.snapshot(), group.counters.to_json(), group.num_kept))
    return snapshots


def assert_goes_on(snapshots, index, whole, fresh):
    """Restores `fresh` from a snapshot and compares what follows with the whole run."""
    arrays, counters, num_kept = snapshots[index]
    fresh.sink = Draws()
    # As a file keeps them.
    counters = json.loads(json.dumps(counters, allow_nan=False))
    fresh.restore(arrays, Counters.from_json(counters))
    assert fresh.num_kept == num_kept and fresh.counters.to_json() == counters
    run_to_the_end(fresh)
    np.testing.assert_array_equal(fresh.sink.draws, whole.sink.draws[num_kept:])
    for name in whole.sink.statistics[0]:
        found, expected = (
            np.concatenate([part[name] for part in group.sink.statistics])
            for group in (fresh, whole)
        )
        np.testing.assert_array_equal(found, expected[num_kept:])
    assert fresh.counters.to_json() == whole.counters.to_json()
    found = fresh.snapshot()
    for name, array in whole.snapshot().items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.statistics
@pytest.mark.parametrize(
    "name, jit_compile", [*WITH_XLA, *((name, False) for name in available() if name not in ALIKE)]
)
def test_every_kernel_goes_on_bitwise(name, jit_compile):
    """From within the window of warm-up that renews the preconditioner, and from sampling.

    The latter between two transitions of which the second is kept.
    """
    whole, fresh = make_groups(name, 2, jit_compile=jit_compile)
    snapshots = run_to_the_end(whole)
    assert np.shape(whole.sink.draws) == (12, 2, 8)
    if whole.program.settings.preconditions:
        assert whole.program.plan.stages[1].renew
    transitions = [counters["transition"] for _, counters, _ in snapshots]
    for transition in (max(t for t in transitions if t <= 15), 45):
        assert_goes_on(snapshots, transitions.index(transition), whole, fresh)


def test_goes_on_from_the_end_of_any_block():
    kernel = HMC(num_leapfrog_steps=1, preconditioner="gauss_newton")
    kernel = Repriorised(kernel, collapse_readout=True)
    whole, fresh = make_groups("hmc", 2, stride=1, kernel=kernel, jit_compile=False)
    snapshots = run_to_the_end(whole)
    for index in range(0, len(snapshots), 3):
        assert_goes_on(snapshots, index, whole, fresh)


def test_a_thinned_chain_may_make_more_transitions_than_an_int32_counts():
    (group,) = make_groups("hmc", 1, jit_compile=False)
    group.plan = group.plan.cut_to(2**32)
    while group.is_in("warmup"):
        group.advance()
    group.counters = replace(group.counters, transition=group.counters.transition + 2**32)
    group.advance()
    assert len(group.sink.draws) == BLOCK // 2 and np.isfinite(group.sink.draws).all()


# Of the former all transitions take as many gradients, of the latter as many as they need.
THINNED = {"hmc": SMALL["hmc"], "nuts": NUTS(max_tree_depth=3)}


@pytest.fixture(scope="module", params=statistics_but(["hmc"], THINNED))
def thinned(request):
    """(group at its end, one of the same program, what that was at the start)."""
    whole, other = make_groups("hmc", 2, kernel=THINNED[request.param], jit_compile=False)
    beginning = other.snapshot(), other.counters
    run_to_the_end(whole)
    return whole, other, beginning


@hypothesis_settings(deadline=None, max_examples=2)
@given(limits=st.lists(st.builds(Work, st.integers(0, 7), st.integers(0, 20)), min_size=2))
@example(limits=[Work(1, 99), Work(3, 99), Work(2, 99), Work(99, 4)])
def test_blocks_of_any_length_make_the_same_draws(thinned, limits):
    """They end by their transitions, by their gradients, and at the ends of stages."""
    whole, other, (arrays, counters) = thinned
    other.sink = Draws()
    other.restore(arrays, counters)
    limits = itertools.cycle(limits)
    while other.stage is not None:
        other.advance(next(limits))
    np.testing.assert_array_equal(other.sink.draws, whole.sink.draws)
    for name in whole.sink.statistics[0]:
        found, expected = (
            np.concatenate([part[name] for part in group.sink.statistics])
            for group in (other, whole)
        )
        np.testing.assert_array_equal(found, expected)
    for name, array in whole.snapshot().items():
        np.testing.assert_array_equal(other.snapshot()[name], array)
    found, expected = (group.counters.to_json() for group in (other, whole))
    # Only this is of the last block alone.
    assert found | {"recent_acceptance": None} == expected | {"recent_acceptance": None}


def test_a_block_ends_by_its_gradients():
    """After the transition that reaches the limit, and after one at least."""
    (group,) = make_groups("hmc", 1, jit_compile=False)
    while group.stage.phase == "warmup":
        group.advance()
    # Three gradients a transition.
    for limit, transitions in ((0, 1), (1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (1000, BLOCK)):
        before = group.counters
        assert group.advance(Work(99, limit)) == Work(transitions, 3 * transitions)
        assert group.counters.transition == before.transition + transitions
        gradients = group.counters.num_gradients["sampling"] - before.num_gradients["sampling"]
        assert gradients.tolist() == [3 * transitions] * 2
    assert len(group.sink.draws) == group.num_kept == 7


def test_one_transition_is_always_made():
    (group,) = make_groups("hmc", 1, jit_compile=False)
    assert group.advance(Work(0, 99)) == group.advance(Work(0, 0)) == Work(1, 3)
    assert group.counters.transition == 2


@pytest.mark.statistics
def test_rows_that_move_together_count_once():
    """For the time that a block takes; the counters have the gradients of all rungs."""
    (group,) = make_groups("power_posterior", 1, jit_compile=False)
    made = group.advance(Work(2, 1000))
    assert made.transitions == 2
    assert group.counters.num_gradients["warmup"].tolist() == [3 * made.gradients] * 2


def test_a_block_that_was_left_changes_nothing():
    (group,) = make_groups("hmc", 1, jit_compile=False)
    while group.num_kept < 4:
        group.advance()
    before, counters, num_draws = group.snapshot(), group.counters, len(group.sink.draws)
    block = group.program.block

    def slow_block(*arguments):
        result = block(*arguments)
        group.leave()  # as another thread does, meanwhile
        return result

    group.program = replace(group.program, block=slow_block)
    group.advance()
    assert group.counters is counters and len(group.sink.draws) == num_draws
    for name, array in before.items():
        np.testing.assert_array_equal(group.snapshot()[name], array)


def test_a_checkpoint_of_another_run_is_refused():
    (group,), (other,) = make_groups("hmc", 1), make_groups("nuts", 1)
    arrays, counters = group.snapshot(), group.counters
    with pytest.raises(RunFolderError, match="checkpoint of chains .0, 1.*state_0"):
        other.restore(arrays, counters)
    with pytest.raises(RunFolderError, match="state_000 must be .*float64.*found None"):
        group.restore({n: a for n, a in arrays.items() if n != "state_000"}, counters)
    with pytest.raises(RunFolderError, match="float32"):
        group.restore(arrays | {"state_000": arrays["state_000"].astype("float32")}, counters)


class TestSettingsAsJSON:
    @pytest.mark.parametrize("name", available())
    def test_round_trip(self, name):
        for settings in (resolve_kernel(name), SMALL.get(name, resolve_kernel(name))):
            text = json.dumps(kernel_to_json(settings), allow_nan=False)
            assert kernel_from_json(json.loads(text)) == settings

    def test_unknown_names_are_refused(self):
        for name in ("Gibbs", "Kernel", "CallableKernel.function", None):
            with pytest.raises(ValueError, match="expected one of"):
                kernel_from_json({"name": name})
        with pytest.raises(TypeError):
            kernel_from_json(kernel_to_json(HMC()) | {"colour": "red"})

    def test_of_a_callable_there_is_only_the_name(self):
        import tensorflow_probability as tfp

        def my_walk(target):
            return tfp.mcmc.RandomWalkMetropolis(target)

        entry = json.loads(json.dumps(kernel_to_json(resolve_kernel(my_walk))))
        assert entry["function"].endswith("my_walk")
        with pytest.raises(ValueError, match="resume=True, kernel="):
            kernel_from_json(entry)
