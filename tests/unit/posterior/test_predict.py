"""Predictions against a plain loop over networks, exact mixtures and Monte Carlo."""

import warnings
from dataclasses import replace

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tfbnn.posterior.prediction as predict_module
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.predictions import LOG, assert_same, each_configuration, rows_for
from tfbnn import BayesianMLP, NotFittedError
from tfbnn.data.transforms import Pipeline, Standardize
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.posterior.averages import weighted_quantiles
from tfbnn.priors import ARD, HierarchicalNormal, Normal
from tfbnn.spec.activations import ACTIVATIONS

PROBABILITIES = [0.02275, 0.16, 0.5, 0.84, 0.97725]


def made(*layers, num_rows=7, **settings):
    """(Ensemble, model, x, y)."""
    ensemble = synthetic_ensemble(*layers, **settings)
    return ensemble, BayesianMLP.from_ensemble(ensemble), *rows_for(ensemble, num_rows)


def naive_outputs(ensemble, theta, x):
    """One network at one row, in float64: the outputs of the last layer."""
    spec, position = ensemble.spec, 0
    scales = {}
    scale_position = spec.layout.num_weights + spec.layout.num_noise
    for number, prior in enumerate(spec.priors):
        for part in ("kernel", "bias"):
            if isinstance(getattr(prior, part), HierarchicalNormal):
                per_input = isinstance(getattr(prior, part), ARD)
                count = spec.layer_sizes[number] if per_input else 1
                found = np.exp(theta[scale_position : scale_position + count])
                scales[number, part] = (
                    found if per_input else np.repeat(found, max(spec.layer_sizes))
                )
                scale_position += count
            elif spec.is_ntk:
                scale = getattr(prior, part).scale
                scales[number, part] = np.repeat(scale, max(spec.layer_sizes))
    hidden = x
    for step in ensemble.x_pipeline.steps:
        hidden = step.forward(hidden)
    sizes = spec.layer_sizes
    for number, (num_inputs, num_outputs) in enumerate(zip(sizes[:-1], sizes[1:])):
        following = np.zeros(num_outputs)
        for i in range(num_inputs):
            for j in range(num_outputs):
                weight = theta[position + i * num_outputs + j]
                if spec.is_ntk:
                    weight = weight * scales[number, "kernel"][i] / num_inputs**0.5
                following[j] += hidden[i] * weight
        position += num_inputs * num_outputs
        for j in range(num_outputs):
            bias = theta[position + j]
            following[j] += bias * scales[number, "bias"][j] if spec.is_ntk else bias
        position += num_outputs
        last = number == len(sizes) - 2
        hidden = following if last else ACTIVATIONS[spec.activations[number]].numpy(following)
    return hidden


def naive_mixture(ensemble, x, row_noise=None):
    """Transformed location and noise scale of every draw, [C * S, N, K] each, and the weights."""
    spec, locations, scales = ensemble.spec, [], []
    learned = slice(spec.layout.num_weights, spec.layout.num_weights + spec.layout.num_noise)
    for theta in ensemble.draws.astype(np.float64).reshape(ensemble.num_draws, -1):
        outputs = np.array([naive_outputs(ensemble, theta, row) for row in x])
        count = spec.num_targets
        known = None
        if row_noise is not None:
            original = ensemble.y_pipeline.inverse(outputs[:, :count])
            known = row_noise * ensemble.y_pipeline.derivative(original)
        if isinstance(spec.likelihood, HeteroscedasticGaussian):
            scale = np.log1p(np.exp(outputs[:, count:]))
        elif spec.layout.num_noise:
            scale = np.exp(theta[learned]) + np.zeros((len(x), count))
        else:
            scale = np.broadcast_to(spec.likelihood.noise_scale, (len(x), count))
            scale = scale if known is None else np.zeros_like(known)
        locations.append(outputs[:, :count])
        scales.append(scale if known is None else np.sqrt(scale**2 + known**2))
    weights = np.repeat(ensemble.chain_weights, ensemble.num_results) / ensemble.num_results
    return np.array(locations), np.array(scales), weights


def average(values, weights):
    mean = sum(w * v for w, v in zip(weights, values))
    return mean, np.sqrt(sum(w * (v - mean) ** 2 for w, v in zip(weights, values)))


