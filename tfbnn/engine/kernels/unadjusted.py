"""The bias of samplers that accept every step, and the energy error that tells it.

Leapfrog steps of size e whose momenta are refreshed exactly leave, of a normal density of unit variance,
one of variance 1 + b, e^2 / 4 = b / (1 + b), and the squared energy error of a step is
e^6 (1 + b) / 16 = 4 b^3 / (1 + b)^2 on average. Of a normal density in P dimensions whose principal
directions have errors b_i, the mean of 4 b_i^3 / (1 + b_i)^2 is the squared energy error per parameter,
and bounds the root mean square of the b_i by the same formula, as this is convex in b_i^2.

References:
    Robnik, Cohn-Gordon and Seljak 2024, arXiv:2412.08876, for Langevin and microcanonical dynamics.
"""

from __future__ import annotations

from tfbnn.data.validation import check_number
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.kernels.transition import TransitionStatistics
from tfbnn.engine.kernels.tuned import TunedKernel

# What adaptation aims at in place of an acceptance, see `with_error_as_acceptance`.
ERROR_TARGET = 0.5**0.5


def energy_variance_of(bias: float) -> float:
    """The squared energy error of a step per parameter at which variances are off by this share."""
    return 4.0 * bias**3 / (1.0 + bias) ** 2


def with_error_as_acceptance(
    statistics: TransitionStatistics, log_ratio: Tensor, size: int, energy_variance: float
) -> TransitionStatistics:
    """Statistics whose acceptance tells the energy error: exp(-error^2 / (2 P energy_variance)).

    For normal errors of that variance its mean is `ERROR_TARGET`.

    Args:
        statistics: Of a step that nobody judges.
        log_ratio: Minus its energy error [C].
        size: P.
        energy_variance: The squared error per parameter that is aimed at.
    """
    acceptance = tf.exp(-(log_ratio**2) / (2.0 * size * energy_variance))
    return statistics._replace(acceptance_rate=acceptance)


def check_bias_tolerance(kernel: TunedKernel, adjusted: bool, bias: float | None) -> None:
    """Refuses a tolerance where there is no bias, or no step size that could obey it.

    Raises:
        TypeError, ValueError: Says which.
    """
    if bias is None:
        return
    check_number("bias_tolerance", bias, above=0, below=1)
    if adjusted:
        raise ValueError(
            f"bias_tolerance is for adjusted=False, received bias_tolerance={bias:g} with adjusted=True, "
            "which has no bias. Leave it out."
        )
    if not kernel.adapts or kernel.target_accept_prob is not None:
        raise ValueError(
            "bias_tolerance chooses the step size, received it with a step_size or target_accept_prob. "
            "Leave these out, or pass adapt_step_size=True with the step_size."
        )


def bias_by_tolerance(bias: float | None, otherwise: str) -> str:
    """How large the error of unadjusted draws is, in words for `bias_of_unadjusted`."""
    if bias is None:
        return otherwise
    return (
        f"of variances by {bias:.2g} of themselves (root mean square over directions, for a nearly "
        "normal density, by the energy error of the steps)"
    )
