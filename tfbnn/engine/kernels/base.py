"""What a sampler's settings must offer to the runner, and the helpers they share.

A sampler is one file: a frozen dataclass of settings that builds a `tfp.mcmc` kernel, reads its
statistics and, before every transition, puts its step size in place:

    prepare(results, step_size, key, adapting)

returns the kernel's results with the step size [C, 1] and whatever else the next transition needs;
`key` is for what it has to draw, `adapting` a scalar bool tensor, for kernels with a tuner of their
own: it may learn only while `adapting`. Nothing else in the package knows about a particular
sampler.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from tfbnn.data.validation import check_choice, check_flag, check_number
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.potential import Potential

# Energy errors beyond this count as divergent, as in Stan and TFP.
_MAX_ENERGY_ERROR = 1000.0

# Each Gauss-Newton matrix takes 8 P^2 bytes, its rows 2 N K P^2 operations.
_LARGEST_WHITENING = 4000
# "auto" whitens while the two products with the P x P factor cost no more than a gradient (measured
# on two cores: 3.4 P / (N K) gradients), and while the factor stays in the processor's cache.
_LARGEST_AUTO_WHITENING = 1500
_LINES_PER_PARAMETER = 4
PRECONDITIONERS = ("auto", "identity", "diagonal", "gauss_newton")


class TransitionStatistics(NamedTuple):
    """What one transition reports, each a tensor [C]."""

    acceptance_rate: object
    n_steps: object
    diverging: object
    energy: object


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Settings that all kernels share.

    Attributes:
        step_size: Step size in preconditioned coordinates, as the kernel's own docstring defines
            it; a leapfrog step where it says nothing. None (default): found at the start and
            adapted during warm-up. A number is used as it is, unless `adapt_step_size`.
        adapt_step_size: Adapt also a given step size, which is then the first guess.
        target_accept_prob: Acceptance aimed at while adapting. None (default): the kernel's own
            `accept_targets`, for smooth activations or for ReLU-like ones, whose optimum is lower
            because the leapfrog error is of first order (Dinh, Ho and Nguyen 2024,
            arXiv:2410.22065).
        preconditioner: "diagonal" rescales every coordinate by its standard deviation, measured
            in the windows of warm-up; "gauss_newton" whitens by the Gauss-Newton matrix at the
            chain's own point, taken at the start and at the ends of the windows, for up to 4000
            parameters; "identity" does neither; "auto" (default) means "gauss_newton" for up to
            1500 parameters and at least four times as many target values N K, where its products
            cost no more than a gradient; else "diagonal".
    """

    step_size: float | None = None
    adapt_step_size: bool = False
    target_accept_prob: float | None = None
    preconditioner: str = "auto"

    # What every report must say of draws that do not have the posterior as their distribution.
    bias_note = None
    # Whether chains learn from each other, so that all of them advance in one program.
    couples_chains = False
    # Why "gauss_newton" is refused, where coordinates may be scaled only.
    no_whitening = None
    # Why Repriorised cannot give the kernel coordinates other than theta, or None.
    theta_obstacle = None
    # Powers of the likelihood, one for each walker that makes up a chain; see tfbnn.engine.density.rungs.
    temperatures = (1.0,)

    def __post_init__(self):
        if self.step_size is not None:
            check_number("step_size", self.step_size, above=0)
        check_flag("adapt_step_size", self.adapt_step_size)
        if self.target_accept_prob is not None:
            check_number("target_accept_prob", self.target_accept_prob, above=0, below=1)
        check_choice("preconditioner", self.preconditioner, PRECONDITIONERS)
        if self.no_whitening and self.preconditioner == "gauss_newton":
            raise ValueError(
                f"preconditioner of {type(self).__name__} must be 'auto', 'diagonal' or 'identity', "
                f"received 'gauss_newton': {self.no_whitening}."
            )

    @property
    def adapts(self):
        """Whether warm-up tunes the step size."""
        return self.step_size is None or self.adapt_step_size

    @property
    def preconditions(self):
        """Whether warm-up tunes a preconditioner."""
        return self.preconditioner != "identity"

    @property
    def rung_obstacle(self):
        """Why PowerPosterior cannot move its rungs with this kernel, or None."""
        if self.couples_chains:
            return "its chains learn from each other, and rungs have different densities"
        return None if self.bias_note is None else "its bias would enter every rung"

    def potential(self, spec):
        """The density in the coordinates that the kernel samples: of theta itself."""
        return Potential(spec)

    def gains_from_xla(self, spec, num_rows):
        """Whether XLA makes faster programs of this kernel than TensorFlow itself."""
        return True

    def check_model(self, spec, row_noise):
        """Refuses a model these settings cannot handle, before anything is compiled.

        Args:
            spec: ModelSpec.
            row_noise: Whether the noise scale of every row is known.
        """
        del row_noise
        size = spec.layout.num_parameters
        if self.preconditioner == "gauss_newton" and size > _LARGEST_WHITENING:
            raise ValueError(
                "preconditioner='gauss_newton' needs matrices of P x P float64, "
                f"{8e-9 * size**2:.2g} GB each for P = {size}, and is offered up to P = "
                f"{_LARGEST_WHITENING}. Use preconditioner='diagonal'."
            )

    def check_chains(self, num_chains):
        """Refuses too few chains, before anything is compiled."""
        if self.couples_chains and num_chains < 2:
            raise ValueError(
                f"{type(self).__name__} learns from what several chains do and needs num_chains of "
                f"at least 2, received {num_chains}. Use more chains, or kernel='nuts'."
            )

    def resolve(self, spec, num_rows):
        """These settings with a definite preconditioner, and a line on why that one.

        Args:
            spec: ModelSpec.
            num_rows: Training rows N.
        """
        if self.preconditioner != "auto":
            return self, f"{self.preconditioner}, as asked"
        if self.no_whitening:
            return replace(self, preconditioner="diagonal"), f"diagonal: {self.no_whitening}"
        size, lines = spec.layout.num_parameters, num_rows * spec.layer_sizes[-1]
        affordable = size <= min(_LARGEST_AUTO_WHITENING, lines / _LINES_PER_PARAMETER)
        chosen = "gauss_newton" if affordable else "diagonal"
        cost = "no more than a gradient" if affordable else "too much"
        why = f"whitening costs {cost} for N = {num_rows}, P = {size}"
        return replace(self, preconditioner=chosen), f"{chosen}, chosen because {why}"

    def work(self, spec):
        """About how many gradients a transition costs; sets how many of them share a block."""
        del spec
        return self.gradients_per_transition

    def check_start(self, results, chains):
        """Refuses kernel results at the starts of `chains` from which the kernel cannot move."""

    def accept_target(self, spec):
        """The acceptance rate that adaptation aims at, for the model `spec`."""
        if self.target_accept_prob is not None:
            return self.target_accept_prob
        smooth, kinked = self.accept_targets
        return smooth if spec.is_smooth else kinked

    def accept_reason(self, spec):
        """Why `accept_target` is what it is, for the report."""
        if self.target_accept_prob is not None:
            return "as asked"
        smooth, kinked = self.accept_targets
        if smooth == kinked:
            return "default"
        return f"default for {'smooth' if spec.is_smooth else 'ReLU-like'} activations"

    def pooled_acceptance(self, acceptance):
        """What the step sizes [C] learn from: each chain's from its own acceptance rate [C]."""
        return acceptance

    def first_step_size(self, leapfrog_step, num_parameters):
        """The step sizes [C] to start from where one leapfrog step of these sizes is accepted."""
        del num_parameters
        return leapfrog_step


