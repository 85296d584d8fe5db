"""Scores of the predictive distribution against formulas written down independently."""

import numpy as np
import pytest
from scipy import special, stats

from tests.support import infinite
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.predictions import SCORED
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.posterior.averages import crps
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.metrics import effective_draws, row_scores

each_configuration = pytest.mark.parametrize("configuration", SCORED.values(), ids=SCORED)
with_and_without_row_noise = pytest.mark.parametrize("known", [False, True], ids=["", "row noise"])


class Case:
    """A model, rows, and the mixture that its scores are about."""

    def __init__(self, ensemble, known=False, num_rows=40):
        self.ensemble, self.model = ensemble, BayesianMLP.from_ensemble(ensemble)
        spec, pipeline = ensemble.spec, ensemble.y_pipeline
        self.x, self.y = make_rows(num_rows, spec.num_inputs, spec.num_targets, seed=8)
        self.row_noise = 0.1 * self.y if known else None
        self.target = pipeline.forward(self.y)
        self.location = self.model.predict_draws(self.x, space="transformed")
        self.original = self.model.predict_draws(self.x)
        self.weights = ensemble.draw_weights
        # The likelihood has known noise at the target, a prediction at its own.
        self.scale = self._scale(spec, pipeline.derivative(self.y))
        self.predicted_scale = self._scale(spec, pipeline.derivative(self.original))
        self.scores = self.model.evaluate(self.x, self.y, noise_scale=self.row_noise)

    def _scale(self, spec, slope):
        known = 0.0 if self.row_noise is None else self.row_noise * slope
        if isinstance(spec.likelihood, HeteroscedasticGaussian):
            from tfbnn.posterior.forward import network_outputs

            raw = network_outputs(self.ensemble, self.ensemble.x_pipeline.forward(self.x))
            learned = np.log1p(np.exp(np.moveaxis(raw, 1, 2)[..., spec.num_targets :]))
        elif spec.layout.num_noise:
            learned = np.exp(self.ensemble.log_noise_scale)[:, None, :]
        else:
            learned = 0.0 if self.row_noise is not None else spec.likelihood.noise_scale
        return np.sqrt(np.square(learned) + known**2) + np.zeros_like(self.location)

    @property
    def log_density(self):
        """The log density of the transformed target under every draw: [C * S, N, K]."""
        likelihood = self.ensemble.spec.likelihood
        if isinstance(likelihood, StudentT):
            spread = self.scale * np.sqrt((likelihood.df - 2) / likelihood.df)
            return stats.t.logpdf(self.target, likelihood.df, self.location, spread)
        return stats.norm.logpdf(self.target, self.location, self.scale)

    @property
    def moments(self):
        """Mean and standard deviation with noise, transformed: [N, K] each."""
        mean = np.average(self.location, axis=0, weights=self.weights)
        variance = (self.location - mean) ** 2 + self.predicted_scale**2
        return mean, np.sqrt(np.average(variance, axis=0, weights=self.weights))

    @property
    def mean_of_target(self):
        """E[y | x], noise included, original units [N, K]; of the function where there is none."""
        means, pipeline = self.original, self.ensemble.y_pipeline
        if "log10" in pipeline.names and not isinstance(self.ensemble.spec.likelihood, StudentT):
            slope = pipeline.derivative(self.original) * self.original
            means = means * np.exp(0.5 * (self.predicted_scale / slope) ** 2)
        return np.average(means, axis=0, weights=self.weights)


CASES = {}


def case_of(configuration, known=False):
    """A Case that tests read, made once."""
    key = repr(configuration), known
    if key not in CASES:
        CASES[key] = Case(synthetic_ensemble(**configuration), known)
    return CASES[key]


def flat(scores):
    """Scores by the keys that lead to them."""
    found = {}
    for name, value in scores.items():
        inner = flat(value) if isinstance(value, dict) else {(): value}
        found |= {(name, *key): entry for key, entry in inner.items()}
    return found


def squeeze(values):
    """A float for one target, an array for several, as scores are given."""
    return values[0] if len(values) == 1 else values


def r2(y, predicted):
    return 1 - ((y - predicted) ** 2).sum(axis=0) / ((y - y.mean(axis=0)) ** 2).sum(axis=0)


@each_configuration
@with_and_without_row_noise
def test_log_predictive_density_is_that_of_the_mixture(configuration, known):
    case = case_of(configuration, known)
    joint = case.log_density.sum(axis=2)
    rows = special.logsumexp(joint, axis=0, b=case.weights[:, None])
    found = case.scores["log_predictive_density_transformed"]
    np.testing.assert_allclose(found, rows.mean(), rtol=1e-10)


