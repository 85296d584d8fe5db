"""The report: its verdict comes first, advice is in the words of the interface, lines fit."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.support.builders import synthetic_ensemble
from tests.support.run_records import make_run
from tests.support.terminal import terminal
from tfbnn.diagnostics.problem import Interface, Remedy
from tfbnn.diagnostics.verdict import MEANINGS
from tfbnn.posterior.fit_checking import diagnose_ensemble
from tfbnn.posterior.prediction import function_draws
from tfbnn.run.until import Until
from tfbnn.spec.choices import Choice
from tfbnn.spec.rows import NetworkRows


@pytest.fixture(scope="module")
def diagnosis():
    ensemble = synthetic_ensemble((2, 4, 1), num_chains=2, num_results=20)
    generator = np.random.default_rng(1)
    x = generator.normal(size=(30, 2))
    y = function_draws(ensemble, x).mean(axis=0) + 0.3 * generator.normal(size=(30, 1))
    return diagnose_ensemble(ensemble, training_rows=NetworkRows(x, y, None))


def test_verdict_then_problems_then_the_course(diagnosis):
    lines = make_run(diagnosis).report(width=1000).splitlines()
    count = len(diagnosis.problems)
    assert lines[0] == f"Verdict      {diagnosis.verdict} ({count} problems)"
    assert diagnosis.verdict != "usable for error bars"
    assert lines[1].startswith("Chains       no. ")
    assert lines[2].startswith("Predictions  Not checked")
    assert lines[3].strip() == MEANINGS[diagnosis.verdict]
    problems, course = lines[4 : count + 4], lines[count + 4 :]
    assert all(line.startswith("! ") and ". Next: " in line for line in problems)
    assert course[0].startswith("Kernel       HMC(")
    course, details = "\n".join(course), make_run(diagnosis).report(details=True, width=1000)
    tuned = "58 % to 94 % of the proposals were accepted; steps were tuned for 65 % (default"
    assert tuned in course and "Divergences  9 (22 %) in the sampling phase" in course
    assert lines[-1] == "Details      run.report(details=True)"
    assert "4.0 s: startup 1.0" in course and "R-hat median" in course and "R2 " in course
    assert "BIASED by a little" in course
    # On request only.
    for word in ("ADAM", "Geometry", "secondary", "tail ESS", "only costs time"):
        assert word not in course and word in details


def test_what_was_chosen_stands_there_with_the_reason(diagnosis):
    choices = (Choice("kernel", "HMC()", "N P = 5"), Choice("prior", "Normal(1)", "as ever"))
    run = make_run(diagnosis, choices=choices)
    chosen = "\nChosen       kernel HMC(): N P = 5\n             prior Normal(1): as ever"
    for details in (False, True):
        assert chosen in run.report(details, width=1000)
    assert run.to_dict()["choices"]["kernel"] == {"chosen": "HMC()", "why": "N P = 5"}
    assert "Chosen" not in make_run(diagnosis).report()


def test_each_interface_has_its_own_words(diagnosis):
    more = {"remedy": Remedy(num_results=100, times=5.0)}
    problems = tuple(
        replace(one, **more if "do not agree" in one.what else {})
        for one in diagnosis.problems
        if "diverged" not in one.what
    )
    diagnosis = replace(diagnosis, problems=problems)
    run = make_run(diagnosis, folder="runs/1")
    assert "tfbnn.resume('runs/1', num_results=" in run.report()
    shell = run.report(interface=Interface(is_command_line=True, folder="runs/1"), details=True)
    assert "tfbnn resume runs/1 --num-results " in shell
    for word in ("num_results", "model.", "run.report", "step_size=", "y_transform="):
        assert word not in shell
    assert "fit_posterior with num_results=" in make_run(diagnosis).report()


@pytest.mark.parametrize("seconds", [1e-5, 0.5, 3e12])
def test_the_limit_of_a_run_is_read_from_its_record(seconds):
    assert Interface().of_run(str(Until(max_seconds=seconds)), None).max_seconds == seconds


def test_too_few_draws_are_no_verdict_on_anything():
    run = make_run(None)
    assert run.report().startswith("Verdict      not yet\nChains       no. Too few draws")
    assert run.verdict == run.to_dict()["verdict"] == "not yet"
    assert make_run(None, num_results=0).verdict == "not sampled"
    assert run.chains.ok is False and run.predictions.ok is None


def test_lines_fit_the_terminal(diagnosis, monkeypatch):
    longest = max(map(len, make_run(diagnosis).report().splitlines()))
    assert 80 < longest <= 100
    with terminal(60) as tty:
        monkeypatch.setattr(sys, "stdout", tty.stream)
        report = make_run(diagnosis).report()
    assert 50 < max(map(len, report.splitlines())) <= 60


def test_at_a_prompt_a_run_shows_its_verdict_first_in_a_few_lines(diagnosis):
    run = make_run(diagnosis, ended="ESS 412 and R-hat 1.006 after 20 draws per chain")
    assert repr(run).splitlines() == [
        f"Run: {diagnosis.headline}",
        "2 chains x 20 draws by HMC in 4.0 s",
        "ESS 412 and R-hat 1.006 after 20 draws per chain",
        "print(run.report()) says more",
    ]
    assert len(repr(make_run(None)).splitlines()) == 3


def test_notebooks_show_the_report_of_a_run_folded(diagnosis):
    page = make_run(diagnosis, kernel="<b>HMC</b>()")._repr_html_()
    assert page.startswith(f"<div><b>Run: {diagnosis.headline}</b><br>")
    assert "&lt;b&gt;HMC" in page and "Divergences" in page
