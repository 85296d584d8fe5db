"""Covariances of networks of infinite width, layer by layer, for NumPy and TensorFlow alike.

With normal weights and kernels divided by the root of their inputs, the functions of a network become a
Gaussian process as its hidden layers grow. Let u and v be the input of a unit at two rows, normal with
variances a and b and covariance c. The layer behind the unit then has the covariance E[phi(u) phi(v)], times
the variance of its kernel, plus that of its bias.

References:
    Williams 1997, "Computing with infinite networks", NeurIPS 9, erf. Cho and Saul 2009, "Kernel methods for
    deep learning", NeurIPS 22, relu. Lee et al. 2018, arXiv:1711.00165, and Matthews et al. 2018,
    arXiv:1804.11271, the recursion. Price 1958, IRE Trans. IT-4, 69, derivatives of such expectations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import pi
from typing import Any, NamedTuple

# Slopes at 0 as of tanh, and of a sigmoid, which is (1 + tanh(x / 2)) / 2.
_OF_TANH, _OF_SIGMOID = pi / 4.0, pi / 16.0
_TINY = 1e-300


class Expectation(NamedTuple):
    """E[phi(u) phi(v)] and its derivatives.

    Attributes:
        value: The expectation.
        by_c: Its derivative in the covariance c, which is E[phi'(u) phi'(v)].
        by_a: Its derivative in the variance a of u.
    """

    value: Any
    by_c: Any
    by_a: Any


class Limit(NamedTuple):
    """A hidden layer of infinite width.

    Attributes:
        expectation: (numpy or tensorflow.experimental.numpy, c, a, b) -> Expectation, of their common shape.
        bent: (the same module, a) -> E[(phi'(u) u)^2].
    """

    expectation: Callable[..., Expectation]
    bent: Callable[..., Any]


def _erf(square: float, xp: Any, c: Any, a: Any, b: Any) -> Expectation:
    """Of erf(k u), `square` = k^2."""
    of_a, of_b = 1.0 + 2.0 * square * a, 1.0 + 2.0 * square * b
    product, mixed = of_a * of_b, 2.0 * square * c
    by_c = (4.0 * square / pi) / xp.sqrt(product - mixed * mixed)
    value = (2.0 / pi) * xp.arcsin(mixed / xp.sqrt(product))
    return Expectation(value, by_c, -by_c * c * (square / of_a))


def _bent_erf(square: float, xp: Any, a: Any) -> Any:
    wide = 1.0 + 4.0 * square * a
    return (4.0 * square / pi) * a / (wide * xp.sqrt(wide))


def _sigmoid(xp: Any, c: Any, a: Any, b: Any) -> Expectation:
    """Of (1 + erf(k u)) / 2."""
    value, by_c, by_a = (0.25 * part for part in _erf(_OF_SIGMOID, xp, c, a, b))
    return Expectation(0.25 + value, by_c, by_a)


def _relu(slope: float, xp: Any, c: Any, a: Any, b: Any) -> Expectation:
    """Of a leaky relu, slope * u + (1 - slope) relu(u)."""
    length = xp.maximum(xp.sqrt(a * b), _TINY)
    cosine = xp.clip(c / length, -1.0, 1.0)
    sine, turned = xp.sqrt(1.0 - cosine * cosine), pi - xp.arccos(cosine)
    part = (1.0 - slope) ** 2 / (2.0 * pi)
    value = slope * c + part * length * (sine + turned * cosine)
    by_a = 0.5 * part * sine * length / xp.maximum(a, _TINY)
    return Expectation(value, slope + part * turned, by_a)


def _wave(sign: float, xp: Any, c: Any, a: Any, b: Any) -> Expectation:
    """Of the sine, sign = -1, or of the cosine, sign = 1."""
    near, far = xp.exp(c - 0.5 * (a + b)), sign * xp.exp(-c - 0.5 * (a + b))
    value = 0.5 * (near + far)
    return Expectation(value, 0.5 * (near - far), -0.5 * value)


def _bent_wave(sign: float, xp: Any, a: Any) -> Any:
    return 0.5 * a * (1.0 - sign * (1.0 - 4.0 * a) * xp.exp(-2.0 * a))


def _identity(xp: Any, c: Any, a: Any, b: Any) -> Expectation:
    return Expectation(c, xp.ones_like(c), xp.zeros_like(c))


def _limit_of_relu(slope: float) -> Limit:
    return Limit(partial(_relu, slope), lambda xp, a: 0.5 * (1.0 + slope * slope) * a)


def _limit_of_erf(square: float) -> Limit:
    return Limit(partial(_erf, square), partial(_bent_erf, square))


# By the name of the activation. A tanh or sigmoid has no closed form: the erf of the same slope stands for it.
LIMITS = {
    "erf": _limit_of_erf(1.0),
    "tanh": _limit_of_erf(_OF_TANH),
    "sigmoid": Limit(_sigmoid, lambda xp, a: 0.25 * _bent_erf(_OF_SIGMOID, xp, a)),
    "relu": _limit_of_relu(0.0),
    "leaky_relu": _limit_of_relu(0.2),
    "leaky_relu_0.01": _limit_of_relu(0.01),
    "sin": Limit(partial(_wave, -1.0), partial(_bent_wave, -1.0)),
    "cos": Limit(partial(_wave, 1.0), partial(_bent_wave, 1.0)),
    "identity": Limit(_identity, lambda xp, a: a),
}


def diagonal(xp: Any, limit: Limit, a: Any) -> tuple[Any, Any]:
    """(E[phi(u)^2] [N], its derivative in the variance a [N] of u)."""
    found = limit.expectation(xp, a, a, a)
    return found.value, found.by_c + 2.0 * found.by_a


class Stage(NamedTuple):
    """What a hidden layer receives and gives.

    Attributes:
        c: Covariances [n, m] of the inputs of its units at rows x and z.
        a, b: Variances at x [n] and at z [m].
        given: Expectation [n, m].
    """

    c: Any
    a: Any
    b: Any
    given: Expectation


class Covariance(NamedTuple):
    """Prior covariances of the outputs.

    Attributes:
        c: Those at rows x and z [n, m].
        a, b: Variances at x [n] and at z [m].
        stages: A Stage for each hidden layer.
    """

    c: Any
    a: Any
    b: Any
    stages: list[Stage]


def covariance(xp: Any, names: Sequence[str], layers: Sequence[Any], x: Any, z: Any) -> Covariance:
    """The Covariance of a network of infinite width.

    Args:
        xp: numpy, or tensorflow.experimental.numpy.
        names: Activations of the hidden layers.
        layers: Kernel and bias variances of each layer (`tfbnn.spec.infinite_spec.LayerVariances`).
        x, z: Inputs [n, D] and [m, D].
    """
    (first, bias), *hidden = layers
    c = xp.matmul(x * first, xp.transpose(z)) + bias
    a, b = (xp.sum(rows * rows * first, axis=1) + bias for rows in (x, z))
    stages = []
    for name, (kernel, bias) in zip(names, hidden):
        limit = LIMITS[name]
        stages.append(Stage(c, a, b, limit.expectation(xp, c, a[:, None], b[None])))
        c = kernel * stages[-1].given.value + bias
        a, b = (kernel * diagonal(xp, limit, rows)[0] + bias for rows in (a, b))
    return Covariance(c, a, b, stages)


def layer_gradients(
    xp: Any, layers: Sequence[Any], x: Any, stages: Sequence[Stage], upstream: Any
) -> list[tuple[Any, Any]]:
    """Derivatives of sum(upstream * covariance(x, x)) in the logarithms of all scales, layer by layer.

    Args:
        xp, layers: As in `covariance`.
        x: Inputs [n, D].
        stages: Of the covariance there.
        upstream: Symmetric [n, n].

    Returns:
        (Of the kernel's scales [D] or [], of the bias's scale []) of each layer.
    """
    (first, bias), *hidden = layers
    found = []
    for stage, (kernel, of_bias) in zip(reversed(stages), reversed(hidden)):
        given = stage.given
        of_kernel = 2.0 * kernel * xp.sum(upstream * given.value)
        found.append((of_kernel, 2.0 * of_bias * xp.sum(upstream)))
        # Each variance takes part as that of a row and as that of a column.
        of_variance = 2.0 * kernel * xp.sum(upstream * given.by_a, axis=1)
        upstream = kernel * upstream * given.by_c + xp.diag(of_variance)
    by_input = 2.0 * first * xp.sum(xp.matmul(upstream, x) * x, axis=0)
    found.append((by_input, 2.0 * bias * xp.sum(upstream)))
    return found[::-1]
