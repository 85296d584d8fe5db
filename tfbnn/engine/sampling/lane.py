"""A lane: the chains that advance together in one compiled program, and where they are."""

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.adaptation import (
    DualAveraging,
    RunningMoments,
    find_initial_step_size,
    restart_dual_averaging,
    restart_moments,
)
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.rungs import of_posterior
from tfbnn.engine.sampling.block import BlockControl, ChainState, bootstrap
from tfbnn.engine.sampling.linear_map import as_tensors, diagonal_map, identity_map, whitening_map
from tfbnn.exceptions import RunFolderError
from tfbnn.run.result import PHASES


class Lane:
    """One chain on a CPU; all chains on a GPU, or where the kernel couples them.

    Not shared between threads while it advances.

    Attributes:
        chains: Indices of its chains.
        num_kept: Draws kept so far, per chain.
        num_refused: Transitions since the last block in which a chain accepted anything [C].
        is_between_blocks: Whether state and counts belong together; not during a block, nor after
            one that failed.
    """

    def __init__(self, program, chains, theta, sink):
        """
        Args:
            program: The `Program` that all lanes share.
            chains: Indices of the chains.
            theta: Their starts [len(chains), P]; all rungs of a chain start there.
            sink: Where kept theta goes, see `tfbnn.engine.running.sinks`.
        """
        self.program = program
        self.chains = list(chains)
        self.key_chain = self.chains[0] if len(self.chains) == 1 else -1
        self.sink = sink
        self.num_kept = 0
        self.leg_index, self.done_in_leg = 0, 0
        self.transition = 0
        self.is_between_blocks = True
        self.phase_transitions = dict.fromkeys(PHASES, 0)
        self.acceptance_sum = {phase: np.zeros(len(self.chains)) for phase in PHASES}
        self.num_gradients = {phase: np.zeros(len(self.chains), int) for phase in PHASES}
        self.num_divergent = np.zeros(len(self.chains), int)
        self.num_refused = np.zeros(len(self.chains), int)
        self.recent_acceptance = np.full(len(self.chains), np.nan)
        start = program.potential.coordinates(theta, program.data)
        rows = np.repeat(start, len(program.settings.temperatures), axis=0)
        self._start(rows, self._first_map(rows))

    @property
    def leg(self):
        """The leg the lane is in, or None at the end."""
        # Read once: another thread may be closing the leg.
        legs, index = self.program.legs, self.leg_index
        return legs[index] if index < len(legs) else None

    @property
    def step_size(self):
        """Step sizes in use [C]."""
        step = self.state.step
        adapting = self.leg is not None and self.leg.adapt_step
        rows = np.exp(np.asarray(step.log_step if adapting else step.log_average))
        return of_posterior(rows, self.program.settings.temperatures)

    def advance(self):
        """Runs one block, and closes the leg when it is done."""
        leg, program = self.leg, self.program
        self.is_between_blocks = False
        count = min(program.block_length, leg.length - self.done_in_leg)
        keys = np.zeros((program.block_length, 2), np.int32)
        keys[:count] = seeds.keys(
            program.seed, "transition", self.key_chain, self.transition, count
        )
        control = BlockControl(
            num_transitions=tf.constant(count),
            first=tf.constant(self.done_in_leg),
            stride=tf.constant(program.stride),
            adapt_step=tf.constant(leg.adapt_step),
            collect_moments=tf.constant(leg.renew),
        )
        before = self.state.z
        self.state, output = program.block(program.data, self.state, tf.constant(keys), control)
        self._account(leg, count, output)
        self._watch_for_standstill(before, count)
        self.transition += count
        self.done_in_leg += count
        if self.done_in_leg == leg.length:
            self._close_leg(leg)
        self.is_between_blocks = True
        self.sink.after_block(self, phase_ended=not self.is_in(leg.phase))

    def is_in(self, phase):
        """Whether the next transition belongs to `phase`."""
        leg = self.leg
        return leg is not None and leg.phase == phase

    def counters(self):
        """What the lane has counted, JSON-able; None stands for NaN."""
        return {
            "chains": self.chains,
            "transition": self.transition,
            "transitions": dict(self.phase_transitions),
            "acceptance_sum": {name: _listed(sums) for name, sums in self.acceptance_sum.items()},
            "num_gradients": {name: _listed(counts) for name, counts in self.num_gradients.items()},
            "num_divergent": _listed(self.num_divergent),
            "num_refused": _listed(self.num_refused),
            "recent_acceptance": _listed(self.recent_acceptance),
            "step_size": _listed(self.step_size),
        }

    def snapshot(self):
        """Everything that decides the lane's future besides its program.

        Returns:
            (dict name -> array, JSON-able dict of counters).
        """
        leaves = tf.nest.flatten(self.state)
        return dict(zip(_leaf_names(leaves), (leaf.numpy() for leaf in leaves))), self.counters()

    def restore(self, arrays, counters):
        """Goes on from a snapshot of a lane with the same program, which may have fewer results.

        Raises:
            RunFolderError: When the snapshot is of another program.
        """
        leaves = tf.nest.flatten(self.state)
        names = _leaf_names(leaves)
        expected = {name: (leaf.dtype.name, tuple(leaf.shape)) for name, leaf in zip(names, leaves)}
        found = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
        for name in sorted(expected.keys() | found.keys()):
            if expected.get(name) != found.get(name):
                raise RunFolderError(
                    f"The checkpoint of chains {self.chains} is not one of this run: {name} must "
                    f"be {expected.get(name)}, found {found.get(name)}."
                )
        self.state = tf.nest.pack_sequence_as(
            self.state, [tf.constant(arrays[name]) for name in names]
        )
        self._go_to(counters["transition"])
        for name in PHASES:
            self.acceptance_sum[name] = np.array(counters["acceptance_sum"][name], float)
            self.num_gradients[name] = np.array(counters["num_gradients"][name], int)
        self.num_divergent = np.array(counters["num_divergent"], int)
        self.num_refused = np.array(counters["num_refused"], int)

    def _go_to(self, transition):
        """Sets leg and counts to those after so many transitions, at the end of a block."""
        self.leg_index, self.done_in_leg, self.transition = 0, transition, transition
        self.phase_transitions = dict.fromkeys(PHASES, 0)
        for leg in self.program.legs:
            self.phase_transitions[leg.phase] += min(self.done_in_leg, leg.length)
            if self.done_in_leg < leg.length:
                break
            self.leg_index += 1
            self.done_in_leg -= leg.length
        self.num_kept = self.phase_transitions["sampling"] // self.program.stride

    def _account(self, leg, count, output):
        acceptance = output.acceptance_sum.numpy()
        self.phase_transitions[leg.phase] += count
        self.acceptance_sum[leg.phase] += acceptance
        self.num_gradients[leg.phase] += output.num_gradients.numpy()
        self.recent_acceptance = acceptance / count
        if leg.phase == "sampling":
            self.num_divergent += output.num_divergent.numpy()
            self._keep(count, output)

    def _watch_for_standstill(self, before, count):
        moved = of_posterior(
            tf.not_equal(self.state.z, before).numpy(), self.program.settings.temperatures
        )
        self.num_refused = np.where(moved.any(axis=1), 0, self.num_refused + count)

    def _keep(self, count, output):
        stride = self.program.stride
        num_new = (self.done_in_leg + count) // stride - self.done_in_leg // stride
        if not num_new:
            return
        draws, statistics = self.program.complete(
            output.draws.numpy()[:num_new],
            {name: values.numpy()[:num_new] for name, values in output.statistics.items()},
            self.chains,
            self.num_kept,
        )
        statistics = {
            name: statistics[name].astype(dtype)
            for name, (_, dtype) in self.program.statistics.items()
        }
        self.sink.append(draws, statistics)
        self.num_kept += num_new

    def _close_leg(self, leg):
        if leg.renew:
            point = self.state.linear_map.forward(self.state.z).numpy()
            self._start(point, self._renewed_map(point, leg.length))
        self.leg_index += 1
        self.done_in_leg = 0

    def _first_map(self, point):
        if self.program.settings.preconditioner == "gauss_newton":
            return self._whitening_map(point)
        return identity_map(point.shape, point.dtype)

    def _renewed_map(self, point, num_draws):
        if self.program.settings.preconditioner == "gauss_newton":
            return self._whitening_map(point)
        variance = self.state.moments.squares.numpy() / max(num_draws - 1, 1)
        if self.program.settings.couples_chains:
            # Chains that learn from each other need the same coordinates.
            variance = np.broadcast_to(variance.mean(axis=0), variance.shape)
        return diagonal_map(variance, num_draws, self.state.linear_map)

    def _whitening_map(self, point):
        program = self.program
        curvature = [program.potential.curvature(chain, program.data) for chain in point]
        return whitening_map(point, np.stack(curvature))

    def _start(self, point, linear_map):
        """(Re)starts the kernel at a point [R, P] under a new linear map."""
        program = self.program
        z = np.asarray(linear_map.inverse(point))
        if program.settings.step_size is not None:
            step_size = np.full(len(point), program.settings.step_size, np.float32)
        elif program.settings.adapts:
            generator = seeds.generator(program.seed, "step size", self.key_chain, self.leg_index)
            leapfrog = find_initial_step_size(program.value_and_gradient, z, linear_map, generator)
            step_size = program.settings.first_step_size(leapfrog, z.shape[-1])
        else:  # a kernel that the user built has its own, which is not known
            step_size = np.full(len(point), np.nan, np.float32)
        step = DualAveraging(*map(tf.constant, restart_dual_averaging(step_size)))
        linear_map = as_tensors(linear_map)
        reference = tf.constant(program.value_and_gradient(point)[0])
        results = bootstrap(
            program.spec, program.settings, program.data, z, linear_map, reference, step
        )
        program.settings.check_start(results, self.chains)
        self.state = ChainState(
            z=tf.constant(z),
            results=results,
            linear_map=linear_map,
            reference=reference,
            step=step,
            moments=RunningMoments(*map(tf.constant, restart_moments(point.shape, point.dtype))),
        )


def _leaf_names(leaves):
    return [f"state_{index:03d}" for index in range(len(leaves))]


def _listed(values):
    return [None if value != value else value for value in np.asarray(values).tolist()]
