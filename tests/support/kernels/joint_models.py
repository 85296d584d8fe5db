"""Models of the engine whose weights and rows are drawn together: what joint tests sample.

Every replicate has its own rows, so one `Target` of N chains holds N posteriors. Weights and rows
are drawn by NumPy and SciPy alone; the densities are those of the library.
"""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from scipy import special, stats

from tests.support.builders import plain_spec
from tfbnn import priors
from tfbnn.engine.density.data import all_of
from tfbnn.engine.density.linear_map import as_tensors, scaling_map
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.likelihoods import Bernoulli, Gaussian

__all__ = [
    "BoxedLogisticModel",
    "HierarchicalModel",
    "LogisticModel",
    "engine_target",
]

# Away from zero and from symmetry, so that no error can cancel.
X = np.array([-2.0, -1.1, -0.3, 0.4, 1.3, 2.5])
NEW_X = np.array([-1.5, 0.8])


def engine_target(spec, data, num_chains):
    """Return the target that the engine gives a kernel, in the model's own coordinates."""
    linear_map = scaling_map(1.0, np.zeros((num_chains, spec.layout.num_parameters)))
    reference = tf.zeros(num_chains, tf.float64)
    return Target(Potential(spec), data, as_tensors(linear_map), reference, temperatures=(1.0,))


class LogisticModel:
    """Logistic regression on six rows: slope and offset with prior N(0, 2^2)."""

    scale = 2.0
    spec = plain_spec([1, 1], prior=priors.Normal(scale), likelihood=Bernoulli())

    def draw_weights(self, generator, count):
        """theta [count, P] from the prior."""
        return self.scale * generator.normal(size=(count, 2))

    def draw_rows(self, generator, theta):
        """Rows y [count, 1, 6], one set for each theta."""
        logits = theta[:, :1] * X + theta[:, 1:2]
        return generator.binomial(1, special.expit(logits))[:, None, :].astype(float)

    def uniforms(self, theta):
        """Return numbers that are uniform on (0, 1) for theta from the prior: [count, ...]."""
        z = theta / self.scale
        return np.column_stack([stats.norm.cdf(z), stats.chi2.cdf((z**2).sum(axis=-1), 2)])

    def quantities(self, theta, y):
        """Functions of weights and rows together, each with a law to be kept: [count, 4]."""
        potential, data = Potential(self.spec), self.data(y)
        value, gradient = tfp.math.value_and_gradient(
            lambda theta: potential.log_likelihood(theta, data), tf.constant(theta)
        )
        outputs = theta[:, :1] * NEW_X + theta[:, 1:2]
        return np.column_stack([value, np.sum(theta * gradient, axis=-1), outputs])

    def data(self, y):
        """Data whose rows y [N, 1, 6] belong to N chains."""
        return all_of(tf.constant(X[None]), tf.constant(y), None)

    def target(self, y):
        """The N posteriors given rows y [N, 1, 6]."""
        return engine_target(self.spec, self.data(y), len(y))


class BoxedLogisticModel(LogisticModel):
    """The same with a flat prior between -2.5 and 3."""

    low, high = -2.5, 3.0
    spec = plain_spec([1, 1], prior=priors.Uniform(low, high), likelihood=Bernoulli())

    def draw_weights(self, generator, count):
        return generator.uniform(self.low, self.high, size=(count, 2))

    def uniforms(self, theta):
        return (theta - self.low) / (self.high - self.low)


class HierarchicalModel(LogisticModel):
    """A line with learned noise whose weights have learned prior scales: five parameters."""

    of_noise, of_scales = priors.InverseGamma(3.0, 1.0), priors.HalfNormal(1.0)
    spec = plain_spec(
        [1, 1],
        prior=priors.HierarchicalNormal(of_scales),
        likelihood=Gaussian("learned", scale_prior=of_noise),
    )

    def draw_weights(self, generator, count):
        gamma = generator.gamma(self.of_noise.concentration, size=(count, 1))
        noise = np.sqrt(self.of_noise.scale / gamma)
        scales = np.abs(self.of_scales.scale * generator.normal(size=(count, 2)))
        weights = scales * generator.normal(size=(count, 2))
        return np.column_stack([weights, np.log(noise), np.log(scales)])

    def draw_rows(self, generator, theta):
        mean = theta[:, :1] * X + theta[:, 1:2]
        return (mean + np.exp(theta[:, 2:3]) * generator.normal(size=mean.shape))[:, None, :]

    def uniforms(self, theta):
        weights, noise, scales = np.split(theta, [2, 3], axis=-1)
        scales, shape = np.exp(scales), self.of_noise.concentration
        return np.column_stack(
            [
                stats.norm.cdf(weights / scales),
                stats.invgamma.cdf(np.exp(2 * noise), shape, scale=self.of_noise.scale),
                stats.halfnorm.cdf(scales, scale=self.of_scales.scale),
            ]
        )
