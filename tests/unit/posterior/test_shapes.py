"""A target that was fitted as [N] is predicted as [N], one that was fitted as [N, K] as [N, K]."""

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.entries import NOISE, NUM_ROWS, X, Y, fake_fit
from tfbnn.likelihoods import Bernoulli, Categorical, HeteroscedasticGaussian, StudentT

LOG = ["log10", "standardize"]
QUANTILES = [0.16, 0.5, 0.84]
REGRESSION = {
    "plain": {},
    "logarithm": {"y_transform": LOG},
    "heteroscedastic": {"likelihood": HeteroscedasticGaussian(), "layer_sizes": (2, 5, 2)},
    "Student-t": {"likelihood": StudentT(4.0)},
    "row noise": {"row_noise": True},
}


@pytest.fixture
def both(synthetic_ensemble):
    """Function (settings) -> the same model fitted as [N], and as [N, 1]."""

    def both(**settings):
        return [
            tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(vector_target=flag, **settings))
            for flag in (True, False)
        ]

    return both


def squeezed(prediction):
    """The arrays of a Prediction with one column, without it."""
    assert prediction.mean.shape == (len(prediction.mean), 1)
    return [a[..., 0] for a in (prediction.mean, prediction.stddev, prediction.quantiles)]


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.tobytes()) == (b.shape, b.tobytes())


@pytest.mark.parametrize("space", ["original", "transformed"])
@pytest.mark.parametrize("include_noise", [False, True])
@pytest.mark.parametrize("settings", REGRESSION.values(), ids=REGRESSION)
def test_predictions_of_a_vector_are_vectors(both, settings, include_noise, space):
    vector, column = both(**settings)
    x, y = make_rows(7, 2, 1)
    options = {"include_noise": include_noise, "quantiles": QUANTILES, "space": space}
    options["return_trust"] = True
    if include_noise and vector.posterior.row_noise:
        options["noise_scale"] = 0.1 * y[:, 0]
    found, expected = vector.predict(x, **options), column.predict(x, **options)
    assert_equal([found.mean, found.stddev, found.quantiles], squeezed(expected))
    assert found.quantiles.shape == (3, 7)
    assert found.trust.shape == found.columns.trust.shape == (7,)
    assert_equal(squeezed(found.columns), squeezed(expected))
    assert expected.columns is expected
    assert vector.predict(x).columns.quantiles is None
    draws = vector.predict_draws(x, space=space)
    assert_equal([draws], [column.predict_draws(x, space=space)[..., 0]])


def test_bernoulli_of_a_vector(both):
    vector, column = both(likelihood=Bernoulli(), classes=("no", "yes"))
    x, _ = make_rows(7, 2, 1)
    assert vector.predict(x).mean.shape == (7,) and column.predict(x).mean.shape == (7, 1)
    assert vector.predict_draws(x).shape == (vector.posterior.num_draws, 7)
    labels = np.where(vector.predict(x).mean > 0.5, "yes", "no")
    assert vector.predict_classes(x).tolist() == labels.tolist()
    assert column.predict_classes(x).tolist() == labels.tolist()


def test_categorical_has_a_column_for_every_class(both):
    for model in both(layer_sizes=(2, 5, 3), likelihood=Categorical()):
        x, _ = make_rows(7, 2, 1)
        assert model.predict(x, quantiles=[0.5]).quantiles.shape == (1, 7, 3)
        assert model.predict_draws(x).shape == (model.posterior.num_draws, 7, 3)
        assert model.predict_classes(x).shape == (7,)


def test_scores_and_weights_take_either_shape(both):
    x, y = make_rows(20, 2, 1, seed=4)
    expected = str(both()[0].evaluate(x, y))
    weights = both()[0].stack_chains(x, y).weights
    for model in both():
        for given in (y, y[:, 0], y[:, 0].tolist(), pd.Series(y[:, 0])):
            assert str(model.evaluate(x, given)) == expected
            np.testing.assert_array_equal(model.stack_chains(x, given).weights, weights)
            model = tfbnn.BayesianMLP.from_ensemble(model.posterior.with_chain_weights([0.5, 0.5]))


def test_what_is_made_of_a_model_keeps_its_shape(both, tmp_path):
    vector, _ = both()
    x, _ = make_rows(7, 2, 1)
    vector.save(tmp_path / "model.h5")
    assert_equal(tfbnn.load(tmp_path / "model.h5").predict(x), vector.predict(x))
    assert vector.compress(5, x_reference=x).predict(x).mean.shape == (7,)


def test_diagnoses_keep_a_column(both):
    vector, column = both()
    found, expected = vector.diagnose(), column.diagnose()
    assert found.rhat_function.shape == (10, 1)
    np.testing.assert_array_equal(found.rhat_function, expected.rhat_function)


FITTED = {
    "vector": (lambda y: y[:, 0], ()),
    "series": (lambda y: pd.Series(y[:, 0], name="t"), ()),
    "column": (lambda y: y, (1,)),
    "frame": (lambda y: pd.DataFrame(y, columns=["t"]), (1,)),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("disguise, more", FITTED.values(), ids=FITTED)
def test_the_shape_is_that_of_the_fit(engine, disguise, more):
    model = tfbnn.BayesianMLP([2, 3, 1])
    fake_fit(model, y=disguise(Y))
    assert model.predict(X).mean.shape == (NUM_ROWS, *more)
    noisy = model.predict(X, include_noise=True, quantiles=QUANTILES)
    assert noisy.quantiles.shape == (3, NUM_ROWS, *more)
    assert model.predict_draws(X).shape == (12, NUM_ROWS, *more)


@pytest.mark.tensorflow
def test_the_shape_of_validation_rows_does_not_matter(engine):
    model = tfbnn.BayesianMLP([2, 3, 1])
    fake_fit(model, y=Y[:, 0], validation_data=(X, Y))
    assert model.predict(X).mean.shape == (NUM_ROWS,)
    fake_fit(model, y=Y, noise_scale=NOISE)
    noisy = model.predict(X, include_noise=True, noise_scale=NOISE)
    assert noisy.mean.shape == (NUM_ROWS, 1)
