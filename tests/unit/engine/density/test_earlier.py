"""What earlier rows add to the prior: against NumPy, and against its own derivatives."""

import numpy as np
import pytest

from tests.support import reference
from tests.support.builders import plain_spec
from tests.support.specs import random_rows
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.earlier import earlier_log_prob
from tfbnn.engine.density.gauss_newton import (
    earlier_matrix,
    gauss_newton_diagonal,
    gauss_newton_matrices,
    gauss_newton_matrix,
    gauss_newton_product,
)
from tfbnn.engine.density.hessian import hessian
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts.newton import polish
from tfbnn.spec.priors import FunctionPrior

WEIGHTS = np.array([0.3, 0.7])


def spec_after(layer_sizes, weights=WEIGHTS, num_inputs=5, num_lines=6, **settings):
    spec, generator = plain_spec(layer_sizes, dtype="float64", **settings), np.random.default_rng(3)
    count, num_outputs = len(weights), layer_sizes[-1]
    return spec.after(
        FunctionPrior.of(
            num_rows=20,
            inputs=generator.normal(size=(num_inputs, layer_sizes[0])),
            weights=np.asarray(weights),
            networks=generator.normal(size=(count, spec.num_parameters)),
            lines=generator.normal(size=(count, num_lines, num_inputs * num_outputs)),
            offsets=generator.normal(size=(count, num_lines)),
            log_noise=generator.normal(size=(count, spec.layout.num_noise)),
            log_noise_scale=generator.uniform(0.1, 1, size=(count, spec.layout.num_noise)),
        )
    )


def points(spec, count=3):
    return 0.7 * np.random.default_rng(8).normal(size=(count, spec.num_parameters))


def in_numpy(spec, theta):
    prior = spec.earlier
    found = reference.outputs(spec, theta, prior.inputs.values).ravel()
    noise, total = theta[spec.layout.log_noise_scale], 0.0
    for b, weight in enumerate(prior.weights.values):
        z = prior.lines.values[b] @ found - prior.offsets.values[b]
        scale = prior.log_noise_scale.values[b]
        t = (noise - prior.log_noise.values[b]) / scale
        total += weight * np.exp(-0.5 * (z @ z + t @ t)) / np.prod(np.sqrt(2 * np.pi) * scale)
    return np.log(total)


@pytest.mark.parametrize("layer_sizes", [[2, 3, 1], [2, 3, 2]])
def test_density_equals_numpy(layer_sizes):
    spec = spec_after(layer_sizes)
    theta = points(spec)
    expected = [in_numpy(spec, line) for line in theta]
    np.testing.assert_allclose(earlier_log_prob(spec, tf.constant(theta)), expected, rtol=1e-10)
    bare = Potential(spec.without_earlier()).log_prior(tf.constant(theta))
    found = Potential(spec).log_prior(tf.constant(theta)) - bare
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_of_a_linear_network_the_matrix_is_minus_the_second_derivative():
    spec = spec_after([3, 2], weights=[1.0])
    theta = tf.constant(points(spec, 1))
    expected = -hessian(lambda point: earlier_log_prob(spec, point), theta)[0].numpy()
    np.testing.assert_allclose(earlier_matrix(spec, theta[0]), expected, atol=1e-10)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_forms_of_the_gauss_newton_matrix_have_it():
    spec = spec_after([2, 3, 1])
    x, y, _ = random_rows(spec, np.random.default_rng(5))
    data, theta = make_data(x, y, None, "float64"), points(spec, 1)
    added = earlier_matrix(spec, tf.constant(theta[0])).numpy()
    matrix = gauss_newton_matrix(spec, theta[0], data)
    bare = gauss_newton_matrix(spec.without_earlier(), theta[0], data)
    np.testing.assert_allclose(matrix, bare + added, rtol=1e-10)
    inside = gauss_newton_matrices(spec, tf.constant(theta), data, tf.ones(1, tf.float64))[0]
    np.testing.assert_allclose(inside, matrix, rtol=1e-9)
    np.testing.assert_allclose(gauss_newton_diagonal(spec, theta[0], data), np.diag(matrix))
    vector = points(spec, 2)[1]
    product = gauss_newton_product(spec, theta[0], data, vector)
    np.testing.assert_allclose(product, matrix @ vector, rtol=1e-8)


def test_levenberg_marquardt_climbs_under_it():
    spec = spec_after([2, 3, 1])
    x, y, _ = random_rows(spec, np.random.default_rng(5))
    data, states = make_data(x, y, None, "float64"), []
    polish(spec, points(spec, 1)[0], data, 30, "dense", states.append)
    sizes = [np.abs(state.gradient[: spec.layout.num_weights]).max() for state in states]
    assert states[-1].gain > 10 and sizes[-1] < 0.2 * sizes[0]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"weights": np.array([0.5, 0.0])}, "weights of a FunctionPrior must be positive"),
        ({"lines": np.zeros((2, 6, 4))}, "earlier must be of networks with"),
        ({"offsets": np.zeros((2, 5))}, "lines of a FunctionPrior must have shape"),
        ({"inputs": np.zeros(5)}, "inputs of a FunctionPrior must have 2 axes"),
        ({"num_rows": 0}, "num_rows"),
    ],
)
def test_what_does_not_belong_together_is_refused(change, message):
    spec = spec_after([2, 3, 1])
    prior = spec.earlier
    arrays = {name: value for name, value in vars(prior).items() if name != "num_rows"}
    arrays = {name: getattr(value, "values", value) for name, value in arrays.items()}
    with pytest.raises(ValueError, match=message):
        spec.after(FunctionPrior.of(**{"num_rows": 20} | arrays | change))
