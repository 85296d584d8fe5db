"""Two verdicts, and one word for both."""

import json
import shlex

import numpy as np
import pytest
from scipy import stats

from tfbnn.diagnostics.fit_advice import _JUDGE, _OTHER_NOISE, _SCATTER
from tfbnn.diagnostics.problem import (
    Interface,
    Remedy,
    Severity,
    on_command_line,
    step_lines,
)
from tfbnn.diagnostics.verdict import Chains, Predictions, nominal, verdict_on
from tfbnn.spec.distributions import normal_cdf, normal_quantile


def judged(pit, **more):
    """The Predictions of probabilities [N] of one target."""
    pit = np.asarray(pit)[:, None]
    pull = normal_quantile(pit)
    return Predictions.judge(pit, pull, np.ones_like(pull), np.abs(pull), "rows", False, **more)


def even(count, width=1.0):
    """Probabilities of count normal targets whose error bars should be `width` times as long."""
    levels = (np.arange(count) + 0.5) / count
    return normal_cdf(width * normal_quantile(levels))


def test_right_error_bars_hold():
    found = judged(even(1000))
    assert found.ok and found.num_rows == 1000
    assert found.coverage == pytest.approx({1: 0.6827, 2: 0.9545}, abs=1e-3)
    assert found.pull_width == pytest.approx(1.0, abs=0.01) and found.pit_ks < 0.001
    assert found.text.startswith("Error bars hold on 1000 rows: 68.2 and 95.4 % lie within")


@pytest.mark.parametrize(
    "width, is_right", [(1.06, True), (1.1, False), (0.95, True), (0.9, False)]
)
def test_many_rows_tell_a_wrong_length(width, is_right):
    assert judged(even(100_000, width)).ok == is_right


def test_few_rows_are_given_what_chance_does():
    assert judged(even(60, 1.2)).ok and not judged(even(60, 2.0)).ok
    few = judged(even(49))
    assert few.ok is None and few.text.startswith("Not checked: only 49 rows, at least 50")


