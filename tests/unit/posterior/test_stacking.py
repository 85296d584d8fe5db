"""Stacking of chains: held-out densities, and what becomes of the weights."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import tfbnn
from tests.support import infinite
from tests.support.builders import make_ensemble, make_rows, plain_spec
from tfbnn.cli import main
from tfbnn.likelihoods import Gaussian
from tfbnn.posterior.averages import log_mean_exp
from tfbnn.posterior.stacking import chain_log_densities, stack, weighting_note
from tfbnn.spec.rows import NetworkRows, Rows, row_digests

X, Y = make_rows(60, 2, 1, seed=8)


@pytest.fixture
def ensemble(synthetic_ensemble):
    """Three chains, of which the last predicts nonsense."""
    ensemble = synthetic_ensemble(num_chains=3)
    draws = ensemble.draws.copy()
    draws[2, :, ensemble.spec.layout.num_weights - 1] += 1e4
    return replace(ensemble, draws=draws)


@pytest.fixture
def stacked(ensemble):
    """A model whose chains are stacked on validation rows."""
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    model.stack_chains(X, Y)
    return model


def constant_ensemble(means):
    """Networks of constant output: means [C, S], standard normal noise, no transforms."""
    spec = plain_spec([1, 2, 1], likelihood=Gaussian(1.0))
    draws = np.zeros((*means.shape, spec.layout.num_parameters))
    draws[..., -1] = means
    return make_ensemble(spec, draws, np.zeros((1, 1)), np.zeros((1, 1)), statistics={})


def rows_of(y):
    return Rows(np.zeros((len(y), 1)), np.reshape(y, (-1, 1)), None, None)


# The densities.


def test_densities_are_those_of_every_chain_by_itself():
    means = np.random.default_rng(0).normal(size=(3, 20))
    y = np.linspace(-3.0, 60.0, 11)
    logs = stats.norm.logpdf(y, means[..., None])
    expected = special.logsumexp(logs, axis=1) - np.log(20)
    found = chain_log_densities(constant_ensemble(means), rows_of(y))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# What becomes of the weights.


def test_scores_are_those_of_evaluate(ensemble):
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    before = model.evaluate(X, Y)["log_predictive_density_transformed"]
    first = model.stack_chains(X, Y)
    after = model.evaluate(X, Y)["log_predictive_density_transformed"]
    assert first.log_score_uniform == pytest.approx(before)
    assert first.log_score_stacked == pytest.approx(after) and after > before
    again = model.stack_chains(X, Y)  # from scratch: weights there are play no role
    np.testing.assert_array_equal(again.weights, first.weights)
    assert again.log_score_uniform == first.log_score_uniform


def test_a_chain_that_is_far_worse_gets_nothing_and_predicts_nothing(stacked, ensemble):
    weights = stacked.posterior.chain_weights
    assert weights[2] == 0.0 and weights.sum() == pytest.approx(1.0)
    others = replace(ensemble, draws=ensemble.draws[:2], chain_weights=weights[:2])
    expected = tfbnn.BayesianMLP.from_ensemble(others)
    for noise in (False, True):
        settings = {"include_noise": noise, "quantiles": [0.1, 0.5]}
        found, wanted = stacked.predict(X, **settings), expected.predict(X, **settings)
        for name in ("mean", "stddev", "quantiles"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12)
    assert str(stacked.evaluate(X, Y)) == str(expected.evaluate(X, Y))
    assert stacked.predict_draws(X).shape == (45, 60, 1)  # all draws, to be weighted
    assert stacked.posterior.draw_weights[30:].tolist() == [0.0] * 15


def test_chains_of_infinite_width_are_stacked_by_the_draws_that_predictions_average():
    ensemble = infinite.ensemble(num_draws=50)
    rows = NetworkRows(*infinite.rows(8, seed=3), None)
    assert ensemble.few.num_results < 50
    np.testing.assert_array_equal(stack(ensemble, rows).weights, stack(ensemble.few, rows).weights)
    assert "conditioned_draws" not in vars(ensemble)


def test_infinite_predictions_of_a_chain_without_weight_do_no_harm(synthetic_ensemble):
    ensemble = synthetic_ensemble(y_transform=["log10", "standardize"])
    draws = ensemble.draws.copy()
    draws[1, :, ensemble.spec.layout.num_weights - 1] += 1e5
    model = tfbnn.BayesianMLP.from_ensemble(replace(ensemble, draws=draws))
    np.testing.assert_array_equal(model.stack_chains(X, Y).weights, [1.0, 0.0])
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(model.predict(X, include_noise=True).stddev).all()
        assert np.isfinite(model.evaluate(X, Y)["crps"])


def test_a_density_without_weight_does_not_push_the_others_below_zero():
    values = np.array([[0.0, -np.inf], [-2000.0, -np.inf]])
    np.testing.assert_array_equal(log_mean_exp(values, np.array([0.0, 1.0])), [-2000.0, -np.inf])
    assert log_mean_exp(values[:, :1], np.array([1e-300, 1.0])) == pytest.approx(-690.7755)


def test_rows_of_the_fit_are_warned_of(synthetic_ensemble):
    ensemble = synthetic_ensemble()
    rows = Rows(X, Y, None, None)
    model = tfbnn.BayesianMLP.from_ensemble(replace(ensemble, row_digests=row_digests(rows)))
    with pytest.warns(UserWarning, match="60 of the 60 validation rows have the values"):
        model.stack_chains(X, Y)


def test_one_chain_keeps_its_weight(synthetic_ensemble):
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(num_chains=1))
    stacking = model.stack_chains(X, Y)
    np.testing.assert_array_equal(stacking.weights, [1.0])
    assert stacking.log_score_stacked == stacking.log_score_uniform
    assert model.diagnose().weighting is None


def test_known_noise_of_the_rows_is_used(synthetic_ensemble):
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(row_noise=True))
    narrow, wide = (model.stack_chains(X, Y, noise_scale=s * Y) for s in (0.01, 1.0))
    assert narrow.log_score_stacked != wide.log_score_stacked


# Reports and files.


def test_every_report_names_the_weights(stacked, tmp_path, capsys):
    note = weighting_note(stacked.posterior)
    assert note.startswith("weighted by stacking on validation rows, not the posterior: ")
    assert note.endswith(" 0.000") and "\n" not in note
    assert stacked.diagnose().summary().splitlines()[1] == f"chains       {note}"
    path, data = str(tmp_path / "model.h5"), str(tmp_path / "rows.npz")
    stacked.save(path)
    np.savez(data, x=X, y=Y)
    weights = stacked.posterior.chain_weights.tolist()
    for command in (["evaluate", path, data], ["diagnose", path], ["info", path]):
        options = ["--trusted", *(["--target", "y_0"] if command[0] == "evaluate" else [])]
        assert main([*command, *options]) == 0
        assert " ".join(capsys.readouterr().out.split()).count(note) == 1
        assert main([*command, *options, "--json"]) == 0
        content = json.loads(capsys.readouterr().out)
        assert content["weighting"] == note and content["chain_weights"] == weights


def test_equal_weights_are_not_worth_a_line(synthetic_ensemble):
    ensemble = synthetic_ensemble(num_chains=3)
    assert weighting_note(ensemble) is None
    by_hand = weighting_note(ensemble.with_chain_weights([0.5, 0.3, 0.2]))
    assert by_hand == "weighted by hand, not the posterior: 0.500 0.300 0.200"


def test_weights_survive_a_file(stacked, tmp_path):
    path = tmp_path / "model.h5"
    stacked.save(path)
    loaded = tfbnn.load(path).posterior
    np.testing.assert_array_equal(loaded.chain_weights, stacked.posterior.chain_weights)
    origin = loaded.provenance.chain_weights
    assert origin is not None and origin == stacked.posterior.provenance.chain_weights
