"""The standard normal between two limits, far tails included: its mass, and draws by inversion.

All in logarithms and float64: a proposal may be centred hundreds of standard deviations outside the
limits, where probabilities underflow. (XLA's own quantile function is -inf below 1e-14.)
"""

from math import log, pi

import tensorflow as tf
import tensorflow_probability as tfp

__all__ = ["log_mass", "quantile"]

_HALF_LOG_2PI = 0.5 * log(2.0 * pi)
# Below this log probability the quantile starts from its asymptotic form.
_TAIL = -5.0
# Newton's method converges from the left: four steps reach 1e-12 from the asymptotic start, which
# is off by a tenth at most.
_NEWTON_STEPS = 5


def log_mass(low, high):
    """log(Phi(high) - Phi(low)), elementwise, of float64 limits that may be infinite."""
    _, low, high = _lower_side(low, high)
    return tfp.math.log_sub_exp(_log_cdf(high), _log_cdf(low))


def quantile(uniform, low, high):
    """Where the share `uniform`, in (0, 1), of the mass between `low` and `high` lies below.

    Uniform random numbers give draws. In the upper tail the share is counted from above, which is
    the same thing for draws.
    """
    flipped, low, high = _lower_side(low, high)
    log_cdf = tfp.math.log_add_exp(
        tf.math.log1p(-uniform) + _log_cdf(low), tf.math.log(uniform) + _log_cdf(high)
    )
    z = tf.clip_by_value(_inverse_log_cdf(log_cdf), low, high)
    return tf.where(flipped, -z, z)


def _lower_side(low, high):
    """Mirrors limits that are mostly above zero; the lower tail is the one floats resolve."""
    flipped = low > -high
    return flipped, tf.where(flipped, -high, low), tf.where(flipped, -low, high)


def _inverse_log_cdf(log_cdf):
    in_tail = log_cdf < _TAIL
    tail = tf.where(in_tail, log_cdf, 2.0 * _TAIL)
    # phi(z) / |z| = Phi(z), once iterated.
    z = -tf.sqrt(-2.0 * (tail + _HALF_LOG_2PI + 0.5 * tf.math.log(-2.0 * tail)))
    for _ in range(_NEWTON_STEPS):
        value = _log_cdf(z)
        slope = tf.exp(-0.5 * z**2 - _HALF_LOG_2PI - value)
        z -= (value - tail) / slope
    centre = _normal().quantile(tf.exp(tf.where(in_tail, tf.zeros_like(log_cdf), log_cdf)))
    return tf.where(in_tail, z, centre)


def _log_cdf(z):
    return _normal().log_cdf(z)


def _normal():
    return tfp.distributions.Normal(tf.zeros([], tf.float64), tf.ones([], tf.float64))
