"""Expectations over the inputs of a layer are those of quadrature; derivatives those of differences."""

import numpy as np
import pytest
from scipy import special

from tests.support.marks import statistics_but
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.infinite_spec import LayerVariances
from tfbnn.spec.limit_kernels import LIMITS, covariance, input_slopes, layer_gradients

# What stands for an activation.
STANDS_FOR = {
    "tanh": lambda u: special.erf(0.5 * np.sqrt(np.pi) * u),
    "sigmoid": lambda u: 0.5 + 0.5 * special.erf(0.25 * np.sqrt(np.pi) * u),
}
C, A, B = (np.array(values) for values in ([0.3, -0.8, 1.1], [0.5, 1.2, 3.0], [0.9, 0.7, 0.6]))
KINKED = {"relu", "leaky_relu", "leaky_relu_0.01"}
STEP = 1e-5

each_limit = pytest.mark.parametrize("name", sorted(LIMITS))


def function(name):
    return STANDS_FOR.get(name, ACTIVATIONS[name].numpy)


def expectation(of_units, c, a, b, count):
    """Mean of of_units(u, v) over normal u, v by a sum over a grid, on which kinks err by its square."""
    points, step = np.linspace(-9.0, 9.0, count, retstep=True)
    weights = np.exp(-0.5 * points**2) / np.sqrt(2 * np.pi) * step
    u = np.sqrt(a) * points
    v = c / np.sqrt(a) * points[:, None] + np.sqrt(b - c**2 / a) * points
    return weights @ of_units(u[:, None], v) @ weights


@pytest.mark.parametrize("name", statistics_but(LIMITS.keys() - KINKED | {"relu"}, sorted(LIMITS)))
def test_the_covariance_is_that_of_the_units(name):
    phi = function(name)
    count, tolerance = (2001, 1e-5) if name in KINKED else (601, 1e-9)
    expected = [expectation(lambda u, v: phi(u) * phi(v), *case, count) for case in zip(C, A, B)]
    np.testing.assert_allclose(LIMITS[name].value(C, A, B), expected, atol=tolerance)


@each_limit
def test_slopes_are_those_of_the_covariance(name):
    value, slopes = LIMITS[name].value, LIMITS[name].slopes(C, A, B)
    by_c = (value(C + STEP, A, B) - value(C - STEP, A, B)) / (2 * STEP)
    by_a = (value(C, A + STEP, B) - value(C, A - STEP, B)) / (2 * STEP)
    np.testing.assert_allclose(slopes.by_c, by_c, atol=1e-9)
    np.testing.assert_allclose(slopes.by_a, by_a, atol=1e-9)


@each_limit
def test_the_bent_expectation_is_that_of_the_units(name):
    phi, points = function(name), np.linspace(-9.0, 9.0, 20_001)
    weights = np.exp(-0.5 * points**2) / np.sqrt(2 * np.pi) * (points[1] - points[0])
    for a in A:
        u = np.sqrt(a) * points
        slope = (phi(u + STEP) - phi(u - STEP)) / (2 * STEP)
        assert LIMITS[name].bent(a) == pytest.approx(weights @ np.square(slope * u), abs=1e-6)


def layers(theta, hidden):
    first = LayerVariances(np.exp(2 * theta[:2]) / 2, np.exp(2 * theta[2]))
    rest = np.exp(2 * theta[3:]).reshape(hidden, 2)
    return [first, *(LayerVariances(*pair) for pair in rest)]


CASES = [("erf", 1), ("relu", 2), ("sin", 2), ("cos", 1), ("sigmoid", 2)]
X, Z = (np.random.default_rng(seed).normal(size=(count, 2)) for seed, count in ((0, 6), (1, 4)))


@pytest.mark.parametrize("name, hidden", CASES)
def test_gradients_in_the_scales_are_those_of_the_covariance(name, hidden):
    generator = np.random.default_rng(2)
    theta, upstream = 0.3 * generator.normal(size=3 + 2 * hidden), generator.normal(size=(6, 6))
    upstream += upstream.T
    names = [name] * hidden

    def total(theta):
        return np.sum(upstream * covariance(names, layers(theta, hidden), X, X).c)

    at = covariance(names, layers(theta, hidden), X, X)
    found = layer_gradients(names, layers(theta, hidden), X, at.stages, upstream)
    found = np.concatenate([np.ravel(one) for pair in found for one in pair])[: len(theta)]
    steps = STEP * np.eye(len(theta))
    expected = [(total(theta + step) - total(theta - step)) / (2 * STEP) for step in steps]
    np.testing.assert_allclose(found, expected, atol=2e-7)


@pytest.mark.parametrize("name, hidden", CASES)
def test_slopes_in_the_inputs_are_those_of_the_covariance(name, hidden):
    theta = 0.3 * np.random.default_rng(3).normal(size=3 + 2 * hidden)
    names, scales, step = [name] * hidden, layers(theta, hidden), 1e-4
    at = covariance(names, scales, X, Z)
    found = input_slopes(names, scales, X, Z, at.stages)
    for column, side in enumerate(step * np.eye(2)):
        above, below = (covariance(names, scales, one, Z).c for one in (X + side, X - side))
        np.testing.assert_allclose(found.of_c[column], (above - below) / (2 * step), atol=1e-6)
        signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        both = [s * t * covariance(names, scales, X + s * side, X + t * side).c for s, t in signs]
        # The kink of relu makes a difference of the size of a step.
        mixed = np.diagonal(sum(both)) / (4 * step**2)
        tolerance = 2e-4 if name == "relu" else 2e-6
        np.testing.assert_allclose(found.mixed[column], mixed, rtol=tolerance, atol=tolerance)
        with_value = [covariance(names, scales, X + s * side, X).c for s in (1, -1)]
        shared = np.diagonal(with_value[0] - with_value[1]) / (2 * step)
        np.testing.assert_allclose(found.of_value[column], shared, atol=tolerance)
