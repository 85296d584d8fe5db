"""Levenberg-Marquardt on the potential: polishes the starts that ADAM leaves far from a mode.

With H the Gauss-Newton matrix and g the gradient of the log density, each iteration solves
(H + mu I) d = g for all parameters but the noise scales, takes the step when the log density rises,
and moves mu by the outcome. A learned noise scale then takes one Newton step towards the value at
which the residuals are explained by N - gamma degrees of freedom, gamma the effective number of
parameters (MacKay 1992, Neural Computation 4, 415); without gamma, a network with about as many
parameters as rows would drive the scale to zero. This makes a good start, not a maximum.

References:
    Marquardt 1963, J. SIAM 11, 431.
"""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfbnn.engine.gauss_newton import gauss_newton_matrix, prior_curvature
from tfbnn.engine.potential import Data
from tfbnn.engine.start import compiled_value_and_gradient

__all__ = ["NewtonResult", "polish"]

_FIRST_DAMPING, _LEAST_DAMPING, _EASE, _HARDEN, _MAX_TRIES = 1.0, 1e-3, 3.0, 4.0, 8
# Stop when this many iterations in a row gain less than this much log density together.
_PATIENCE, _TOLERANCE = 10, 1.0
_LARGEST_NOISE_STEP = 0.5


@dataclass(frozen=True)
class NewtonResult:
    """The polished parameters of one chain.

    Attributes:
        theta: [P], float64.
        log_prob: Log density at the start and after every iteration.
        effective_parameters: gamma at the end; 0 where no noise scale is learned.
    """

    theta: np.ndarray
    log_prob: list
    effective_parameters: float


def polish(spec, theta, data, num_iterations, jit_compile, notify):
    """Improves one start.

    Args:
        spec: ModelSpec.
        theta: Start [P].
        data: Data.
        num_iterations: At most so many.
        jit_compile: Whether XLA compiles the log density and its gradient.
        notify: Called as notify(iteration, log density); true stops.

    Returns:
        NewtonResult.
    """
    problem = _Problem(spec, data, jit_compile)
    theta = np.asarray(theta, np.float64)
    value, gradient = problem.value_and_gradient(theta)
    history, damping, gamma = [value], _FIRST_DAMPING, 0.0
    for iteration in range(1, num_iterations + 1):
        matrix = problem.matrix(theta)
        step = problem.damped_step(theta, value, gradient, matrix, damping)
        if step is None:
            break
        theta, gradient, damping = step
        if spec.layout.num_noise:
            gamma = problem.effective_parameters(theta, matrix)
            theta = problem.noise_step(theta, gradient, matrix, gamma)
        value, gradient = problem.value_and_gradient(theta)
        history.append(value)
        stalled = len(history) > _PATIENCE and value - history[-1 - _PATIENCE] < _TOLERANCE
        if notify(iteration, value) or stalled:
            break
    return NewtonResult(theta, history, gamma)


class _Problem:
    """One model on its data in float64, with the noise scales held apart from the rest."""

    def __init__(self, spec, data, jit_compile):
        self.spec = spec
        self.data = Data(*(None if a is None else tf.cast(a, tf.float64) for a in data))
        self.noise = spec.layout.log_noise_scale
        # As for ADAM, sampled prior scales have no maximum unless they sit in the network.
        end = spec.layout.num_parameters if spec.is_ntk else self.noise.stop
        self.free = np.delete(np.arange(end), self.noise)
        self._function = compiled_value_and_gradient(spec, jit_compile)

    def value_and_gradient(self, theta):
        value, gradient = self._function(tf.constant(theta[None]), self.data)
        return float(value[0]), gradient[0].numpy()

    def matrix(self, theta):
        return gauss_newton_matrix(self.spec, theta, self.data)

    def damped_step(self, theta, value, gradient, matrix, damping):
        """(theta, gradient there, damping) after a step that raises the log density, or None."""
        from scipy.linalg import cho_factor, cho_solve

        curvature = matrix[np.ix_(self.free, self.free)]
        for _ in range(_MAX_TRIES):
            factor = cho_factor(curvature + damping * np.eye(len(curvature)), check_finite=False)
            proposal = theta.copy()
            proposal[self.free] += cho_solve(factor, gradient[self.free], check_finite=False)
            new_value, new_gradient = self.value_and_gradient(proposal)
            if new_value > value:
                return proposal, new_gradient, max(damping / _EASE, _LEAST_DAMPING)
            damping *= _HARDEN
        return None

    def effective_parameters(self, theta, matrix):
        """gamma = number of parameters - trace(H^-1 prior curvature)."""
        prior = prior_curvature(self.spec, theta)[self.free]
        inverse = np.linalg.inv(matrix[np.ix_(self.free, self.free)])
        return float(len(prior) - np.diag(inverse) @ prior)

    def noise_step(self, theta, gradient, matrix, gamma):
        """One Newton step of the learned log noise scales, gamma shared between the outputs."""
        theta = theta.copy()
        pull = gradient[self.noise] + gamma / (self.noise.stop - self.noise.start)
        step = pull / np.diag(matrix)[self.noise]
        theta[self.noise] += np.clip(step, -_LARGEST_NOISE_STEP, _LARGEST_NOISE_STEP)
        return theta
