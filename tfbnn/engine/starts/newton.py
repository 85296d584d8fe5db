"""Levenberg-Marquardt on the potential, which polishes starts that ADAM leaves far from a mode.

Let H be the Gauss-Newton matrix and g the gradient of the log density. Each iteration solves
(H + mu I) d = g for all parameters except scales. It takes the step d - a / 2 if the log density
rises, and adapts mu to the outcome. The acceleration a solves (H + mu I) a = J^T Lambda f'', with
f'' the second derivative of the outputs along d. It follows the bend of ravines (geodesic
acceleration) and is limited to the length of d.

Each scale then takes one Newton step on the log density, averaged over a Gaussian approximation of
the weights. A learned noise scale is determined by N - gamma degrees of freedom, with gamma the
effective number of parameters (MacKay 1992, Neural Computation 4, 415). A sampled prior scale is
determined by the weights' squares plus their variances diag(H^-1). Without these terms a network
with about as many parameters as rows would drive the noise to zero, and a prior scale and its
weights would vanish together. The result is a good start, not a maximum.

Linear systems in H are solved by the cheaper of two methods. Each has, for the parameters `free`,
`damped(damping)`, a function g -> (H + damping I)^-1 g, and `inverse_diagonal()` = diag(H^-1). For
all parameters it has `diagonal`. NumPy, float64.

References:
    Marquardt 1963, J. SIAM 11, 431. Transtrum and Sethna 2012, arXiv:1201.5885, acceleration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.fisher import compiled_prior_curvature
from tfbnn.engine.density.gauss_newton import (
    gauss_newton_diagonal,
    gauss_newton_matrix,
    outputs_bend,
    scaled_jacobian,
)
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import compiled_value_and_gradient
from tfbnn.engine.starts.check import inside_support
from tfbnn.engine.starts.holdout import HoldoutScore
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited

_FIRST_DAMPING, _LEAST_DAMPING, _EASE, _HARDEN, _FEWEST_TRIES = 1.0, 1e-3, 3.0, 4.0, 8
# Stop when this many iterations in a row gain less than this much log density together.
_PATIENCE, _TOLERANCE = 10, 1.0
_LARGEST_SCALE_STEP = 0.5
# Scales depend on the spread of the weights. It costs as much as a step and changes slowly, so it
# is computed only once in so many iterations.
_SPREAD_EVERY = 4
# Stop after this many iterations without a better score: a ravine is left in fewer.
_HOLDOUT_PATIENCE = 20
# After so many iterations a start with less than this share of the required gain is given up: it
# does not reach it. Gains in units of P, of two starts each, after 20 iterations and at the end.
# Never reached: demo .29 .33, then .36 .47; yacht after long ADAM .25 .16, then .47 .44; red wine
# .18 .32, then .41 .51; concrete .79 .74, then .95 .99. Reached: demo after default ADAM .88 .85,
# then 1.02 1.00; yacht in ntk .80 .87, then 1.35 1.54; yacht 1.58 1.81, then 1.90 2.27; airfoil .93
# 1.22, then 1.97 2.32; 1000 and 4000 rows of neutralinos 2.0 to 7.7, then 5.8 to 17. Ten are too
# few: airfoil had .37 then, and the demo .26.
_TRIAL_ITERATIONS, _TRIAL_SHARE = 20, 0.5

# Function from theta [P] to the smallest log noise scales [K] there.
NoiseFloor: TypeAlias = Callable[[Array], Array]
# Function from a right-hand side [free] to the solution.
Solve: TypeAlias = Callable[[Array], Array]
# Theta [P], its log density and gradient there, and the damping of the next iteration.
Step: TypeAlias = tuple[Array, float, Array, float]


class NewtonState(NamedTuple):
    """State of the optimisation of one start.

    Attributes:
        theta: Parameters [P], float64.
        gradient: Gradient of the log density at theta [P].
        damping: Damping of the next step.
        log_prob: Log density at the start and after every iteration.
        best: Theta with the best score so far; without scores the last theta.
        scores: Scores of held-out rows at the start and after every iteration; empty without such
            rows.
    """

    theta: Array
    gradient: Array
    damping: float
    log_prob: list[float]
    best: Array
    scores: list[float]


def _is_over(state: NewtonState, num_iterations: int, least: float) -> bool:
    """Check whether no further iteration should follow this state, see `polish`."""
    history, scores, done = state.log_prob, state.scores, len(state.log_prob) - 1
    stalled = done >= _PATIENCE and history[-1] - history[-1 - _PATIENCE] < _TOLERANCE
    in_vain = done == _TRIAL_ITERATIONS and history[-1] - history[0] < _TRIAL_SHARE * least
    waited = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
    return done >= num_iterations or stalled or in_vain or waited >= _HOLDOUT_PATIENCE


def polish(
    spec: NetworkSpec,
    theta: Array,
    data: Data,
    num_iterations: int,
    method: str,
    least: float = -np.inf,
    *,
    holdout: HoldoutScore | None = None,
    noise_floor: NoiseFloor | None = None,
) -> Iterator[NewtonState]:
    """Improve one start, and yield the state at the beginning and after each iteration.

    Args:
        spec: NetworkSpec.
        theta: Start [P].
        data: Data.
        num_iterations: Largest number of iterations.
        method: Method that solves linear systems in the Gauss-Newton matrix, "dense" or "rows".
        least: Smallest useful gain of log density. The search ends early if it is clear that this
            gain will not be reached.
        holdout: HoldoutScore, whose scores select the best state and end the search; or None.
        noise_floor: Function from theta [P] to the smallest log noise scales [K] there, or None.
    """
    problem = _Problem(spec, data, CURVATURES[method], noise_floor)
    theta = np.asarray(theta, np.float64)
    value, gradient = awaited(problem.value_and_gradient, theta)
    scores = [] if holdout is None else [holdout.score(theta)]
    state = NewtonState(theta, gradient, _FIRST_DAMPING, [value], theta, scores)
    yield state
    while not _is_over(state, num_iterations, least):
        step = awaited(problem.step, state)
        if step is None:
            return
        theta, value, gradient, damping = step
        best, scores = theta, state.scores
        if holdout is not None:
            scores = [*scores, holdout.score(theta)]
            best = theta if scores[-1] > max(state.scores) else state.best
        state = NewtonState(theta, gradient, damping, [*state.log_prob, value], best, scores)
        yield state


class _Problem:
    """Optimisation problem of one model on its data in float64, with scales treated separately.

    In ntk a sampled prior scale is part of the network and moves with the weights.
    """

    def __init__(
        self, spec: NetworkSpec, data: Data, kind: type[Curvature], floor: NoiseFloor | None = None
    ) -> None:
        self.spec, self.data, layout = spec, data, spec.layout
        self._curvature, self._noise_floor = kind, floor
        end = layout.log_noise_scale.stop if spec.is_ntk else layout.num_parameters
        self.scales = np.arange(layout.num_weights, end)
        self.free = np.delete(np.arange(layout.num_parameters), self.scales)
        self._function = compiled_value_and_gradient(Potential(spec))
        self._pull: Array | None = None

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        value, gradient = self._function(tf.constant(theta[None]), self.data)
        return float(value[0]), gradient[0].numpy()

    def curvature(self, theta: Array) -> Curvature:
        return self._curvature(self.spec, theta, self.data, self.free)

    def step(self, state: NewtonState) -> Step | None:
        """Make one iteration; return None at the maximum or if it cannot be computed."""
        curvature = self.curvature(state.theta)
        step = self.damped_step(state, curvature)
        if step is None or not len(self.scales):
            return step
        if self._pull is None or (len(state.log_prob) - 1) % _SPREAD_EVERY == 0:
            self._pull = self._expected_pull(state.theta, curvature)
        theta, _, gradient, damping = step
        theta = self.scale_step(theta, gradient + self._pull, curvature)
        value, gradient = self.value_and_gradient(theta)
        # With a noise scale of 1e-6 the matrix can no longer be factorised in float64. The last
        # state is then as good as any other.
        return (theta, value, gradient, damping) if np.isfinite(value) else None

    def damped_step(self, state: NewtonState, curvature: Curvature) -> Step | None:
        """Try steps with rising damping until the log density rises; return None if it never does.

        The search ends when the damping exceeds the stiffest curvature: a step is then shorter than
        every length scale, and along the gradient except for the acceleration, which is at most
        half as long.
        """
        damping, slope = state.damping, state.gradient[self.free]
        hardest = max(np.max(curvature.diagonal[self.free]), damping * _HARDEN**_FEWEST_TRIES)
        while damping < hardest:
            solve = curvature.damped(damping)
            step = np.zeros_like(state.theta)
            step[self.free] = solve(slope)
            step[self.free] -= 0.5 * self.bend(state.theta, step, solve)
            proposal = inside_support(self.spec, state.theta + step)
            value, gradient = self.value_and_gradient(proposal)
            if value > state.log_prob[-1]:
                return proposal, value, gradient, max(damping / _EASE, _LEAST_DAMPING)
            damping *= _HARDEN
        return None

    def bend(self, theta: Array, step: Array, solve: Solve) -> Array:
        """Compute the geodesic acceleration along a step, limited to the length of the step."""
        bend = solve(outputs_bend(self.spec, theta, step, self.data)[self.free])
        longest, length = np.linalg.norm(step), np.linalg.norm(bend)
        if not np.isfinite(length):
            return np.zeros_like(bend)
        return bend * (longest / length) if length > longest else bend

    def scale_step(self, theta: Array, gradient: Array, curvature: Curvature) -> Array:
        """Return theta after one Newton step of every scale."""
        step = gradient / curvature.diagonal
        theta = theta.copy()
        theta[self.scales] += np.clip(step[self.scales], -_LARGEST_SCALE_STEP, _LARGEST_SCALE_STEP)
        if self._noise_floor is not None:
            noise = self.spec.layout.log_noise_scale
            theta[noise] = np.maximum(theta[noise], self._noise_floor(theta))
        return theta

    def _expected_pull(self, theta: Array, curvature: Curvature) -> Array:
        """Compute the term [P] that the spread of the weights adds to the gradient of the scales."""
        layout = self.spec.layout
        # Per parameter, the share of its variance that the prior alone explains, from 0 to 1.
        prior_share = np.zeros(layout.num_parameters)
        precision = compiled_prior_curvature(self.spec)(tf.constant(theta)).numpy()[self.free]
        prior_share[self.free] = precision * curvature.inverse_diagonal()
        pull = np.zeros(layout.num_parameters)
        if layout.num_noise:
            gamma = len(self.free) - prior_share.sum()
            pull[layout.log_noise_scale] = gamma / layout.num_noise
        for prior, weights, scales in self.spec.weight_groups():
            if prior.scale_prior is not None:
                num_scales = scales.stop - scales.start
                pull[scales] = prior_share[weights].reshape(num_scales, -1).sum(axis=1)
        return pull


class DenseCurvature:
    """Solver by Cholesky factorisation of the whole matrix: about N K P^2 + P^3 operations."""

    def __init__(self, spec: NetworkSpec, theta: Array, data: Data, free: Array) -> None:
        matrix = gauss_newton_matrix(spec, theta, data)
        self.diagonal = np.diag(matrix)
        self._matrix = matrix[np.ix_(free, free)]

    def damped(self, damping: float) -> Solve:
        factor = _factor(self._matrix + damping * np.eye(len(self._matrix)))
        return partial(_solve, factor)

    def inverse_diagonal(self) -> Array:
        factor = _factor(self._matrix)
        return _squares_of_columns(factor, np.eye(len(self._matrix)))


class RowCurvature:
    """Solver by Woodbury's identity, for N K < P: about (N K)^2 P + (N K)^3 operations.

    With A = Lambda^(1/2) J [N K, P], D the prior's curvature plus damping and B = A D^(-1/2),
    (A^T A + D)^-1 = D^(-1/2) (I - B^T (I + B B^T)^-1 B) D^(-1/2).
    """

    def __init__(self, spec: NetworkSpec, theta: Array, data: Data, free: Array) -> None:
        self.diagonal = gauss_newton_diagonal(spec, theta, data)
        self._lines = scaled_jacobian(spec, theta, data)[:, free]
        self._prior = compiled_prior_curvature(spec)(tf.constant(theta)).numpy()[free]

    def damped(self, damping: float) -> Solve:
        roots, lines, factor = self._inner(damping)

        def solve(right: Array) -> Array:
            right = right / roots
            return (right - lines.T @ _solve(factor, lines @ right)) / roots

        return solve

    def inverse_diagonal(self) -> Array:
        roots, lines, factor = self._inner(0.0)
        return (1.0 - _squares_of_columns(factor, lines)) / roots**2

    def _inner(self, damping: float) -> tuple[Array, Array, Tensor]:
        """Return (square roots of D, B, Cholesky factor of I + B B^T)."""
        roots = np.sqrt(self._prior + damping)
        lines = self._lines / roots
        return roots, lines, _factor(np.eye(len(lines)) + lines @ lines.T)


Curvature: TypeAlias = DenseCurvature | RowCurvature
CURVATURES: dict[str, type[Curvature]] = {"dense": DenseCurvature, "rows": RowCurvature}


def _factor(matrix: Array) -> Tensor:
    # TensorFlow's Cholesky, because LAPACK's threads wait for each other on a busy machine.
    return tf.linalg.cholesky(matrix)


def _solve(factor: Tensor, right: Array) -> Array:
    return tf.linalg.cholesky_solve(factor, right[:, None]).numpy()[:, 0]


def _squares_of_columns(factor: Tensor, right: Array) -> Array:
    """Compute the squared lengths [n] of the columns of L^-1 right [m, n]."""
    from scipy.linalg import solve_triangular

    columns = solve_triangular(factor.numpy(), right, lower=True, check_finite=False)
    return np.einsum("ij,ij->j", columns, columns)
