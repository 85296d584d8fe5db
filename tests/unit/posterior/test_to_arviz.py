"""Draws under names, and what they say of rows."""

import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import synthetic_ensemble
from tests.support.predictions import (
    ARD_FIRST,
    CONFIGURATIONS,
    LOG,
    REGRESSIONS,
    rows_for,
    with_readouts,
)
from tfbnn.likelihoods import Bernoulli, Categorical, HeteroscedasticGaussian
from tfbnn.posterior.provenance import Provenance
from tfbnn.priors import HierarchicalNormal
from tfbnn.spec.rows import MOST_DIGESTS, prepare_rows, row_digests

ARD = {"prior": [ARD_FIRST, HierarchicalNormal()], "parameterization": "ntk"}
NAMED = {
    "feature_names": ("mass", "mix"),
    "provenance": {"target_names": ["width"], "kernel": "HMC()", "seed": 3, "versions": {"a": "1"}},
}
CLASSES = {
    "two labels": {"likelihood": Bernoulli(), "classes": ("no", "yes"), "vector_target": True},
    "two targets": {"likelihood": Bernoulli(), "layer_sizes": (2, 4, 2)},
    "three classes": {
        "likelihood": Categorical(),
        "layer_sizes": (2, 4, 3),
        "classes": ("a", "b", "c"),
    },
}


@pytest.fixture(scope="module", autouse=True)
def arviz():
    return pytest.importorskip("arviz")


def rows_of(ensemble, num_rows=12):
    x, y = rows_for(ensemble, num_rows)
    if ensemble.spec.has_classes:
        count = len(ensemble.classes)
        shape = (num_rows, ensemble.spec.num_targets)
        y = np.array(ensemble.classes)[np.random.default_rng(2).integers(count, size=shape)]
    return x, y


def test_layers_and_scales_have_names_and_coordinates():
    ensemble = synthetic_ensemble((2, 3, 1), **ARD, **NAMED)
    posterior = ensemble.to_arviz()["posterior"]
    layout, draws = ensemble.spec.layout, ensemble.draws
    assert posterior["dense_1_kernel"].dims == ("chain", "draw", "feature", "dense_1_unit")
    assert posterior["dense_2_kernel"].dims == ("chain", "draw", "dense_1_unit", "target")
    (kernel, _), (_, bias) = layout.kernels_and_biases(draws)
    np.testing.assert_array_equal(posterior["dense_1_kernel"].sel(feature="mix"), kernel[:, :, 1])
    np.testing.assert_array_equal(posterior["dense_2_bias"].sel(target="width"), bias[..., 0])
    # Scales are positive, and one of them per input where ARD has it.
    span = layout.layers[0].kernel.scales
    mass = posterior["dense_1_kernel_scale"].sel(feature="mass")
    np.testing.assert_allclose(mass, np.exp(draws[..., span.start]))
    assert posterior["dense_2_bias_scale"].dims == ("chain", "draw")
    noise = np.exp(draws[..., layout.log_noise_scale])
    np.testing.assert_allclose(posterior["noise_scale"], noise)


