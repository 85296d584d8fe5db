"""What a kernel is given: the same function in a program, and outside of one where it is started."""

import numpy as np
import tensorflow as tf

from tests.support.kernels.joint_models import engine_target
from tests.support.specs import setting
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density import value_and_gradient
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import compiled_value_and_gradient


def test_a_start_takes_the_compiled_function_and_programs_the_pure_one(monkeypatch):
    spec, data, theta = setting("gaussian_learned")
    z, target = tf.constant(np.stack([theta, 0.5 * theta])), engine_target(spec, data, 2)
    expected = Potential(spec).value_and_gradient(z, data)

    def taped(z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = target(z)
        return value, tape.gradient(value, z)

    asked = []

    def spy(potential):
        asked.append(potential)
        return compiled_value_and_gradient(potential)

    monkeypatch.setattr(value_and_gradient, "compiled_value_and_gradient", spy)
    for function, times in ((taped, 1), (compiled(taped, jit_compile=False), 0)):
        asked.clear()
        for one, other in zip(function(z), expected):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        assert len(asked) == times
