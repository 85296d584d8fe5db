"""Counters of chain groups, as checkpoints keep them, and the seconds of a run."""

import json

import numpy as np

from tfbnn.run.counters import Clock, Counters, Seconds

# As every release has written it into checkpoints.
ENTRY = {
    "chains": [0, 2],
    "transition": 30,
    "transitions": {"warmup": 20, "sampling": 10},
    "acceptance_sum": {"warmup": [15.5, None], "sampling": [9.25, 0.0]},
    "num_gradients": {"warmup": [60, 60], "sampling": [30, 30]},
    "num_divergent": [0, 3],
    "num_refused": [0, 10],
    "recent_acceptance": [0.925, 0.0],
    "step_size": [0.125, None],
    "seconds": {"warmup": 2.5, "sampling": 1.25},
}


def test_checkpoints_are_read_and_written_as_they_are():
    counters = Counters.from_json(ENTRY)
    assert json.dumps(counters.to_json()) == json.dumps(ENTRY)
    assert np.isnan(counters.step_size[1]) and counters.num_divergent.dtype.kind == "i"


def test_a_block_is_added_to_its_phase():
    before = Counters.nothing([1, 3])
    acceptance, gradients = np.array([2.0, 3.0], np.float32), np.array([8, 8], np.int32)
    first = before.after_block("warmup", 4, acceptance, gradients)
    second = first.after_block("sampling", 5, acceptance, gradients, num_divergent=np.array([0, 1]))
    assert second.transition == 9 and second.transitions == {"warmup": 4, "sampling": 5}
    np.testing.assert_array_equal(first.recent_acceptance, [0.5, 0.75])
    np.testing.assert_array_equal(second.num_gradients["warmup"], [8, 8])
    np.testing.assert_array_equal(second.num_divergent, [0, 1])
    assert before.transition == 0 and not before.num_gradients["warmup"].any()
    assert second.to_json().keys() == ENTRY.keys() - {"seconds"}


def test_the_seconds_of_a_run_are_those_of_its_slowest_group():
    groups = [Counters.from_json(ENTRY), Counters.nothing([1])]
    assert Seconds.committed(groups) == Seconds(warmup=2.5, sampling=1.25)
    assert Seconds.committed(groups[1:]) == Seconds()
    assert Seconds(compile=1.0) + Seconds(compile=2.0, warmup=1.0) == Seconds(0.0, 3.0, 0.0, 1.0)


def test_a_clock_counts_as_what_it_is_told(monkeypatch):
    now = iter([10.0, 12.0, 13.0, 20.0, 21.0])
    monkeypatch.setattr("tfbnn.run.counters.time.perf_counter", now.__next__)
    clock = Clock(Seconds(warmup=5.0))
    clock.count_as("compile")
    assert clock.seconds == Seconds(compile=2.0, warmup=5.0)
    clock.add(Seconds(sampling=1.0))
    assert clock.seconds == Seconds(compile=3.0, warmup=5.0, sampling=1.0)
