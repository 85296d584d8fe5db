"""A prior of weights that a user defines."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tfbnn.spec.priors.base import WeightPrior
from tfbnn.system.arrays import Array

_DRAWS = 40_001


class CustomPrior(WeightPrior):
    """A prior of your own: inherit from this, in a frozen dataclass of numbers, names and booleans.

    The weights are independent, and each has the density that `log_prob` gives. Everything else
    follows: sampling, starts, the width by which coordinates are whitened, files. `check_prior` tells
    whether the two methods belong together. Files have the name of the class and its settings and
    never code, so loading one takes the class: `tfbnn.load(path, custom=[Horseshoe])`.

    A setting called `scale`, a positive number, is what the ntk parameterisation takes out of the
    weights; without one a model is of the standard parameterisation.

    Attributes:
        is_even: Whether w and -w have the same density, default False. Where it says so, networks that
            differ by the signs of their units are taken for one.
        limits: Ends (low, high) of the interval outside of which there is no density, by default the
            whole line; both finite or both infinite.

    Example:
        @dataclass(frozen=True)
        class Logistic(tfbnn.priors.CustomPrior):
            scale: float = 1.0
            is_even = True

            def log_prob(self, weights):
                z = weights / self.scale
                return -z - 2.0 * tf.math.softplus(-z) - math.log(self.scale)

            def sample(self, generator, shape):
                return generator.logistic(scale=self.scale, size=shape)

        tfbnn.priors.check_prior(Logistic(0.5))
        model = tfbnn.BayesianMLP([5, 50, 1], prior=Logistic(0.5))
    """

    is_own: ClassVar[bool] = True
    is_even = False

    @abstractmethod
    def log_prob(self, weights: Any) -> Any:
        """Normalised log density of every weight.

        Args:
            weights: Tensor of any shape, float32 or float64.

        Returns:
            Tensor of the same shape and dtype, by pure operations of TensorFlow with gradients; minus
            infinity outside the limits. XLA compiles it unless a fit says jit_compile=False.
        """

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Independent draws, an array of this shape, by a NumPy generator and nothing else random."""

    @property
    def spread(self) -> float:
        """Half the width of the central 68.27 %, out of draws: exists where no variance does.

        Coordinates are whitened as if weights were normal with this standard deviation. It decides how
        well chains move, and nothing of what they sample.
        """
        return _spread_of_draws(self)

    @property
    def sizes(self) -> tuple[float, ...]:
        return (self.spread,)


@lru_cache(maxsize=256)
def _spread_of_draws(prior: CustomPrior) -> float:
    draws = prior.sample(np.random.default_rng(0), (_DRAWS,))
    low, high = np.quantile(draws, [0.158655, 0.841345])
    return float(0.5 * (high - low))
