"""Fewer draws: how they are chosen, what is stated of the change, and what becomes of the model."""

import json
import runpy
import sys
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tfbnn.cli import main
from tfbnn.likelihoods import Categorical, HeteroscedasticGaussian
from tfbnn.posterior import compression
from tfbnn.posterior.compression import kernel_thinning, measure_change, prediction_kernel, stride
from tfbnn.posterior.provenance import Compression, Provenance

X, Y = make_rows(80, 2, 1, seed=5)


def equal(count):
    return np.full(count, 1.0 / count)


def discrepancy(gram, weights, chosen):
    """Squared distance of the kernel means, by its definition."""
    difference = -weights.copy()
    np.add.at(difference, chosen, 1.0 / len(chosen))
    return difference @ gram @ difference


@pytest.fixture(scope="module")
def model(synthetic_ensemble):
    """600 independent networks in two chains."""
    return tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(num_results=300))


@pytest.fixture(scope="module")
def small(model):
    return model.compress(60)


# Stride.


@pytest.mark.parametrize("count", [1, 3, 10, 20])
def test_stride_is_equally_spaced(count):
    chosen = stride(equal(20), count)
    middles = (np.arange(count) + 0.5) * 20 / count
    assert np.all(np.abs(chosen + 0.5 - middles) <= 0.5 + 1e-6)
    assert len(set(chosen)) == count


# Kernel thinning.


def test_kernel_of_predictions_in_words():
    """Its discrepancy is the squared difference of distribution functions and of variances."""
    values = np.random.default_rng(0).standard_t(3, size=(40, 3))
    chosen = np.array([3, 8, 8, 21, 30])
    found = discrepancy(prediction_kernel(values, equal(40)), equal(40), chosen)
    expected = []
    for column in values.T:
        column = (column - column.mean()) / column.std()
        edges = np.sort(column)
        below = [np.mean(part[:, None] <= edges[:-1], axis=0) for part in (column, column[chosen])]
        integral = np.sum((below[0] - below[1]) ** 2 * np.diff(edges))
        expected.append(integral + 0.1 * (1.0 - np.mean(column[chosen] ** 2)) ** 2)
    np.testing.assert_allclose(found, np.mean(expected), rtol=1e-10)


def test_columns_without_spread_play_no_role():
    values = np.random.default_rng(0).normal(size=(20, 2))
    padded = np.column_stack([values, np.full(20, 7.0)])
    np.testing.assert_allclose(
        prediction_kernel(padded, equal(20)), prediction_kernel(values, equal(20)), rtol=1e-12
    )


@pytest.mark.parametrize("weights", [equal(120), np.repeat([0.9, 0.1], 60) / 60])
def test_no_exchange_of_one_draw_helps(weights):
    gram = prediction_kernel(np.random.default_rng(2).normal(size=(120, 4)), weights)
    chosen = kernel_thinning(gram, weights, 12)
    best = discrepancy(gram, weights, chosen)
    assert best < discrepancy(gram, weights, stride(weights, 12))
    for index in range(12):
        for new in range(120):
            other = chosen.copy()
            other[index] = new
            assert discrepancy(gram, weights, other) > best - 1e-9


# The compressed model.