def test_theta_is_there_as_it_was_sampled_and_says_what_each_entry_is():
    ensemble = synthetic_ensemble((2, 3, 1), **ARD, **NAMED)
    theta = ensemble.to_arviz()["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "param")
    np.testing.assert_array_equal(theta, ensemble.draws)
    assert np.shares_memory(theta.values, ensemble.draws)
    names = theta["param"].values.tolist()
    assert names[0] == "dense_1_kernel[mass, 0]" and names[9] == "dense_2_kernel[0, width]"
    start = ensemble.spec.layout.num_weights
    assert names[start : start + 3] == [
        "log noise_scale[width]",
        "log dense_1_kernel_scale[mass]",
        "log dense_1_kernel_scale[mix]",
    ]
    assert len(set(names)) == ensemble.spec.layout.num_parameters


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_every_parameter_is_in_one_variable(settings):
    ensemble = synthetic_ensemble(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of weighted chains
        posterior = ensemble.to_arviz()["posterior"]
    named = [posterior[name] for name in posterior.data_vars if name != "theta"]
    count = sum(np.prod(one.shape[2:], dtype=int) for one in named)
    assert count == ensemble.spec.layout.num_parameters == posterior.sizes["param"]


def test_the_outputs_of_classes_and_of_noise_have_names():
    ensemble = synthetic_ensemble(**CLASSES["three classes"])
    posterior = ensemble.to_arviz()["posterior"]
    assert posterior["class"].values.tolist() == ["a", "b", "c"]
    assert posterior["dense_2_bias"].dims[2:] == ("class",)
    ensemble = synthetic_ensemble((2, 3, 4), likelihood=HeteroscedasticGaussian())
    bias = ensemble.to_arviz()["posterior"]["dense_2_bias"]
    assert bias["output"].values.tolist() == ["y1", "y2", "output 3", "output 4"]


@pytest.mark.parametrize("settings", REGRESSIONS.values(), ids=REGRESSIONS)
def test_what_draws_say_of_rows_is_what_the_model_says(settings):
    ensemble = synthetic_ensemble(**settings, num_results=400)
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    x, y = rows_of(ensemble)
    data = ensemble.to_arviz(x, y)
    draws = model.predict_draws(x).reshape(2, 400, 12, -1)
    f = data["posterior"]["f"]
    np.testing.assert_allclose(f.values.reshape(draws.shape), draws, rtol=1e-6)
    # Of the mixture of all draws the density is what `evaluate` scores, in original units.
    log_likelihood = data["log_likelihood"]["y"]
    assert log_likelihood.dims == ("chain", "draw", "row")
    values = log_likelihood.values.reshape(800, 12)
    score = np.mean(np.logaddexp.reduce(values, axis=0) - np.log(800))
    expected = model.evaluate(x, y, calibrated=False)["log_predictive_density"]
    assert score == pytest.approx(expected, rel=1e-6)
    observed = data["observed_data"]["y"]
    assert observed.dims == (("row",) if y.shape[1] == 1 else ("row", "target"))
    np.testing.assert_array_equal(observed.values.reshape(y.shape), y)
    np.testing.assert_array_equal(data["constant_data"]["x"], x)
    drawn = data["posterior_predictive"]["y"].values.reshape(800, *y.shape)
    levels = [0.1, 0.5, 0.9]
    quantiles = model.predict(x, include_noise=True, quantiles=levels).columns.quantiles
    shares = (drawn[None] < quantiles[:, None]).mean(axis=1)
    # Five standard deviations of a share of 800, and those of what sixteen others have found.
    assert np.abs(shares - np.reshape(levels, (3, 1, 1))).max() < 5 * 0.5 / np.sqrt(800)


@pytest.mark.parametrize("settings", CLASSES.values(), ids=CLASSES)
def test_classes_are_drawn_with_their_probabilities(settings):
    ensemble = synthetic_ensemble(**settings, num_results=400)
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    x, y = rows_of(ensemble)
    data = ensemble.to_arviz(x, y)
    mean = model.predict(x).columns.mean
    probability = data["posterior"]["probability"]
    np.testing.assert_allclose(probability.mean(("chain", "draw")), np.squeeze(mean), rtol=1e-6)
    drawn = data["posterior_predictive"]["y"].values.reshape(800, 12, -1)
    numbers = np.arange(3) if mean.shape[1] == 3 else 1
    shares = (drawn == numbers).mean(axis=0)
    assert drawn.dtype.kind == "i" and np.abs(shares - mean).max() < 5 * 0.5 / np.sqrt(800)
    values = data["log_likelihood"]["y"].values.reshape(800, 12)
    score = np.mean(np.logaddexp.reduce(values, axis=0) - np.log(800))
    assert score == pytest.approx(model.evaluate(x, y)["log_predictive_density"])
    observed = data["observed_data"]
    labels = np.array(observed.attrs["classes"])[observed["y"].values.reshape(12, -1)]
    np.testing.assert_array_equal(labels, y.astype(str))


def test_known_noise_of_rows_is_asked_for_and_used():
    ensemble = synthetic_ensemble(row_noise=True, y_transform=LOG, num_results=400)
    x, y = rows_of(ensemble)
    with pytest.raises(ValueError, match="to_arviz of rows needs noise_scale"):
        ensemble.to_arviz(x)
    noise = np.full(12, 2.5)
    data = ensemble.to_arviz(x, y, noise_scale=noise)
    np.testing.assert_array_equal(data["constant_data"]["noise_scale"], noise)
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    wanted = dict(include_noise=True, quantiles=[0.2], noise_scale=noise)
    quantile = model.predict(x, **wanted).columns.quantiles[0, :, 0]
    drawn = data["posterior_predictive"]["y"].values.reshape(800, 12)
    assert np.abs((drawn < quantile).mean(axis=0) - 0.2).max() < 5 * 0.4 / np.sqrt(800)


def test_noise_depends_on_the_seed_and_the_place_of_a_row_alone(monkeypatch):
    ensemble = synthetic_ensemble()
    x, y = rows_of(ensemble)
    whole = ensemble.to_arviz(x, y)["posterior_predictive"]["y"].values
    some = ensemble.to_arviz(x[:5], y[:5])["posterior_predictive"]["y"].values
    np.testing.assert_allclose(some, whole[..., :5], rtol=1e-12)
    monkeypatch.setattr("tfbnn.posterior.prediction._TILE_ROWS", (1, 1))
    tiled = ensemble.to_arviz(x, y)["posterior_predictive"]["y"].values
    np.testing.assert_allclose(tiled, whole, rtol=1e-12)
    other = ensemble.to_arviz(x, y, seed=1)["posterior_predictive"]["y"].values
    assert not np.isclose(other, whole).any()


def test_rows_without_targets_are_predictions():
    ensemble = synthetic_ensemble(**NAMED)
    x, y = rows_of(ensemble)
    data = ensemble.to_arviz(x)
    given = ensemble.to_arviz(x, y)["posterior_predictive"]["y"]
    np.testing.assert_array_equal(data["predictions"]["y"], given)
    assert given.attrs["description"] == "width: original units"
    constants = data["predictions_constant_data"]["x"]
    np.testing.assert_array_equal(constants.sel(feature="mass"), x[:, 0])
    assert "f" in data["posterior"] and "observed_data" not in data


def test_attributes_say_where_draws_come_from():
    ensemble = synthetic_ensemble(**NAMED)
    attributes = ensemble.to_arviz()["posterior"].attrs
    assert attributes["inference_library"] == "tfbnn"
    assert attributes["inference_library_version"] == tfbnn.__version__
    assert (attributes["kernel"], attributes["seed"]) == ("HMC()", 3)
    assert json.loads(attributes["versions"]) == {"a": "1"}
    assert json.loads(attributes["model"]) == ensemble.spec.to_json()
    assert attributes["warmup"] == "its draws are not kept" and "bias" not in attributes
    coarse = replace(ensemble, spec=replace(ensemble.spec, likelihood_power=0.5))
    assert "coarsened posterior" in coarse.to_arviz()["posterior"].attrs["coarsened"]


def test_new_observations_are_not_calibrated_and_say_so():
    calibrated = replace(synthetic_ensemble(), calibration=SimpleNamespace(in_short="by 9 rows"))
    data = calibrated.to_arviz(rows_of(calibrated)[0])
    assert data["predictions"].attrs["calibrated"].startswith("no, but predict")
    assert data["posterior"].attrs["calibration"] == "by 9 rows"


def test_draws_of_collapsed_readouts_are_networks_like_others():
    ensemble = with_readouts(synthetic_ensemble())
    x, y = rows_of(ensemble)
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    f = ensemble.to_arviz(x, y)["posterior"]["f"].values.reshape(30, 12)
    np.testing.assert_allclose(f, model.predict_draws(x)[..., 0], rtol=1e-6)


class TestRefusals:
    def test_rows_that_the_fit_has_not_seen_are_said(self):
        ensemble = synthetic_ensemble()
        x, y = rows_of(ensemble)
        seen = row_digests(prepare_rows(ensemble.spec, x[:7], y[:7], None))
        with pytest.warns(UserWarning, match="5 of 12 rows took no part in the fit"):
            replace(ensemble, row_digests=seen).to_arviz(x, y)

    def test_nothing_is_said_of_rows_that_no_digest_decides(self):
        """Only the smallest digests of very many rows are kept."""
        ensemble = synthetic_ensemble()
        smallest = np.arange(MOST_DIGESTS, dtype=np.uint32)
        replace(ensemble, row_digests=smallest).to_arviz(*rows_of(ensemble))

    @pytest.mark.parametrize("what", ["coarsened", "not sampled"])
    def test_no_density_where_leaving_out_would_be_wrong(self, what):
        ensemble = synthetic_ensemble()
        if what == "coarsened":
            ensemble = replace(ensemble, spec=replace(ensemble.spec, likelihood_power=0.5))
        else:
            ensemble = replace(ensemble, provenance=Provenance().stating(not_sampled="fit_map"))
        with pytest.warns(UserWarning, match="log_likelihood is left out, as az.loo needs"):
            data = ensemble.to_arviz(*rows_of(ensemble))
        assert "log_likelihood" not in data and "observed_data" in data

    def test_weights_that_arviz_does_not_know_are_said(self):
        ensemble = synthetic_ensemble(chain_weights=[0.9, 0.1])
        with pytest.warns(UserWarning, match="ArviZ gives all chains the same weight"):
            data = ensemble.to_arviz()
        assert list(data["posterior"].attrs["chain_weights"]) == [0.9, 0.1]

    def test_more_than_memory_can_hold_is_refused(self, monkeypatch):
        monkeypatch.setattr("tfbnn.posterior.checks._MOST_BYTES", 8e3)
        ensemble = synthetic_ensemble()
        x, y = rows_of(ensemble)
        ensemble.to_arviz(x[:11], y[:11])
        with pytest.raises(ValueError, match="30 draws at 12 rows"):
            ensemble.to_arviz(x, y)

    def test_half_of_the_rows_are_refused(self):
        ensemble = synthetic_ensemble()
        x, y = rows_of(ensemble)
        with pytest.raises(ValueError, match="y belongs to rows, received x=None"):
            ensemble.to_arviz(y=y)
        with pytest.raises(ValueError, match="noise_scale belongs to rows"):
            ensemble.to_arviz(noise_scale=y)
        with pytest.raises(ValueError, match="seed"):
            ensemble.to_arviz(x, y, seed=-1)
