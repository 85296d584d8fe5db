"""The posterior of the inputs' prior scales, of draws with known ones."""

import json
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import synthetic_ensemble
from tests.support.coded import FRAME, TARGETS, coded_ensemble
from tfbnn.likelihoods import Bernoulli
from tfbnn.priors import ARD, HierarchicalNormal, Normal

LOCATIONS, SPREADS = np.array([0.0, -3.0, 1.0]), np.array([0.5, 0.1, 0.2])
NAMES = ("mass", "angle", "charge")


def model_with(log_scales, **settings):
    """A model whose draws have these log scales of three inputs [C, S, 3]."""
    ensemble = synthetic_ensemble(
        (3, 4, 1),
        prior=[{"kernel": ARD(), "bias": HierarchicalNormal()}, Normal()],
        num_chains=len(log_scales),
        num_results=log_scales.shape[1],
        **settings,
    )
    draws = ensemble.draws.copy()
    # Behind 4 * 3 + 4 and 4 + 1 weights and a noise scale, before the scale of the bias.
    draws[..., 22:25] = log_scales
    return tfbnn.BayesianMLP.from_ensemble(replace(ensemble, draws=draws))


@pytest.fixture
def log_scales():
    return np.random.default_rng(0).normal(LOCATIONS, SPREADS, size=(2, 4000, 3))


@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_quantiles_are_those_of_the_scales(log_scales, parameterization):
    found = model_with(log_scales, parameterization=parameterization).relevance()
    # 16 and 84 % of a normal are .994 standard deviations from its median; five standard errors.
    for values, sigmas in ((found.median, 0.0), (found.lower, -0.9945), (found.upper, 0.9945)):
        expected = LOCATIONS + sigmas * SPREADS
        np.testing.assert_array_less(np.abs(np.log(values) - expected), 0.09 * SPREADS)


def test_chains_count_by_their_weights(log_scales):
    log_scales[1] += 5.0
    alone = model_with(log_scales[:1]).relevance()
    both = model_with(log_scales).relevance()
    weighted = model_with(log_scales, chain_weights=[1.0, 0.0]).relevance()
    np.testing.assert_allclose(weighted.median, alone.median, rtol=1e-12)
    np.testing.assert_allclose(weighted.upper, alone.upper, rtol=1e-12)
    assert np.all(both.upper > 10 * alone.upper)


def test_inputs_are_named_in_their_order_and_a_file_keeps_all(log_scales, tmp_path):
    model = model_with(log_scales, feature_names=NAMES, dtype="float32")
    model.save(tmp_path / "model.h5")
    before, after = model.relevance(), tfbnn.load(tmp_path / "model.h5").relevance()
    for name in ("median", "lower", "upper"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert after.names == NAMES
    header, *lines = str(after).splitlines()
    assert header.split() == ["input", "scale", "16", "%", "84", "%"]
    assert [line.split()[0] for line in lines] == list(NAMES)
    numbers = np.array([line.split()[1:] for line in lines], float)
    np.testing.assert_allclose(
        numbers, np.stack([after.median, after.lower, after.upper], axis=1), rtol=5e-3
    )
    assert model_with(log_scales).relevance().names == ("column 0", "column 1", "column 2")


def test_unlike_inputs_are_told_apart_from_standardised_ones(log_scales):
    assert model_with(log_scales).relevance().standardized
    raw = model_with(log_scales, x_transform=None).relevance()
    assert not raw.standardized and "not standardised" in str(raw).splitlines()[-1]


def test_a_model_without_scales_says_how_to_get_them(fitted):
    with pytest.raises(ValueError, match=r"with Normal .*Leave prior out, .*\[\{'kernel': ARD\(\)"):
        fitted.relevance()
    hierarchical = synthetic_ensemble(prior=HierarchicalNormal())
    with pytest.raises(ValueError, match="with HierarchicalNormal on the first kernel"):
        tfbnn.BayesianMLP.from_ensemble(hierarchical).relevance()


@pytest.fixture
def folder(tmp_path, log_scales, fitted):
    model_with(log_scales, feature_names=NAMES).save(tmp_path / "ard.h5")
    fitted.save(tmp_path / "plain.h5")
    return tmp_path


def test_info_shows_it(run, folder, log_scales):
    found = tfbnn.load(folder / "ard.h5").relevance()
    _, out, _ = run("info ard.h5")
    lines = [line.split() for line in out.splitlines() if line.startswith("Relevance")]
    assert [line[1] for line in lines] == ["mass:", "angle:", "charge:"]
    assert [line[2] for line in lines] == [f"{value:.3g}" for value in found.median]
    said = json.loads(run("info ard.h5 --json")[1])["relevance"]
    assert said["names"] == list(NAMES) and said["median"] == found.median.tolist()
    assert said["lower"] == found.lower.tolist() and said["upper"] == found.upper.tolist()
    assert "Relevance" not in run("info plain.h5")[1]
    assert json.loads(run("info plain.h5 --json")[1])["relevance"] is None


def test_importance_is_the_loss_of_rows_with_a_column_out_of_order():
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble((3, 4, 1), feature_names=NAMES))
    x = np.random.default_rng(2).normal(size=(60, 3))
    y = model.predict(x).mean
    found, again = model.importance(x, y, seed=3), model.importance(x, y, seed=3)
    np.testing.assert_array_equal(found.loss, again.loss)
    intact = model.evaluate(x, y)["log_predictive_density_transformed"]
    assert found.log_predictive_density == pytest.approx(intact)
    order = np.random.default_rng(3).permutation(60)
    mixed = x.copy()
    mixed[:, 1] = x[order, 1]
    one = model.importance(x, y, num_repeats=1, seed=3)
    expected = intact - model.evaluate(mixed, y)["log_predictive_density_transformed"]
    assert one.loss[1] == pytest.approx(expected)
    assert found.names == NAMES and found.loss.shape == found.stddev.shape == (3,)
    lines = repr(found).splitlines()
    assert lines[1].startswith(NAMES[int(np.argmax(found.loss))])


def test_an_input_that_says_nothing_loses_nothing():
    """Check a model of classes whose first kernel has no weights of the last input."""
    ensemble = synthetic_ensemble((3, 4, 1), likelihood=Bernoulli(), classes=("no", "yes"))
    draws = ensemble.draws.copy()
    draws[..., 8:12] = 0.0
    model = tfbnn.BayesianMLP.from_ensemble(replace(ensemble, draws=draws))
    x = np.random.default_rng(2).normal(size=(60, 3))
    found = model.importance(x, model.predict_classes(x))
    assert found.loss[2] == 0.0 and np.all(found.loss[:2] != 0.0)


def test_columns_of_text_change_places_as_a_whole():
    found = tfbnn.BayesianMLP.from_ensemble(coded_ensemble()).importance(FRAME, TARGETS)
    assert found.names == tuple(FRAME.columns)
