"""Shapes that docstrings of densities state are held in every test of the engine."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.builders import plain_spec
from tests.support.shapes import METHODS, holding
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.reparametrisation import RepriorisedPotential


def test_the_densities_are_held():
    for cls in (Potential, RepriorisedPotential):
        for name in METHODS.keys() & vars(cls).keys():
            assert hasattr(getattr(cls, name), "__wrapped__"), name


def test_what_is_not_as_promised_is_refused():
    potential, x = Potential(plain_spec([2, 3, 1])), np.zeros((4, 2))
    data = make_data(x, x[:, :1], None, "float32")
    theta = tf.zeros([5, potential.spec.num_parameters])
    value, gradient = potential.value_and_gradient(theta, data)
    assert value.shape == [5] and gradient.dtype == tf.float32
    with pytest.raises(TypeError, match=r"\(theta\) has shape \[14\], not \[C, P\]"):
        potential.log_prob(theta[0], data)
    argument, results = METHODS["value_and_gradient"]
    for found in [(value[:2], gradient), (value, gradient[:, :2]), (value, value[:, None])]:
        with pytest.raises(TypeError, match="has shape"):
            holding(lambda theta, found=found: found, argument, results)(theta)
    with pytest.raises(TypeError, match="returns <dtype: 'float32'>, not float64"):
        holding(lambda theta: (tf.cast(value, tf.float32), gradient), argument, results)(theta)