def mixture_cdf(ensemble, locations, scales, weights, t):
    """Cumulative distribution in transformed space at t [N, K]."""
    likelihood = ensemble.spec.likelihood
    if isinstance(likelihood, StudentT):
        spread = scales * np.sqrt((likelihood.df - 2) / likelihood.df)
        values = stats.t.cdf((t - locations) / spread, likelihood.df)
    else:
        values = stats.norm.cdf((t - locations) / scales)
    return np.tensordot(weights, values, 1)


@each_configuration
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 2e-5)])
def test_moments_of_the_function_agree_with_a_loop(configuration, dtype, rtol):
    ensemble, model, x, y = made(dtype=dtype, **configuration)
    locations, _, weights = naive_mixture(ensemble, x)
    for space, values in (
        ("transformed", locations),
        ("original", ensemble.y_pipeline.inverse(locations)),
    ):
        mean, stddev = model.predict(x, space=space)
        expected_mean, expected_stddev = average(values, weights)
        # float32 rounds an output at 1e-7 of the sum of its terms, 10 times that in an exponent.
        size = np.abs(values).max(axis=0)
        assert mean.shape == stddev.shape == (7, ensemble.spec.num_targets)
        assert np.all(np.abs(mean - expected_mean) <= rtol * size)
        assert np.all(np.abs(stddev - expected_stddev) <= rtol * size)
        draws = model.predict_draws(x, space=space)
        assert draws.shape == values.shape
        np.testing.assert_allclose(draws, values, rtol=rtol, atol=rtol * size.max())


def test_draws_that_take_too_much_memory_are_refused(monkeypatch):
    _, model, x, _ = made((2, 5, 1))
    monkeypatch.setattr("tfbnn.posterior.checks._MOST_BYTES", 100)
    with pytest.raises(ValueError, match="Pass some of the rows"):
        model.predict_draws(x)


@pytest.mark.parametrize("space", ["original", "transformed"])
def test_quantiles_of_the_function_are_those_of_numpy(space):
    ensemble, model, x, y = made((2, 5, 2), y_transform=LOG)
    found = model.predict(x, quantiles=PROBABILITIES, space=space).quantiles
    draws = model.predict_draws(x, space=space)
    expected = np.quantile(draws, PROBABILITIES, axis=0, method="hazen")
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    one = model.predict(x, quantiles=PROBABILITIES[1], space=space).quantiles
    np.testing.assert_array_equal(one, found[1:2])
    assert model.predict(x).quantiles is None


def test_weighted_quantiles_do_not_depend_on_how_weight_is_written():
    values = np.array([[3.0], [1.0], [2.0], [5.0]])
    doubled = np.repeat(values, 50, axis=0)
    weights = np.array([0.1, 0.4, 0.3, 0.2])
    found = weighted_quantiles(doubled, np.repeat(weights, 50) / 50, PROBABILITIES)
    # Sorted 1, 2, 3, 5 with cumulated weights 0.4, 0.7, 0.8, 1.
    np.testing.assert_array_equal(found[:, 0], [1.0, 1.0, 2.0, 5.0, 5.0])


@each_configuration
@pytest.mark.parametrize("with_row_noise", [False, True])
def test_quantiles_and_moments_with_noise_are_those_of_the_mixture(configuration, with_row_noise):
    ensemble, model, x, y = made(**configuration)
    row_noise = 0.2 * y if with_row_noise else None
    mixture = naive_mixture(ensemble, x, row_noise)
    original, found = (
        model.predict(
            x, include_noise=True, quantiles=PROBABILITIES, space=space, noise_scale=row_noise
        )
        for space in ("original", "transformed")
    )
    for t in (ensemble.y_pipeline.forward(original.quantiles), found.quantiles):
        assert t.shape == (5, 7, ensemble.spec.num_targets)
        reached = np.array([mixture_cdf(ensemble, *mixture, level) for level in t])
        # 4096 stratified points put the error of a probability below a few parts in 4096.
        expected = np.broadcast_to(np.array(PROBABILITIES)[:, None, None], reached.shape)
        np.testing.assert_allclose(reached, expected, atol=2e-3)
    for level in (1e-5, 0.00135):  # beyond .02 they are exact
        tail = model.predict(x, include_noise=True, quantiles=[level], noise_scale=row_noise)
        t = ensemble.y_pipeline.forward(tail.quantiles[0].reshape(len(x), -1))
        np.testing.assert_allclose(mixture_cdf(ensemble, *mixture, t), level, rtol=1e-3)
    locations, scales, weights = mixture
    mean, stddev = average(locations, weights)
    total = np.sqrt(stddev**2 + np.tensordot(weights, scales**2, 1))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.stddev, total, rtol=1e-10)
    if ensemble.y_pipeline.is_affine:
        unit = 1.0 / ensemble.y_pipeline.derivative(found.mean)
        np.testing.assert_allclose(original.mean, ensemble.y_pipeline.inverse(mean), rtol=1e-11)
        np.testing.assert_allclose(original.stddev, unit * total, rtol=1e-10)


