"""docs/developers/new_likelihood.md: what it says works, and computes what it says."""

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from scipy import stats

import tfbnn
from tests.support.documents import run_document
from tests.support.registries import kept_registries
from tfbnn.engine.density.densities import Noise, row_log_likelihood, weight_log_prior
from tfbnn.engine.density.fisher import likelihood_information, weight_precision

pytestmark = pytest.mark.statistics  # the document is run, for some seconds


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """Names of the document's program, which ran in a folder of its own, and the folder."""
    folder = tmp_path_factory.mktemp("document")
    with pytest.MonkeyPatch.context() as patch, kept_registries():
        patch.chdir(folder)
        names = run_document("developers/new_likelihood.md")
        yield names | {"folder": folder, "prediction": np.stack([names["mean"], names["stddev"]])}


def test_model_file_and_exports_predict_the_same(document):
    x, loaded, folder = document["x"], document["loaded"], document["folder"]
    assert loaded.spec == document["model"].spec
    again = loaded.predict(x, include_noise=True)
    np.testing.assert_array_equal([again.mean, again.stddev], document["prediction"])
    saved = tf.saved_model.load(str(folder / "laplace"))(tf.constant(x))
    session = onnxruntime.InferenceSession(str(folder / "laplace.onnx"))
    expected = np.stack([*loaded.predict(x).columns])
    for found in ((saved["mean"], saved["stddev"]), session.run(["mean", "stddev"], {"x": x})):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_it_was_sampled(document):
    draws = document["model"].posterior.draws
    assert np.isfinite(draws).all() and np.all(draws.std(axis=(0, 1)) > 0)
    _, of_function = document["model"].predict(document["x"])
    noise = np.sqrt(document["prediction"][1] ** 2 - of_function**2)
    # 0.2 of a standardised target.
    np.testing.assert_allclose(noise, 0.2 * document["y"].std(), rtol=1e-5)


@pytest.mark.parametrize("row_noise", [None, np.array([[0.1, 0.4, 0.9]])], ids=["fixed", "rows"])
def test_densities_are_those_of_scipy(document, row_noise):
    likelihood = document["LaplaceNoise"](0.3)
    outputs, y = np.array([[[0.1, -0.2, 3.0]]]), np.array([[0.3, 0.3, 0.3]])
    width = (0.3 if row_noise is None else row_noise) / np.sqrt(2.0)
    expected = stats.laplace.logpdf(y, outputs[0], width)
    noise = Noise(None, None if row_noise is None else tf.constant(row_noise))
    found = row_log_likelihood(likelihood, tf.constant(outputs), tf.constant(y), noise)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    scale = likelihood.scale(outputs, None, row_noise)
    np.testing.assert_allclose(likelihood.log_noise_density(y - outputs[0], scale), expected)
    np.testing.assert_allclose(
        likelihood.noise_quantile(np.array([0.2, 0.9])),
        stats.laplace.ppf([0.2, 0.9], scale=np.sqrt(0.5)),
    )
    information, noise = likelihood_information(likelihood, tf.constant(outputs[0]), noise)
    # The score is sign / width, whatever the residual.
    np.testing.assert_allclose(information.weights, np.broadcast_to(1 / width**2, (1, 3)))
    assert noise.shape == (0, 3)


def test_the_prior_is_that_of_scipy_and_is_kept(document):
    prior = document["Logistic"](0.5)
    weights = np.array([[0.1, -0.7, 20.0], [0.0, 2.0, -3.0]])
    law = stats.logistic(scale=0.5)
    expected = law.logpdf(weights).sum(axis=1)
    np.testing.assert_allclose(weight_log_prior(prior, tf.constant(weights)), expected, rtol=1e-12)
    assert weight_precision(prior, None, False) == pytest.approx(1.0 / law.var())
    model = tfbnn.load(document["folder"] / "logistic.h5")
    assert model.spec.priors[0].kernel == prior
    draws = model.posterior.draws
    assert np.isfinite(draws).all() and np.all(draws.std(axis=(0, 1)) > 0)