def acceptance_from_log_ratio(log_accept_ratio):
    """min(1, exp(ratio)), with 0 for NaN."""
    probability = tf.exp(tf.minimum(log_accept_ratio, 0.0))
    return tf.where(tf.math.is_finite(probability), probability, tf.zeros_like(probability))


def unknown(like):
    """NaN for every chain [C]: a statistic that a transition does not have."""
    return tf.fill(like.shape, tf.constant(float("nan"), like.dtype))


def is_divergent(log_accept_ratio):
    """Whether the energy error is so large, or NaN, that the integrator must have failed."""
    return ~(log_accept_ratio > -_MAX_ENERGY_ERROR)


def minus_infinity_for_nan(log_accept_ratio):
    """The ratio, with minus infinity where it is not finite: such a proposal is rejected."""
    return tf.where(tf.math.is_finite(log_accept_ratio), log_accept_ratio, -float("inf"))


def accepts(log_accept_ratio, seed, adjusted):
    """Whether to move [C]: by Metropolis' rule, or if not `adjusted`, unless divergent."""
    if not adjusted:
        # Without this a chain that overflows would be NaN for ever.
        return ~is_divergent(log_accept_ratio)
    uniform = tf.random.stateless_uniform(
        log_accept_ratio.shape, seed, dtype=log_accept_ratio.dtype
    )
    return tf.math.log(uniform) < log_accept_ratio


def partly_refreshed(momentum, persistence, seed):
    """Keeps a share of momenta [C, P] and replaces the rest, so that N(0, I) is kept."""
    noise = tf.random.stateless_normal(momentum.shape, seed, dtype=momentum.dtype)
    return persistence * momentum + tf.sqrt(1.0 - persistence**2) * noise
