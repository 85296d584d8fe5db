"""Checks of a fit in cases that few fits have: groups of rows, constant targets, rare categories, skewed noise."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.support.builders import make_ensemble, plain_spec
from tests.support.coded import coded_ensemble
from tests.support.lines import (
    NOISE,
    X,
    Y,
    lines_through,
    quiet_statistics,
    rows,
)
from tfbnn.data.transforms import Pipeline
from tfbnn.diagnostics.fit_advice import find_misfits
from tfbnn.diagnostics.fit_check import FitCheck, InputCheck, PriorCheck, rows_check_from_json
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.likelihoods import Gaussian, NegativeBinomial, Poisson
from tfbnn.posterior.fit_checking import check_fit, check_inputs, check_rows, diagnose_ensemble
from tfbnn.spec.rows import NetworkRows, Rows, evenly_spaced_groups


def test_rows_of_one_large_group_are_compared_and_not_left_out():
    """Leaving it out takes too large a matrix."""
    x, y = rows(5000)
    ensemble, training_rows = lines_through(x, y, 1.0, 0.01, scale=NOISE)
    (of_all,) = check_rows(ensemble, training_rows.taken(slice(2500))).targets
    fit = check_fit(ensemble, training_rows, row_groups=np.arange(5000) // 2500)
    (found,) = fit.rows.targets
    assert fit.rows.num_rows == 2500 and np.isnan(found.pull_width)
    assert found.r2 == pytest.approx(of_all.r2, abs=0.02) and found.r2 > 0.9
    assert found.noise == pytest.approx(NOISE, rel=0.1)
    assert fit.predictions.ok is None and "too large to leave out" in fit.predictions.why


@pytest.mark.parametrize("place", [0, 60, 120])
def test_a_large_group_takes_the_place_of_no_others(place):
    sizes = np.full(121, 5)
    sizes[place] = 900
    groups = np.repeat(np.arange(121), sizes)
    x, y = rows(len(groups))
    ensemble, training_rows = lines_through(x, y, 1.0, 0.01, scale=NOISE)
    fit = check_fit(ensemble, training_rows, row_groups=groups)
    assert fit.rows.num_rows == 600 and fit.predictions.ok


@pytest.mark.parametrize(
    "sizes",
    [
        [1] * 400 + [3000],
        [3000] + [1] * 400,
        [1] * 3 + [2000],
        [400] * 50 + [1] * 3,
        [300] * 200 + [10] * 2,
        [30000, 20000, 3, 2],
        [251] * 100 + [1] * 3,
    ],
)
def test_a_few_small_groups_take_the_place_of_no_others(sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    assert len(evenly_spaced_groups(groups, len(groups), 1000)) >= 250


def test_counts_of_an_earlier_file_are_judged_as_they_were():
    numbers = dict(
        mean=4.0, stddev=2.0, r2=0.5, residual=2.0, noise=2.0, spread=0.1, coverage=[None, None]
    )
    for width, count in ((3.0, 1), (1.0, 0)):
        entry = {
            "num_rows": 1000,
            "noise": "counts",
            "targets": [{"name": "n", "pull_width": width, **numbers}],
        }
        said = find_misfits(
            FitCheck(rows_check_from_json(entry), PriorCheck(), InputCheck("a", 0.0, 1.0))
        )
        assert len(said) == count


def test_the_number_of_groups_left_out_is_that_of_the_fit():
    """Chains that hardly move are enough for many groups per weight."""
    x, y = rows(6000)
    ensemble, training_rows = lines_through(x, y, 1.0, 0.01, scale=NOISE)
    still = replace(ensemble, draws=np.repeat(ensemble.draws[:, ::300], 300, axis=1))
    fit = check_fit(still, training_rows, row_groups=np.arange(6000) // 100)
    assert fit.predictions.ok is not None


def test_a_constant_target_has_no_r2_and_is_no_problem():
    x, y = rows(300)
    spec = plain_spec([1, 2], likelihood=Gaussian(NOISE))
    draws = 0.001 * np.random.default_rng(4).normal(size=(4, 300, 4)) + [1.0, 0.0, 0.0, 7.0]
    y = np.column_stack([y, np.full(300, 7.0)])
    ensemble = make_ensemble(spec, draws, x, y, quiet_statistics((4, 300)))
    ensemble = replace(ensemble, y_pipeline=Pipeline())
    training_rows = ensemble.transform(Rows(x, y, None, None))
    found = diagnose_ensemble(ensemble, training_rows=training_rows)
    second = found.fit.rows.targets[1]
    assert np.isnan(second.r2) and second.stddev == 0.0
    assert not any(
        "y2" in problem.what for problem in found.problems if "worse than its mean" in problem.what
    )
    again = rows_check_from_json(json.loads(json.dumps(found.to_dict()["training_rows"])))
    assert np.isnan(again.targets[1].r2)


def test_a_rare_category_is_scaled():
    frame = pd.DataFrame({"c": ["a", "b"] * 20_000 + ["rare"], "a": np.arange(40_001.0)})
    ensemble = coded_ensemble(frame, np.arange(40_001.0))
    inputs = ensemble.training_inputs
    variances = replace(
        inputs, covariance=np.diagonal(inputs.covariance)[:, None]
    )  # of many inputs
    for one in (ensemble, replace(ensemble, training_inputs=variances)):
        assert 0.1 < check_inputs(one).stddev < 10.0


@pytest.mark.parametrize("shift", [0.0, 0.22])
def test_bars_that_hold_on_a_skewed_target_are_neither_wide_nor_narrow(shift):
    noise = stats.norm.ppf if shift else stats.chi2(6).ppf
    pull = noise((np.arange(2000) + 0.5) / 2000)
    pull = (pull - pull.mean()) / pull.std() + shift
    found = Predictions.judge(
        *(one[:, None] for one in (stats.norm.cdf(pull), pull, np.ones(2000), np.abs(pull))),
        "held-out rows",
        False,
    )
    assert found.shares_hold and found.ok is False and "skewed or shifted" in found.in_short
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.01, scale=NOISE)
    said = diagnose_ensemble(ensemble, training_rows=training_rows, predictions=found).problems
    assert any("distributed otherwise than predicted" in one.what for one in said)
    assert not any("too wide" in one.what or "too narrow" in one.what for one in said)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(2.0)])
def test_counts_that_follow_their_likelihood_are_not_told_to_scatter(likelihood):
    """Though most rates are small: the variance of a squared pull is that of all rows."""
    generator = np.random.default_rng(3)
    x = generator.uniform(-1.0, 1.0, size=(1000, 1))
    for seed in range(12):
        ensemble, _ = lines_through(
            x, np.ones_like(x), 5.0, 1e-4, likelihood=likelihood, y_transform=None
        )
        generator, rate = np.random.default_rng(seed), np.exp(5.0 * x)
        if not isinstance(likelihood, Poisson):
            rate = rate * generator.gamma(0.25, 4.0, size=rate.shape)
        check = check_rows(ensemble, NetworkRows(x, generator.poisson(rate).astype(float), None))
        said = find_misfits(FitCheck(check, PriorCheck(), InputCheck("a", 0.0, 1.0)))
        assert not any("scatter more" in problem.what for problem in said)


def test_counts_do_not_scatter_where_a_chain_is_stuck():
    """The distance of its rates is part of the spread of the function, not of the scatter of rows."""
    x = np.random.default_rng(3).uniform(-1.0, 1.0, size=(400, 1))
    likely = dict(likelihood=Poisson(), y_transform=None)
    ensemble, _ = lines_through(x, np.ones_like(x), 1.0, 1e-4, **likely)
    draws = ensemble.draws.copy()
    draws[1, :, 1] += 1.5
    counts = np.random.default_rng(0).poisson(np.exp(x)).astype(float)
    check = check_rows(replace(ensemble, draws=draws), NetworkRows(x, counts, None))
    said = find_misfits(FitCheck(check, PriorCheck(), InputCheck("a", 0.0, 1.0)))
    assert not any("scatter more" in problem.what for problem in said)


def test_heavy_tails_are_told_apart_from_wide_bars():
    """They leave more rows within 68 % intervals, and residuals of the size that is predicted."""
    pull = stats.t(3).ppf((np.arange(2000) + 0.5) / 2000)
    pull /= pull.std()
    shown = stats.norm.cdf(pull), pull, np.ones(2000), np.abs(pull)
    found = Predictions.judge(*(one[:, None] for one in shown), "held-out rows", False)
    assert found.ok is False and found.is_wide
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.01, scale=NOISE)
    said = diagnose_ensemble(ensemble, training_rows=training_rows, predictions=found).problems
    (problem,) = [one for one in said if "too wide" in one.what]
    assert "StudentT" in problem.remedy.text and "Chains that disagree" not in problem.why


def test_bars_whose_outer_interval_misses_are_narrow():
    """Their inner interval may hold a few rows too many."""
    bars = Predictions({1: 0.70, 2: 0.91}, 1.2, 0.04, num_rows=1000, source="held-out rows")
    ensemble, training_rows = lines_through(X, Y, 1.0, 0.01, scale=NOISE)
    said = diagnose_ensemble(ensemble, training_rows=training_rows, predictions=bars).problems
    (problem,) = [one for one in said if "error bars" in one.what]
    assert "too narrow" in problem.what and "StudentT" in problem.remedy.text
