"""A chain group: the chains that advance together in one compiled program, and their state."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tfbnn.diagnostics.sample_stats import STATISTICS
from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.adaptation import (
    DualAveraging,
    find_initial_step_size,
    restart_dual_averaging,
    restart_moments,
)
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.linear_map import (
    DiagonalMap,
    LinearMap,
    as_tensors,
    diagonal_map,
    scaling_map,
    whitening_map,
)
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import rows_per_block
from tfbnn.engine.density.value_and_gradient import of_posterior
from tfbnn.engine.sampling.block import BlockControl, BlockOutput, ChainState, make_bootstrap
from tfbnn.engine.sampling.program import Program
from tfbnn.engine.sampling.work import UNLIMITED, Work
from tfbnn.exceptions import RunFolderError
from tfbnn.run.counters import Counters
from tfbnn.run.plan import Stage
from tfbnn.run.stores import Sink
from tfbnn.system.arrays import Array

# Log densities relative to the reference that float32 resolves to a thousandth or better.
_FAR = 2.0**13
# Share of warm-up in which a user's kernel may be restarted: it is expected to adapt in four
# fifths.
_EARLY = 0.2


class ChainGroup:
    """Chains that advance together: usually one on a CPU, all on a GPU or if the kernel couples them.

    Only one thread at a time advances it. State, counters and the contents of its sink change
    together at the end of a block, so that another thread may `leave` it during a block.

    Attributes:
        plan: Plan of the run, or the first part of it, to which the group should advance now.
        state: ChainState at the end of the last block.
        counters: Counters at the end of the last block.
    """

    def __init__(self, program: Program, chains: Sequence[int], theta: Array, sink: Sink) -> None:
        """Make a ChainGroup.

        Args:
            program: `Program` that all chain groups share.
            chains: Indices of the chains.
            theta: Starts of the chains [len(chains), P], used for all rungs of a chain.
            sink: Sink for kept theta.
        """
        self.program, self.plan, self._whole = program, program.plan, program.plan
        # The chains of a group share its keys, and no two groups share keys.
        self.key_chain = chains[0] if len(chains) == 1 else -1 - chains[0]
        self.sink = sink
        self._ending_block, self._is_left = threading.Lock(), False
        self.counters = Counters.nothing(chains)
        start = program.potential.coordinates(theta, program.data)
        rows = np.repeat(start, len(program.settings.temperatures), axis=0)
        self.state = self._start(rows, self._first_map(rows), 0)
        self.counters = replace(self.counters, step_size=self._step_size(self.state, 0))

    @property
    def chains(self) -> list[int]:
        """Indices of the chains."""
        return self.counters.chains

    @property
    def num_kept(self) -> int:
        """Number of draws kept so far, per chain."""
        return self.plan.num_kept(self.counters.transition)

    @property
    def stage(self) -> Stage | None:
        """Current stage, or None if the group should advance no further."""
        return self.plan.stage(self.counters.transition)

    def advance(self, at_most: Work | None = None) -> Work:
        """Run one block, and renew the preconditioner at the end of a stage that requires it.

        Args:
            at_most: Work after which the block ends, by default the plan's block length. At least
                one transition is made. The number of transitions changes no draw.

        Returns:
            Work that was done.
        """
        counters = self.counters
        stage_index, done = self.plan.position(counters.transition)
        stage = self.plan.stages[stage_index]
        state, output = self._run_block(stage, done, at_most)
        count = int(output.num_transitions)
        num_refused = self._num_refused(state, count)
        num_divergent, kept = counters.num_divergent, None
        if stage.phase == "sampling":
            num_divergent = num_divergent + output.num_divergent.numpy()
            kept = self._kept(count, output)
        if stage.renew and done + count == stage.length:
            point = state.linear_map.forward(state.z).numpy()
            linear_map = self._renewed_map(state, point, stage.length)
            state = self._start(point, linear_map, stage_index)
        elif stage.phase == "warmup" and done + count == stage.length:
            state = self._with_near_reference(state, stage_index)
        new = counters.after_block(
            stage.phase,
            count,
            output.acceptance_sum.numpy(),
            output.num_gradients.numpy(),
            num_divergent=num_divergent,
            num_refused=num_refused,
            step_size=self._step_size(state, counters.transition + count),
        )
        with self._ending_block:
            if not self._is_left:
                if kept is not None:
                    self.sink.append(*kept)
                self.state, self.counters = state, new
                self.sink.after_block(self, phase_ended=not self.is_in(stage.phase))
        return Work(count, int(output.num_sequential))

    def aim(self, num_results: int) -> None:
        """Let the group advance until it has kept `num_results` draws per chain."""
        self.plan = self._whole.cut_to(num_results)

    def cut_warmup(self, length: int) -> None:
        """End warm-up after `length` transitions, now and whenever the group is restored."""
        self.plan = self._whole = self.program.plan.with_warmup_cut(length)
        self.counters = replace(self.counters, warmup_cut=length)

    def leave(self) -> None:
        """Abandon the group: a block that is still running has no effect when it ends."""
        with self._ending_block:
            self._is_left = True

    def is_in(self, phase: str) -> bool:
        """Check whether the next transition belongs to `phase`."""
        stage = self.stage
        return stage is not None and stage.phase == phase

    def snapshot(self) -> dict[str, Array]:
        """Return the arrays that determine the group's future besides its program and counters."""
        leaves = tf.nest.flatten(self.state)
        return dict(zip(_leaf_names(leaves), (leaf.numpy() for leaf in leaves)))

    def restore(self, arrays: dict[str, Array], counters: Counters) -> None:
        """Continue from a snapshot of a chain group with the same program, which may have fewer results.

        Raises:
            RunFolderError: If the snapshot is from another program.
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
        self.counters = replace(counters, seconds=None)
        if counters.warmup_cut is not None:
            self.cut_warmup(counters.warmup_cut)

    def _run_block(
        self, stage: Stage, done: int, at_most: Work | None
    ) -> tuple[ChainState, BlockOutput]:
        """Call the compiled block, `done` transitions after the beginning of a stage."""
        program, plan = self.program, self.plan
        transitions, max_gradients = at_most or Work(plan.block_length, UNLIMITED)
        count = min(max(1, transitions), plan.block_length, stage.length - done)
        keys = np.zeros((plan.block_length, 2), np.int32)
        keys[:count] = seeds.keys(
            program.seed, "transition", self.key_chain, self.counters.transition, count
        )
        control = BlockControl(
            num_transitions=tf.constant(count),
            max_gradients=tf.constant(max_gradients),
            first=tf.constant(done % plan.stride),
            stride=tf.constant(plan.stride),
            adapt_step=tf.constant(stage.adapt_step),
            collect_moments=tf.constant(stage.renew),
        )
        with program.turn:
            return program.block(program.data, self.state, tf.constant(keys), control)

    def _step_size(self, state: ChainState, transition: int) -> Array:
        """Return the current step sizes [C] after `transition` transitions."""
        step, stage = state.step, self.plan.stage(transition)
        adapting = stage is not None and stage.adapt_step
        rows = np.exp(np.asarray(step.log_step if adapting else step.log_average))
        return of_posterior(rows, self.program.settings.temperatures).astype(float)

    def _num_refused(self, state: ChainState, count: int) -> Array:
        moved = of_posterior(
            tf.not_equal(state.z, self.state.z).numpy(), self.program.settings.temperatures
        )
        return np.where(moved.any(axis=1), 0, self.counters.num_refused + count)

    def _kept(self, count: int, output: BlockOutput) -> tuple[Array, dict[str, Array]] | None:
        """Return the draws and statistics that `count` more transitions have completed, if any."""
        num_new = self.plan.num_kept(self.counters.transition + count) - self.num_kept
        if not num_new:
            return None
        draws, statistics = self.program.complete(
            output.draws.numpy()[:num_new],
            {name: values.numpy()[:num_new] for name, values in output.statistics.items()},
            self.chains,
            self.num_kept,
        )
        for name, kind in STATISTICS.items():
            statistics[name] = statistics[name].astype(kind.dtype)
        return draws, statistics

    def _first_map(self, point: Array) -> LinearMap:
        if self.program.settings.preconditioner == "gauss_newton":
            return self._whitening_map(point)
        is_prior = self.program.settings.preconditioner == "prior"
        return scaling_map(self.program.potential.prior_scales if is_prior else 1.0, point)

    def _renewed_map(self, state: ChainState, point: Array, num_draws: int) -> LinearMap:
        if self.program.settings.preconditioner == "gauss_newton":
            return self._whitening_map(point)
        variance = state.moments.squares.numpy() / max(num_draws - 1, 1)
        if self.program.settings.couples_chains:
            # Chains that learn from each other need the same coordinates.
            variance = np.broadcast_to(variance.mean(axis=0), variance.shape)
        return diagonal_map(variance, num_draws, cast(DiagonalMap, state.linear_map))

    def _whitening_map(self, point: Array) -> LinearMap:
        potential, data = cast(Potential, self.program.potential), self.program.data
        curvature = [potential.curvature(chain, data) for chain in point]
        return whitening_map(point, np.stack(curvature))

    def _with_near_reference(self, state: ChainState, stage_index: int) -> ChainState:
        """Return the state at the end of a stage, with a new reference if the log density is far from it.

        Chains may have climbed by millions since the reference was measured, and the differences
        that decide acceptance would be lost in float32 rounding. Kernels with a memory are
        restarted only while they can learn it again; a user's kernel only in the first fifth of
        warm-up.
        """
        settings = self.program.settings
        if self.program.spec.dtype == "float64":
            return state
        if settings.has_memory and self._is_late(stage_index):
            return state
        if not np.max(np.abs(settings.target_log_prob(state.results).numpy())) > _FAR:
            return state
        point = state.linear_map.forward(state.z).numpy()
        reference, results = self._begun(point, state.z, state.linear_map, state.step)
        return state._replace(results=results, reference=reference)

    def _is_late(self, stage_index: int) -> bool:
        """Check whether it is too late for a kernel to learn its memory again after this stage."""
        stages = self.plan.stages
        if self.program.settings.adapts:
            return not any(stage.adapt_step for stage in stages[stage_index + 1 :])
        over = sum(stage.length for stage in stages[: stage_index + 1])
        return over > _EARLY * self.plan.num_transitions("warmup")

    def _begun(
        self, point: Array, z: Any, linear_map: LinearMap, step: DualAveraging
    ) -> tuple[Any, Any]:
        """Return (log density at a point [R, P], kernel results there relative to it)."""
        program = self.program
        reference = tf.constant(program.value_and_gradient(point)[0])
        # Mostly one gradient by an existing program. Everything else that a kernel needs is compiled only
        # if there is more than one block of rows.
        is_compiled = program.data.length > rows_per_block(program.spec, len(z))
        bootstrap = make_bootstrap(program.spec, program.settings, is_compiled)
        z = tf.convert_to_tensor(z)
        return reference, bootstrap(z, program.data, linear_map, reference, step)

    def _start(self, point: Array, linear_map: LinearMap, stage_index: int) -> ChainState:
        """Start or restart the kernel at a point [R, P] with a new linear map."""
        program = self.program
        z = np.asarray(linear_map.inverse(point))
        if program.settings.step_size is not None:
            step_size = np.full(len(point), program.settings.step_size, np.float32)
        elif program.settings.adapts:
            generator = seeds.generator(program.seed, "step size", self.key_chain, stage_index)
            leapfrog = find_initial_step_size(program.value_and_gradient, z, linear_map, generator)
            step_size = program.settings.first_step_size(leapfrog, z.shape[-1])
        else:  # a user's kernel has its own step size, which is unknown
            step_size = np.full(len(point), np.nan, np.float32)
        step = restart_dual_averaging(step_size)
        linear_map = as_tensors(linear_map)
        reference, results = self._begun(point, z, linear_map, step)
        program.settings.check_start(results, self.chains)
        return ChainState(
            z=tf.constant(z),
            results=results,
            linear_map=linear_map,
            reference=reference,
            step=step,
            moments=restart_moments(point.shape, point.dtype),
        )


def _leaf_names(leaves: Sequence[Any]) -> list[str]:
    return [f"state_{index:03d}" for index in range(len(leaves))]
