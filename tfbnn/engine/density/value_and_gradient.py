"""The log density and its gradient, for all who look at it outside the compiled block."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.potential import Data, Potential
from tfbnn.engine.density.rungs import likelihood_weights
from tfbnn.system.arrays import Array

ValueAndGradient = Callable[[Array], tuple[Array, Array]]


@lru_cache(maxsize=32)
def compiled_value_and_gradient(potential: Potential, jit_compile: bool) -> Any:
    """Compiled function (coordinates [C, P], Data) -> (log density [C] in float64, gradient).

    A third argument is the weight of the likelihood, as in `Potential.log_prob`.
    """
    return compiled(potential.value_and_gradient, jit_compile=jit_compile)


def make_value_and_gradient(
    potential: Potential, data: Data, jit_compile: bool, temperatures: tuple[float, ...] = (1.0,)
) -> ValueAndGradient:
    """NumPy function of coordinates [R, P] -> (log density [R] in float64, gradient [R, P]).

    Args:
        potential: Potential.
        data: Data.
        jit_compile: Whether XLA compiles it.
        temperatures: Powers of the likelihood of a chain's rungs, by default the posterior's alone.
    """
    function = compiled_value_and_gradient(potential, jit_compile)

    def value_and_gradient(coordinates: Array) -> tuple[Array, Array]:
        weights = likelihood_weights(temperatures, len(coordinates))
        value, gradient = function(tf.convert_to_tensor(coordinates), data, weights)
        return value.numpy(), gradient.numpy()

    return value_and_gradient
