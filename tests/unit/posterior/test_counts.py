"""Counts: densities, distribution functions and predictions against SciPy's, with offsets."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.support.builders import synthetic_ensemble
from tests.support.marks import statistics_but
from tfbnn import BayesianMLP, plots
from tfbnn.diagnostics.fit_advice import find_misfits
from tfbnn.diagnostics.fit_check import FitCheck, InputCheck, PriorCheck
from tfbnn.likelihoods import NegativeBinomial, Poisson
from tfbnn.plots.page import sections
from tfbnn.posterior.fit_checking import check_rows
from tfbnn.posterior.forward import network_outputs
from tfbnn.posterior.mixture import Mixture
from tfbnn.spec.rows import NetworkRows, rows_to_fit

pytestmark = pytest.mark.tensorflow
SETTINGS = {
    "Poisson": {"likelihood": Poisson()},
    "learned": {"likelihood": NegativeBinomial()},
    "fixed": {"likelihood": NegativeBinomial(0.4)},
    "two targets": {"likelihood": NegativeBinomial(), "layer_sizes": (2, 5, 2)},
}
GENERATOR = np.random.default_rng(4)
X, OFFSET = GENERATOR.normal(size=(16, 2)), GENERATOR.normal(size=(16, 1))
each_setting = pytest.mark.parametrize("name", SETTINGS)
# Whose density is that of SciPy is told from the others by no more than its relative scale.
some_settings = pytest.mark.parametrize("name", statistics_but(["Poisson", "learned"], SETTINGS))


class Case:
    """A model, and the distributions of SciPy of every draw [M, N, K]."""

    def __init__(self, name, offset=OFFSET):
        self.ensemble = synthetic_ensemble(y_transform=None, **SETTINGS[name])
        self.model, spec = BayesianMLP.from_ensemble(self.ensemble), self.ensemble.spec
        self.offset = np.broadcast_to(offset, (len(X), spec.num_targets))
        raw = network_outputs(self.ensemble, self.ensemble.x_pipeline.forward(X))
        self.rate = np.exp(np.moveaxis(raw, 1, 2).astype(float) + self.offset)
        relative = spec.likelihood.noise_scale
        if spec.layout.num_noise:
            relative = np.exp(self.ensemble.log_noise_scale.astype(float))[:, None, :]
        if relative is None:
            self.draws = stats.poisson(self.rate)
        else:
            self.draws = stats.nbinom(relative**-2, 1.0 / (1.0 + relative**2 * self.rate))
        self.y = self.draws.rvs(random_state=3)[0].astype(float)

    def mixed(self, values):
        return np.average(values, axis=0, weights=self.ensemble.draw_weights)


@each_setting
def test_the_density_that_is_sampled_is_that_of_scipy(name):
    import tensorflow as tf

    from tfbnn.engine.density.densities import Noise, row_log_likelihood
    from tfbnn.engine.density.fisher import likelihood_information

    case = Case(name)
    spec, rate = case.ensemble.spec, case.rate
    log_scale = tf.constant(case.ensemble.log_noise_scale.astype(float))
    noise = Noise(log_scale, tf.constant(case.offset.T))
    outputs = tf.constant(np.moveaxis(np.log(rate) - case.offset, 2, 1))
    found = row_log_likelihood(spec.likelihood, outputs, tf.constant(case.y.T), noise)
    expected = case.draws.logpmf(case.y).sum(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    # The information in the outputs is the variance of the score.
    information, of_scale = likelihood_information(
        spec.likelihood, outputs[0], Noise(log_scale[0], noise.of_rows)
    )
    variance = np.broadcast_to(case.draws.var(), rate.shape)[0]
    np.testing.assert_allclose(information.weights, (rate[0] ** 2 / variance).T, rtol=1e-9)
    assert of_scale.shape == (spec.layout.num_noise, len(X))


@some_settings
def test_the_predictive_distribution_is_the_mixture(name):
    case = Case(name)
    d = case.model.predict_distribution(X, offset=case.offset)
    np.testing.assert_allclose(d.mean(), case.mixed(case.rate), rtol=1e-6)
    variance = case.mixed(case.draws.var()) + case.mixed((case.rate - case.mixed(case.rate)) ** 2)
    np.testing.assert_allclose(d.var(), variance, rtol=1e-5)
    counts = np.arange(60.0)[:, None, None]
    below = [case.mixed(case.draws.cdf(k)) for k in counts]
    np.testing.assert_allclose(d.cdf(counts), below, rtol=1e-6)
    np.testing.assert_array_equal(d.cdf(counts + 0.7), d.cdf(counts))
    np.testing.assert_array_equal(d.cdf(-1.0), np.zeros_like(case.y))
    np.testing.assert_allclose(d.cdf(np.inf), np.ones_like(case.y), rtol=1e-12)
    mass = [case.mixed(case.draws.pmf(k)) for k in counts]
    np.testing.assert_allclose(d.pdf(counts), mass, rtol=1e-5, atol=1e-12)
    np.testing.assert_array_equal(d.pdf(2.5), np.zeros_like(case.y))
    for level in (1e-4, 0.1, 0.5, 0.99):
        count = d.quantile(level)  # the least that this probability is up to
        assert np.all(d.cdf(count) >= level) and np.all(d.cdf(count - 1.0) < level)
    drawn = d.sample(4000, seed=1)
    np.testing.assert_allclose(drawn.mean(axis=0), d.mean(), atol=5 * np.max(d.std()) / 63)
    # Rates are no whole numbers.
    rates = case.model.predict_distribution(X, include_noise=False, offset=case.offset)
    below = case.mixed(case.rate <= rates.quantile(0.5))
    np.testing.assert_allclose(rates.cdf(rates.quantile(0.5)), below)
    assert case.model.predict(X, include_noise=True, offset=case.offset, quantiles=[]).mean.any()


@pytest.mark.parametrize("scale", [1e-2, 1e-4, 1e-6, 1e-8])
def test_little_scatter_costs_no_digits(scale):
    """The density that is sampled, too; counts then follow Poisson's distribution."""
    import tensorflow as tf

    from tfbnn.engine.density.densities import Noise, row_log_likelihood

    rate, y = 1000.0, np.arange(800.0, 1200.0)[:, None]
    likelihood = NegativeBinomial(scale)
    exact = stats.poisson.logpmf(y, rate)
    location = np.full(y.shape, rate)
    spread = likelihood.scale(np.log(location), np.zeros((1, 0)), None)
    found = likelihood.log_densities(y, location, spread)
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-6) or scale > 1e-3
    outputs = tf.constant(np.log(location).T[None])
    noise = Noise(tf.zeros((1, 0), tf.float64), None)
    sampled = row_log_likelihood(likelihood, outputs, tf.constant(y.T), noise)
    np.testing.assert_allclose(np.ravel(sampled), found[:, 0], atol=1e-6)
    if scale < 1e-5:
        np.testing.assert_allclose(found, exact, atol=1e-5)