def test_noise_is_exact_for_targets_far_from_zero():
    """Mean 1e6 and spread 1e-3: differences of predictions would cancel."""
    ensemble = synthetic_ensemble(num_chains=1, num_results=1, likelihood=Gaussian(0.3))
    far = Pipeline((Standardize((1e6,), (1e-3,)),))
    model = BayesianMLP.from_ensemble(replace(ensemble, y_pipeline=far))
    stddev = model.predict(rows_for(ensemble)[0], include_noise=True).stddev
    np.testing.assert_allclose(stddev, 0.3e-3, rtol=1e-10)


@pytest.mark.parametrize(
    "settings",
    [{}, {"likelihood": Gaussian(0.3)}, {"likelihood": Gaussian(0.3), "chain_weights": [0.9, 0.1]}],
    ids=["learned", "fixed", "unequal weights"],
)
def test_moments_under_the_logarithm_agree_with_the_lognormal_formula(settings):
    ensemble, model, x, y = made(y_transform=LOG, **settings)
    locations, scales, weights = naive_mixture(ensemble, x)
    (standardize,) = ensemble.y_pipeline.steps[1:]
    location = np.log(10) * standardize.inverse(locations)
    variance = (np.log(10) * standardize.scale[0] * scales) ** 2
    first = np.tensordot(weights, np.exp(location + variance / 2), 1)
    second = np.tensordot(weights, np.exp(2 * location + 2 * variance), 1)
    found = model.predict(x, include_noise=True)
    np.testing.assert_allclose(found.mean, first, rtol=1e-11)
    # The points leave out the last 1 / 4096 of the tails, 1 % of a variance.
    np.testing.assert_allclose(found.stddev, np.sqrt(second - first**2), rtol=1e-2)


def test_student_t_noise_has_no_moments_under_the_logarithm_but_quantiles():
    ensemble, model, x, y = made(y_transform=LOG, likelihood=StudentT(4.0, 0.2))
    found = model.predict(x, include_noise=True, quantiles=PROBABILITIES)
    assert np.all(found.mean == np.inf) and np.all(found.stddev == np.inf)
    assert np.isfinite(found.quantiles).all() and np.all(np.diff(found.quantiles, axis=0) > 0)
    assert np.isfinite(model.predict(x).mean).all()


PREDICTIONS = {
    "function": {"quantiles": [0.1, 0.9]},
    "noise": {"include_noise": True, "quantiles": [0.1, 0.9]},
    "transformed": {"space": "transformed"},
}
each_prediction = pytest.mark.parametrize("settings", PREDICTIONS.values(), ids=PREDICTIONS)


