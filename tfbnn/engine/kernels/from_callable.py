"""Kernels that a user builds: callables target_log_prob_fn -> tfp.mcmc.TransitionKernel."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    acceptance_from_log_ratio,
    unknown,
)


class CallableResults(NamedTuple):
    """Results of a transition of a user's kernel.

    Attributes:
        inner: The kernel's own results: any nested structure of tensors, possibly empty.
        log_prob: Log density of the current state [C].
    """

    inner: Results
    log_prob: Tensor


@dataclass(eq=False)
class WatchedKernel(TransitionKernel):
    """A user's kernel, extended by the log density of its states.

    Attributes:
        target_log_prob_fn: Log density [C, P] -> [C], for kernels whose results do not contain it.
        kernel: The user's tfp.mcmc.TransitionKernel.
    """

    kernel: Any

    def __post_init__(self) -> None:
        self.is_calibrated = bool(self.kernel.is_calibrated)

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [C, P]."""
        return self._results(init_state, _tensors(self.kernel.bootstrap_results(init_state)))

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Make one transition; return (position [C, P], CallableResults)."""
        after, inner = self.kernel.one_step(z, before.inner, seed=seed)
        inner = _tensors(inner)
        if _signature(after) != _signature(z):
            raise TypeError(
                "one_step of a callable kernel must return a state like the one it was given, "
                f"{_signature(z)}, received {_signature(after)}."
            )
        if _signature(inner) != _signature(before.inner):
            raise TypeError(
                "one_step of a callable kernel must return results like those of bootstrap_results, "
                f"{_signature(before.inner)}, received {_signature(inner)}."
            )
        return after, self._results(after, inner)

    def _results(self, z: Tensor, inner: Results) -> CallableResults:
        found = _find(inner, "target_log_prob", z.shape[:1])
        return CallableResults(inner, self.target_log_prob_fn(z) if found is None else found)


@dataclass(frozen=True, eq=False)
class CallableKernel(Kernel):
    """A user's kernel without tuning: tfbnn neither adapts its step size nor preconditions it.

    The requirements of the kernel are unknown, so every model, number of chains and start is
    accepted. Its results may be any nested structure of tensors that keeps its shapes and types.

    Statistics are searched in the kernel's results and in the results nested in them. If the kernel
    does not report them, the log density is computed, n_steps is 1, and the acceptance is that of
    `is_accepted`, or NaN without it. The energy and the step_size are always NaN. Kernels are
    compared by identity: a function that reads outside variables may build another kernel the next
    time, so every run compiles its own program.

    Attributes:
        function: Callable target_log_prob_fn -> tfp.mcmc.TransitionKernel. The target maps [C, P]
            to [C].

    Raises:
        TypeError: If the function does not take one argument or returns something else.
    """

    function: Callable[[LogDensity], TransitionKernel]

    theta_obstacle = "a run must save the settings of its kernel, and a function has none"
    rung_obstacle = "how it uses the density, which changes from rung to rung, is unknown"
    has_memory = True  # the user's kernel may learn something
    gradients_per_transition = 16  # unknown; only serves to estimate the time of a run
    bias_note = None

    def __post_init__(self) -> None:
        try:
            kernel = self.function(lambda theta: tf.reduce_sum(theta, axis=-1))
        except TypeError as error:
            raise TypeError(
                "A callable kernel must take one argument, target_log_prob_fn, received "
                f"{self.function!r}: {error}"
            ) from error
        if not isinstance(kernel, tfp.mcmc.TransitionKernel):
            raise TypeError(
                "A callable kernel must return a tfp.mcmc.TransitionKernel, received "
                f"{self.function!r}, which returns {kernel!r}."
            )
        if not _takes_seed(kernel.one_step):
            raise TypeError(
                "one_step of a callable kernel must take current_state, previous_kernel_results and "
                f"seed, received {type(kernel).__name__} with the arguments "
                f"{inspect.signature(kernel.one_step)}. Draw its random numbers from the seed."
            )
        if not kernel.is_calibrated:
            note = (
                "BIASED draws: the kernel says of itself that it is not calibrated, so the draws follow "
                "the posterior only up to an error that no diagnostic here sees. Put it inside "
                "tfp.mcmc.MetropolisHastings, or compare with a run at half the step size."
            )
            object.__setattr__(self, "bias_note", note)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the user's kernel, wrapped in a WatchedKernel."""
        return WatchedKernel(target_log_prob_fn, step_size, self.function(target_log_prob_fn))

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the results unchanged."""
        return before

    def target_log_prob(self, results: Results) -> Tensor:
        """Return the log density of the current state [C]."""
        return results.log_prob

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition, as far as the kernel reports them."""
        log_prob = results.log_prob

        def find(*names: str, otherwise: Tensor) -> Tensor:
            found = (_find(results.inner, name, log_prob.shape) for name in names)
            return next((one for one in found if one is not None), otherwise)

        nothing = unknown(log_prob)
        accepted = tf.cast(find("is_accepted", otherwise=nothing), log_prob.dtype)
        ratio = _find(results.inner, "log_accept_ratio", log_prob.shape)
        steps = find("leapfrogs_taken", "num_leapfrog_steps", otherwise=tf.ones_like(log_prob))
        return TransitionStatistics(
            acceptance_rate=accepted if ratio is None else acceptance_from_log_ratio(ratio),
            n_steps=tf.cast(steps, tf.int32),
            diverging=find("has_divergence", otherwise=tf.zeros_like(log_prob, tf.bool)),
            energy=nothing,
        )


def _takes_seed(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters
    return "seed" in parameters or any(p.kind == p.VAR_KEYWORD for p in parameters.values())


def _tensors(results: Results) -> Results:
    """Convert every entry of kernel results to a tensor, as loops do not accept Python numbers."""
    try:
        return tf.nest.map_structure(tf.convert_to_tensor, results)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "The results of a callable kernel must be tensors, or nested in tuples, lists and dicts "
            f"of them, received {results!r}: {error}"
        ) from error


def _signature(values: Any) -> Any:
    """Return the structure with types and shapes in place of the values."""
    return tf.nest.map_structure(lambda value: f"{value.dtype.name}{value.shape}", values)


def _field(results: Results, name: str) -> Any:
    """Return the entry `name` of a named tuple, a dict or an object, or None."""
    if isinstance(results, Mapping):
        return results.get(name)
    return getattr(results, name, None)


def _find(results: Results, name: str, shape: Any) -> Tensor | None:
    """Find the field `name` in kernel results, outer levels first; return it per chain [C] or None.

    Tensors of another shape have another meaning and are skipped. A scalar is used for all chains.
    """
    if name == "target_log_prob" and _field(results, "transformed_state") is not None:
        return None  # the density of a kernel in other coordinates includes their Jacobian
    found = _field(results, name)
    if tf.is_tensor(found) and found.shape in (shape, ()):
        return tf.broadcast_to(found, shape)
    nested = (_field(results, inner) for inner in ("accepted_results", "inner_results"))
    found = (_find(inner, name, shape) for inner in nested if inner is not None)
    return next((one for one in found if one is not None), None)
