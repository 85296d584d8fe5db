"""What TensorFlow computes of the priors and of the noise that a user defines."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.own_classes import own_settings
from tfbnn.spec.own_densities import CustomNoise, CustomPrior, integrals, place_of
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited

# Values that a density is tried at before a fit.
_PROBED = (3, 4)


def elementwise(own: CustomPrior | CustomNoise, values: Tensor) -> Tensor:
    """`log_prob` of an own class at values of any shape.

    Raises:
        TypeError: When what comes is no tensor of this dtype.
        ValueError: When it has another shape.
    """
    name, density = type(own).__name__, own.log_prob(values)
    expected = f"{name}.log_prob must return a tensor of {values.dtype.name}, {list(values.shape)}"
    if not tf.is_tensor(density):
        raise TypeError(
            f"{expected}, received {type(density).__name__}. Compute with TensorFlow's operations."
        )
    if density.dtype != values.dtype:
        raise TypeError(
            f"{expected}, received {density.dtype.name}. Make constants by tf.constant(.., z.dtype), "
            "or leave them Python numbers."
        )
    if density.shape != values.shape:
        raise ValueError(
            f"{expected}, received shape {list(density.shape)}. Compute elementwise, and sum nothing."
        )
    return density


def values_of(own: CustomPrior | CustomNoise, points: Array) -> Array:
    """`log_prob` of an own class at an array, float64; minus infinity is a value."""
    values: Array = elementwise(own, tf.constant(points, tf.float64)).numpy()
    return values


def moments_of(noise: CustomNoise) -> tuple[float, float]:
    """Its moments, inside compiled functions too, where tensors have no values.

    A thread of its own knows nothing of the graph, or the tape, that the caller is about to make.
    """
    return awaited(lambda: noise.moments)


class NoiseInformation(NamedTuple):
    """Fisher information of noise with standard deviation 1.

    Attributes:
        location: In its location.
        log_scale: In the log of its scale.
    """

    location: float
    log_scale: float


def noise_information(noise: CustomNoise) -> NoiseInformation:
    """Mean squares of the scores, by quadrature and by TensorFlow's derivative of `log_prob`.

    Raises:
        ValueError: When one is not finite.
    """
    return awaited(_information, noise)


@lru_cache(maxsize=256)
def _information(noise):
    (centre, width), (mean, stddev) = place_of(noise), noise.moments

    def squares(z):
        points = tf.constant(z)
        with tf.GradientTape() as tape:
            tape.watch(points)
            log_density = elementwise(noise, points)
        density = np.exp(log_density)
        # Far out the density is zero, and its logarithm overflows.
        score = np.where(density > 0.0, tape.gradient(log_density, points), 0.0)
        return np.stack([score**2 * density, ((z - mean) * score + 1.0) ** 2 * density])

    try:
        location, log_scale = integrals(squares, centre, width).sum(axis=0).tolist()
    except ValueError as error:
        raise ValueError(
            f"{type(noise).__name__}.log_prob has no Fisher information: {error}."
        ) from error
    return NoiseInformation(location * stddev**2, log_scale)


def check_own_densities(spec: NetworkSpec) -> None:
    """Refuses own classes whose densities could not be sampled, before anything is compiled.

    Raises:
        TypeError, ValueError: For tensors of another shape or dtype, for values and gradients that are
            not finite at draws, for noise without moments.
    """
    for own in own_settings(spec):
        generator = np.random.default_rng(0)
        if isinstance(own, CustomNoise):
            values = own.quantile(generator.uniform(size=_PROBED))
        else:
            values = own.sample(generator, _PROBED)
        check_gradient(own, np.asarray(values), spec.dtype)
        if isinstance(own, CustomNoise):
            information = noise_information(own)
            if not all(isfinite(value) and value > 0.0 for value in information):
                raise ValueError(
                    f"The Fisher information of {type(own).__name__} must be positive, received "
                    f"{tuple(information)}. Does log_prob depend on z?"
                )


def check_gradient(own: CustomPrior | CustomNoise, values, dtype: str):
    """Log density and gradient at values, arrays as these, both finite.

    Raises:
        TypeError, ValueError: When they are not, or no tensors of this shape and dtype.
    """
    name, points = type(own).__name__, tf.constant(values, dtype)
    with tf.GradientTape() as tape:
        tape.watch(points)
        density = elementwise(own, points)
    gradient = tape.gradient(density, points)
    if gradient is None:
        raise TypeError(
            f"{name}.log_prob must depend on its argument by TensorFlow's operations, found no "
            "gradient. Were its values computed with NumPy?"
        )
    for what, found in (("value", density), ("gradient", gradient)):
        bad = ~np.isfinite(found)
        if bad.any():
            raise ValueError(
                f"{name}.log_prob must have a finite {what} at draws, found {found.numpy()[bad][0]} at "
                f"{points.numpy()[bad][0]:.6g} in {dtype}. Both branches of tf.where are "
                "differentiated: keep the unused one finite, too."
            )
    return density.numpy(), gradient.numpy()