@pytest.mark.parametrize("method", ["kernel_thinning", "stride"])
def test_the_draws_come_with_their_statistics(model, method):
    full, small = model.posterior, model.compress(60, method).posterior
    assert small.draws.shape == (1, 60, full.draws.shape[2])
    assert small.chain_weights.tolist() == [1.0]
    flat = full.draws.reshape(600, -1)
    indices = [int(np.flatnonzero((flat == draw).all(axis=1))[0]) for draw in small.draws[0]]
    assert indices == sorted(indices)
    for name, values in full.sample_stats.items():
        np.testing.assert_array_equal(small.sample_stats[name], values.reshape(1, 600)[:, indices])
    counts = np.bincount(np.array(indices) // 300, minlength=2)
    assert small.provenance.compression.draws_per_chain == counts.tolist()
    assert model.compression is None and full.num_draws == 600


def test_the_statement_is_what_predictions_say(model, small):
    """At the last of every four reference inputs, which the choice has not seen."""
    x = model.posterior.x_reference[3::4]
    change = small.compression.change
    assert change["num_rows"] == len(x) and small.compression.num_inputs == 8
    old, new = (m.predict(x, quantiles=[0.16, 0.84]) for m in (model, small))
    ratio = new.stddev / old.stddev - 1.0
    shift = np.abs(new.mean - old.mean) / old.stddev
    shifts = np.abs(new.quantiles - old.quantiles) / old.stddev
    for name, values in {"stddev": np.abs(ratio), "mean": shift, "quantiles": shifts}.items():
        np.testing.assert_allclose(change[name]["average"], values.mean(), rtol=1e-10)
        np.testing.assert_allclose(change[name]["largest"], values.max(), rtol=1e-10)
    expected = new.stddev.mean() / old.stddev.mean() - 1.0
    np.testing.assert_allclose(change["mean_stddev"], expected, rtol=1e-10)
    text = small.compression.summary()
    assert "60 of 600 draws by kernel_thinning" in text
    assert f"{100 * change['stddev']['average']:.2f} % on average" in text


def test_given_inputs_choose_and_saved_ones_state(model):
    small = model.compress(60, x_reference=X)
    assert small.compression.num_inputs == 80
    x = model.posterior.x_pipeline.forward(model.posterior.x_reference)
    expected = measure_change(model.posterior, small.posterior, x)
    assert small.compression.change == expected


def test_saved_inputs_that_are_given_do_not_state_their_own_change(model):
    given = model.posterior.x_reference
    for more in (given[:0], X[:1]):
        record = model.compress(60, x_reference=np.append(given, more, axis=0)).compression
        assert record.num_inputs + record.change["num_rows"] == len(given) + len(more)
        assert record.num_inputs >= 0.7 * len(given)


def test_kernel_thinning_is_closer_than_a_stride_at_new_inputs(model):
    """Independent draws, 600 to 60; halving every change takes far more than luck."""
    x = model.posterior.x_pipeline.forward(X[1::2])
    changes = {
        method: measure_change(
            model.posterior, model.compress(60, method, x_reference=X[::2]).posterior, x
        )
        for method in ("kernel_thinning", "stride")
    }
    for name in ("mean", "stddev"):
        thinned, equally_spaced = (change[name]["average"] for change in changes.values())
        assert thinned < 0.5 * equally_spaced


def test_chain_weights_are_honoured(model):
    ensemble = model.posterior
    draws = ensemble.draws.copy()
    draws[1, :, ensemble.spec.layout.num_weights - 1] += 100.0  # the last bias: chains are apart
    ensemble = replace(ensemble, draws=draws).with_chain_weights([0.8, 0.2])
    weighted = tfbnn.BayesianMLP.from_ensemble(ensemble)
    for method in ("kernel_thinning", "stride"):
        assert weighted.compress(50, method).compression.draws_per_chain == [40, 10]
    assert weighted.compress(50).compression.change["mean"]["average"] < 0.05


@pytest.mark.parametrize("method", ["kernel_thinning", "stride"])
def test_chains_without_a_weight_are_out(synthetic_ensemble, method):
    ensemble = synthetic_ensemble(num_chains=3, chain_weights=[0.9, 0.0, 0.1])
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    record = model.compress(30, method).compression
    assert record.draws_per_chain[1] == 0 and record.num_available == 30
    assert record.draws_per_chain[0] > 20  # more than the 15 it has: some stand twice
    assert record.num_distinct < 30 and "of them different" in record.summary()


def test_many_draws_are_thinned_by_a_stride_first(model, monkeypatch):
    monkeypatch.setattr(compression, "_MAX_CANDIDATES", 100)
    record = model.compress(20).compression
    assert (record.num_available, record.num_candidates) == (600, 100)
    assert "out of 100 equally spaced ones" in record.summary()
    with pytest.raises(ValueError, match="at most 100 of .* received 101"):
        model.compress(101)


def test_noise_scales_are_kept_too(synthetic_ensemble):
    learned = compression._compared(synthetic_ensemble(), X[:7])
    assert learned.shape == (30, 8)
    ensemble = synthetic_ensemble((2, 5, 2), likelihood=HeteroscedasticGaussian())
    assert compression._compared(ensemble, X[:7]).shape == (30, 14)


def test_class_probabilities_are_kept(synthetic_ensemble):
    ensemble = synthetic_ensemble((2, 5, 3), likelihood=Categorical(), num_results=150)
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    small = model.compress(60, x_reference=X)
    assert np.abs(small.predict(X).mean - model.predict(X).mean).max() < 0.05
    np.testing.assert_array_equal(small.classes, model.classes)


def test_compressed_draws_are_no_chains(small):
    with pytest.raises(ValueError, match="chosen by compress"):
        small.diagnose()
    assert np.isnan(small.evaluate(X, Y)["n_effective"])
    with pytest.raises(ValueError, match="compressed already"):
        small.compress(10)


def test_a_run_that_was_stopped_is_no_longer_mentioned(model):
    ensemble = replace(model.posterior, provenance=Provenance().stating(num_results_requested=301))
    with pytest.warns(UserWarning, match="stopped early"):
        small = tfbnn.BayesianMLP.from_ensemble(ensemble).compress(20)
    small.predict(X)


def test_the_command_line_knows_compressed_models(small, tmp_path, capsys):
    path = str(tmp_path / "small.h5")
    small.save(path)
    assert main(["info", path, "--trusted"]) == 0
    assert "Compressed" in (out := capsys.readouterr().out)
    assert "60 of 600 draws by kernel_thinning" in out
    assert main(["info", path, "--json", "--trusted"]) == 0
    record = json.loads(capsys.readouterr().out)["provenance"]["compression"]
    assert Compression(**record) == small.compression
    assert main(["diagnose", path, "--trusted"]) == 2
    assert main(["plot", path, "-o", str(tmp_path / "figures"), "--trusted"]) == 0
    # None of chains: draws that were chosen are no chains.
    assert [figure.name for figure in (tmp_path / "figures").iterdir()] == ["slices.png"]


# What is refused.


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"method": "stein"}, ValueError, "method must be one of"),
        ({"num_draws": 0}, ValueError, "num_draws must be at least 1"),
        ({"num_draws": 601}, ValueError, "num_draws must be at most 600"),
        ({"x_reference": X[:, :1]}, ValueError, r"x must have shape \[N, 2\]"),
    ],
)
def test_refusals(model, arguments, error, message):
    with pytest.raises(error, match=message):
        model.compress(**arguments)


