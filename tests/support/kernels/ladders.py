"""Posteriors whose rungs have known laws, and ladders of walkers on them."""

import numpy as np
import tensorflow as tf
from scipy import stats

from tests.support.builders import plain_spec
from tfbnn.engine.density.linear_map import DiagonalMap
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import taped
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.likelihoods import Gaussian

__all__ = ["Conjugate", "TwoModes", "advance", "make_target"]


class Conjugate(Potential):
    """theta ~ N(0, 2^2 I) in two dimensions, seen once with noise 0.5 at SEEN."""

    PRIOR, NOISE, SEEN = 2.0, 0.5, np.array([1.5, -1.0])

    def __init__(self):
        super().__init__(plain_spec([1, 1], likelihood=Gaussian(self.NOISE)))

    def log_prior(self, theta):
        return _log_normal(theta, self.PRIOR)

    def log_likelihood(self, theta, data):
        del data
        return _log_normal(theta - self.SEEN, self.NOISE)

    def log_likelihood_and_gradient(self, theta, data):
        return taped(lambda theta: self.log_likelihood(theta, data), theta)

    def law(self, temperatures):
        """Means [m, 2] and standard deviations [m, 1] of the rungs."""
        t = np.array(temperatures)[:, None]
        precision = self.PRIOR**-2 + t * self.NOISE**-2
        return t * self.NOISE**-2 * self.SEEN / precision, precision**-0.5

    def draw(self, temperatures, num_chains, generator):
        """Exact draws of all rungs [C * m, 2]."""
        mean, spread = self.law(temperatures)
        noise = generator.normal(size=(num_chains, len(mean), 2))
        return (mean + spread * noise).reshape(-1, 2)

    @property
    def log_evidence(self):
        return stats.norm.logpdf(self.SEEN, 0.0, np.hypot(self.PRIOR, self.NOISE)).sum()


class TwoModes(Conjugate):
    """A likelihood with a peak at -SEEN and one at SEEN; the posterior gives them WEIGHTS."""

    PRIOR, NOISE, SEEN, WEIGHTS = 3.0, 0.4, np.array([2.5, 2.5]), (0.3, 0.7)

    def log_likelihood(self, theta, data):
        peaks = [
            np.log(weight) + _log_normal(theta - centre, self.NOISE)
            for weight, centre in zip(self.WEIGHTS, (-self.SEEN, self.SEEN))
        ]
        return tf.reduce_logsumexp(peaks, axis=0)


def _log_normal(deviation, scale):
    squares = tf.reduce_sum(tf.cast(deviation, tf.float64) ** 2, axis=-1)
    return -0.5 * squares / scale**2 - deviation.shape[-1] * np.log(scale * np.sqrt(2 * np.pi))


def make_target(potential, temperatures, num_chains):
    """The Target of C chains in coordinates where every rung has about unit variance."""
    scale = np.tile(np.repeat(potential.law(temperatures)[1], 2, axis=1), (num_chains, 1))
    reference = tf.zeros([len(scale)], tf.float64)
    return Target(potential, None, DiagonalMap(tf.constant(scale)), reference, temperatures)


def advance(settings, potential, theta, num_steps, num_kept=0, seed=0):
    """Runs chains from theta [C * m, 2].

    Returns:
        (theta at the end [C * m, 2], theta [num_kept, C * m, 2] of the last transitions, results).
    """
    temperatures = settings.temperatures
    num_rows = len(theta)
    target = make_target(potential, temperatures, num_rows // len(temperatures))
    step = tf.fill([num_rows, 1], tf.constant(settings.step_size, tf.float64))
    kernel = settings.build(target, step)
    linear_map = target.linear_map

    @tf.function(autograph=False, jit_compile=True)
    def run(theta):
        def transition(index, z, results, kept):
            keys = tf.random.split(tf.stack([seed, index]), 2)
            results = settings.prepare(results, step, keys[0], False)
            z, results = kernel.one_step(z, results, seed=keys[1])
            position = tf.maximum(index - (num_steps - num_kept), 0)
            return index + 1, z, results, kept.write(position, linear_map.forward(z))

        z = linear_map.inverse(theta)
        kept = tf.TensorArray(tf.float64, num_kept or 1, element_shape=theta.shape)
        start = (0, z, kernel.bootstrap_results(z), kept)
        _, z, results, kept = tf.while_loop(lambda i, *_: i < num_steps, transition, start)
        return linear_map.forward(z), kept.stack(), results

    end, kept, results = run(tf.constant(theta))
    return end.numpy(), kept.numpy(), results
