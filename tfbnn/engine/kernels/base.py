"""What a sampler's settings must offer to the runner, and the helpers they share.

A sampler is one file: a frozen dataclass of settings that builds a `tfp.mcmc` kernel, reads its
statistics and sets its step size. Nothing else in the package knows about a particular sampler.
"""

from dataclasses import dataclass

import tensorflow as tf

from tfbnn.validation import check_choice, check_flag, check_number

__all__ = ["GradientKernel", "TransitionStatistics", "acceptance_from_log_ratio"]

# Each Gauss-Newton matrix takes 8 P^2 bytes, its eigenvectors about 10 P^3 operations.
_LARGEST_WHITENING = 4000
PRECONDITIONERS = ("auto", "identity", "diagonal", "gauss_newton")


@dataclass(frozen=True)
class TransitionStatistics:
    """What one transition reports, each a tensor [C]."""

    acceptance_rate: object
    n_steps: object
    diverging: object
    energy: object


@dataclass(frozen=True, kw_only=True)
class GradientKernel:
    """Settings that all gradient-based kernels share.

    Attributes:
        step_size: Leapfrog step in preconditioned coordinates. None (default): found at the start
            and adapted during warm-up. A number is used as it is, unless `adapt_step_size`.
        adapt_step_size: Adapt also a given step size, which is then the first guess.
        target_accept_prob: Acceptance aimed at while adapting. None (default): the kernel's own
            `accept_targets`, for smooth activations or for ReLU-like ones, whose optimum is lower
            because the leapfrog error is of first order (Dinh, Ho and Nguyen 2024,
            arXiv:2410.22065).
        preconditioner: "diagonal" rescales every coordinate by its standard deviation, measured
            in the windows of warm-up; "gauss_newton" whitens by the Gauss-Newton matrix at the
            chain's own point, taken at the start and at the ends of the windows, for up to about a
            thousand parameters; "identity" does neither; "auto" (default) means "diagonal".
    """

    step_size: float | None = None
    adapt_step_size: bool = False
    target_accept_prob: float | None = None
    preconditioner: str = "auto"

    def __post_init__(self):
        if self.step_size is not None:
            check_number("step_size", self.step_size, above=0)
        check_flag("adapt_step_size", self.adapt_step_size)
        if self.target_accept_prob is not None:
            check_number("target_accept_prob", self.target_accept_prob, above=0, below=1)
        check_choice("preconditioner", self.preconditioner, PRECONDITIONERS)

    @property
    def adapts(self):
        """Whether warm-up tunes the step size."""
        return self.step_size is None or self.adapt_step_size

    @property
    def preconditions(self):
        """Whether warm-up tunes a preconditioner."""
        return self.preconditioner != "identity"

    def check_model(self, spec):
        """Refuses a model these settings cannot handle, before anything is compiled."""
        size = spec.layout.num_parameters
        if self.preconditioner == "gauss_newton" and size > _LARGEST_WHITENING:
            raise ValueError(
                "preconditioner='gauss_newton' needs matrices of P x P float64, "
                f"{8e-9 * size**2:.2g} GB each for P = {size}, and is offered up to P = "
                f"{_LARGEST_WHITENING}. Use preconditioner='diagonal'."
            )

    def accept_target(self, spec):
        """The acceptance rate that adaptation aims at, for the model `spec`."""
        if self.target_accept_prob is not None:
            return self.target_accept_prob
        smooth, kinked = self.accept_targets
        return smooth if spec.is_smooth else kinked


def acceptance_from_log_ratio(log_accept_ratio):
    """min(1, exp(ratio)), with 0 for NaN."""
    probability = tf.exp(tf.minimum(log_accept_ratio, 0.0))
    return tf.where(tf.math.is_finite(probability), probability, tf.zeros_like(probability))
