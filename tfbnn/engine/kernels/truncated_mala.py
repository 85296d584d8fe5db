"""MALA with proposals that stay inside the box of Uniform priors."""

from dataclasses import dataclass
from math import log, pi
from typing import Any

from tfbnn.engine.basis.libraries import Tensor, tf, tfp
from tfbnn.engine.kernels.mala import MALA, LangevinProposal
from tfbnn.engine.kernels.metropolis import Point
from tfbnn.spec.density_spec import Sampled, model_of
from tfbnn.spec.infinite_spec import require_weights


class TruncatedProposal(LangevinProposal):
    """Proposal of MALA with each coordinate truncated to the box of the target."""

    def __init__(self, target_log_prob_fn: Any, step_size: Tensor) -> None:
        """Make a TruncatedProposal.

        Args:
            target_log_prob_fn: Log density z [C, P] -> [C], with a method `box` as in `Target`.
            step_size: As in Proposal.
        """
        super().__init__(target_log_prob_fn, step_size)
        self.low, self.high = target_log_prob_fn.box()

    def draw(self, here: Point, step_size: Tensor, seed: Tensor) -> Tensor:
        """Draw a new position [C, P]."""
        uniform = tf.random.stateless_uniform(here.z.shape, seed, dtype=tf.float64)
        mean, spread = self._normal(here, step_size)
        z = mean + spread * quantile(uniform, *self._limits(mean, spread))
        # Rounding may move the sum just outside the box.
        return tf.cast(tf.clip_by_value(z, self.low, self.high), here.z.dtype)

    def log_ratio(self, here: Point, there: Point, step_size: Tensor) -> Tensor:
        """Compute log q(here | there) - log q(there | here) [C], with both truncations."""
        ratio = super().log_ratio(here, there, step_size)
        mass = self._log_mass(here, step_size) - self._log_mass(there, step_size)
        return ratio + tf.cast(mass, ratio.dtype)

    def _log_mass(self, point: Point, step_size: Tensor) -> Tensor:
        """Compute the log probability [C] that MALA's own proposal from a Point falls into the box."""
        limits = self._limits(*self._normal(point, step_size))
        return tf.reduce_sum(log_mass(*limits), axis=-1)

    def _normal(self, point: Point, step_size: Tensor) -> tuple[Tensor, Tensor]:
        mean = tf.cast(self.mean(point, step_size), tf.float64)
        return mean, tf.sqrt(tf.cast(step_size, tf.float64))

    def _limits(self, mean: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
        return (self.low - mean) / spread, (self.high - mean) / spread


@dataclass(frozen=True, kw_only=True)
class TruncatedMALA(MALA, name="truncated_mala"):
    """MALA for `priors.Uniform` on all weights, with proposals truncated to the box.

    Each coordinate is drawn from MALA's normal, N(theta + (h / 2) M grad, h M), conditioned to lie
    between `low` and `high`. The acceptance ratio contains the factor Z(theta) / Z(theta') of the
    probabilities that the untruncated proposals fall into the box. Learned noise scales have no
    limits and are proposed as in MALA. `step_size` is h, as in MALA. M must be diagonal so that the
    box stays a box: `preconditioner` is "auto" (default, meaning "diagonal"), "diagonal",
    "prior" or "identity". The other attributes are described in `TunedKernel`.

    Raises:
        ValueError: For preconditioner="gauss_newton", and for models with other priors.

    References:
        Roberts and Stramer 2002, Methodol. Comput. Appl. Probab. 4, 337, for Langevin proposals
        restricted to a region. The ratio is Metropolis-Hastings with the truncated density.
    """

    proposal = TruncatedProposal
    theta_obstacle = "the prior's box is one of theta"
    preconditioners = ("auto", "diagonal", "prior", "identity")
    no_whitening = "whitened, the prior's box would no longer be a box"
    # Truncated proposals are not rejected for their length, and beyond this they are rounding.
    largest_step_size = 1e8

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Raise ValueError if some weights have a prior without a box."""
        super().check_model(spec, row_noise)
        require_weights(spec, type(self).__name__, "Use kernel='hmc' or 'nuts'.")
        others = [
            f"{spec.parameter_name(span.start).partition('[')[0]}: {prior}"
            for prior, span, _ in model_of(spec, "TruncatedMALA").weight_groups()
            if not prior.is_bounded
        ]
        if others:
            raise ValueError(
                "TruncatedMALA needs priors.Uniform(low, high) on all kernels and biases, received "
                f"{', '.join(others)}. Use kernel='mala', or Uniform priors."
            )


_HALF_LOG_2PI = 0.5 * log(2.0 * pi)
# Below this log probability the quantile starts from its asymptotic form.
_TAIL = -5.0
# Newton's method converges from the left. Four steps reach 1e-12 (one more is made) from the asymptotic start, whose
# error is at most a tenth.
_NEWTON_STEPS = 5


def log_mass(low: Tensor, high: Tensor) -> Tensor:
    """Compute log(Phi(high) - Phi(low)) elementwise for float64 limits, which may be infinite."""
    _, low, high = _lower_side(low, high)
    return tfp.math.log_sub_exp(_log_cdf(high), _log_cdf(low))


def quantile(uniform: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Compute the quantile `uniform`, in (0, 1), of the normal truncated to [low, high].

    Uniform random numbers give draws. In the upper tail the quantile is counted from above, which
    makes no difference for draws.
    """
    flipped, low, high = _lower_side(low, high)
    below, above = tf.math.log1p(-uniform) + _log_cdf(low), tf.math.log(uniform) + _log_cdf(high)
    log_cdf = tfp.math.log_add_exp(below, above)
    z = tf.clip_by_value(_inverse_log_cdf(log_cdf), low, high)
    return tf.where(flipped, -z, z)


def _lower_side(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mirror limits that are mostly above zero, because floats resolve only the lower tail."""
    flipped = low > -high
    return flipped, tf.where(flipped, -high, low), tf.where(flipped, -low, high)


def _inverse_log_cdf(log_cdf: Tensor) -> Tensor:
    in_tail = log_cdf < _TAIL
    tail = tf.where(in_tail, log_cdf, 2.0 * _TAIL)
    # One iteration of phi(z) / |z| = Phi(z).
    z = -tf.sqrt(-2.0 * (tail + _HALF_LOG_2PI + 0.5 * tf.math.log(-2.0 * tail)))
    for _ in range(_NEWTON_STEPS):
        value = _log_cdf(z)
        slope = tf.exp(-0.5 * z**2 - _HALF_LOG_2PI - value)
        z -= (value - tail) / slope
    centre = _normal().quantile(tf.exp(tf.where(in_tail, tf.zeros_like(log_cdf), log_cdf)))
    return tf.where(in_tail, z, centre)


def _log_cdf(z: Tensor) -> Tensor:
    return _normal().log_cdf(z)


def _normal() -> Any:
    return tfp.distributions.Normal(tf.zeros([], tf.float64), tf.ones([], tf.float64))
