"""Interface of transition kernels for `tfp.mcmc` and the runner, with functions that samplers share.

Energy errors measure the bias of samplers that accept every step. Take leapfrog steps of size e
with exactly refreshed momenta on a normal density of unit variance. They sample a normal density of
variance 1 + b with e^2 / 4 = b / (1 + b). The squared energy error of a step is e^6 (1 + b) / 16 =
4 b^3 / (1 + b)^2 on average. For a normal density in P dimensions whose principal directions have
errors b_i, the squared energy error per parameter is the mean of 4 b_i^3 / (1 + b_i)^2. It bounds
the root mean square of the b_i by the same formula, because the formula is convex in b_i^2.

References:
    Robnik, Cohn-Gordon and Seljak 2024, arXiv:2412.08876, for Langevin and microcanonical dynamics.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tfbnn.engine.basis.libraries import Results, Tensor, tf

# Energy errors beyond this count as divergent, as in Stan and TFP.
_MAX_ENERGY_ERROR = 1000.0


@dataclass(eq=False)
class TransitionKernel(ABC):
    """Interface of a kernel for `tfp.mcmc`, which TFP's own kernels have too.

    Our kernels do not derive from `tfp.mcmc.TransitionKernel`: such a class statement would import
    TensorFlow together with the settings. TFP's drivers and `MetropolisHastings` accept both.

    Attributes:
        target_log_prob_fn: Log density z [C, P] -> [C]; in a run it also has the methods of
            `Target`.
        step_size: Step size [C, 1] for `bootstrap_results` only; later step sizes are in the
            results.
        is_calibrated: Whether the kernel leaves the target exactly invariant.
    """

    target_log_prob_fn: Any
    step_size: Tensor
    is_calibrated: bool = field(init=False)

    @abstractmethod
    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [C, P]."""

    @abstractmethod
    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Make one transition; return (position [C, P], results)."""


class TransitionStatistics(NamedTuple):
    """Statistics of one transition, each a tensor [C]."""

    acceptance_rate: Tensor
    n_steps: Tensor
    diverging: Tensor
    energy: Tensor


def current(results: Results) -> Results:
    """Return the results at the current state, which TFP nests in `accepted_results` of a Metropolis step."""
    return getattr(results, "accepted_results", results)


def with_next(results: Results, **parameters: Tensor) -> Results:
    """Return the results with parameters for the next transition, such as a step size."""
    new = current(results)._replace(**parameters)
    return new if current(results) is results else results._replace(accepted_results=new)


def ratio_statistics(
    log_accept_ratio: Tensor, n_steps: Tensor, error_variance: float | None = None
) -> TransitionStatistics:
    """Return the statistics of a proposal with log acceptance ratio [C], made in `n_steps` steps [C].

    With `error_variance`, every proposal is accepted. The acceptance rate is then a measure of the
    energy error, which is minus the ratio: exp(-error^2 / (2 error_variance)). Its mean for normal
    errors of that variance is `ERROR_TARGET`.
    """
    if error_variance is None:
        acceptance = acceptance_from_log_ratio(log_accept_ratio)
    else:
        acceptance = tf.exp(-(log_accept_ratio**2) / (2.0 * error_variance))
    diverging, energy = is_divergent(log_accept_ratio), unknown(log_accept_ratio)
    return TransitionStatistics(acceptance, n_steps, diverging, energy)


def acceptance_from_log_ratio(log_accept_ratio: Tensor) -> Tensor:
    """Compute min(1, exp(ratio)), with 0 for NaN."""
    probability = tf.exp(tf.minimum(log_accept_ratio, 0.0))
    return tf.where(tf.math.is_finite(probability), probability, tf.zeros_like(probability))


def unknown(like: Tensor) -> Tensor:
    """Return NaN for every chain [C], for a statistic that a transition does not have."""
    return tf.fill(like.shape, tf.constant(float("nan"), like.dtype))


def is_divergent(log_accept_ratio: Tensor) -> Tensor:
    """Check whether the energy error is NaN or so large that the integrator must have failed."""
    return ~(log_accept_ratio > -_MAX_ENERGY_ERROR)


def minus_infinity_for_nan(log_accept_ratio: Tensor) -> Tensor:
    """Replace ratios that are not finite by minus infinity, so that the proposal is rejected."""
    return tf.where(tf.math.is_finite(log_accept_ratio), log_accept_ratio, -float("inf"))


def accepts(log_accept_ratio: Tensor, seed: Tensor, adjusted: bool) -> Tensor:
    """Decide whether to move [C]: by the Metropolis rule, or if not `adjusted`, unless divergent."""
    if not adjusted:
        # Without this check a chain that overflows would stay NaN forever.
        return ~is_divergent(log_accept_ratio)
    shape, dtype = log_accept_ratio.shape, log_accept_ratio.dtype
    return tf.math.log(tf.random.stateless_uniform(shape, seed, dtype=dtype)) < log_accept_ratio


def partly_refreshed(momentum: Tensor, persistence: Tensor | float, seed: Tensor) -> Tensor:
    """Keep a share of momenta [C, P] and redraw the rest, so that N(0, I) is left invariant."""
    noise = tf.random.stateless_normal(momentum.shape, seed, dtype=momentum.dtype)
    return persistence * momentum + tf.sqrt(1.0 - persistence**2) * noise


# Target of adaptation if there is no acceptance, see `ratio_statistics`.
ERROR_TARGET = 0.5**0.5


def energy_variance_of(bias: float) -> float:
    """Compute the squared energy error per step and parameter that gives variances this relative bias."""
    return 4.0 * bias**3 / (1.0 + bias) ** 2
