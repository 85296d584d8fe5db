"""Covariances of networks of infinite width, layer by layer.

With normal weights, and kernels divided by the square root of their number of inputs, the functions
of a network become a Gaussian process as its hidden layers grow. Let u and v be the input of a unit
at two rows, normal with variances a and b and covariance c. The layer behind the unit then has the
covariance E[phi(u) phi(v)] times the variance of its kernel, plus the variance of its bias.

References:
    Williams 1997, "Computing with infinite networks", NeurIPS 9, erf. Cho and Saul 2009, "Kernel
    methods for deep learning", NeurIPS 22, relu. Lee et al. 2018, arXiv:1711.00165, and Matthews et
    al. 2018, arXiv:1804.11271, the recursion. Price 1958, IRE Trans. IT-4, 69, derivatives of such
    expectations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any, NamedTuple

import numpy as np

from tfbnn.system.arrays import Array

# k^2 for which erf(k x) has at 0 the slope of tanh(x), and of tanh(x / 2): a sigmoid is
# (1 + tanh(x / 2)) / 2.
_OF_TANH, _OF_SIGMOID = pi / 4.0, pi / 16.0
_TINY = 1e-300


class Slopes(NamedTuple):
    """Derivatives of E[phi(u) phi(v)].

    Attributes:
        by_c: With respect to the covariance c: E[phi'(u) phi'(v)].
        by_a: With respect to the variance a of u: E[phi''(u) phi(v)] / 2.
    """

    by_c: Array
    by_a: Array


class Limit(NamedTuple):
    """Functions of a hidden layer of infinite width.

    Attributes:
        value: (c, a, b) -> E[phi(u) phi(v)], of their common shape.
        slopes: (c, a, b) -> Slopes, each of their common shape.
        bent: a -> E[(phi'(u) u)^2].
    """

    value: Callable[[Array, Array, Array], Array]
    slopes: Callable[[Array, Array, Array], Slopes]
    bent: Callable[[Array], Array]


def _limit_of_erf(square: float, offset: float = 0.0, factor: float = 1.0) -> Limit:
    """Return the Limit with covariance offset + factor * E[erf(k u) erf(k v)], `square` = k^2."""

    def correlation(c: Array, a: Array, b: Array) -> Array:
        return (
            c * (2.0 * square / np.sqrt(1.0 + 2.0 * square * a)) / np.sqrt(1.0 + 2.0 * square * b)
        )

    def value(c: Array, a: Array, b: Array) -> Array:
        found: Array = np.arcsin(correlation(c, a, b))
        found *= 2.0 * factor / pi
        found += offset
        return found

    def slopes(c: Array, a: Array, b: Array) -> Slopes:
        of_a, of_b = 1.0 + 2.0 * square * a, 1.0 + 2.0 * square * b
        root = of_a * of_b
        root -= np.square(2.0 * square * c)
        by_c = 4.0 * square * factor / pi / np.sqrt(root, out=root)
        return Slopes(by_c, by_c * c * (-square / of_a))

    def bent(a: Array) -> Array:
        wide: Array = 1.0 + 4.0 * square * a
        return (4.0 * square * factor / pi) * a / wide**1.5

    return Limit(value, slopes, bent)


def _limit_of_relu(slope: float) -> Limit:
    """Return the Limit of a leaky relu, slope * u + (1 - slope) relu(u)."""
    part = (1.0 - slope) ** 2 / (2.0 * pi)

    def angle(c: Array, a: Array, b: Array) -> tuple[Array, Array]:
        length: Array = np.maximum(np.sqrt(a * b), _TINY)
        return length, np.arccos(np.clip(c / length, -1.0, 1.0))

    def value(c: Array, a: Array, b: Array) -> Array:
        length, turn = angle(c, a, b)
        return slope * c + part * (length * np.sin(turn) + (pi - turn) * c)

    def slopes(c: Array, a: Array, b: Array) -> Slopes:
        length, turn = angle(c, a, b)
        by_a = 0.5 * part * length * np.sin(turn) / np.maximum(a, _TINY)
        return Slopes(slope + part * (pi - turn), by_a)

    return Limit(value, slopes, lambda a: 0.5 * (1.0 + slope * slope) * a)


def _limit_of_wave(sign: float) -> Limit:
    """Return the Limit of the sine, sign = -1, or of the cosine, sign = 1."""

    def parts(c: Array, a: Array, b: Array) -> tuple[Array, Array]:
        middle = 0.5 * (a + b)
        return np.exp(c - middle), sign * np.exp(-c - middle)

    def value(c: Array, a: Array, b: Array) -> Array:
        near, far = parts(c, a, b)
        return 0.5 * (near + far)

    def slopes(c: Array, a: Array, b: Array) -> Slopes:
        near, far = parts(c, a, b)
        return Slopes(0.5 * (near - far), -0.25 * (near + far))

    def bent(a: Array) -> Array:
        return 0.5 * a * (1.0 - sign * (1.0 - 4.0 * a) * np.exp(-2.0 * a))

    return Limit(value, slopes, bent)


# Limits by the name of the activation. A tanh or sigmoid has no closed form: the erf of the same
# slope replaces it.
LIMITS = {
    "erf": _limit_of_erf(1.0),
    "tanh": _limit_of_erf(_OF_TANH),
    "sigmoid": _limit_of_erf(_OF_SIGMOID, offset=0.25, factor=0.25),
    "relu": _limit_of_relu(0.0),
    "leaky_relu": _limit_of_relu(0.2),
    "leaky_relu_0.01": _limit_of_relu(0.01),
    "sin": _limit_of_wave(-1.0),
    "cos": _limit_of_wave(1.0),
    "identity": _limit_of_relu(1.0),
}


class HiddenLayer(NamedTuple):
    """Covariances of the inputs and outputs of a hidden layer.

    Attributes:
        c: Covariances [n, m] of the inputs of its units at rows x and z.
        a, b: Variances at x [n, 1] and at z [1, m].
        value: Result E[phi(u) phi(v)] of the layer [n, m].
    """

    c: Array
    a: Array
    b: Array
    value: Array


class Covariance(NamedTuple):
    """Prior covariances of the outputs.

    Attributes:
        c: Covariances at rows x and z [n, m].
        b: Variances at z [m].
        stages: A HiddenLayer for each hidden layer.
    """

    c: Array
    b: Array
    stages: list[HiddenLayer]


def covariance(names: Sequence[str], layers: Sequence[Any], x: Array, z: Array) -> Covariance:
    """Compute the Covariance of a network of infinite width.

    Args:
        names: Activations of the hidden layers.
        layers: Kernel and bias variances of each layer (`tfbnn.spec.infinite_spec.LayerVariances`).
        x, z: Inputs [n, D] and [m, D].
    """
    (first, bias), *hidden = layers
    c = (x * first) @ z.T + bias
    a, b = (np.sum(np.square(rows) * first, axis=1) + bias for rows in (x, z))
    stages = []
    for name, (kernel, bias) in zip(names, hidden):
        value = LIMITS[name].value
        stages.append(HiddenLayer(c, a[:, None], b[None], value(c, a[:, None], b[None])))
        c = kernel * stages[-1].value
        c += bias
        a, b = (kernel * value(rows, rows, rows) + bias for rows in (a, b))
    return Covariance(c, b, stages)


class InputSlopes(NamedTuple):
    """Derivatives with respect to the inputs x [n, D].

    Attributes:
        of_c: Derivatives of the covariances between the function at x and at z [D, n, m].
        of_value: Prior covariances of the function and its derivative [D, n].
        mixed: Prior variances of the derivatives [D, n].
    """

    of_c: Array
    of_value: Array
    mixed: Array


def input_slopes(
    names: Sequence[str], layers: Sequence[Any], x: Array, z: Array, stages: Sequence[HiddenLayer]
) -> InputSlopes:
    """Compute the InputSlopes of a network of infinite width.

    The input u of a unit and its derivative u' are jointly normal, with the variances a and m and
    the covariance a' / 2. Hence E[(phi(u)')^2] = (m - a'^2 / 4 a) E[phi'(u)^2] + (a' / 2 a)^2
    E[(phi'(u) u)^2].

    Args:
        names, layers: As in `covariance`.
        x, z: Inputs [n, D] and [m, D].
        stages: Hidden layers of the covariance at x and z.
    """
    (first, _), *hidden = layers
    first = np.broadcast_to(first, x.shape[1])[:, None]
    of_c = np.broadcast_to((first * z.T)[:, None], (x.shape[1], len(x), len(z)))
    of_a, mixed = 2.0 * first * x.T, np.broadcast_to(first, x.T.shape)
    for name, stage, (kernel, _) in zip(names, stages, hidden):
        limit, a = LIMITS[name], stage.a[:, 0]
        slopes, own = limit.slopes(*stage[:3]), limit.slopes(a, a, a)
        of_c = kernel * (slopes.by_c * of_c + slopes.by_a * of_a[..., None])
        half = 0.5 * of_a / np.maximum(a, _TINY)
        mixed = kernel * (
            (mixed - np.square(half) * a) * own.by_c + np.square(half) * limit.bent(a)
        )
        of_a = kernel * (own.by_c + 2.0 * own.by_a) * of_a
    return InputSlopes(of_c, 0.5 * of_a, mixed)


def layer_gradients(
    names: Sequence[str],
    layers: Sequence[Any],
    x: Array,
    stages: Sequence[HiddenLayer],
    upstream: Array,
) -> list[tuple[Any, Any]]:
    """Compute gradients of sum(upstream * covariance(x, x)) in all log scales, layer by layer.

    Args:
        names, layers: As in `covariance`.
        x: Inputs [n, D].
        stages: Hidden layers of the covariance at x and x.
        upstream: Symmetric [n, n].

    Returns:
        (Gradient in the kernel's log scales [D] or [], gradient in the bias's log scale []) per
        layer.
    """
    (first, bias), *hidden = layers
    found = []
    for name, stage, (kernel, of_bias) in zip(reversed(names), reversed(stages), reversed(hidden)):
        of_kernel = 2.0 * kernel * np.vdot(upstream, stage.value)
        found.append((of_kernel, 2.0 * of_bias * np.sum(upstream)))
        slopes = LIMITS[name].slopes(*stage[:3])
        # Each variance occurs twice: as that of a row and as that of a column.
        of_variance = 2.0 * kernel * np.einsum("ij,ij->i", upstream, slopes.by_a)
        upstream = kernel * upstream * slopes.by_c
        upstream[np.diag_indices(len(x))] += of_variance
    by_input = 2.0 * first * np.einsum("ij,ij->j", upstream @ x, x)
    found.append((by_input, 2.0 * bias * np.sum(upstream)))
    return found[::-1]
