"""The predictive distribution: density, distribution function, quantiles and draws agree with each other."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.marks import statistics_but
from tests.support.predictions import LOG, SCORED, with_readouts
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Bernoulli, Categorical, Gaussian
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.metrics import row_scores
from tfbnn.spec.likelihoods import AdditiveNoise

LEVELS = [1e-6, 0.05, 0.5, 0.8, 0.999]
CASES = SCORED | {
    "vector": {"vector_target": True},
    "calibrated": {"vector_target": True, "y_transform": LOG},
    "calibrated by misfit's groups": {"layer_sizes": (2, 5, 2)},
}
each_case = pytest.mark.parametrize("name", CASES)
DRAWN = [("vector", True), ("calibrated", False), ("Student-t", False), ("heteroscedastic", True)]


@pytest.fixture
def model_of():
    def make(name):
        model = BayesianMLP.from_ensemble(synthetic_ensemble(**CASES[name]))
        if name.startswith("calibrated"):
            x, y = make_rows(330, 2, model.spec.num_targets, seed=3)
            model.calibrate(x, y, by="stddev" if "groups" in name else None)
        return model

    return make


def points(model, num_rows=20):
    """Inputs, the last of them far outside, and targets in the shape of the fit."""
    x, y = make_rows(num_rows, 2, model.spec.num_targets, seed=8)
    x[-1] *= 40.0
    return x, y[:, 0] if model.posterior.vector_target else y


def test_collapsed_readouts_under_a_logarithm_are_calibrated_as_predicted():
    model = BayesianMLP.from_ensemble(with_readouts(synthetic_ensemble(y_transform=LOG)))
    model.calibrate(*make_rows(330, 2, 1, seed=3))
    x = points(model)[0][:-1]
    found = model.predict(x, include_noise=True, quantiles=[0.2, 0.8], return_trust=True)
    inside = found.trust >= 0
    assert inside.sum() > 10
    d = model.predict_distribution(x)
    quantiles = d.quantile([0.2, 0.8])
    np.testing.assert_allclose(quantiles[:, inside], found.quantiles[:, inside], rtol=1e-6)
    y = np.exp(np.random.default_rng(0).normal(size=(len(x), 1)))
    assert model.evaluate(x, y)["crps"] == pytest.approx(d.crps(y).mean(), rel=1e-6)


def test_targets_in_frames_are_ordered_by_name():
    model = BayesianMLP.from_ensemble(
        synthetic_ensemble((2, 5, 2), provenance={"target_names": ["a", "b"]}, row_noise=True)
    )
    x, y = make_rows(20, 2, 2, seed=8)
    x, y = pd.DataFrame(x, columns=["u", "v"]), pd.DataFrame(y, columns=["a", "b"])
    noise = pd.DataFrame({"a": np.full(20, 0.1), "b": np.full(20, 3.0)})
    found, turned = (
        model.predict(x, include_noise=True, noise_scale=noise[names]).stddev
        for names in (["a", "b"], ["b", "a"])
    )
    np.testing.assert_array_equal(found, turned)
    d = model.predict_distribution(x, noise_scale=noise)
    np.testing.assert_array_equal(d.log_prob(y[["b", "a"]]), d.log_prob(y))
    scores = [
        model.evaluate(x, y.to_numpy(), noise_scale=noise[names])["crps"]
        for names in (["a", "b"], ["b", "a"])
    ]
    np.testing.assert_array_equal(*scores)
    # Names that the fit has not seen pair nothing.
    plain = BayesianMLP.from_ensemble(synthetic_ensemble((2, 5, 2)))
    named = pd.DataFrame(y.to_numpy(), columns=["y2", "y1"])
    np.testing.assert_array_equal(plain.evaluate(x, named)["crps"], plain.evaluate(x, y)["crps"])
    with pytest.raises(ValueError, match="y has the index of x in another order"):
        d.log_prob(y[::-1])
    with pytest.raises(ValueError, match="noise_scale has the index of x in another order"):
        model.posterior.to_arviz(x, noise_scale=noise[::-1])


@each_case
def test_the_distribution_function_ascends_and_quantiles_invert_it(name, model_of):
    model = model_of(name)
    x, y = points(model)
    d = model.predict_distribution(x)
    q = d.quantile(LEVELS)
    assert q.shape == (5, *y.shape) and d.quantile(0.5).shape == y.shape
    levels = np.reshape(LEVELS, (-1, *[1] * y.ndim))
    np.testing.assert_allclose(d.cdf(q), np.broadcast_to(levels, q.shape), atol=1e-9)
    low, high = d.interval(0.9)
    np.testing.assert_allclose([low, high], d.quantile([0.05, 0.95]), rtol=1e-8)
    # Those of predict are of points that stand for the distribution.
    predicted = model.predict(x, include_noise=True, quantiles=[0.05, 0.5, 0.8])
    np.testing.assert_allclose(d.cdf(predicted.quantiles), levels[1:4] + 0 * q[1:4], atol=2e-3)
    np.testing.assert_array_equal(d.mean(), predicted.mean)
    np.testing.assert_array_equal(d.std(), predicted.stddev)
    np.testing.assert_array_equal(d.var(), predicted.stddev**2)
    # The function ascends from 0 to 1.
    ends = d.quantile([1e-9, 1.0 - 1e-9])
    inside = ends[0] + np.linspace(0.0, 1.0, 60).reshape(-1, *[1] * y.ndim) * (ends[1] - ends[0])
    found = d.cdf(inside)
    assert np.all(np.diff(found, axis=0) >= 0) and found.min() >= 0 and found.max() <= 1
    np.testing.assert_allclose(d.cdf(np.inf), np.ones(y.shape), rtol=1e-12)
    np.testing.assert_array_equal(d.cdf(-np.inf), np.zeros(y.shape))


@each_case
def test_the_density_is_one_and_the_slope_of_the_distribution_function(name, model_of):
    model = model_of(name)
    x, y = points(model, 3)
    d = model.predict_distribution(x)
    is_calibrated = name.startswith("calibrated")
    # Dense where the mass is, and where a Student-t has the rest; a calibrated density leaps at the median.
    levels = [1e-9, 1e-4, 0.01, 0.5 - 1e-12, 0.5 + 1e-12, 0.99, 1.0 - 1e-4, 1.0 - 1e-9]
    ends = d.quantile(levels)
    count = 201 if is_calibrated else 501
    parts = [np.linspace(low, high, count) for low, high in zip(ends[:-1], ends[1:])]
    mass = sum(integrate.simpson(d.pdf(part), x=part, axis=0) for part in parts)
    np.testing.assert_allclose(mass, np.ones(y.shape), atol=2e-3 if is_calibrated else 1e-4)
    if not is_calibrated:  # there the density is that of the t that fits the scores
        quantiles = d.quantile(0.3)
        step = 1e-4 * d.std() if np.isfinite(d.std()).all() else 1e-4
        slope = (d.cdf(quantiles + step) - d.cdf(quantiles - step)) / (2.0 * step)
        np.testing.assert_allclose(d.pdf(quantiles), slope, rtol=1e-4)


@each_case
def test_scores_are_those_of_evaluate(name, model_of):
    model = model_of(name)
    x, y = points(model, 41)
    d, scores = model.predict_distribution(x), model.evaluate(x, y)
    if model.spec.num_targets == 1:
        density = scores["log_predictive_density"]
        assert np.mean(d.log_prob(y)) == pytest.approx(density, rel=1e-9)
    np.testing.assert_allclose(np.mean(d.crps(y), axis=0).squeeze(), scores["crps"], rtol=1e-9)
    inside = np.abs(d.cdf(y) - 0.5) < 0.25
    np.testing.assert_allclose(np.mean(inside, axis=0).squeeze(), scores["central_coverage"][0.5])
    low, high = d.interval(0.9)
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    expected = np.mean(high - low + 20.0 * missed, axis=0).squeeze()
    np.testing.assert_allclose(scores["interval_score"], expected, rtol=1e-9)
    # Where error bars are right, by ranks and in thirds of the rows, on the scale the network sees.
    _, rows = checked_rows(model.posterior, x, y, None, "a test")
    found = row_scores(model.posterior, np.reshape(y, (41, -1)), rows)
    error = np.abs(rows.y - found.centre)
    ranks = np.reshape(scores["rank_correlation"], -1)
    for target in range(model.spec.num_targets):
        expected = stats.spearmanr(found.stddev[:, target], error[:, target]).statistic
        assert ranks[target] == pytest.approx(expected)
        order = np.argsort(found.stddev[:, target])
        thirds = [order[:14], order[14:28], order[28:]]
        for part, shares in zip(thirds, scores["coverage_by_thirds"].values()):
            for k, share in shares.items():
                inside = np.mean(np.abs(found.pull[part, target]) < k)
                assert np.reshape(share, -1)[target] == pytest.approx(inside)


@pytest.mark.parametrize(
    "name, joint", statistics_but(DRAWN, [(name, j) for name, _ in DRAWN for j in (False, True)])
)
def test_draws_have_the_distribution(name, joint, model_of):
    model = model_of(name)
    x, y = points(model, 4)
    d = model.predict_distribution(x)
    draws = d.sample(4_000, seed=2, joint=joint)
    assert draws.shape == (4_000, *y.shape)
    np.testing.assert_array_equal(draws, d.sample(4_000, seed=2, joint=joint))
    levels = d.cdf(draws).reshape(4_000, -1)
    # Networks of a joint draw are few, 30, and chosen at random; its noise is none of theirs.
    assert all(stats.kstest(column, "uniform").pvalue > 1e-4 for column in levels.T)


def test_joint_draws_are_of_one_network(model_of):
    model = model_of("vector")
    x = np.tile(make_rows(1, 2, 1, seed=8)[0], (2, 1))  # one input twice
    for settings, least in (({"include_noise": False}, 0.999), ({}, 0.5)):
        d = model.predict_distribution(x, **settings)
        draws = [d.sample(4000, joint=joint) for joint in (True, False)]
        together, alone = (np.corrcoef(one.T)[0, 1] for one in draws)
        assert together > least and abs(alone) < 0.06


def test_values_below_the_logarithm_have_no_mass(model_of):
    d = model_of("calibrated").predict_distribution(points(model_of("calibrated"))[0])
    for y in (0.0, -3.0):
        assert not d.cdf(y).any() and not d.pdf(y).any() and np.isneginf(d.log_prob(y)).all()


def test_values_broadcast_as_those_of_scipy(model_of):
    model = model_of("vector")
    x, y = points(model)
    d = model.predict_distribution(x)
    assert d.cdf(0.5).shape == (20,) and d.pdf(np.ones((7, 1))).shape == (7, 20)
    np.testing.assert_array_equal(d.cdf(np.stack([y, y + 1.0]))[1], d.cdf(y + 1.0))
    for wrong in (np.ones(7), np.ones((20, 7))):
        with pytest.raises(ValueError, match=r"y must broadcast to \[20\]"):
            d.cdf(wrong)
    assert "20 rows" in repr(d) and "calibrated" in repr(
        model_of("calibrated").predict_distribution(x)
    )


@pytest.mark.parametrize("is_vector", [True, False])
def test_one_target_may_be_given_in_either_shape(is_vector):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(vector_target=is_vector))
    x, y = make_rows(9, 2, 1, seed=8)
    d = model.predict_distribution(x)
    found = d.cdf(y)
    assert found.shape == ((9,) if is_vector else (9, 1))
    np.testing.assert_array_equal(d.cdf(y[:, 0]), found)
    if not is_vector:
        with pytest.raises(ValueError, match=r"y must broadcast to \[9, 1\]"):
            d.cdf(np.ones(4))


@pytest.mark.parametrize("noise", [True, False])
def test_crps_below_the_logarithm_grows_with_the_distance(noise):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(vector_target=True, y_transform=LOG))
    d = model.predict_distribution(points(model)[0], include_noise=noise)
    np.testing.assert_allclose(d.crps(-500.0) - d.crps(-5.0), 495.0)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda d: d.cdf(np.nan), "y must not be NaN"),
        (lambda d: d.quantile([]), "q must hold"),
        (lambda d: d.quantile(0.0), "q must be"),
        (lambda d: d.quantile([0.5, 1.0]), "q must be"),
        (lambda d: d.interval(1.5), "level must be"),
        (lambda d: d.sample(3, joint="no"), "joint must be"),
        (lambda d: d.sample(10**9), "Draw in parts"),
        (lambda d: d.cdf("abc"), "y must be an array of numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words, model_of):
    d = model_of("vector").predict_distribution(np.zeros((2, 2)))
    with pytest.raises((TypeError, ValueError), match=words):
        call(d)


def test_the_function_alone_has_no_density(model_of):
    model = model_of("vector")
    x, _ = points(model)
    d = model.predict_distribution(x, include_noise=False)
    draws = model.predict_draws(x)
    np.testing.assert_allclose(d.cdf(0.7), np.mean(draws <= 0.7, axis=0))
    np.testing.assert_allclose(d.quantile(0.5), np.median(draws, axis=0))
    assert np.isin(d.sample(50), draws).all()
    with pytest.raises(ValueError, match="The function has no density"):
        d.pdf(0.5)


def test_known_noise_of_rows_is_used():
    model = BayesianMLP.from_ensemble(synthetic_ensemble(row_noise=True, vector_target=True))
    x, _ = points(model)
    narrow, wide = (model.predict_distribution(x, noise_scale=s * np.ones(20)) for s in (0.1, 9.0))
    assert np.all(np.diff(wide.interval(0.9), axis=0) > np.diff(narrow.interval(0.9), axis=0))


def test_too_many_rows_are_refused_before_they_are_computed(model_of, monkeypatch):
    monkeypatch.setattr("tfbnn.posterior.checks._MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="Pass some of the rows"):
        model_of("vector").predict_distribution(np.zeros((9, 2)))


@pytest.mark.parametrize(
    "layers, likelihood, classes",
    [((2, 5, 3), Categorical(), ("a", "b", "c")), ((2, 5, 1), Bernoulli(), (4, 7))],
)
def test_class_labels(layers, likelihood, classes):
    ensemble = synthetic_ensemble(
        layers, likelihood=likelihood, y_transform=None, classes=classes, vector_target=True
    )
    model = BayesianMLP.from_ensemble(ensemble)
    x, _ = make_rows(6, 2, 1, seed=8)
    d = model.predict_distribution(x)
    np.testing.assert_array_equal(d.probs, model.predict(x).mean)
    every = np.array([np.exp(d.log_prob([label] * 6)) for label in classes])
    np.testing.assert_allclose(every.sum(axis=0), 1.0)
    np.testing.assert_allclose(every[-1], d.probs[:, -1] if d.probs.ndim == 2 else d.probs)
    np.testing.assert_allclose(d.entropy(), -np.sum(every * np.log(every), axis=0))
    draws = d.sample(20_000, seed=1)
    assert draws.shape == (20_000, 6) and set(np.unique(draws)) <= set(classes)
    np.testing.assert_allclose(np.mean(draws == classes[-1], axis=0), every[-1], atol=0.015)
    labels = draws[0]
    density = model.evaluate(x, labels)["log_predictive_density"]
    assert np.mean(d.log_prob(labels)) == pytest.approx(density)
    with pytest.raises(ValueError, match="labels must have one line"):
        d.log_prob(labels[:3])
    for settings in ({"include_noise": False}, {"calibrated": True}):
        with pytest.raises(ValueError, match="with classes|needs a calibration"):
            model.predict_distribution(x, **settings)


def test_noise_that_knows_its_quantiles_alone_has_a_distribution_function():
    @dataclass(frozen=True)
    class Logistic(Gaussian):
        def noise_quantile(self, probability):
            return np.log(probability / (1.0 - probability)) * np.sqrt(3.0) / np.pi

        noise_cdf = AdditiveNoise.noise_cdf

    z = np.linspace(-9.0, 9.0, 201)
    truth = stats.logistic.cdf(z, scale=np.sqrt(3.0) / np.pi)
    np.testing.assert_allclose(Logistic().noise_cdf(z), truth, atol=1e-6)


def test_words_of_other_distributions_are_answered(model_of):
    d = model_of("plain").predict_distribution(points(model_of("plain"))[0])
    for word, told in (("ppf", r"quantile\(q\)"), ("logpdf", r"log_prob\(y\)"), ("rvs", "sample")):
        with pytest.raises(AttributeError, match=f"PredictiveDistribution has no {word!r}.*{told}"):
            getattr(d, word)