def test_predictions_have_to_differ_and_to_be_finite(synthetic_ensemble):
    ensemble = synthetic_ensemble()
    same = replace(ensemble, draws=np.repeat(ensemble.draws[:, :1], 15, axis=1)[[0, 0]])
    with pytest.raises(ValueError, match="nothing to choose by"):
        tfbnn.BayesianMLP.from_ensemble(same).compress(5)
    with pytest.raises(ValueError, match="infinite, or the same"):
        tfbnn.BayesianMLP.from_ensemble(same).compress(5, "stride")
    broken = replace(ensemble, draws=np.where(np.arange(15)[:, None] == 3, np.nan, ensemble.draws))
    with pytest.raises(ValueError, match="not finite"):
        tfbnn.BayesianMLP.from_ensemble(broken).compress(5)
    few = replace(ensemble, x_reference=ensemble.x_reference[:3].copy())
    with pytest.raises(ValueError, match="3 reference inputs only"):
        tfbnn.BayesianMLP.from_ensemble(few).compress(5)


# The benchmark.


@pytest.mark.benchmarks
def test_the_quick_benchmark_runs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compress", "--quick"])
    runpy.run_module("benchmarks.studies.compress.run", run_name="__main__")
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if line[:1] == "|"]
    assert len(lines) == 2 + 3 * 3
    assert {line[2].split(",")[0].strip() for line in lines[2:]} == {
        "stride", "kernel thinning",
    }  # fmt: skip
