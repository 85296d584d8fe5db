"""The one compiled program of a run: a block of transitions, for warm-up and sampling alike.

Length, thinning and adaptation are run-time values, so a run compiles this program once. Results do
not depend on how transitions are split into blocks: random keys belong to absolute transitions.

A block ends by its own count of gradients, too: how many a transition takes may change a
thousandfold within it, as with the trees of NUTS, while nobody outside can stop it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from tfbnn.diagnostics.sample_stats import STATISTICS
from tfbnn.engine.basis.adaptation import DualAveraging, RunningMoments, select
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.linear_map import LinearMap, as_tensors
from tfbnn.engine.density.potential import Density
from tfbnn.engine.density.row_blocks import rows_per_block
from tfbnn.engine.density.value_and_gradient import Target, of_posterior
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.transition import TransitionStatistics
from tfbnn.spec.density_spec import Sampled

_ACCEPTANCE_UNITS = 2.0**30


class ChainState(NamedTuple):
    """Everything that decides the future of a group of C chains, apart from settings and keys.

    R is the number of rows: C, or C times the rungs of a chain (see `tfbnn.engine.density.value_and_gradient`). P is the
    number of the potential's coordinates, which are theta unless the kernel chooses others.

    Attributes:
        z: Positions in preconditioned coordinates [R, P].
        results: The kernel's results.
        linear_map: coordinates = linear_map.forward(z).
        reference: Log density [R], float64, subtracted before the kernel sees the density as a
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
        num_transitions: How many to make at most, no more than the block's keys are for.
        max_gradients: No transition begins once so many gradients were made one after another, as
            `BlockOutput.num_sequential` counts them; the first always does.
        first: Absolute index, within the phase, of the first transition.
        stride: Transitions per kept draw.
        adapt_step: Whether the step size adapts, and what else a kernel tunes by itself.
        collect_moments: Whether the moments of the coordinates are collected.
    """

    num_transitions: Tensor
    max_gradients: Tensor
    first: Tensor
    stride: Tensor
    adapt_step: Tensor
    collect_moments: Tensor


class BlockOutput(NamedTuple):
    """Output of a block; only as many slots are meaningful as kept draws were completed.

    Attributes:
        num_transitions: How many were made, scalar.
        num_sequential: Gradients made one after another, scalar: of each transition those of the row
            that took most, because rows are moved together and all wait for that one.
        draws: Kept coordinates [slots, C, P].
        statistics: Dict of the kept draws' statistics, [slots, C] each; with several rungs also
            rung_log_likelihood [slots, C, m].
        acceptance_sum: Sum of the acceptance rates of all transitions [C], float64, each rounded to
            a multiple of 2^-30: sums of these are exact, however transitions are split into blocks.
        num_divergent: Number of divergent transitions [C].
        num_gradients: Number of gradients [C], those of all rungs.
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
        spec: What is sampled.
        settings: Kernel settings.
        num_slots: Room for kept draws in one block.
        jit_compile: Whether XLA compiles it.

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
            state = state._replace(
                z=z,
                results=results,
                step=_adapt(state.step, statistics, settings, accept_target, control.adapt_step),
                moments=select(
                    control.collect_moments, state.moments.update(coordinates), state.moments
                ),
            )
            kept = _kept(settings, state, statistics, step_size)
            num_gradients = tf.reshape(statistics.n_steps, [-1, len(settings.temperatures)])
            # Every transition writes to its slot; the last one before the slot changes is kept.
            slot = (control.first + index) // control.stride - control.first // control.stride
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


def bootstrap(
    spec: Sampled,
    settings: Kernel,
    data: Data,
    z: Any,
    linear_map: LinearMap,
    reference: Tensor,
    step: DualAveraging,
) -> Any:
    """Kernel results at z: mostly one gradient, by a program that is there already.

    What kernels need besides is worth a compilation only where there are many blocks of rows.
    """
    is_compiled = data.length > rows_per_block(spec, len(z))
    function = _bootstrap(spec, settings, is_compiled)
    return function(tf.convert_to_tensor(z), data, as_tensors(linear_map), reference, step)


@lru_cache(maxsize=32)
def _bootstrap(spec: Sampled, settings: Kernel, is_compiled: bool) -> Callable[..., Any]:
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
    """Return what is kept of a transition besides the position: dict of tensors [C], or [C, m] for all rungs."""
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


def _adapt(
    step: DualAveraging,
    statistics: TransitionStatistics,
    settings: Kernel,
    accept_target: float | None,
    adapt_step: Tensor,
) -> DualAveraging:
    if accept_target is None:
        return step
    acceptance = settings.pooled_acceptance(tf.cast(statistics.acceptance_rate, tf.float32))
    updated = step.update(acceptance, accept_target, settings.largest_step_size)
    return select(adapt_step, updated, step)


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
