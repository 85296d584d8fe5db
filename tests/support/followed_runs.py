"""A run folder that a test moves on, without an engine, for those who follow it."""

from dataclasses import replace

import numpy as np

from tests.support.builders import definition_of, make_rows, plain_spec, random_statistics
from tfbnn.run.counters import Counters
from tfbnn.run.definition import Beginning, Layout, Starts
from tfbnn.run.description import make_run
from tfbnn.storage import RunFolder

SPEC = plain_spec([2, 3, 1])
NUM_WARMUP, NUM_RESULTS = 300, 40


class FakeRun:
    """A run of two lanes that a test moves on."""

    def __init__(self, path):
        self.path = path
        self.lanes = [Counters.nothing([chain]) for chain in (0, 1)]
        self.generator = np.random.default_rng(0)

    def begin(self):
        sampling = dict(num_chains=2, num_burnin_steps=NUM_WARMUP, num_results=NUM_RESULTS)
        definition = definition_of(SPEC, *make_rows(30, 2, 1), **sampling)
        starts = Starts(np.zeros((2, SPEC.layout.num_parameters)), "draws of the prior")
        beginning = Beginning(starts, np.zeros(2), Layout([[0], [1]], 16), False)
        with RunFolder.reserved(self.path) as make:
            make_run(make, definition, beginning)

    def commit(self, phase, count, seconds, divergent=0):
        """Both lanes make transitions of a phase and commit them."""
        for index, lane in enumerate(self.lanes):
            lane = lane.after_block(
                phase,
                count,
                np.array([0.8 * count]),
                np.array([count]),
                step_size=np.array([0.05]),
                num_divergent=np.array([divergent]),
            )
            self.lanes[index] = lane = replace(lane, seconds=seconds)
            with RunFolder.open(self.path).writer(index) as writer:
                if phase == "sampling":
                    shape = count, 1
                    draws = self.generator.normal(size=(*shape, SPEC.layout.num_parameters))
                    writer.append(draws, random_statistics(shape, self.generator))
                writer.commit({}, lane.to_json())

    def warm_up(self, count, seconds):
        return lambda: self.commit("warmup", count, {"warmup": seconds, "sampling": 0.0})

    def sample(self, count, seconds, divergent):
        spent = {"warmup": 60.0, "sampling": seconds}
        return lambda: self.commit("sampling", count, spent, divergent)
