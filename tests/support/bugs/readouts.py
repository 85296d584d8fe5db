"""Bugs of the reparametrised potentials."""

import numpy as np
import tensorflow as tf

from tests.support.bugs.bug import Bug, around, without
from tests.support.kernels.joint_readouts import JOINT, joint_draws, joint_p
from tfbnn.engine.density import conjugate
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
            drawn = draw(*arguments)
            return drawn._replace(log_det=factor * drawn.log_det)

        return other

    return around(conjugate, "draw", wrap)


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
            conjugate.Factor, "half_log_det", property(lambda self: 0.0 * self.lower[..., 0, 0])
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
        without(conjugate, "_covariance_times_x", lambda factor, x: tf.zeros_like(x)),
        checks={"A gradient": gradient},
    ),
}