@each_configuration
def test_density_in_original_units_carries_the_jacobian(configuration):
    case = case_of(configuration)
    forward, step = case.ensemble.y_pipeline.forward, 1e-5 * case.y
    slope = (forward(case.y + step) - forward(case.y - step)) / (2 * step)
    found = case.scores["log_predictive_density"]
    difference = found - case.scores["log_predictive_density_transformed"]
    # Central differences are exact to step^2 = 1e-10 and to rounding over step, 1e-11.
    np.testing.assert_allclose(difference, np.log(slope).sum(axis=1).mean(), atol=1e-8)


@each_configuration
def test_rmse_and_r2(configuration):
    case = case_of(configuration)

    def mean(values):
        return np.average(values, axis=0, weights=case.weights)

    scales = {
        "": (case.y, case.mean_of_target),
        "_transformed": (case.target, mean(case.location)),
    }
    if "log10" in case.ensemble.spec.y_transform:
        scales["_log10"] = np.log10(case.y), mean(np.log10(case.original))
    assert {name for name in case.scores if name.startswith("r2")} == {f"r2{s}" for s in scales}
    for suffix, (y, predicted) in scales.items():
        rmse = squeeze(np.sqrt(((y - predicted) ** 2).mean(axis=0)))
        np.testing.assert_allclose(case.scores[f"rmse{suffix}"], rmse, rtol=1e-11)
        expected = squeeze(r2(y, predicted))
        np.testing.assert_allclose(case.scores[f"r2{suffix}"], expected, rtol=1e-9, atol=1e-12)


@each_configuration
@with_and_without_row_noise
def test_coverage_and_pull_width_include_the_noise(configuration, known):
    case = case_of(configuration, known)
    mean, stddev = case.moments
    pull = (case.target - mean) / stddev
    assert list(case.scores["coverage"]) == [1, 2, 3, 4, 5]
    for k, share in case.scores["coverage"].items():
        np.testing.assert_array_equal(share, squeeze((np.abs(pull) < k).mean(axis=0)))
    np.testing.assert_allclose(case.scores["pull_width"], squeeze(pull.std(axis=0)), rtol=1e-10)
    _, transformed = checked_rows(case.ensemble, case.x, case.y, case.row_noise, "pulls")
    found = row_scores(case.ensemble, case.y, transformed).pull
    np.testing.assert_allclose(found, pull, rtol=1e-9, atol=1e-12)


@each_configuration
@with_and_without_row_noise
def test_central_coverage_counts_targets_between_two_quantiles(configuration, known):
    case = case_of(configuration, known)
    likelihood = case.ensemble.spec.likelihood
    z = (case.target - case.location) / case.predicted_scale
    if isinstance(likelihood, StudentT):
        below = stats.t.cdf(z * np.sqrt(likelihood.df / (likelihood.df - 2)), likelihood.df)
    else:
        below = stats.norm.cdf(z)
    level = np.average(below, axis=0, weights=case.weights)
    assert len(case.scores["central_coverage"]) > 1
    for share, found in case.scores["central_coverage"].items():
        distance = np.abs(level - 0.5) - share / 2
        # 4096 points resolve a level to a few parts in 4096; a target that near may count or not.
        least, most = ((distance < limit).mean(axis=0) for limit in (-2e-3, 2e-3))
        assert np.all(least <= found) and np.all(found <= most)


@each_configuration
def test_moment_matched_density_is_that_of_one_normal(configuration):
    case = case_of(configuration)
    expected = stats.norm.logpdf(case.target, *case.moments).sum(axis=1).mean()
    found = case.scores["log_predictive_density_moment_matched"]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("equal", [True, False], ids=["equal weights", "unequal weights"])
def test_crps_agrees_with_the_sum_over_all_pairs(equal):
    generator = np.random.default_rng(4)
    points, y = generator.normal(size=(30, 4, 2)), generator.normal(size=(4, 2))
    weights = np.full(30, 1 / 30) if equal else generator.dirichlet(np.ones(30))
    near = np.einsum("m,mnk->nk", weights, np.abs(points - y))
    pairs = np.einsum("i,j,ijnk->nk", weights, weights, np.abs(points[:, None] - points[None]))
    np.testing.assert_allclose(crps(points, weights, y), near - 0.5 * pairs, rtol=1e-12)


def test_crps_of_one_normal_in_closed_form(synthetic_ensemble):
    case = Case(synthetic_ensemble(num_chains=1, num_results=1, likelihood=Gaussian(0.7)))
    (spread,) = case.ensemble.y_pipeline.steps[0].scale
    sigma = 0.7 * spread
    z = (case.y - case.original[0]) / sigma
    # Gneiting and Raftery 2007, section 4.2.
    crps = sigma * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    # 4096 points miss the outermost 1 / 8192 on either side.
    np.testing.assert_allclose(case.scores["crps"], crps.mean(), rtol=1e-3)


