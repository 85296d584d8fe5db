"""The diagnosis of a run: its numbers, its sentences, its summary and its JSON form."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from tfbnn.diagnostics import statistics as diagnostics
from tfbnn.diagnostics.convergence import diagnose

C, S, P, N_REF, K = 4, 400, 7, 5, 2


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def run():
    """A run without any problem: independent draws."""
    generator = np.random.default_rng(3)
    stats = {
        "lp": generator.normal(-100.0, 2.0, size=(C, S)),
        "acceptance_rate": np.full((C, S), 0.8),
        "step_size": np.full((C, S), 0.1),
        "n_steps": np.full((C, S), 7),
        "diverging": np.zeros((C, S), dtype=bool),
        "energy": generator.normal(size=(C, S)),
    }
    draws = generator.normal(size=(C, S, P))
    return draws, generator.normal(size=(C, S, N_REF, K)), stats


def only_warning(diagnosis):
    assert len(diagnosis.warnings) == 1, diagnosis.warnings
    return diagnosis.warnings[0]


def test_numbers_are_those_of_the_diagnostics(run):
    draws, function_draws, stats = run
    diagnosis = diagnose(draws, function_draws, stats, max_tree_depth=10)
    assert diagnosis.warnings == ()
    for value, function in [
        (diagnosis.rhat_function, diagnostics.rhat),
        (diagnosis.ess_function, diagnostics.bulk_ess),
        (diagnosis.tail_ess_function, diagnostics.tail_ess),
        (diagnosis.mcse_function, diagnostics.mcse_mean),
        (diagnosis.between_chain_share, diagnostics.between_chain_variance_share),
    ]:
        assert value.shape == (N_REF, K)
        np.testing.assert_array_equal(value, function(function_draws))
    np.testing.assert_array_equal(diagnosis.rhat_parameters, diagnostics.rhat(draws))
    np.testing.assert_array_equal(diagnosis.ess_parameters, diagnostics.bulk_ess(draws))
    np.testing.assert_array_equal(diagnosis.ebfmi, diagnostics.ebfmi(stats["energy"]))
    assert diagnosis.rhat_log_prob == diagnostics.rhat(stats["lp"])
    assert diagnosis.ess_log_prob == diagnostics.bulk_ess(stats["lp"])
    assert diagnosis.recommended_thinning == 1 and diagnosis.num_divergent == 0


def test_disagreement_in_function_space_is_reported(run):
    draws, function_draws, stats = run
    function_draws[1, :, 0, 0] += 5.0
    rhat, bulk, tail = diagnose(draws, function_draws, stats).warnings
    assert "1 of 10 reference outputs" in rhat and "secondary" in rhat
    assert "model.stack_chains" in rhat and "not the posterior" in rhat
    assert bulk.startswith("Bulk") and tail.startswith("Tail") and "below 400" in bulk


def test_one_chain_has_nothing_to_stack(run):
    draws, function_draws, stats = run
    function_draws[0, : S // 2] += 5.0
    single = {key: value[:1] for key, value in stats.items()}
    found = " ".join(diagnose(draws[:1], function_draws[:1], single).warnings)
    assert "R-hat in function space" in found and "stack_chains" not in found


def test_disagreement_of_weights_alone_is_no_warning(run):
    draws, function_draws, stats = run
    draws[1] *= -1.0
    draws[:, :, 0] += 10.0 * np.arange(C)[:, None]
    diagnosis = diagnose(draws, function_draws, stats)
    assert diagnosis.rhat_parameters[0] > 1.5
    assert diagnosis.warnings == ()


def test_divergences_are_counted(run):
    draws, function_draws, stats = run
    stats["diverging"][2, :16] = True
    diagnosis = diagnose(draws, function_draws, stats)
    assert diagnosis.num_divergent == 16
    assert only_warning(diagnosis).startswith("16 of 1600 transitions (1 %) diverged")


def test_low_ebfmi_names_the_chains(run):
    draws, function_draws, stats = run
    stats["energy"][[1, 3]] = np.cumsum(stats["energy"][[1, 3]], axis=1)
    assert "E-BFMI is below 0.3 in chains 1, 3 (" in only_warning(
        diagnose(draws, function_draws, stats)
    )


def test_saturated_tree_depth_is_a_share(run):
    draws, function_draws, stats = run
    stats["n_steps"][0, :40] = 1023
    message = only_warning(diagnose(draws, function_draws, stats, max_tree_depth=10))
    assert message.startswith("2.5 % of the trajectories reached the largest tree depth 10")
    assert diagnose(draws, function_draws, stats).warnings == ()


def test_chain_in_a_worse_mode_is_named(run):
    draws, function_draws, stats = run
    stats["lp"][2] -= 40.0
    first, second = diagnose(draws, function_draws, stats).warnings
    assert first.startswith("Chain 2 is stuck or in a worse mode")
    assert second.startswith("R-hat of the log density")


def test_chain_that_never_moved_is_named(run):
    draws, function_draws, stats = run
    for values in (draws, function_draws, stats["lp"]):
        values[3] = values[3, 0]
    assert diagnose(draws, function_draws, stats).warnings[0].startswith("Chain 3 never moved")
    stats["acceptance_rate"][0] = 0.0
    assert diagnose(draws, function_draws, stats).warnings[0].startswith("Chains 0, 3 never moved")


def test_non_finite_values_are_named(run):
    draws, function_draws, stats = run
    stats["lp"][1, 5] = -np.inf
    function_draws[0, 0, 2, 1] = np.nan
    first, second = diagnose(draws, function_draws, stats).warnings
    assert first.startswith("Chain 1 visited a log density that is not finite")
    assert second.startswith("1 of 10 reference outputs have no R-hat")


def test_one_chain_and_few_draws(run):
    draws, function_draws, stats = run
    short = {key: value[:1, :3] for key, value in stats.items()}
    diagnosis = diagnose(draws[:1, :3], function_draws[:1, :3], short, max_tree_depth=10)
    assert diagnosis.warnings[0].startswith("There are only 3 draws per chain")
    assert diagnosis.warnings[1].startswith("There is only 1 chain")
    assert np.all(np.isnan(diagnosis.rhat_function)) and diagnosis.recommended_thinning == 1
    assert "nan" in diagnosis.summary()
    assert json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))


def test_absent_statistics_are_nan(run):
    draws, function_draws, _ = run
    diagnosis = diagnose(draws, function_draws, {})
    assert np.isnan(diagnosis.rhat_log_prob) and np.all(np.isnan(diagnosis.ebfmi))
    assert diagnosis.ebfmi.shape == (C,) and diagnosis.num_divergent == 0
    assert diagnosis.warnings == ()


def test_summary_has_function_space_first_and_aligned_lines(run):
    lines = diagnose(*run).summary().splitlines()
    labels = [line[:13].strip() for line in lines]
    assert [label for label in labels if label] == [
        "function",
        "log density",
        "weights",
        "warnings",
    ]
    assert all(line[13] != " " and len(line) <= 100 for line in lines)
    assert "below 1.05: 100 % of 10 reference outputs" in lines[1]


def test_weighted_chains_are_named_in_summary_and_json(run):
    diagnosis = diagnose(*run)
    assert diagnosis.to_dict()["weighting"] is diagnosis.to_dict()["chain_weights"] is None
    weights = np.array([0.5, 0.5, 0.0, 0.0])
    weighted = replace(diagnosis, chain_weights=weights, weighting="weighted by hand")
    assert weighted.summary() == "chains       weighted by hand\n" + diagnosis.summary()
    content = json.loads(json.dumps(weighted.to_dict()))
    assert content["chain_weights"] == weights.tolist()
    assert content["weighting"] == "weighted by hand"


def test_json_form_is_plain_and_keeps_infinity_apart_from_undefined(run):
    draws, function_draws, stats = run
    function_draws[..., 0, 0] = np.arange(C)[:, None]
    function_draws[..., 1, 0] = 1.0
    content = diagnose(draws, function_draws, stats).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["function"]["rhat"]["max"] == "inf"
    assert content["function"]["num_undefined"] == 1
    assert len(content["log_density"]["ebfmi"]) == C


@pytest.mark.parametrize(
    "change, message",
    [
        ({"draws": np.zeros((C, S))}, "draws must have shape"),
        ({"function_draws": np.zeros((C, S - 1, N_REF, K))}, "function_draws must have shape"),
        ({"sample_stats": {"lp": np.zeros(S)}}, r"sample_stats\['lp'\] must have shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(run, change, message):
    arguments = dict(zip(("draws", "function_draws", "sample_stats"), run, strict=True))
    with pytest.raises(ValueError, match=message):
        diagnose(**(arguments | change))
