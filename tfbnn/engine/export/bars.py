"""Calibrated bars in a TensorFlow graph; the numbers of `tfbnn.posterior.prediction`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf


def bars(constants: Any, x: Tensor, centre: Tensor, spread: Tensor) -> Tensor:
    """Lower end, median and upper end [3, K, n], transformed.

    Args:
        constants: `tfbnn.posterior.calibration.exported.BarConstants`.
        x: Transformed inputs [D, n].
        centre, spread: Mean and standard deviation of the function [K, n], transformed.
    """
    stddev = tf.sqrt(tf.square(spread) + np.square(constants.noise))
    at_edge, is_outside = _places(constants, x)
    scores, narrower = constants.scores[0] + 0.0 * stddev, constants.narrower[0] + 0.0 * stddev
    for number in range(1, len(constants.scores)):
        begins = at_edge if constants.is_by_trust else stddev > constants.edges[number - 1]
        step = tf.cast(begins, tf.float64)
        scores += constants.scores[number] * step
        narrower += constants.narrower[number] * step
    left = tf.logical_and(narrower > 0.5, is_outside)
    return centre + stddev * tf.where(left, constants.plain, scores)


def _places(constants: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """Whether inputs are not inside, and whether they are outside the training inputs [n]."""
    beyond = tf.maximum(constants.low - x, x - constants.high)
    distance = tf.norm(tf.matmul(constants.whitening, x - constants.mean), axis=0)
    inside = tf.logical_and(tf.reduce_all(beyond <= 0, axis=0), distance <= constants.usual)
    far = tf.reduce_any(beyond > constants.reach, axis=0)
    return ~inside, tf.logical_or(far, distance > constants.largest)
