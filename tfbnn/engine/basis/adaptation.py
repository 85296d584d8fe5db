"""Adaptation during warm-up: step size by dual averaging, moments for the preconditioner, windows.

The two states below are plain tensors in the loop of the compiled block. Every chain adapts on its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.system.arrays import Array

# Hoffman and Gelman 2014, JMLR 15, section 3.2: gamma, t0, kappa, and mu = log(10 eps_0).
_GAMMA, _T0, _KAPPA = 0.05, 10.0, 0.75


class DualAveraging(NamedTuple):
    """State of Nesterov's dual averaging of the log step size.

    Attributes:
        log_step: Log of the step size to try next, float32 [C].
        log_average: Log of the averaged step size, used after adaptation, [C].
        error_sum: Sum of (target - acceptance), [C].
        count: Number of updates, scalar.
        centre: Value towards which log_step is shrunk, [C].
    """

    log_step: Tensor
    log_average: Tensor
    error_sum: Tensor
    count: Tensor
    centre: Tensor

    def update(self, acceptance: Tensor, target: float, largest: float = np.inf) -> DualAveraging:
        """Update the state with the acceptance probabilities [C] of the last transition.

        If even the `largest` step size is accepted more often than the target, the sum of errors
        stays at the value that gives this step, and does not run away.
        """
        count = self.count + 1.0
        lowest = (
            _GAMMA * (count + _T0) / tf.sqrt(count) * (self.centre - np.float32(np.log(largest)))
        )
        error_sum = tf.maximum(self.error_sum + (target - acceptance), lowest)
        log_step = self.centre - tf.sqrt(count) / _GAMMA * error_sum / (count + _T0)
        weight = count**-_KAPPA
        log_average = weight * log_step + (1.0 - weight) * self.log_average
        return DualAveraging(log_step, log_average, error_sum, count, self.centre)


def restart_dual_averaging(step_size: Array) -> DualAveraging:
    """Start dual averaging from step sizes [C]."""
    log_step = tf.constant(np.log(np.asarray(step_size, dtype=np.float32)))
    zeros, centre = tf.zeros_like(log_step), log_step + np.float32(np.log(10.0))
    return DualAveraging(log_step, log_step, error_sum=zeros, count=tf.constant(0.0), centre=centre)


class RunningMoments(NamedTuple):
    """Welford's running mean and sum of squared deviations, [C, P] each, over `count` draws."""

    mean: Tensor
    squares: Tensor
    count: Tensor

    def update(self, theta: Tensor) -> RunningMoments:
        """Add one draw [C, P]."""
        count = self.count + 1.0
        delta = theta - self.mean
        mean = self.mean + delta / count
        return RunningMoments(mean, self.squares + delta * (theta - mean), count)


def restart_moments(shape: Sequence[int], dtype: Any) -> RunningMoments:
    """Return the moments before the first draw."""
    zeros = tf.zeros(shape, dtype)
    return RunningMoments(zeros, zeros, tf.zeros([], dtype))


def select(condition: Tensor, new: Any, old: Any) -> Any:
    """Return the structure of tensors `new` if the scalar `condition` is true, else `old`."""
    return tf.nest.map_structure(lambda a, b: tf.where(condition, a, b), new, old)


def adaptation_windows(num_steps: int) -> list[tuple[int, bool]]:
    """Split the adapting part of warm-up into windows, similar to Stan.

    A first buffer of 15 % (at most 75 transitions) adapts only the step size. The following windows
    double in length, and each ends with a new preconditioner. A last buffer of 25 % (at most 200)
    settles the step size. Stan's last buffer has at most 50 transitions, after which the step size
    is still too small by a factor of up to two: dual averaging lowers it more after a rejection
    than it raises it after an acceptance.

    Args:
        num_steps: Number of adapting transitions.

    Returns:
        List of (length, renew), with lengths that add up to `num_steps`. `renew` is true if the
        window collects moments and ends with a new preconditioner.
    """
    first, last = min(75, round(0.15 * num_steps)), min(200, round(0.25 * num_steps))
    middle = num_steps - first - last
    if middle < 10:
        return [(num_steps, False)] if num_steps else []
    windows, length = [(first, False)], 25
    while middle > 0:
        # A window takes all the rest if less than twice its length would remain.
        length = middle if middle < 3 * length else length
        windows.append((length, True))
        middle -= length
        length *= 2
    return [*windows, (last, False)]


def find_initial_step_size(
    value_and_gradient: Callable[[Array], tuple[Array, Array]],
    z: Array,
    linear_map: Any,
    generator: np.random.Generator,
) -> Array:
    """Double or halve a step size until one leapfrog step is accepted with about 50 %.

    This is algorithm 4 of Hoffman and Gelman 2014 in the coordinates z, for each chain separately.

    Args:
        value_and_gradient: Function theta [C, P] -> (log density [C], gradient [C, P]), NumPy.
        z: Start [C, P].
        linear_map: Map from z to theta.
        generator: NumPy generator for the momentum.

    Returns:
        Step sizes [C], float32.
    """
    momentum = generator.standard_normal(z.shape).astype(z.dtype)
    value, gradient = value_and_gradient(np.asarray(linear_map.forward(z)))
    gradient = np.asarray(linear_map.pull_back(gradient))

    def log_ratio(step: Array) -> Array:
        half = momentum + 0.5 * step[:, None] * gradient
        theta = np.asarray(linear_map.forward(z + step[:, None] * half))
        new_value, new_gradient = value_and_gradient(theta)
        end = half + 0.5 * step[:, None] * np.asarray(linear_map.pull_back(new_gradient))
        change = new_value - value - 0.5 * ((end**2).sum(-1) - (momentum**2).sum(-1))
        return np.where(np.isfinite(change), change, -np.inf)

    with np.errstate(over="ignore", invalid="ignore"):
        step = np.full(len(z), 0.1, dtype=z.dtype)
        grows = log_ratio(step) > np.log(0.5)
        factor = np.where(grows, 2.0, 0.5).astype(z.dtype)
        active = np.ones(len(z), dtype=bool)
        for _ in range(60):
            proposal = np.where(active, step * factor, step)
            crossed = (log_ratio(proposal) > np.log(0.5)) != grows
            # Doubling stops before the first step that is too large, halving at the first small
            # enough.
            step = np.where(active & (~crossed | ~grows), proposal, step)
            active &= ~crossed
            if not active.any():
                break
    return step.astype(np.float32)