def test_rows_of_groups_count_as_many_as_they_are_worth():
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 25)
    shared, own = generator.normal(size=(2, 1000)) * np.sqrt([[0.8], [0.2]])
    pit = normal_cdf(shared[groups] + own)
    alone, together = judged(pit), judged(pit, groups=groups)
    assert 40 < together.num_effective < 200 and alone.num_effective is None
    assert together._excess < alone._excess
    assert judged(even(1000), groups=np.arange(1000)).num_effective is None
    few = judged(pit, groups=groups // 10)
    assert few.ok is None and "only 4 groups of rows" in few.text
    assert Predictions.from_json(json.loads(json.dumps(together.to_json()))).ok == together.ok


def test_right_shares_about_a_wrong_mean_do_not_hold():
    """The distance of Kolmogorov and Smirnov sees what central intervals miss."""
    pit = even(100_000) ** 1.15
    found = judged(pit)
    assert abs(found.coverage[1] - nominal(1)) < 0.04 and found.pit_ks > 0.04 and not found.ok


def test_the_worst_target_decides_and_is_named():
    pit = np.column_stack([even(1000), even(1000, 1.5), even(1000)])
    names = ("a", "b", "c")
    found = Predictions.judge(pit, *[normal_quantile(pit)] * 3, "rows", True, names)
    assert found.ok is False and found.text.startswith("Error bars of b do not hold on 1000 rows")


def test_rows_that_cannot_be_judged_are_left_out():
    pit = np.append(even(100), np.full(30, np.nan))[:, None]
    found = Predictions.judge(pit, pit, pit, -pit, "rows", False)
    assert found.num_rows == 100 and found.rank_correlation == -1.0


def test_it_says_whether_wide_bars_have_large_errors():
    pit, generator = even(400)[:, None], np.random.default_rng(0)
    stddev, error = generator.exponential(size=(2, 400, 1))
    error += stddev
    found = Predictions.judge(pit, pit, stddev, error, "rows", False)
    assert found.rank_correlation == pytest.approx(stats.spearmanr(stddev, error).statistic)
    assert f"rank correlation with errors {found.rank_correlation:.2f}" in found.text
    assert "rank correlation" not in judged(even(400)).text  # of bars that are all alike


@pytest.mark.parametrize("found", [judged(even(200, 2.0)), judged(even(80)), Predictions()])
def test_it_comes_back_out_of_a_file(found):
    entry = json.loads(json.dumps(found.to_json(), allow_nan=False))
    again = Predictions.from_json(entry)
    assert again.ok == found.ok and again.text == found.text
    assert again.coverage == pytest.approx(found.coverage)


def test_files_that_say_nothing_or_nonsense():
    assert Predictions.from_json(None).ok is None and Chains.from_json(None) is None
    entry = judged(even(80)).to_json()
    for change in ({"coverage": {"1": 0.5}}, {"num_rows": 0}, {"pit_ks": None}, {"source": 3}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            Predictions.from_json(entry | change)
    with pytest.raises(ValueError):
        Chains.from_json({"ok": "yes", "text": ""})


NONE, BARS, MEANS, DRAWS = Severity
WORDS = [
    ((NONE, NONE, True), "usable for error bars"),
    ((NONE, NONE, None), "usable for error bars"),
    ((NONE, NONE, False), "usable for means"),
    ((BARS, NONE, True), "calibrated predictions"),
    ((MEANS, NONE, True), "calibrated predictions"),
    ((NONE, BARS, True), "calibrated predictions"),
    ((BARS, NONE, None), "usable for means"),
    ((BARS, NONE, False), "usable for means"),
    ((MEANS, NONE, None), "not yet"),
    ((MEANS, NONE, False), "not yet"),
    ((NONE, MEANS, True), "not yet"),
    ((DRAWS, NONE, True), "not yet"),
]


@pytest.mark.parametrize("what, word", WORDS)
def test_one_word_for_both(what, word):
    assert verdict_on(*what) == word


LIMIT = "ESS 400, R-hat 1.01, max_seconds=60"
OVER = "max_seconds=60 are spent after 90 draws per chain"


@pytest.mark.parametrize(
    "settings, until, ended, words",
    [
        ((True, "a b"), None, None, "tfbnn resume 'a b' --num-results 300 -o MODEL.h5"),
        ((True, "x.h5.run"), None, None, "tfbnn resume x.h5.run --num-results 300 -o x.h5"),
        ((True, "r", "m.h5"), LIMIT, OVER, "tfbnn resume r --max-seconds 300 -o m.h5"),
        (
            (True, "r", "m.h5"),
            LIMIT,
            "ESS 400",
            "tfbnn resume r --num-results 300 --max-seconds 300 -o m.h5",
        ),
        ((True,), LIMIT, OVER, "the command of the fit with --max-seconds 300"),
        ((True,), None, None, "the command of the fit with --num-results 300"),
        ((True, None, "m.h5", None, False, "tfbnn fit t.csv -o m.h5"), None, None)
        + ("tfbnn fit t.csv -o m.h5 --num-results 300",),
        ((True, None, "m.h5", None, False, "tfbnn fit t.csv --max-seconds 60 -o m.h5"), LIMIT, OVER)
        + ("tfbnn fit t.csv -o m.h5 --max-seconds 300",),
        ((False,), LIMIT, OVER, "fit_posterior with max_seconds=300"),
        ((False, "r"), LIMIT, OVER, "tfbnn.resume('r', max_seconds=300)"),
    ],
)
def test_commands_can_be_pasted_and_keep_limit_folder_and_file(settings, until, ended, words):
    interface = Interface(*settings).of_run(until, ended)
    assert Remedy(num_results=300, times=4.5).words(interface) == words


def test_a_longer_limit_repeats_warm_up_and_sampling_only():
    interface = Interface().of_run(LIMIT, OVER, 10.0)
    words = Remedy(num_results=300, times=4.5).words(interface)
    assert words == "fit_posterior with max_seconds=100"  # 60 + 3.5 * 10, rounded up


def test_a_long_command_is_broken_as_a_shell_wants_it():
    words = "tfbnn resume 'runs/my long name' --num-results 5000 --max-seconds 900 -o bnn.h5"
    lines = step_lines("  Next: ", words, 50)
    assert all(len(line) <= 50 for line in lines.splitlines()) and lines.count("\n") == 2
    assert shlex.split(lines.replace("\\\n", "")) == ["Next:", *shlex.split(words)]


def test_a_warm_up_that_was_cut_short_is_made_anew():
    """A resumed run keeps the step that made it diverge."""
    remedy = Remedy("another seed, or step_size=0.1", times=3.0)
    assert remedy.words(Interface(True, "r")) == "another seed, or --step-size 0.1"
    over = Interface(True, "r").of_run(LIMIT, OVER)
    assert (
        remedy.words(over)
        == "the command of the fit with --max-seconds 200; another seed, or --step-size 0.1"
    )


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (_JUDGE.text, "tfbnn evaluate MODEL.h5 HELD_OUT_ROWS.csv"),
        (
            _OTHER_NOISE.text,
            "--likelihood student_t or heteroscedastic, or tfbnn calibrate with rows that the fit has not "
            "seen",
        ),
        ("kernel=NUTS(max_tree_depth=11)", "--kernel nuts --max-tree-depth 11"),
        (
            _SCATTER.text,
            "--likelihood negative_binomial, unless it is in use, or inputs that explain how rates scatter",
        ),
        ("parameterization='ntk', another seed", "--parameterization ntk, another seed"),
        ("check noise_scale, after y_transform", "check --noise-scale, after --y-transform"),
        ("the step is too long - or too short", "the step is too long - or too short"),
    ],
)
def test_advice_in_python_becomes_options(text, command):
    assert on_command_line(text) == command
