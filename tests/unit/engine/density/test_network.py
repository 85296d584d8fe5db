"""The network of TensorFlow is that of NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import tfbnn


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_numpy_and_tensorflow_networks_agree(
    synthetic_ensemble, dtype, tolerance, parameterization
):
    from tfbnn.engine.density.network import network_outputs
    from tfbnn.posterior.forward import network_outputs as numpy_outputs
    from tfbnn.spec.activations import ACTIVATIONS

    x = np.random.default_rng(14).normal(size=(17, 3))
    for name in ACTIVATIONS:
        ensemble = synthetic_ensemble(
            (3, 9, 7, 2),
            activation=name,
            dtype=dtype,
            parameterization=parameterization,
            prior=tfbnn.priors.HierarchicalNormal(),
            num_results=5,
        )
        theta = tf.constant(ensemble.draws.reshape(10, -1))
        found = network_outputs(ensemble.spec, theta, tf.constant(x.T, dtype))
        expected = numpy_outputs(ensemble, x)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=tolerance * scale, err_msg=name)
