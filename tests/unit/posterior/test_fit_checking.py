"""Model against data: every way to keep a network from its rows is named, and a good fit is not."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import (
    make_ensemble,
    make_rows,
    plain_spec,
    random_statistics,
    synthetic_ensemble,
)
from tests.support.lines import NOISE, X, Y, lines_through, quiet_statistics, rows
from tfbnn.diagnostics.fit_advice import find_effects
from tfbnn.diagnostics.fit_check import ClassesCheck, rows_check_from_json
from tfbnn.diagnostics.problem import on_command_line
from tfbnn.diagnostics.verdict import rounded
from tfbnn.likelihoods import (
    Bernoulli,
    Gaussian,
    HeteroscedasticGaussian,
    StudentT,
)
from tfbnn.posterior.calibration.left_out import left_out_moments
from tfbnn.posterior.fit_checking import (
    check_fit,
    check_held_out,
    check_rows,
    diagnose_ensemble,
)
from tfbnn.posterior.metrics import evaluate
from tfbnn.priors import ARD, HierarchicalNormal, Laplace, Normal, Uniform
from tfbnn.spec.rows import NetworkRows, Rows

FAR, SMALL = 3000.0 + 1000.0 * X, 0.02
LEARNED = "likelihood=Gaussian('learned')", "--noise-scale learned"
WIDER = "prior=HierarchicalNormal(HalfCauchy(1.0))", "--prior hierarchical"
# What was done, and a part of what has to be said and of the remedy, in Python and as an option.
TRAPS = {
    "4a targets not scaled": (
        lambda: lines_through(X, 5000.0 + 3000.0 * Y, 1.0, 0.5, scale=1000.0),
        "The targets are not scaled: y has mean 5.",
        "y_transform='standardize'",
        "--y-transform standardize",
    ),
    "4b inputs not scaled": (
        lambda: lines_through(FAR, Y, 0.0, 1e-5, scale=1.0),
        "The inputs are not scaled: column 0 has mean 3",
        "x_transform='standardize'",
        "--x-transform standardize",
    ),
    "4c row noise too small": (
        lambda: lines_through(X, Y, 1.0, 0.001, row_noise=NOISE / 20, likelihood=Gaussian(0.5)),
        "The noise is too small: the residuals of y are 20 times the noise_scale of the rows",
        *LEARNED,
    ),
    "4c fixed noise too small": (
        lambda: lines_through(X, Y, 1.0, 0.001, likelihood=Gaussian(NOISE / 20)),
        "The noise is too small: the residuals of y are 20 times the fixed noise_scale",
        *LEARNED,
    ),
    "4d row noise too large": (
        lambda: lines_through(X, Y, 0.0, 0.3, row_noise=100 * NOISE, likelihood=Gaussian(0.5)),
        "The noise is too large: the noise_scale of the rows is 9.1 times the residuals of y",
        "in the units of y",
        "check --noise-column",
    ),
    "5a prior too narrow": (
        lambda: lines_through(X, Y, 0.0, SMALL, scale=1.0, prior=Normal(SMALL)),
        "The prior is too narrow: networks drawn from it vary over the inputs by 0.01",
        *WIDER,
    ),
    "5a prior too narrow for weights that are there": (
        lambda: lines_through(X, Y, 0.2, SMALL, scale=1.0, prior=Laplace(SMALL)),
        "The prior is too narrow: 50 % of the weights lie in its outermost 0.1 %",
        *WIDER,
    ),
    "5b range of the prior too narrow": (
        lambda: lines_through(X, Y, 0.299, 2e-4, scale=0.7, prior=Uniform(-0.3, 0.3)),
        "The prior is too narrow: 50 % of the weights lie at an edge of its range",
        *WIDER,
    ),
}


@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-30])
def test_columns_of_small_units_are_named(size):
    ensemble, training_rows = lines_through(size * X, Y, 0.0, 1.0, scale=1.0, dtype="float64")
    said = [problem.what for problem in diagnose_ensemble(ensemble).problems]
    assert any(what.startswith("The inputs are not scaled: column 0") for what in said)
    spec = plain_spec([2, 1], dtype="float64")
    draws = np.random.default_rng(0).normal(size=(2, 9, spec.layout.num_parameters))
    x = np.column_stack([X, size * X, np.full(len(X), 0.7)])[:, :2]
    beside = make_ensemble(spec, draws, x, Y, random_statistics((2, 9), np.random.default_rng(1)))
    assert check_fit(beside, None).inputs.name == "column 1"
    ensemble, training_rows = lines_through(X, size * Y, 0.0, 1.0, scale=1.0, dtype="float64")
    diagnosis = diagnose_ensemble(ensemble, training_rows=training_rows)
    assert any(p.what.startswith("The targets are not scaled") for p in diagnosis.problems)


def test_a_coverage_that_is_not_known_is_not_within():
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    entry = diagnose_ensemble(ensemble, training_rows=training_rows).to_dict()
    entry["training_rows"]["targets"][0]["coverage"] = [None, None]
    del entry["predictions"]  # as in files of earlier releases
    diagnosis = diagnose_ensemble(replace(ensemble, diagnostics=entry))
    assert diagnosis.verdict == "usable for means" and diagnosis.predictions.ok is None


@pytest.mark.parametrize("case", TRAPS)
def test_every_trap_is_named_first_and_alone(case):
    build, said, in_python, in_shell = TRAPS[case]
    ensemble, training_rows = build()
    diagnosis = diagnose_ensemble(ensemble, training_rows=training_rows)
    (problem,) = diagnosis.problems
    assert problem.what.startswith(said)
    assert in_python in problem.remedy.text
    assert in_shell in on_command_line(problem.remedy.text)
    assert diagnosis.verdict != "usable for error bars"
    assert diagnosis.verdict == "not yet" or diagnosis.fit.rows.explains


def test_a_good_fit_is_usable_for_error_bars():
    for settings in ({"scale": NOISE}, {"likelihood": Gaussian(NOISE)}):
        ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, **settings)
        diagnosis = diagnose_ensemble(ensemble, training_rows=training_rows)
        assert diagnosis.verdict == "usable for error bars", diagnosis.warnings
        (target,) = diagnosis.fit.rows.targets
        assert target.r2 > 0.98 and target.pull_width == pytest.approx(1.0, abs=0.1)
        assert target.noise == pytest.approx(NOISE, rel=0.1) and target.coverage_error < 0.06


def test_rows_left_out_judge_bars_that_nothing_calibrated():
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    found = diagnose_ensemble(ensemble, training_rows=training_rows).predictions
    (target,) = check_rows(ensemble, training_rows).targets
    assert found.ok and not found.is_calibrated and found.num_rows == len(X)
    assert found.coverage[1] == pytest.approx(target.coverage[0], abs=0.006)
    assert found.pull_width == pytest.approx(target.pull_width)
    few = diagnose_ensemble(ensemble, training_rows=NetworkRows(X[:40], Y[:40], None))
    assert few.predictions.ok is None


def test_training_rows_do_not_judge_chains_that_have_weights():
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    weighted = ensemble.with_chain_weights(
        [0.9] + [0.1 / (ensemble.num_chains - 1)] * (ensemble.num_chains - 1)
    )
    found = diagnose_ensemble(weighted, training_rows=training_rows).predictions
    assert found.ok is None and "the chains have weights" in found.text
    held_out = check_held_out(weighted, Rows(*rows(150), None, None))
    assert diagnose_ensemble(weighted, None, training_rows, held_out).predictions.ok


def test_bars_that_hold_are_usable_though_chains_disagree():
    """The whole of the second verdict: held-out rows decide on predictions, chains on the posterior."""
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    draws = ensemble.draws.copy()
    draws[0, :, 0] += 0.05
    apart = replace(ensemble, draws=draws)
    held_out = Rows(*rows(150), None, None)
    found = diagnose_ensemble(apart, None, training_rows, check_held_out(apart, held_out))
    assert not found.chains.ok and found.chains.text == "The chains do not agree yet"
    assert found.predictions.ok and found.verdict == "calibrated predictions"
    wrong = replace(held_out, y=held_out.y + 0.2)
    found = diagnose_ensemble(ensemble, None, training_rows, check_held_out(ensemble, wrong))
    assert found.chains.ok and found.predictions.ok is False
    assert found.verdict == "usable for means"
    assert found.problems[0].what == "The error bars are too narrow on 150 held-out rows"


def test_both_verdicts_are_in_the_file_until_predictions_change(tmp_path):
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    first = diagnose_ensemble(ensemble, training_rows=training_rows)
    model = tfbnn.BayesianMLP.from_ensemble(replace(ensemble, diagnostics=first.to_dict()))
    model.save(tmp_path / "bnn.h5")
    model = tfbnn.load(tmp_path / "bnn.h5")
    assert model.diagnose().predictions.text == first.predictions.text
    assert model.diagnose().chains == first.chains
    model.stack_chains(*rows(30))
    assert model.diagnose().predictions.ok is None
    assert "verdict" not in model.posterior.diagnostics
    model.calibrate(*rows(150))
    found = model.diagnose().predictions
    assert found.ok and found.is_calibrated and found.num_rows == 150
    assert model.posterior.diagnostics["predictions"] == found.to_json()
    with pytest.warns(UserWarning, match="Call calibrate again"):
        model.stack_chains(*rows(30))
    assert model.diagnose().predictions.ok is None


def test_no_target_hides_behind_another():
    """One has too much noise, which spoils its error bars; of the other nothing is right."""
    spec = plain_spec([1, 2], likelihood=Gaussian((3.0, 1.0)))
    draws = 0.01 * np.random.default_rng(1).normal(size=(4, 300, 4)) + [1.0, -1.0, 0.0, 0.0]
    statistics = random_statistics((4, 300), np.random.default_rng(2))
    ensemble = make_ensemble(spec, draws, X, np.tile(Y, 2), statistics)
    diagnosis = diagnose_ensemble(ensemble, training_rows=NetworkRows(X, np.tile(Y, 2), None))
    said = " ".join(problem.what for problem in diagnosis.problems)
    assert "noise is too large" in said and "y2 are worse than its mean" in said
    assert diagnosis.verdict == "not yet"


def test_other_scales_are_no_trap_where_the_network_follows_the_rows():
    """Who gives targets of 5000 and a prior that reaches them has a good model, and a hint."""
    ensemble, training_rows = lines_through(
        X, 3000.0 * Y, 3000.0, 20.0, scale=300.0, prior=Normal(3e3)
    )
    diagnosis = diagnose_ensemble(ensemble, training_rows=training_rows)
    assert diagnosis.verdict == "usable for error bars"
    (problem,) = diagnosis.problems
    assert problem.what.startswith("The targets are not scaled")


def test_little_to_explain_is_a_hint_alone():
    """Targets that inputs do not determine: a flat line with the right noise is the right answer."""
    noise = np.random.default_rng(2).normal(size=X.shape)
    ensemble, training_rows = lines_through(X, noise, 0.0, 0.07, scale=1.0)
    diagnosis = diagnose_ensemble(ensemble, training_rows=training_rows)
    (problem,) = diagnosis.problems
    assert "explain next to nothing" in problem.what
    assert diagnosis.verdict == "usable for error bars"


@pytest.mark.parametrize("scale, word", [(NOISE / 2, "narrow"), (3 * NOISE, "wide")])
def test_intervals_that_hold_the_wrong_share_are_said(scale, word):
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.001, scale=scale)
    diagnosis = diagnose_ensemble(ensemble, training_rows=training_rows)
    (problem,) = diagnosis.problems
    assert problem.what == f"The error bars are too {word} on 200 rows of the fit, each left out"
    assert diagnosis.verdict == "usable for means"
    # Held to rows they are right.
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    model.calibrate(X, Y)
    diagnosis = diagnose_ensemble(model.posterior, training_rows=training_rows)
    assert diagnosis.problems == () and diagnosis.verdict == "usable for error bars"


@pytest.mark.parametrize(
    "likelihood, sizes, row_noise",
    [
        (Gaussian("learned"), (2, 5, 2), True),
        (StudentT(4.0, 0.3), (2, 5, 1), False),
        (HeteroscedasticGaussian(), (2, 5, 2), False),
    ],
)
def test_numbers_are_those_of_evaluate(likelihood, sizes, row_noise):
    ensemble = synthetic_ensemble(sizes, likelihood=likelihood, row_noise=row_noise)
    x, y = make_rows(60, 2, ensemble.spec.num_targets, seed=6)
    training_rows = ensemble.transform(Rows(x, y, 0.2 * y if row_noise else None, None))
    scores = evaluate(ensemble, y, training_rows)
    targets = check_rows(ensemble, training_rows).targets
    r2, residual = np.transpose([(target.r2, target.residual) for target in targets])
    np.testing.assert_allclose(r2, np.ravel(scores["r2_transformed"]), rtol=1e-9)
    np.testing.assert_allclose(residual, np.ravel(scores["rmse_transformed"]), rtol=1e-9)


def test_coverage_is_that_of_rows_that_were_left_out():
    """test_left_out.py holds those to exact posteriors."""
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.03, scale=NOISE)
    mean, stddev, _ = left_out_moments(ensemble, training_rows)
    pulls = (training_rows.y - mean) / stddev
    (target,) = check_rows(ensemble, training_rows).targets
    # By some of the draws. Within the sample the width would be 0.9, left out it is 1.15.
    assert target.pull_width == pytest.approx(np.std(pulls), rel=0.06)
    shares = [np.mean(np.abs(pulls) < end) for end in (1.0, 2.0)]
    assert target.coverage == pytest.approx(shares, abs=0.05)


def test_where_the_network_follows_each_row_nobody_can_say():
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.5, scale=NOISE / 2)
    (target,) = check_rows(ensemble, training_rows).targets
    assert np.isnan([target.pull_width, *target.coverage]).all()
    diagnosis = diagnose_ensemble(ensemble, training_rows=training_rows)
    assert any("cannot be judged by the training rows" in text for text in diagnosis.warnings)


def test_chance_alone_is_no_fault_of_few_rows():
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    check = check_rows(ensemble, training_rows)
    target = replace(check.targets[0], coverage=(0.55, 0.95))
    classes = ClassesCheck(60, 0.8, 0.5, 0.16)
    for few, one in ((20, replace(check, targets=(target,), num_rows=20)), (60, classes)):
        for count, is_fault in ((few, False), (1000, True)):
            fit = replace(check_fit(ensemble, None), rows=replace(one, num_rows=count))
            found = [problem.what for problem in find_effects(fit)]
            assert any("too narrow" in what or "are off by" in what for what in found) == is_fault


def test_at_most_a_thousand_rows_are_looked_at():
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    many = NetworkRows(*(np.tile(part, (30, 1)) for part in training_rows[:2]), None)
    many.y[1] = np.nan  # not among the rows evenly spaced
    assert check_rows(ensemble, many).num_rows == 1000
    assert np.isfinite(check_rows(ensemble, many).targets[0].r2)


def test_of_many_targets_the_worst_are_kept():
    ensemble = synthetic_ensemble((2, 4, 30), num_results=5)
    generator = np.random.default_rng(3)
    y = np.exp(generator.normal(size=(50, 30)))
    many = Rows(generator.normal(size=(50, 2)), y, None, None)
    found = check_rows(ensemble, ensemble.transform(many))
    assert 10 <= len(found.targets) <= 20
    assert len(json.dumps(rounded(asdict(found)))) < 8000


@pytest.mark.parametrize("hits, explains", [(0.9, True), (0.5, False)])
def test_classes_are_held_against_the_most_frequent_label(hits, explains):
    x = np.random.default_rng(1).normal(size=(400, 1))
    labels = (x > -0.7).astype(float)  # three quarters are ones
    weight = 40.0 if hits > 0.6 else 0.0
    spec = plain_spec([1, 1], likelihood=Bernoulli(), prior=Normal(30.0))
    draws = np.random.default_rng(2).normal(size=(4, 300, 2)) * 0.5
    draws += [weight, 0.7 * weight] if weight else [0.0, 1.1]
    ensemble = make_ensemble(spec, draws, x, labels, quiet_statistics((4, 300)), classes=(0, 1))
    diagnosis = diagnose_ensemble(ensemble, training_rows=NetworkRows(x, labels, None))
    found = diagnosis.fit.rows
    assert found.majority == np.mean(labels) and found.explains == explains
    said = [problem.what for problem in diagnosis.problems]
    assert any("the most frequent label" in text for text in said) == (not explains)
    assert "classified right" in diagnosis.summary()
    entry = json.loads(json.dumps(rounded(asdict(found))))
    assert rows_check_from_json(entry).accuracy == found.accuracy


def test_sampled_prior_scales_are_what_the_tail_is_measured_by():
    spec = plain_spec([1, 1], prior=HierarchicalNormal())
    draws = np.zeros((2, 50, spec.layout.num_parameters))
    draws[..., :2] = 5.0
    statistics = random_statistics((2, 50), np.random.default_rng(0))
    for log_scale, share in ((np.log(5.0), 0.0), (0.0, 1.0)):
        draws[..., -2:] = log_scale
        prior = check_fit(make_ensemble(spec, draws, X, Y, statistics), None).prior
        assert prior.in_tail == share and np.isnan(prior.at_edge)


def test_weights_of_each_input_are_measured_by_its_own_scale():
    spec = plain_spec([2, 3, 1], prior=[{"kernel": ARD(), "bias": Normal()}, Normal()])
    draws = np.zeros((2, 50, spec.layout.num_parameters))
    draws[..., :6] = [5.0] * 3 + [0.1] * 3
    draws[..., -2:] = np.log([5.0, 0.1])
    x = np.column_stack([X, X[::-1]])
    statistics = random_statistics((2, 50), np.random.default_rng(0))
    assert check_fit(make_ensemble(spec, draws, x, Y, statistics), None).prior.in_tail == 0.0
    draws[..., -2:] = np.log([0.1, 5.0])
    # Three of thirteen weights and biases are fifty scales away.
    in_tail = check_fit(make_ensemble(spec, draws, x, Y, statistics), None).prior.in_tail
    np.testing.assert_allclose(in_tail, 3 / 13)


def test_what_was_found_is_kept_with_the_model(tmp_path):
    ensemble, training_rows = lines_through(X, 5000.0 + 3000.0 * Y, 1.0, 0.5, scale=1000.0)
    first = diagnose_ensemble(ensemble, training_rows=training_rows)
    entry = first.to_dict()

    def again():
        kept = replace(ensemble, diagnostics=entry)
        tfbnn.BayesianMLP.from_ensemble(kept).save(tmp_path / "model.h5")
        return tfbnn.load(tmp_path / "model.h5").diagnose()

    assert again().verdict == first.verdict == "not yet"
    assert [p.what for p in again().problems] == [p.what for p in first.problems]
    # Files of earlier releases say nothing of their rows; that is said, and spoils the error bars.
    del entry["training_rows"], entry["verdict"]
    what = again().problems[0].what
    assert what == "The predictions were not compared with the training rows"


@pytest.mark.parametrize(
    "change",
    [{"targets": []}, {"noise": "\x1b[2J"}, {"num_rows": "many"}, {"targets": [{"name": "y"}]}],
)
def test_files_that_say_nonsense_of_their_rows_are_refused(change, tmp_path):
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.007, scale=NOISE)
    entry = rounded(asdict(check_rows(ensemble, training_rows))) | change
    crafted = replace(ensemble, diagnostics={"warnings": [], "training_rows": entry})
    with pytest.raises(tfbnn.ModelFileError):
        tfbnn.BayesianMLP.from_ensemble(crafted).save(tmp_path / "model.h5")


def test_names_cannot_act_on_a_terminal():
    ensemble, training_rows = lines_through(FAR, Y, 0.0, 1e-5, scale=1.0)
    crafted = replace(ensemble, feature_names=("\x1b[2J",))
    diagnosis = diagnose_ensemble(crafted, training_rows=training_rows)
    assert "\x1b" not in " ".join(diagnosis.warnings) and r"'\x1b[2J'" in diagnosis.warnings[0]


def test_more_draws_are_no_advice_where_the_model_cannot_follow_its_data():
    """The cause comes first where chains disagree besides, and what follows waits for it."""
    ensemble, training_rows = lines_through(X, 5000.0 + 3000.0 * Y, 1.0, 0.5, scale=1000.0)
    draws = ensemble.draws.copy()
    draws[0] += 3.0
    found = diagnose_ensemble(replace(ensemble, draws=draws), training_rows=training_rows)
    first, second = found.warnings
    assert first.startswith("The targets are not scaled")
    assert second.startswith("The chains do not agree") and "num_results" not in second
    assert second.endswith("Next: first fix the problems above")
