"""Bugs of the reparametrised potentials and of their sums over blocks of rows."""

import numpy as np
import tensorflow as tf

from tests.support.bugs.bug import Bug, around, without
from tests.support.engine_checks import blocks_of, small_blocks
from tests.support.kernels.joint_readouts import JOINT, joint_draws, joint_p
from tests.support.readouts import with_padding
from tfbnn.engine.density import conjugate
from tfbnn.engine.density.data import all_of
from tfbnn.engine.density.regression import ReadoutRegression
from tfbnn.engine.density.reparametrisation import Collapsed

__all__ = ["READOUT_BUGS"]


def law(name):
    """The checks of layer B that see what a bug does to the law of the draws."""
    return {"B joint": lambda: joint_p(name)[0]}


def gradient():
    """The gradient of the collapsed density against differences of it, at one joint draw."""
    theta, data = joint_draws()
    data = data._replace(y=data.y[:1])
    potential = Collapsed(JOINT)
    point = tf.constant(potential.coordinates(theta[:1], data))
    _, found = potential.value_and_gradient(point, data)
    for index in range(point.shape[1]):
        shift = 1e-6 * tf.one_hot(index, point.shape[1], dtype=tf.float64)
        ends = [potential.log_prob(point + sign * shift, data)[0] for sign in (1.0, -1.0)]
        np.testing.assert_allclose(found[0, index], (ends[0] - ends[1]) / 2e-6, 1e-5, 1e-5)


def scaled_log_det(factor):
    """A patch of the map that multiplies its log determinant."""

    def wrap(draw):
        def other(*arguments):
            v, log_det = draw(*arguments)
            return v, factor * log_det

        return other

    return around(conjugate, "draw", wrap)


def blocks():
    """The collapsed density by blocks of 16 rows, of 42 and with padding, against all at once."""
    theta, data = joint_draws()
    rows = (tf.concat([array] * 7, axis=-1) for array in (data.x, data.y[:1]))
    data, theta = all_of(*rows, None), tf.constant(theta[:1])
    assert [int(block.first) for block in blocks_of(data, 16)] == [0, 0, 6]
    expected = ReadoutRegression(JOINT, data).log_marginal_and_gradient(theta)[0]
    for rows in (data, with_padding(data)):
        with small_blocks(16):
            found, _ = ReadoutRegression(JOINT, rows).log_marginal_and_gradient(theta)
        np.testing.assert_allclose(found, expected, 1e-10)


def overlapping(original):
    """Sums over blocks of which the last, which reaches back, counts all of its rows."""

    def statistics_of(self, theta, rows):
        return original(self, theta, rows._replace(first=tf.constant(0)))

    return statistics_of


def padded_log_scales(original):
    def of_rows(self, theta, rows):
        every = rows._replace(first=tf.constant(0), last=tf.constant(rows.length))
        return *original(self, theta, rows)[:2], original(self, theta, every)[2]

    return of_rows


def half_variance(self, coordinates, normals, data, right=Collapsed.complete):
    return right(self, coordinates, 0.5**0.5 * normals, data)


READOUT_BUGS = {
    "repriorised, without log-det": Bug(
        "the determinant of the map is missing from the density",
        scaled_log_det(0.0),
        checks=law("regularised"),
    ),
    "repriorised, log-det doubled": Bug(
        "the determinant of the map is counted twice",
        scaled_log_det(2.0),
        checks=law("regularised"),
    ),
    "collapsed, without log-det": Bug(
        "the determinant of the readout's covariance is missing from the marginal density",
        without(
            conjugate.ReadoutPosterior,
            "half_log_det",
            property(lambda self: 0.0 * self.lower[..., 0, 0]),
        ),
        checks=law("collapsed"),
    ),
    "collapsed, readouts too narrow": Bug(
        "readouts are drawn with half of their variance",
        without(Collapsed, "complete", half_variance),
        checks=law("collapsed"),
    ),
    "collapsed, gradient without covariance": Bug(
        "the closed-form gradient lacks what comes from the determinant",
        without(
            conjugate.ReadoutPosterior,
            "covariance_times_x",
            lambda self, inverse, x: tf.zeros_like(x),
        ),
        checks={"A gradient": gradient},
    ),
    "readout, a row twice": Bug(
        "rows that two blocks have in common are twice in the Gram matrix",
        around(ReadoutRegression, "_statistics_of", overlapping),
        checks={"A blocks": blocks},
    ),
    "readout, padding in the log scales": Bug(
        "the log scales of padding rows are counted",
        around(ReadoutRegression, "of_rows", padded_log_scales),
        checks={"A blocks": blocks},
    ),
}
