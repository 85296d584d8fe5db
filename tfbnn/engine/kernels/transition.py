"""Transitions as `tfp.mcmc` and the runner see them, and what the samplers' own share.

The bias of samplers that accept every step is told by their energy errors. Leapfrog steps of size e whose momenta are refreshed exactly leave, of a normal density of unit variance,
one of variance 1 + b, e^2 / 4 = b / (1 + b), and the squared energy error of a step is
e^6 (1 + b) / 16 = 4 b^3 / (1 + b)^2 on average. For a normal density in P dimensions whose principal
directions have errors b_i, the mean of 4 b_i^3 / (1 + b_i)^2 is the squared energy error per parameter,
and bounds the root mean square of the b_i by the same formula, as this is convex in b_i^2.

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
    """Interface that `tfp.mcmc` asks of a kernel; TFP's own have it too.

    Ours do not derive from `tfp.mcmc.TransitionKernel`: a class statement that names it would
    import TensorFlow with the settings beside it. TFP's drivers and `MetropolisHastings` take either.

    Attributes:
        target_log_prob_fn: z [C, P] -> [C]; in a run it has the methods of `Target`, too.
        step_size: [C, 1], for `bootstrap_results` only; later ones travel in the results.
        is_calibrated: Whether the target is left exactly invariant.
    """

    target_log_prob_fn: Any
    step_size: Tensor
    is_calibrated: bool = field(init=False)

    @abstractmethod
    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Results at a start [C, P]."""

    @abstractmethod
    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """One transition; returns (position [C, P], results)."""


class TransitionStatistics(NamedTuple):
    """Report of one transition, each a tensor [C]."""

    acceptance_rate: Tensor
    n_steps: Tensor
    diverging: Tensor
    energy: Tensor


def current(results: Results) -> Results:
    """Results at the state a chain is in, which TFP has one level down where a proposal is judged."""
    return getattr(results, "accepted_results", results)


def with_next(results: Results, **parameters: Tensor) -> Results:
    """Results whose next transition has these parameters, such as a step size."""
    new = current(results)._replace(**parameters)
    return new if current(results) is results else results._replace(accepted_results=new)


def ratio_statistics(
    log_accept_ratio: Tensor, n_steps: Tensor, error_variance: float | None = None
) -> TransitionStatistics:
    """Statistics of a proposal with this log acceptance ratio [C], made in so many steps [C].

    Where `error_variance` is given, nobody judges the proposal. The acceptance then tells the energy
    error, which is minus the ratio: exp(-error^2 / (2 error_variance)). For normal errors of that
    variance its mean is `ERROR_TARGET`.
    """
    if error_variance is None:
        acceptance = acceptance_from_log_ratio(log_accept_ratio)
    else:
        acceptance = tf.exp(-(log_accept_ratio**2) / (2.0 * error_variance))
    diverging, energy = is_divergent(log_accept_ratio), unknown(log_accept_ratio)
    return TransitionStatistics(acceptance, n_steps, diverging, energy)


def acceptance_from_log_ratio(log_accept_ratio: Tensor) -> Tensor:
    """min(1, exp(ratio)), with 0 for NaN."""
    probability = tf.exp(tf.minimum(log_accept_ratio, 0.0))
    return tf.where(tf.math.is_finite(probability), probability, tf.zeros_like(probability))


def unknown(like: Tensor) -> Tensor:
    """NaN for every chain [C]: a statistic that a transition does not have."""
    return tf.fill(like.shape, tf.constant(float("nan"), like.dtype))


def is_divergent(log_accept_ratio: Tensor) -> Tensor:
    """Return whether the energy error is so large, or NaN, that the integrator must have failed."""
    return ~(log_accept_ratio > -_MAX_ENERGY_ERROR)


def minus_infinity_for_nan(log_accept_ratio: Tensor) -> Tensor:
    """Return the ratio, with minus infinity where it is not finite: such a proposal is rejected."""
    return tf.where(tf.math.is_finite(log_accept_ratio), log_accept_ratio, -float("inf"))


def accepts(log_accept_ratio: Tensor, seed: Tensor, adjusted: bool) -> Tensor:
    """Return whether to move [C]: by Metropolis' rule, or if not `adjusted`, unless divergent."""
    if not adjusted:
        # Without this a chain that overflows would be NaN for ever.
        return ~is_divergent(log_accept_ratio)
    shape, dtype = log_accept_ratio.shape, log_accept_ratio.dtype
    return tf.math.log(tf.random.stateless_uniform(shape, seed, dtype=dtype)) < log_accept_ratio


def partly_refreshed(momentum: Tensor, persistence: Tensor | float, seed: Tensor) -> Tensor:
    """Keep a share of momenta [C, P] and replace the rest, so that N(0, I) is kept."""
    noise = tf.random.stateless_normal(momentum.shape, seed, dtype=momentum.dtype)
    return persistence * momentum + tf.sqrt(1.0 - persistence**2) * noise


# What adaptation aims at in place of an acceptance, see `ratio_statistics`.
ERROR_TARGET = 0.5**0.5


def energy_variance_of(bias: float) -> float:
    """Return the squared energy error of a step per parameter at which variances are off by this share."""
    return 4.0 * bias**3 / (1.0 + bias) ** 2
