"""MALA whose proposals stay inside the box of Uniform priors."""

from dataclasses import dataclass

import tensorflow as tf

from tfbnn.engine import truncated_normal
from tfbnn.engine.kernels.mala import MALA, LangevinProposal
from tfbnn.priors import Uniform

__all__ = ["TruncatedMALA"]


class TruncatedProposal(LangevinProposal):
    """The proposal of MALA, each coordinate conditioned to lie in the box of the target."""

    def __init__(self, target_log_prob_fn, step_size):
        """
        Args:
            target_log_prob_fn: z [C, P] -> [C], with a method `box` as in `Target`.
            step_size: As in Proposal.
        """
        super().__init__(target_log_prob_fn, step_size)
        self.low, self.high = target_log_prob_fn.box()

    def draw(self, here, step_size, seed):
        """A new position [C, P]."""
        uniform = tf.random.stateless_uniform(here.z.shape, seed, dtype=tf.float64)
        mean, spread = self._normal(here, step_size)
        z = mean + spread * truncated_normal.quantile(uniform, *self._limits(mean, spread))
        # The sum may round to a point just outside.
        return tf.cast(tf.clip_by_value(z, self.low, self.high), here.z.dtype)

    def log_ratio(self, here, there, step_size):
        """log q(here | there) - log q(there | here) [C], with both truncations."""
        ratio = super().log_ratio(here, there, step_size)
        mass = self._log_mass(here, step_size) - self._log_mass(there, step_size)
        return ratio + tf.cast(mass, ratio.dtype)

    def _log_mass(self, point, step_size):
        """Log probability [C] that MALA's own proposal from a Point falls into the box."""
        limits = self._limits(*self._normal(point, step_size))
        return tf.reduce_sum(truncated_normal.log_mass(*limits), axis=-1)

    def _normal(self, point, step_size):
        mean = tf.cast(self.mean(point, step_size), tf.float64)
        return mean, tf.sqrt(tf.cast(step_size, tf.float64))

    def _limits(self, mean, spread):
        return (self.low - mean) / spread, (self.high - mean) / spread


@dataclass(frozen=True, kw_only=True)
class TruncatedMALA(MALA):
    """MALA for `priors.Uniform` on all weights: proposals are truncated to the box.

    Each coordinate is drawn from MALA's normal, N(theta + (h / 2) M grad, h M), conditioned to lie
    between `low` and `high`; the acceptance ratio has the factor Z(theta) / Z(theta') of the
    probabilities that the untruncated proposals fall into the box. Learned noise scales, which have
    no limits, are proposed as in MALA. `step_size` is h, as in MALA. M has to be diagonal, for the
    box to stay a box: `preconditioner` is "auto" (default, meaning "diagonal"), "diagonal" or
    "identity". The other attributes are described in `Kernel`.

    Raises:
        ValueError: For preconditioner="gauss_newton", and for models with other priors.

    References:
        Roberts and Stramer 2002, Methodol. Comput. Appl. Probab. 4, 337, for Langevin proposals
        that are kept from leaving; the ratio is Metropolis-Hastings with the truncated density.
    """

    proposal = TruncatedProposal
    theta_obstacle = "the prior's box is one of theta"
    no_whitening = "whitened, the prior's box would no longer be a box"

    def check_model(self, spec, row_noise):
        """Refuses models that have weights without a box."""
        super().check_model(spec, row_noise)
        others = [
            f"layer {number} {kind}: {prior}"
            for number, layer in enumerate(spec.priors, start=1)
            for kind, prior in (("kernel", layer.kernel), ("bias", layer.bias))
            if not isinstance(prior, Uniform)
        ]
        if others:
            raise ValueError(
                "TruncatedMALA needs priors.Uniform(low, high) on all kernels and biases, received "
                f"{', '.join(others)}. Use kernel='mala', or Uniform priors."
            )