def test_quantiles_far_out_have_their_probability():
    mixture = Mixture(Poisson(), np.ones(1), np.full((1, 1, 1), 1e6), np.full((1, 1, 1), 1e3))
    for level in (1e-12, 1e-8, 1.0 - 1e-12):
        found = mixture.quantiles([level])[0]
        assert np.all(mixture.cdf(found) >= level) and np.all(mixture.cdf(found - 1.0) < level)


@pytest.mark.parametrize("likelihood, scale", [(Poisson(), 1.0), (NegativeBinomial(0.5), 0.5)])
def test_quantiles_of_rare_counts_are_exact(likelihood, scale):
    rates = (
        np.geomspace(1e-4, 30.0, 1500)[None, :, None] * np.linspace(0.98, 1.02, 20)[:, None, None]
    )
    scales = np.broadcast_to(likelihood.scale(np.log(rates), np.zeros((20, 0)), None), rates.shape)
    mixture = Mixture(likelihood, np.full(20, 0.05), rates, scales)
    levels = [0.5, 0.9, 0.99, 0.995, 0.999, 1.0 - 1e-6]
    for level, found in zip(levels, mixture.quantiles(levels)):
        assert np.all(mixture.cdf(found) >= level - 1e-10)
        assert np.all((found == 0) | (mixture.cdf(found - 1.0) < level))


@pytest.mark.parametrize("name", statistics_but(["Poisson", "two targets"], SETTINGS))
def test_scores_are_those_of_the_distribution(name):
    case = Case(name)
    scores = case.model.evaluate(X, case.y, offset=case.offset)
    d = case.model.predict_distribution(X, offset=case.offset)
    joint = np.log(case.mixed(np.exp(case.draws.logpmf(case.y).sum(axis=2))))
    assert scores["log_predictive_density"] == pytest.approx(joint.mean(), rel=1e-5)
    np.testing.assert_allclose(scores["crps"], np.squeeze(d.crps(case.y).mean(axis=0)))
    # The ranked probability score by its sum, of some of the rows.
    counts, some = np.arange(4000.0)[:, None, None], slice(8)
    below = case.model.predict_distribution(X[some], offset=case.offset[some]).cdf(counts)
    exact = np.square(below - (case.y[some] <= counts)).sum(axis=0)
    np.testing.assert_allclose(d.crps(case.y)[some], exact, rtol=0.03, atol=0.03)
    low, high = d.interval(0.9)
    missed = np.maximum(low - case.y, 0.0) + np.maximum(case.y - high, 0.0)
    expected = np.mean(high - low + 20.0 * missed, axis=0)
    np.testing.assert_allclose(scores["interval_score"], np.squeeze(expected))


def test_targets_that_follow_the_model_have_even_probabilities():
    """By a random share of the probability of the very count."""
    ensemble = synthetic_ensemble(
        y_transform=None, num_results=1, num_chains=1, **SETTINGS["learned"]
    )
    model, x = BayesianMLP.from_ensemble(ensemble), GENERATOR.normal(size=(500, 2))
    y = model.predict_distribution(x).sample(1, seed=5)[0]
    scores = model.evaluate(x, y)
    for level, share in scores["central_coverage"].items():
        assert abs(share - level) < 4.0 * np.sqrt(level * (1.0 - level) / 500)


