"""On a GPU: how precise the density is, the posterior of a fit, its bits, predictions."""

import numpy as np
import pytest

import tfbnn
from tests.support import reference
from tests.support.builders import plain_spec
from tests.support.linear import RUN, START, check_moments, linear_model, linear_rows, short_fit
from tests.support.predictions import assert_same
from tfbnn.likelihoods import Gaussian

pytestmark = [pytest.mark.gpu, pytest.mark.tensorflow]

NUM_ROWS, SMALL_NOISE = 10_000, 0.01


def near_the_data(spec):
    """Rows that a network explains but for the noise, and five networks [5, P] close to it."""
    generator = np.random.default_rng(4)
    theta = 0.3 * generator.normal(size=spec.layout.num_parameters)
    x = generator.normal(size=(NUM_ROWS, spec.num_inputs))
    mean = reference.outputs(spec, theta, x)
    y = mean + SMALL_NOISE * generator.normal(size=mean.shape)
    return x, y, theta + 1e-4 * generator.normal(size=(5, len(theta)))


@pytest.mark.parametrize("jit_compile", [True, False], ids=["XLA", "graph"])
def test_the_density_is_as_precise_as_float32_can_be(jit_compile):
    """TensorFloat-32 would move this log density of some -10^4 by tens, and reject what is right."""
    import tensorflow as tf

    from tfbnn.engine.basis.compile import compiled
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.density.potential import Potential

    found = {}
    for dtype in ("float32", "float64"):
        spec = plain_spec([5, 64, 64, 1], dtype=dtype, likelihood=Gaussian(SMALL_NOISE))
        x, y, theta = near_the_data(spec)
        evaluate = compiled(Potential(spec).value_and_gradient, jit_compile=jit_compile)
        parts = evaluate(tf.constant(theta.astype(dtype)), make_data(x, y, None, dtype))
        assert all("GPU" in part.device for part in parts)
        found[dtype] = [part.numpy() for part in parts]
    (value, gradient), (exact, exact_gradient) = found["float32"], found["float64"]
    expected = [
        reference.log_prior(spec, t) + reference.log_likelihood(spec, t, x, y) for t in theta
    ]
    np.testing.assert_allclose(exact, expected, rtol=1e-9)
    np.testing.assert_allclose(value, exact, atol=0.1)
    size = np.abs(exact_gradient).max()
    np.testing.assert_allclose(gradient / size, exact_gradient / size, atol=1e-4)


def test_chains_of_one_program_sample_the_posterior():
    x, y = linear_rows()
    model = linear_model()
    model.fit_posterior(
        x, y, kernel=tfbnn.kernels.HMC(num_leapfrog_steps=4), pretraining=START, **RUN
    )
    check_moments(model.posterior.draws, x, y)


def test_the_same_seed_gives_the_same_bits():
    x, y = linear_rows(200)
    draws = []
    for _ in range(2):
        model = tfbnn.BayesianMLP([2, 16, 1])
        short_fit(model, x, y, seed=5)
        draws.append(model.posterior.draws)
    np.testing.assert_array_equal(*draws)
    assert not np.any(np.all(draws[0][0] == draws[0][1], axis=-1))


def test_large_batches_are_predicted_there_and_a_file_anywhere(tmp_path, monkeypatch):
    from tfbnn.engine.export import tensorflow_forward

    x, y = linear_rows(200)
    model = tfbnn.BayesianMLP([2, 16, 1])
    short_fit(model, x, y)
    many = np.random.default_rng(1).normal(size=(30_000, 2))
    used, make = [], tensorflow_forward.make_forward
    monkeypatch.setattr(
        tensorflow_forward, "make_forward", lambda one: used.append(one) or make(one)
    )
    found = model.predict(many)
    assert used
    model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    monkeypatch.setattr("tfbnn.posterior.forward._GPU_VALUES", np.inf)
    assert_same(found, loaded.predict(many), rtol=1e-5)
