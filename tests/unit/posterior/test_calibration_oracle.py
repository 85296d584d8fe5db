"""Calibration against the packages crepes and MAPIE, on the same scores."""

import numpy as np

from tests.support.builders import synthetic_ensemble
from tfbnn import BayesianMLP
from tfbnn.posterior.calibration.score_distribution import ScoreDistribution


def residuals(count, seed=0):
    """(Residuals, their predicted deviations)."""
    generator = np.random.default_rng(seed)
    stddev = generator.uniform(0.5, 2.0, count)
    return stddev * generator.standard_t(4, size=count), stddev


def oracle(residual, stddev, **settings):
    from crepes import ConformalPredictiveSystem

    system = ConformalPredictiveSystem()
    system.fit(residual, sigmas=stddev, **settings)
    return system


def test_between_ranks_quantiles_and_probabilities_are_within_its_bounds():
    residual, stddev = residuals(199)
    system, found = oracle(residual, stddev), ScoreDistribution.of(residual / stddev)
    percent = np.linspace(1.1, 98.9, 60)
    both = {f"{side}_percentiles": percent.tolist() for side in ("lower", "higher")}
    (bounds,) = system.predict_percentiles(np.zeros(1), sigmas=np.ones(1), **both)
    low, high = np.split(bounds, 2)
    quantiles = found.quantile(percent / 100)
    assert np.all((low <= quantiles) & (quantiles <= high))
    scores = np.linspace(-2.0, 2.0, 41)
    most = system.predict_p(np.zeros(41), scores, sigmas=np.ones(41), smoothing=False)
    probability = found.probability(scores)
    assert np.all((probability <= most + 1e-12) & (probability >= most - 1 / 200 - 1e-12))


def test_predictions_in_groups_are_those_of_its_mondrian_bins():
    model = BayesianMLP.from_ensemble(synthetic_ensemble())
    inputs, generator = model.posterior.training_inputs, np.random.default_rng(2)
    scale = np.sqrt(np.diagonal(inputs.covariance))
    x = model.posterior.x_pipeline.inverse(
        inputs.mean + 0.4 * scale * generator.normal(size=(900, 2))
    )
    mean, stddev = model.predict(x, include_noise=True, space="transformed").columns
    target = mean + stddev * generator.standard_t(4, size=mean.shape)
    record = model.calibrate(x, model.posterior.y_pipeline.inverse(target), by="stddev")
    assert record.num_rows == 900 and len(record.groups) == 3
    assert "the middle third of the error bars" in record.summary()
    bins = np.digitize(stddev[:, 0], record.edges[:, 0])
    system = oracle((target - mean)[:, 0], stddev[:, 0], bins=bins)
    ranks = np.array([5, 48, 150, 253, 296])
    expected = system.predict_percentiles(
        mean[:, 0],
        sigmas=stddev[:, 0],
        bins=bins,
        lower_percentiles=(100.0 * (ranks / 301 + 1e-12)).tolist(),
    )
    found = model.predict(x, include_noise=True, quantiles=ranks / 301, space="transformed")
    np.testing.assert_allclose(found.columns.quantiles[:, :, 0].T, expected, rtol=1e-12, atol=1e-12)