@each_prediction
@pytest.mark.parametrize("values", [1, 30_000, 200_000])
def test_size_of_tiles_does_not_matter(single, settings, values, monkeypatch):
    model, x = single
    whole, draws = model.predict(x, **settings), model.predict_draws(x)
    monkeypatch.setattr(predict_module, "_TILE_VALUES", values)
    monkeypatch.setattr("tfbnn.posterior.forward._HIDDEN_VALUES", values // 50)
    monkeypatch.setattr(predict_module, "_LEAST_PASSES", 2)
    assert len(predict_module.row_tiles(model.posterior, len(x))) > 2
    assert_same(model.predict(x, **settings), whole, rtol=1e-6)
    np.testing.assert_allclose(model.predict_draws(x), draws, rtol=1e-4, atol=1e-6 * draws.max())


@pytest.mark.parametrize("num_results", [1, 2, 3])
def test_few_draws_are_enough_for_noise(num_results):
    ensemble, model, x, y = made(num_chains=1, num_results=num_results, likelihood=Gaussian(0.5))
    found = model.predict(x, include_noise=True, quantiles=[0.1, 0.9])
    mixture = naive_mixture(ensemble, x)
    reached = mixture_cdf(ensemble, *mixture, ensemble.y_pipeline.forward(found.quantiles[1]))
    np.testing.assert_allclose(reached, 0.9, atol=1e-3)  # 4096 points, see above


def test_more_draws_than_noise_points():
    ensemble, model, x, y = made((2, 2, 1), num_results=3000, likelihood=Gaussian(0.5), num_rows=2)
    found = model.predict(x, include_noise=True, quantiles=[0.1, 0.9], space="transformed")
    draws = model.predict_draws(x, space="transformed")
    reached = stats.norm.cdf((found.quantiles[:, None] - draws) / 0.5).mean(axis=1)
    # One noise level per draw, in a low-discrepancy order: errors of order log(6000) / 6000.
    np.testing.assert_allclose(reached[..., 0], [[0.1] * 2, [0.9] * 2], atol=5e-3)


@pytest.mark.parametrize("kind", ["predict", "predict_draws"])
def test_infinite_predictions_are_quiet(kind):
    ensemble = synthetic_ensemble((1, 1), x_transform=None, y_transform="log10")
    model = BayesianMLP.from_ensemble(ensemble)
    result = getattr(model, kind)([[1e5]])  # NumPy's warnings are errors in these tests
    largest = result.mean if kind == "predict" else result.max()
    assert largest == np.inf


def test_a_stopped_run_predicts_with_one_warning_that_counts():
    ensemble, model, x, y = made(num_results=15, provenance={"num_results_requested": 1000})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prediction = model.predict(x)
    assert np.isfinite(prediction.mean).all()
    assert ["15 of 1000 draws" in str(entry.message) for entry in caught] == [True]
    assert caught[0].filename == __file__


USES = {
    "predict": lambda model, x: model.predict(x),
    "predict_draws": lambda model, x: model.predict_draws(x),
    "evaluate": lambda model, x: model.evaluate(x, x[:, :1]),
    "diagnose": lambda model, x: model.diagnose(),
    "diagnose at x": lambda model, x: model.diagnose(x),
    "posterior": lambda model, x: model.posterior,
    "save": lambda model, x: model.save("never.h5"),
    "log_prob": lambda model, x: model.log_prob(np.zeros(18), x, x[:, :1]),
    "stack_chains": lambda model, x: model.stack_chains(x, x[:, :1]),
    "relevance": lambda model, x: model.relevance(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_everything_before_a_fit_says_so(use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFittedError, match="fit_posterior"):
        use(BayesianMLP([2, 4, 1], prior=Normal(1.0)), np.ones((3, 2)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["array", "frame", "h5py"])
def test_batches_are_read_and_checked_one_after_the_other(kind, tmp_path):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(feature_names=("a", "b")))
    x = make_rows(23, 2, 1)[0]
    settings = {"include_noise": True, "quantiles": [0.1, 0.9], "return_trust": True}
    noise, whole = np.linspace(0.1, 1.0, 23), None
    given = pd.DataFrame(x, columns=["a", "b"], index=np.arange(23) + 5) if kind == "frame" else x
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if kind == "h5py":
            given = file.create_dataset("x", data=x)
        found = model.predict(given, noise_scale=noise, batch_size=10, **settings)
    whole = model.predict(x, noise_scale=noise, **settings)
    for name in ("mean", "stddev", "quantiles", "trust"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-5)
    if kind == "frame":
        assert list(found.to_frame().index) == list(given.index)
    with pytest.raises(ValueError, match="noise_scale must have shape"):
        model.predict(x, noise_scale=noise[:22], batch_size=10, **settings)


def test_a_bad_row_of_a_later_batch_is_named_by_its_number():
    x = make_rows(23, 2, 1)[0]
    x[17, 1] = np.nan
    with pytest.raises(ValueError, match="in row 17, column 1"):
        BayesianMLP.from_ensemble(synthetic_ensemble()).predict(x, batch_size=10)
