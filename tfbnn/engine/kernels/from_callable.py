"""Any TFP kernel that a user builds: a callable target_log_prob_fn -> tfp TransitionKernel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    acceptance_from_log_ratio,
    unknown,
)
from tfbnn.spec.model_spec import ModelSpec


@dataclass(frozen=True, eq=False)
class CallableKernel(Kernel):
    """Runs a user's kernel as it is: tfbnn neither tunes its step size nor preconditions it.

    Nothing is known of what it needs, so no model, number of chains or start is refused.

    Statistics are looked for in the kernel's results and in the results nested in them; what the
    kernel does not report is NaN (energy), 1 (n_steps), or taken from `is_accepted`; step_size is
    NaN. Compared by identity: a function that reads variables from outside may build another kernel
    the next time, so every run compiles its own program.

    Attributes:
        function: target_log_prob_fn -> tfp.mcmc.TransitionKernel. The target maps [C, P] to [C].
    """

    function: Callable[[LogDensity], TransitionKernel]

    theta_obstacle = "a run keeps the settings of kernels, and of a function there are none"
    rung_obstacle = "nothing is known of how it uses the density, which changes from rung to rung"
    gradients_per_transition = 16  # unknown; only sets how many transitions share a block

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

    def resolve(self, spec: ModelSpec, num_rows: int) -> tuple[Self, str]:
        """Runs in the coordinates of theta."""
        return self, "identity, as for every kernel built by the user"

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """The user's kernel."""
        del step_size
        return self.function(target_log_prob_fn)

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Results as they are."""
        del step_size, key, adapting
        return before

    def target_log_prob(self, results: Results) -> Tensor:
        """Log density of the current state [C]."""
        found = _find(results, "target_log_prob")
        if found is None:
            raise TypeError(
                "A callable kernel must report target_log_prob in its results or in results nested "
                f"in them, received {type(results).__name__} with the fields {results._fields}."
            )
        return found

    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the last transition, as far as the kernel reports them."""
        log_prob = self.target_log_prob(results)
        ratio, accepted = _find(results, "log_accept_ratio"), _find(results, "is_accepted")
        if ratio is not None:
            acceptance = acceptance_from_log_ratio(ratio)
        elif accepted is not None:
            acceptance = tf.cast(accepted, log_prob.dtype)
        else:
            acceptance = unknown(log_prob)
        steps, diverging = _find(results, "leapfrogs_taken"), _find(results, "has_divergence")
        if steps is None:
            steps = _find(results, "num_leapfrog_steps")
        if diverging is None:
            diverging = tf.zeros(log_prob.shape, tf.bool)
        steps = tf.broadcast_to(tf.cast(1 if steps is None else steps, tf.int32), log_prob.shape)
        return TransitionStatistics(acceptance, steps, diverging, energy=unknown(log_prob))


def _find(results: Results, name: str) -> Tensor | None:
    """The first field called `name` in kernel results, outer levels before inner ones."""
    if getattr(results, name, None) is not None and not isinstance(getattr(results, name), list):
        return getattr(results, name)
    for inner in ("accepted_results", "inner_results"):
        if hasattr(results, inner):
            found = _find(getattr(results, inner), name)
            if found is not None:
                return found
    return None