def test_rates_are_for_an_exposure_of_one():
    case = Case("Poisson", np.zeros((16, 1)))
    np.testing.assert_allclose(case.model.predict(X).mean, case.mixed(case.rate), rtol=1e-6)
    quantiles = case.model.predict(X, include_noise=True, quantiles=[0.1, 0.5]).quantiles
    np.testing.assert_array_equal(
        quantiles, case.model.predict_distribution(X).quantile([0.1, 0.5])
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.evaluate(X, np.full(16, -1.0)), "counts 0, 1, 2"),
        (lambda model: model.evaluate(X, np.full(16, 0.5)), "received 0.5"),
        (lambda model: model.predict(X, noise_scale=1.0 + 0 * X[:, 0]), "pass offset="),
        (lambda model: model.predict(X, offset=[1.0]), "offset must have shape"),
        (
            lambda model: model.predict(X, offset=np.full(16, 1000.0)),
            "logarithm of the exposure, received 1000",
        ),
        (lambda model: model.calibrate(X, np.ones(16)), "evaluate says how far"),
        (lambda model: BayesianMLP([2, 1]).predict(X, offset=X[:, 0]), "has no draws yet"),
        (
            lambda model: BayesianMLP([2, 3, 1], likelihood=Poisson(), y_transform="log10"),
            "y_transform must be None for Poisson, whose targets are counts",
        ),
        (
            lambda model: BayesianMLP([2, 3, 1]).fit_posterior(X, X[:, 0], offset=X[:, 1]),
            "offset does not go with Gaussian",
        ),
    ],
)
def test_what_does_not_go_with_counts_is_refused(call, words):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(y_transform=None, **SETTINGS["Poisson"]))
    with pytest.raises((ValueError, RuntimeError), match=words):
        call(model)


def test_offsets_go_everywhere_and_what_lacks_them_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tfbnn.plots.page.writing.SECTIONS", (sections.predictions,))
    case = Case("Poisson")
    model, known = case.model, {"offset": OFFSET[:, 0]}
    model._ensemble = replace(model._ensemble, row_noise=True)
    theta = model.posterior.draws[0, 0]
    expected = case.draws.logpmf(case.y)[0].sum()
    found = model.log_prob(theta, X, case.y, **known, return_terms=True)["log_likelihood"]
    assert found == pytest.approx(expected, rel=1e-4)
    calls = (
        lambda **more: model.importance(X, case.y, **more),
        lambda **more: model.posterior.to_arviz(X, case.y, **more),
        lambda **more: plots.plot_truth(model, X, case.y, **more),
        lambda **more: plots.plot_pulls(model, X, case.y, **more),
        lambda **more: model.save_report(tmp_path / "page.html", X, case.y, **more),
        lambda **more: model.stack_chains(X, case.y, **more),
    )
    for call in calls:
        call(**known)
        with pytest.raises(ValueError, match="needs offset"):
            call()
        with pytest.raises(ValueError, match="noise_scale does not go with Poisson"):
            call(noise_scale=OFFSET[:, 0])
    frame = pd.DataFrame(X, index=np.arange(16))
    backwards = pd.Series(OFFSET[:, 0], frame.index[::-1])
    for rows in ((frame,), (frame, case.y)):
        with pytest.raises(ValueError, match="offset has the index of x in another order"):
            model.posterior.to_arviz(*rows, offset=backwards)


def test_validation_rows_have_an_offset_where_the_others_have():
    spec, y = Case("Poisson").ensemble.spec, np.ones(16)
    for offset, held_out in ((OFFSET, (X, y)), (None, (X, y, OFFSET))):
        with pytest.raises(ValueError, match="must have an offset if the training rows have one"):
            rows_to_fit(spec, X, y, offset, held_out)


def test_rows_of_an_earlier_fit_without_offset_have_none():
    from tfbnn.engine.density.data import known_noise

    spec = BayesianMLP([2, 3, 1], likelihood=NegativeBinomial(0.4)).spec
    np.testing.assert_array_equal(known_noise(spec, None, np.ones((4, 1))), np.zeros((4, 1)))


@pytest.mark.parametrize("scatter", [0.0, 1.0])
def test_rows_that_scatter_more_than_poisson_are_told_of(scatter):
    one = Case("Poisson").ensemble
    one = one.picked(lambda values: np.repeat(values[:1, :1], 20, axis=1))
    one = replace(one, chain_weights=np.ones(1))
    x = GENERATOR.normal(size=(600, 2))
    rate = BayesianMLP.from_ensemble(one).predict(x).mean
    if scatter:
        rate = rate * GENERATOR.gamma(scatter**-2, scatter**2, size=rate.shape)
    rows = NetworkRows(one.x_pipeline.forward(x), GENERATOR.poisson(rate).astype(float), None)
    check = check_rows(one, rows)
    told = find_misfits(FitCheck(check, PriorCheck(), InputCheck("a", 0.0, 1.0)))
    assert len(told) == bool(scatter)
    if scatter:
        assert "scatter more than the likelihood allows" in told[0].what
        assert "NegativeBinomial" in told[0].remedy.text