@each_configuration
def test_crps_agrees_with_a_sample_of_the_mixture(synthetic_ensemble, configuration):
    case = Case(synthetic_ensemble(**configuration), num_rows=12)
    generator, likelihood, count = np.random.default_rng(9), case.ensemble.spec.likelihood, 2000
    chosen = generator.choice(len(case.weights), size=(2, count), p=case.weights)
    shape = (2, count, *case.target.shape)
    if isinstance(likelihood, StudentT):
        noise = generator.standard_t(likelihood.df, size=shape)
        noise *= np.sqrt((likelihood.df - 2) / likelihood.df)
    else:
        noise = generator.normal(size=shape)
    first, second = case.ensemble.y_pipeline.inverse(
        case.location[chosen] + case.predicted_scale[chosen] * noise
    )
    terms = np.abs(first - case.y) - 0.5 * np.abs(first - second)
    error = terms.mean(axis=1).std(axis=0) / np.sqrt(count)
    found = np.atleast_1d(case.scores["crps"])
    assert np.all(np.abs(found - terms.mean(axis=(0, 1))) < 4 * error + 1e-3 * found)


@each_configuration
def test_scores_are_floats_for_one_target_and_arrays_for_several(configuration):
    case = case_of(configuration)
    num_targets = case.ensemble.spec.num_targets
    for name in ("rmse", "r2", "rmse_transformed", "crps", "pull_width"):
        if num_targets == 1:
            assert type(case.scores[name]) is float
        else:
            assert case.scores[name].shape == (num_targets,)
    assert type(case.scores["log_predictive_density"]) is float
    assert case.scores["num_rows"] == 40
    assert 0 < case.scores["n_effective"] <= 2 * case.ensemble.num_draws


@each_configuration
def test_relative_errors_are_those_of_the_mean_prediction(configuration):
    case = case_of(configuration)
    mean = case.model.predict(case.x).columns.mean
    errors = np.abs(mean / case.y - 1.0)
    for name, expected in (
        ("mean", errors.mean(axis=0)),
        ("median", np.median(errors, axis=0)),
        ("q90", np.quantile(errors, 0.9, axis=0)),
    ):
        np.testing.assert_allclose(case.scores[f"relative_error_{name}"], expected, rtol=1e-6)


def test_there_are_no_relative_errors_where_a_target_is_not_positive(synthetic_ensemble):
    case = Case(synthetic_ensemble())
    y = case.y.copy()
    y[0] = 0.0
    assert not [name for name in case.model.evaluate(case.x, y) if name.startswith("relative")]


@each_configuration
def test_order_of_rows_and_size_of_tiles_do_not_matter(configuration, monkeypatch):
    case = case_of(configuration)
    order = np.random.default_rng(2).permutation(len(case.x))
    # n_effective looks at up to 200 rows, all of them here, through rank statistics.
    permuted = case.model.evaluate(case.x[order], case.y[order])
    monkeypatch.setattr("tfbnn.posterior.prediction._TILE_VALUES", 1)
    tiled = case.model.evaluate(case.x, case.y)
    scores = flat(case.scores)
    for other in (flat(permuted), flat(tiled)):
        assert other.keys() == scores.keys()
        for name, value in scores.items():
            np.testing.assert_allclose(other[name], value, rtol=1e-9, err_msg=name)


def test_constant_targets_have_no_r2(synthetic_ensemble):
    model = BayesianMLP.from_ensemble(synthetic_ensemble())
    scores = model.evaluate(make_rows(5, 2, 1)[0], np.full(5, 3.0))
    assert np.isnan(scores["r2"]) and np.isfinite(scores["rmse"])


def test_a_function_without_spread_has_infinite_residuals_and_no_warnings(synthetic_ensemble):
    ensemble = synthetic_ensemble(num_chains=1, num_results=1)
    x, y = make_rows(5, 2, 1)
    scores = BayesianMLP.from_ensemble(ensemble).evaluate(x, y, include_noise=False)
    assert np.isnan(scores["pull_width"]) and scores["coverage"][3] == 0.0


def test_infinite_width_counts_its_draws_at_the_reference_inputs():
    ensemble = infinite.ensemble(num_draws=8)
    model = BayesianMLP.from_ensemble(ensemble)
    x, y = infinite.rows(6, seed=3)
    at_reference = effective_draws(ensemble, ensemble.x_reference)
    assert model.evaluate(x, y)["n_effective"] == at_reference == pytest.approx(at_reference)


def test_far_targets_have_a_finite_log_density(synthetic_ensemble):
    """A thousand standard deviations away, where densities underflow."""
    ensemble = synthetic_ensemble(likelihood=Gaussian(0.1))
    model, x = BayesianMLP.from_ensemble(ensemble), make_rows(3, 2, 1)[0]
    assert np.isfinite(model.evaluate(x, np.full(3, 1e3))["log_predictive_density"])
