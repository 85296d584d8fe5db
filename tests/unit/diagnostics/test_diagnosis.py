"""The diagnosis of a run: its numbers, its sentences, its summary and its JSON form."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tfbnn.diagnostics import statistics as diagnostics
from tfbnn.diagnostics.advice import Sampled, find_problems
from tfbnn.diagnostics.convergence import diagnose
from tfbnn.diagnostics.fit_check import FitCheck, InputCheck, PriorCheck
from tfbnn.diagnostics.problem import PYTHON, Interface, step_lines
from tfbnn.diagnostics.wording import percent

C, S, P, N_REF, K = 4, 400, 7, 5, 2


class Run:
    """A run without any problem: independent draws."""

    def __init__(self):
        generator = np.random.default_rng(3)
        self.stats = {
            "lp": generator.normal(-100.0, 2.0, size=(C, S)),
            "acceptance_rate": np.full((C, S), 0.8),
            "step_size": np.full((C, S), 0.1),
            "n_steps": np.full((C, S), 7),
            "diverging": np.zeros((C, S), dtype=bool),
            "energy": generator.normal(size=(C, S)),
        }
        self.draws = generator.normal(size=(C, S, P))
        self.function = generator.normal(size=(C, S, N_REF, K))

    def diagnose(self, **settings):
        return diagnose(self.draws, self.function, self.stats, **settings)


@pytest.fixture
def run():
    return Run()


def only_warning(diagnosis):
    assert len(diagnosis.warnings) == 1, diagnosis.warnings
    return diagnosis.warnings[0]


def test_numbers_are_those_of_the_diagnostics(run):
    diagnosis = run.diagnose(max_tree_depth=10)
    assert diagnosis.warnings == () and diagnosis.verdict == "usable for error bars"
    for value, function in [
        (diagnosis.rhat_function, diagnostics.rhat),
        (diagnosis.ess_function, diagnostics.bulk_ess),
        (diagnosis.tail_ess_function, diagnostics.tail_ess),
    ]:
        assert value.shape == (N_REF, K)
        np.testing.assert_array_equal(value, function(run.function))
    np.testing.assert_array_equal(diagnosis.rhat_parameters, diagnostics.rhat(run.draws))
    np.testing.assert_array_equal(diagnosis.ess_parameters, diagnostics.bulk_ess(run.draws))
    np.testing.assert_array_equal(diagnosis.ebfmi, diagnostics.ebfmi(run.stats["energy"]))
    assert diagnosis.rhat_log_prob == diagnostics.rhat(run.stats["lp"])
    assert diagnosis.ess_log_prob == diagnostics.bulk_ess(run.stats["lp"])
    assert diagnosis.num_divergent == 0


def test_disagreement_in_function_space_is_reported(run):
    run.function[1, :, 0, 0] += 5.0
    diagnosis = run.diagnose()
    message = only_warning(diagnosis)
    assert message.startswith("The chains do not agree yet: R-hat of the predictions up to ")
    assert "above 1.01 for 1 of 10 reference outputs" in message and "secondary" in message
    assert "model.stack_chains" in message and "not the posterior" in message
    assert "(limit 400)" in message and "for 1 (bulk) and 1 (tail) of them" in message
    # One output in ten is more than the one in twenty that means may miss.
    assert diagnosis.mean_gap[0, 0] > 1.5 and diagnosis.verdict == "not yet"


def test_chains_that_no_run_would_bring_together_are_weighed(run):
    """A number of draws that nobody waits for is not advised: short of it, it is."""
    run.function[1] += 5.0
    shell = Interface(is_command_line=True)
    for times, is_absurd in ((1, False), (20, True)):
        long = np.tile(run.draws, (1, times, 1)), np.tile(run.function, (1, times, 1, 1))
        (problem,) = diagnose(*long, {}).problems
        for interface, first in (
            (PYTHON, "model.stack_chains: "),
            (shell, "tfbnn stack MODEL.h5 "),
        ):
            words = problem.remedy.words(interface)
            assert words.startswith(first) == is_absurd and ("num" in words) != is_absurd
            assert ("stay in modes of their own" in words) == is_absurd


def test_one_chain_has_nothing_to_stack(run):
    run.function[0, : S // 2] += 5.0
    single = {key: value[:1] for key, value in run.stats.items()}
    found = " ".join(diagnose(run.draws[:1], run.function[:1], single).warnings)
    assert "R-hat of the predictions" in found and "stack_chains" not in found


def test_disagreement_of_weights_alone_is_no_warning(run):
    run.draws[1] *= -1.0
    run.draws[:, :, 0] += 10.0 * np.arange(C)[:, None]
    diagnosis = run.diagnose()
    assert diagnosis.rhat_parameters[0] > 1.5
    assert diagnosis.warnings == ()


def test_divergences_are_counted(run):
    run.stats["diverging"][2, :16] = True
    diagnosis = run.diagnose()
    assert diagnosis.num_divergent == 16 and diagnosis.warnings == ()  # 1 % is allowed
    run.stats["diverging"][2, :24] = True
    message = only_warning(run.diagnose())
    assert message.startswith("24 of 1600 transitions (1.5 %) diverged")
    # It may have aimed at 0.9 already.
    assert "a higher target_accept_prob, such as kernel=HMC(target_accept_prob=0.95)" in message


def test_low_ebfmi_names_the_chains(run):
    run.stats["energy"][[1, 3]] = np.cumsum(run.stats["energy"][[1, 3]], axis=1)
    assert "E-BFMI is below 0.3 in chains 1, 3 (" in only_warning(run.diagnose())


def test_saturated_tree_depth_is_a_share(run):
    run.stats["n_steps"][0, :40] = 1023
    diagnosis = run.diagnose(max_tree_depth=10)
    message = only_warning(diagnosis)
    assert diagnosis.verdict == "usable for error bars"  # short trajectories cost time alone
    assert message.startswith("2.5 % of the trajectories reached the largest tree depth 10")
    assert message.endswith("Next: kernel=NUTS(max_tree_depth=11)")
    assert run.diagnose().warnings == ()


def test_chain_in_a_worse_mode_is_named(run):
    run.stats["lp"][2] -= 40.0
    first, second = run.diagnose().warnings
    assert first.startswith("Chain 2 is stuck or in a worse mode: log density 40")
    assert "not yet on the log density: R-hat" in second
    assert first.endswith("Next: another seed, or more num_burnin_steps")
    assert second.endswith("Next: first fix the problems above")


def stand_still(run, chains):
    for values in (run.draws, run.function, run.stats["lp"]):
        values[chains] = values[chains, :1]


def test_chain_that_never_moved_is_named(run):
    stand_still(run, [3])
    run.stats["acceptance_rate"][3] = 0.0
    first = run.diagnose().warnings[0]
    assert first.startswith("Chain 3 never moved: no proposal was accepted, the step is too large")
    run.stats["acceptance_rate"][0] = 0.0
    assert run.diagnose().warnings[0].startswith("Chains 0, 3 never moved")


@pytest.mark.parametrize(
    "acceptance, kind, other", [(1.0, "small", "large"), (0.0, "large", "small")]
)
def test_cause_and_advice_fit_a_fixed_step(run, acceptance, kind, other):
    """Chains none of which moved give one line and no comparison of modes, at any settings."""
    stand_still(run, [0, 1, 2, 3])
    run.stats["acceptance_rate"][:] = acceptance
    run.stats["diverging"][:] = kind == "large"
    diagnosis = run.diagnose(adapts=False)
    message = only_warning(diagnosis)
    assert message.startswith("Chains 0, 1, 2, 3 never moved") and f"step is too {kind}" in message
    assert f"a {other}er step_size, or step_size=None".replace("largeer", "larger") in message
    for word in ("worse mode", "warm-up", "target", "burnin", "e+02"):
        assert word not in " ".join([*diagnosis.warnings, diagnosis.summary()])
    assert diagnosis.verdict == "not yet"


def test_a_kernel_of_the_users_own_is_not_told_of_a_step_size_that_it_has_not(run):
    stand_still(run, [3])
    run.stats["acceptance_rate"][3] = 0.0
    run.stats["step_size"][:] = np.nan
    first = run.diagnose(adapts=False).warnings[0]
    assert first.endswith("Next: smaller steps of your own kernel") and "step_size" not in first


@pytest.mark.parametrize(
    ("still", "starts", "word"),
    [
        ([3], slice(None), "calibrated predictions"),
        ([0, 1, 2, 3], slice(None), "not yet"),
        ([0, 1, 2, 3], [0, 0, 0, 0], "not yet"),
    ],
)
def test_error_bars_of_chains_that_never_moved_are_no_calibrated_predictions(
    run, still, starts, word
):
    stand_still(run, still)
    run.draws, run.function = run.draws[starts], run.function[starts]
    good = SimpleNamespace(predictions=SimpleNamespace(ok=True))
    assert replace(run.diagnose(), fit=good).verdict == word


def test_a_chain_that_stands_still_comes_before_a_prior(run):
    fit = FitCheck(None, PriorCheck(in_tail=0.5), InputCheck("x", 0.0, 1.0))
    assert "prior=Hierarchical" in run.diagnose(fit=fit).warnings[-1]
    stand_still(run, [3])
    run.stats["acceptance_rate"][3] = 0.0
    first, *others = run.diagnose(fit=fit).warnings
    assert first.startswith("Chain 3 never moved") and len(others) == 2
    assert all(text.endswith("Next: first fix the problems above") for text in others)


@pytest.mark.parametrize(
    "acceptance, advice", [(0.99, "a larger step_size"), (0.05, "a smaller step_size")]
)
def test_slow_chains_of_a_fixed_step_are_told_to_change_it(run, acceptance, advice):
    run.function[:] = np.cumsum(run.function, axis=1)
    run.stats["acceptance_rate"][:] = acceptance
    for adapts in (False, True):
        found = " ".join(run.diagnose(adapts=adapts).warnings)
        assert ("num_results" in found) == adapts and (advice in found) == (not adapts)
    run.stats["diverging"][0] = True  # which comes first: more draws of such steps diverge as well
    for adapts, advice in ((True, "target_accept_prob"), (False, "a smaller step_size")):
        first, second = run.diagnose(adapts=adapts).warnings
        assert "diverged" in first and advice in first
        assert second.endswith("Next: first fix the problems above")


def test_non_finite_values_are_named(run):
    run.stats["lp"][1, 5] = -np.inf
    run.function[0, 0, 2, 1] = np.nan
    first, second = run.diagnose().warnings
    assert first.startswith("Chain 1 visited a log density that is not finite")
    assert second.startswith("1 of 10 reference outputs have no R-hat")


@pytest.mark.parametrize("count, verdict", [(1, 1), (4, 2)])
def test_means_need_numbers_at_95_percent_of_the_reference_outputs(run, count, verdict):
    run.function = np.tile(run.function, (1, 1, 4, 1))  # 40 of them
    run.function[0, 0, :count, 0] = np.inf
    diagnosis = run.diagnose()
    assert only_warning(diagnosis).startswith(f"{count} of 40 reference outputs have no R-hat")
    assert diagnosis.severity == verdict


def test_biased_draws_are_not_for_error_bars(run):
    assert run.diagnose().verdict == "usable for error bars"
    diagnosis = run.diagnose(is_adjusted=False)
    assert diagnosis.verdict == "usable for means"
    assert only_warning(diagnosis).startswith("The kernel is biased")


def test_one_chain_and_few_draws(run):
    short = {key: value[:1, :3] for key, value in run.stats.items()}
    diagnosis = diagnose(run.draws[:1, :3], run.function[:1, :3], short, max_tree_depth=10)
    assert diagnosis.warnings[0].startswith("The chains have only 3 draws each")
    assert diagnosis.warnings[1].startswith("There is only 1 chain")
    assert np.all(np.isnan(diagnosis.rhat_function))
    assert "nan" in diagnosis.summary() and diagnosis.verdict == "not yet"
    assert json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))


def test_chains_of_one_start_cannot_see_other_modes(run):
    diagnosis = run.diagnose(superchains=[5] * C)
    assert only_warning(diagnosis).startswith("All chains start from one network")
    assert run.diagnose(superchains=[1, 0, 1, 0]).verdict == "usable for error bars"


def test_absent_statistics_are_nan(run):
    diagnosis = diagnose(run.draws, run.function, {})
    assert np.isnan(diagnosis.rhat_log_prob) and np.all(np.isnan(diagnosis.ebfmi))
    assert diagnosis.ebfmi.shape == (C,) and diagnosis.num_divergent == 0
    assert diagnosis.warnings == ()


def test_summary_has_the_verdict_and_function_space_first_in_aligned_lines(run):
    lines = run.diagnose().summary().splitlines()
    labels = filter(None, (line[:13].strip() for line in lines))
    assert " | ".join(labels) == "verdict | function | log density | weights | rows"
    assert lines[0] == "verdict      usable for error bars"
    assert all(line[13] != " " and len(line) <= 100 for line in lines)
    assert "below 1.05: 100 % of 10 reference outputs" in lines[2]


def test_verdict_needs_little_disagreement_and_enough_draws(run):
    """The limits of the verdict, each from both sides, on numbers as they come out of `diagnose`."""
    run.function = np.concatenate([run.function] * 4, axis=2)  # 40 outputs

    def verdict(**changes):
        return replace_and_judge(run.diagnose(), **changes)

    rhats = np.full((20, 2), 1.005)
    assert verdict(rhat_function=rhats) == "usable for error bars"
    rhats[0] = 1.025  # one in twenty
    assert verdict(rhat_function=rhats) == "usable for error bars"
    rhats[1, 0] = 1.025
    assert verdict(rhat_function=rhats) == "usable for means"
    rhats[1, 0], rhats[0, 0] = 1.0, 1.031
    assert verdict(rhat_function=rhats) == "usable for means"
    sizes = np.full((20, 2), 400.0)
    assert verdict(ess_function=sizes, tail_ess_function=sizes) == "usable for error bars"
    fewer = sizes.copy()
    fewer[3, 1] = 399.0
    assert "usable for means" == verdict(ess_function=fewer)
    assert "usable for means" == verdict(tail_ess_function=fewer)
    gaps = np.zeros((20, 2))
    gaps[0] = 0.5
    assert verdict(mean_gap=gaps) == "usable for error bars"
    gaps[1, 0] = 0.5
    assert verdict(mean_gap=gaps) == "not yet"


def replace_and_judge(diagnosis, **changes):
    sampled = Sampled(np.zeros((4, 400, 1)) + np.arange(400)[:, None], {}, None, True, True, 4)
    problems = tuple(find_problems(replace(diagnosis, **changes), sampled))
    return replace(diagnosis, problems=problems).verdict


def test_advice_is_in_the_words_of_the_interface(run):
    run.function[1] += 5.0
    diagnosis = run.diagnose()
    shell = Interface(is_command_line=True, folder="my run")
    first, *rest = diagnosis.lines(shell, 300)
    assert first == "Verdict      not yet (1 problem)"
    rest = rest[2:]
    assert rest[1].endswith("Next: tfbnn resume 'my run' --num-results 7000 -o MODEL.h5")
    assert "model." not in " ".join(rest) and "secondary" not in " ".join(rest)
    (sentence,) = diagnosis.warnings
    assert "fit_posterior with num_results=7000" in sentence and "tfbnn resume" not in sentence
    in_folder = diagnosis.lines(Interface(folder="my run"), 400)
    assert "tfbnn.resume('my run', num_results=7000)" in in_folder[-1]
    # Text beside a command is no part of what a shell would run.
    both = step_lines(
        "Next: ", "tfbnn fit 'my; rows.csv' --target y -o m.h5; a prior of other words", 40
    )
    assert (
        both
        == """Next: tfbnn fit 'my; rows.csv' \\
      --target y -o m.h5
      or a prior of other words"""
    )
    narrow = diagnosis.lines(shell, 60, details=True)
    assert all(len(line) <= 60 for text in narrow for line in text.splitlines())
    assert "secondary" in " ".join(narrow)


def test_percentages_never_have_an_exponent():
    wanted = {0.0: "0 %", 1e-6: "under 0.01 %", 0.0033: "0.33 %", 0.015: "1.5 %", 0.082: "8.2 %"}
    wanted |= {0.384: "38 %", 0.996: "over 99 %", 1.0: "100 %"}
    assert {share: percent(share) for share in wanted} == wanted


def test_json_form_is_plain_and_keeps_infinity_apart_from_undefined(run):
    run.function[..., 0, 0] = np.arange(C)[:, None]
    run.function[..., 1, 0] = 1.0
    content = run.diagnose().to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["function"]["rhat"]["max"] == "inf"
    assert content["function"]["num_undefined"] == 1
    assert len(content["log_density"]["ebfmi"]) == C
