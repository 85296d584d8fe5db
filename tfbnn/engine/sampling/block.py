"""The one compiled program of a run: a block of transitions, for both warm-up and sampling.

Length, thinning and adaptation are run-time values, so a run compiles this program only once.
Results do not depend on the split of transitions into blocks, because random keys belong to
absolute transitions.

A block also ends after a limit of gradients. The number of gradients per transition may change a
thousandfold within a block, as with the trees of NUTS, and a block cannot be stopped from outside.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from tfbnn.diagnostics.sample_stats import STATISTICS
from tfbnn.engine.basis.adaptation import DualAveraging, RunningMoments, select
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.linear_map import LinearMap
from tfbnn.engine.density.potential import Density
from tfbnn.engine.density.value_and_gradient import Target, of_posterior
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.transition import TransitionStatistics
from tfbnn.spec.density_spec import Sampled

_ACCEPTANCE_UNITS = 2.0**30


class ChainState(NamedTuple):
    """State of a group of C chains that determines its future, apart from settings and keys.

    R is the number of rows: C, or C times the rungs of a chain (see
    `tfbnn.engine.density.value_and_gradient`). P is the number of the potential's coordinates,
    which are theta unless the kernel chooses others.

    Attributes:
        z: Positions in preconditioned coordinates [R, P].
        results: Results of the kernel.
        linear_map: Map with coordinates = linear_map.forward(z).
        reference: Log density [R], float64, subtracted before the kernel gets the density in
            float32, whose spacing at 5e4 would already be 0.004.
        step: Dual averaging of the step size.
        moments: Running moments of the coordinates since the last window.
    """

    z: Tensor
    results: Any
    linear_map: LinearMap
    reference: Tensor
    step: DualAveraging
    moments: RunningMoments


class BlockControl(NamedTuple):
    """Run-time settings of one block, all scalars.

    Attributes:
        num_transitions: Largest number of transitions, at most the number of the block's keys.
        max_gradients: No transition begins after this many sequential gradients, as counted by
            `BlockOutput.num_sequential`, except for the first one.
        first: Index of the first transition within its draw, of `stride` transitions.
        stride: Transitions per kept draw.
        adapt_step: Whether the step size and other quantities that a kernel tunes itself adapt.
        collect_moments: Whether the moments of the coordinates are collected.
    """

    num_transitions: Tensor
    max_gradients: Tensor
    first: Tensor
    stride: Tensor
    adapt_step: Tensor
    collect_moments: Tensor


class BlockOutput(NamedTuple):
    """Output of a block; only the slots of completed draws are meaningful.

    Attributes:
        num_transitions: Number of transitions made, scalar.
        num_sequential: Number of sequential gradients, scalar. For each transition it counts those
            of the row that took most, because rows move together and all wait for this one.
        draws: Kept coordinates [slots, C, P].
        statistics: Dict of the kept draws' statistics, [slots, C] each; with several rungs also
            rung_log_likelihood [slots, C, m].
        acceptance_sum: Sum of the acceptance rates of all transitions [C], float64. Each rate is
            rounded to a multiple of 2^-30, so that sums are exact for every split into blocks.
        num_divergent: Number of divergent transitions [C].
        num_gradients: Number of gradients of all rungs [C].
    """

    num_transitions: Tensor
    num_sequential: Tensor
    draws: Tensor
    statistics: dict[str, Tensor]
    acceptance_sum: Tensor
    num_divergent: Tensor
    num_gradients: Tensor


@lru_cache(maxsize=32)
def make_block(
    spec: Sampled, settings: Kernel, num_slots: int, jit_compile: bool
) -> Callable[..., tuple[ChainState, BlockOutput]]:
    """Build and cache the compiled block function.

    Args:
        spec: Spec of the model or log density.
        settings: Kernel settings.
        num_slots: Number of slots for kept draws in one block.
        jit_compile: Whether XLA compiles the block.

    Returns:
        Function (Data, ChainState, keys int32 [length, 2], BlockControl) ->
        (ChainState, BlockOutput).
    """
    potential = settings.potential(spec)
    accept_target, _ = settings.accept_target(spec)

    def block(
        data: Data, state: ChainState, keys: Tensor, control: BlockControl
    ) -> tuple[ChainState, BlockOutput]:
        kernel = _kernel(potential, settings, data, state.linear_map, state.reference, state.step)

        def goes_on(state: ChainState, output: BlockOutput) -> Tensor:
            is_affordable = output.num_sequential < control.max_gradients
            index = output.num_transitions
            return (index < control.num_transitions) & (is_affordable | (index == 0))

        def transition(state: ChainState, output: BlockOutput) -> Any:
            index = output.num_transitions
            prepare_key, kernel_key = tf.unstack(tf.random.split(keys[index], 2))
            log_step = tf.where(control.adapt_step, state.step.log_step, state.step.log_average)
            step_size = tf.cast(tf.exp(log_step), state.z.dtype)
            results = settings.prepare(
                state.results, step_size[:, None], prepare_key, control.adapt_step
            )
            z, results = kernel.one_step(state.z, results, seed=kernel_key)
            coordinates = state.linear_map.forward(z)
            statistics = settings.statistics(results)
            step = state.step
            if accept_target is not None:
                rate = settings.pooled_acceptance(tf.cast(statistics.acceptance_rate, tf.float32))
                updated = step.update(rate, accept_target, settings.largest_step_size)
                step = select(control.adapt_step, updated, step)
            state = state._replace(
                z=z,
                results=results,
                step=step,
                moments=select(
                    control.collect_moments, state.moments.update(coordinates), state.moments
                ),
            )
            kept = _kept(settings, state, statistics, step_size)
            num_gradients = tf.reshape(statistics.n_steps, [-1, len(settings.temperatures)])
            # Every transition writes to its slot; the last one of each slot is kept.
            slot = (control.first + index) // control.stride
            output = BlockOutput(
                num_transitions=index + 1,
                num_sequential=output.num_sequential + tf.reduce_max(statistics.n_steps),
                draws=output.draws.write(slot, of_posterior(coordinates, settings.temperatures)),
                statistics={
                    name: array.write(slot, kept[name]) for name, array in output.statistics.items()
                },
                acceptance_sum=output.acceptance_sum + _rounded(kept["acceptance_rate"]),
                num_divergent=output.num_divergent + tf.cast(kept["diverging"], tf.int32),
                num_gradients=output.num_gradients + tf.reduce_sum(num_gradients, axis=1),
            )
            return state, output

        state, output = tf.while_loop(
            goes_on,
            transition,
            (state, _empty_output(state.z, settings, num_slots)),
            parallel_iterations=1,
        )
        return state, output._replace(
            draws=output.draws.stack(),
            statistics={name: array.stack() for name, array in output.statistics.items()},
        )

    return compiled(block, jit_compile=jit_compile)


@lru_cache(maxsize=32)
def make_bootstrap(spec: Sampled, settings: Kernel, is_compiled: bool) -> Callable[..., Any]:
    """Make the function (z, data, linear map, reference, step) -> kernel results at z."""
    potential = settings.potential(spec)

    def results(
        z: Tensor, data: Data, linear_map: LinearMap, reference: Tensor, step: DualAveraging
    ) -> Any:
        kernel = _kernel(potential, settings, data, linear_map, reference, step)
        return kernel.bootstrap_results(z)

    return compiled(results, jit_compile=False) if is_compiled else results


def _kernel(
    potential: Density,
    settings: Kernel,
    data: Data,
    linear_map: LinearMap,
    reference: Tensor,
    step: DualAveraging,
) -> Any:
    step_size = tf.cast(tf.exp(step.log_average), potential.spec.dtype)[:, None]
    target = Target(potential, data, linear_map, reference, settings.temperatures)
    return settings.build(target, step_size)


def _kept(
    settings: Kernel, state: ChainState, statistics: TransitionStatistics, step_size: Tensor
) -> dict[str, Tensor]:
    """Return the statistics kept with a position: dict of tensors [C], or [C, m] for all rungs."""
    log_prob = settings.target_log_prob(state.results)
    rows = {
        "lp": tf.cast(log_prob, tf.float64) + state.reference,
        "acceptance_rate": statistics.acceptance_rate,
        "step_size": step_size,
        "n_steps": statistics.n_steps,
        "diverging": statistics.diverging,
        "energy": tf.cast(statistics.energy, tf.float64) - state.reference,
    }
    kept = {name: of_posterior(values, settings.temperatures) for name, values in rows.items()}
    if len(settings.temperatures) > 1:
        kept["rung_log_likelihood"] = state.results.log_likelihood
    return kept


def _rounded(acceptance: Tensor) -> Tensor:
    return tf.round(tf.cast(acceptance, tf.float64) * _ACCEPTANCE_UNITS) / _ACCEPTANCE_UNITS


def _empty_output(z: Tensor, settings: Kernel, num_slots: int) -> BlockOutput:
    num_rungs = len(settings.temperatures)
    chains = [z.shape[0] // num_rungs]

    def slots(dtype: Any, shape: Any) -> Any:
        return tf.TensorArray(dtype, size=num_slots, element_shape=shape, clear_after_read=False)

    statistics = {
        name: slots(kind.computed or z.dtype, chains) for name, kind in STATISTICS.items()
    }
    if num_rungs > 1:
        statistics["rung_log_likelihood"] = slots(tf.float64, [*chains, num_rungs])
    return BlockOutput(
        num_transitions=tf.constant(0),
        num_sequential=tf.constant(0),
        draws=slots(z.dtype, [*chains, z.shape[1]]),
        statistics=statistics,
        acceptance_sum=tf.zeros(chains, tf.float64),
        num_divergent=tf.zeros(chains, tf.int32),
        num_gradients=tf.zeros(chains, tf.int32),
    )
