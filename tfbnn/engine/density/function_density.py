"""A log density that somebody brings, as a sampler sees it."""

from dataclasses import dataclass

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.density import Density
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.row_blocks import taped
from tfbnn.spec.density_spec import DensitySpec, Sampled


@dataclass(frozen=True)
class FunctionDensity(Density):
    """The sum of one's own functions: one of them counts as likelihood, of two the second."""

    spec: DensitySpec

    def log_prior(self, theta):
        if len(self.spec.functions) == 1:
            return tf.zeros(theta.shape[:1], tf.float64)
        return self._value(self.spec.functions[0], theta)

    def log_likelihood(self, theta, data):
        del data  # the function has its own
        return self._value(self.spec.functions[-1], theta)

    def log_likelihood_and_gradient(self, theta, data):
        return taped(lambda theta: self.log_likelihood(theta, data), theta)

    def value_and_gradient(self, theta, data, likelihood_weight=1.0):
        if len(self.spec.functions) == 1:  # of which nothing has to be weighted or added
            return self.log_likelihood_and_gradient(theta, data)
        return super().value_and_gradient(theta, data, likelihood_weight)

    def why_not_finite(self, theta, data, chain):
        parts = zip(self.spec.names, self.spec.functions)
        values = ", ".join(f"{name} is {float(self._value(f, theta)[0])}" for name, f in parts)
        return (
            f"The log density is not finite where chain {chain} starts: {values}. Start elsewhere."
        )

    @staticmethod
    def _value(function, theta):
        return tf.cast(function(theta), tf.float64)


def density_of(spec: Sampled) -> Density:
    """The density that a spec describes, in its own coordinates."""
    return FunctionDensity(spec) if isinstance(spec, DensitySpec) else Potential(spec)
