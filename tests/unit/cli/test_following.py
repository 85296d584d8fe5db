"""`tfbnn diagnose --follow` of a run whose commits are made up, and lines as wide as the terminal."""

import argparse
import itertools
import shutil
import sys

import pytest

from tests.support.builders import synthetic_ensemble
from tests.support.commands import check_refusal
from tests.support.followed_runs import NUM_RESULTS, NUM_WARMUP, FakeRun
from tests.support.terminal import terminal
from tfbnn import BayesianMLP
from tfbnn.cli.help_text import HelpFormatter
from tfbnn.storage import RunFolder


@pytest.fixture
def folder(tmp_path):
    """Where the commands run."""
    return tmp_path


def test_every_phase_is_told_from_before_there_is_a_folder(run, tmp_path, meanwhile):
    made = FakeRun(tmp_path / "run")
    meanwhile += [lambda: None] * 20  # longer than anybody waits for a run that was stopped
    meanwhile += [made.path.mkdir, made.begin, made.warm_up(116, 29.0), lambda: None]
    meanwhile += [made.warm_up(184, 60.0), made.sample(10, 2.0, 0), made.sample(30, 8.0, 7)]
    code, out, err = run("diagnose run --follow")
    lines = [line for line in out.splitlines() if " %  " in line]
    assert code == 0 and not meanwhile and len(lines) == 5
    assert lines[0] == "warm-up 0 %  ? to go  0/300 transitions"
    # A quarter of a second per transition, of which 224 are to come.
    expected = "warm-up 38 %  0:56 to go  116/300 transitions  acceptance 0.80  step size 0.05"
    assert lines[1] == expected
    assert lines[2].startswith("sampling 0 %  ? to go  0/40 transitions")
    assert lines[3].startswith("sampling 25 %  0:06 to go  10/40 draws per chain  R-hat median")
    assert lines[4].startswith("sampling 100 %  0:00 to go  40/40 draws per chain  R-hat median")
    assert "14 divergent" in " ".join(out.split()) and "E-BFMI" in out
    assert err.count("no folder run yet") == 1 and err.count("not begun to sample") == 1
    assert "Nobody" not in err


def test_a_run_that_nobody_works_on_is_left(run, tmp_path, meanwhile):
    made = FakeRun(tmp_path / "run")
    made.begin()
    meanwhile += [made.warm_up(116, 29.0)] + [lambda: None] * 6
    code, out, err = run("diagnose run --follow")
    assert not meanwhile and out.count("transitions") == 2
    assert "for 30 s" in err and "tfbnn resume run" in err and code == 2  # there is no draw


def test_a_folder_that_is_removed_ends_it(run, tmp_path, meanwhile):
    made = FakeRun(tmp_path / "run")
    made.begin()
    meanwhile += [lambda: shutil.rmtree(made.path)]
    code, _, err = run("diagnose run --follow")
    assert code == 2 and "run was removed" in err and "the model that it saved" in err


def test_a_folder_that_goes_with_its_run_leads_to_the_model(run, tmp_path, meanwhile):
    made = FakeRun(tmp_path / "bnn.h5.run")
    made.begin()

    def end():
        BayesianMLP.from_ensemble(synthetic_ensemble()).save(tmp_path / "bnn.h5")
        RunFolder.remove(made.path)

    meanwhile += [end]
    code, out, err = run("diagnose bnn.h5.run --follow")
    assert code == 0 and "\nVerdict" in out and "bnn.h5 is saved" in err


@pytest.mark.parametrize(
    "path, words",
    [
        ("a.csv", ["folder of a run"]),
        ("other", ["not a run folder", "other"]),
        ("absent/run", ["only once there is a folder", "absent", "--output"]),
    ],
)
def test_what_cannot_be_followed(run, tmp_path, path, words):
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("mine")
    check_refusal(run(f"diagnose {path} --follow"), *words)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("option, shown", [("", "stdout"), ("--json", "stderr")])
def test_lines_are_as_long_as_the_terminal_has_room_for(
    run, tmp_path, monkeypatch, width, option, shown
):
    made = FakeRun(tmp_path / "run")
    made.begin()
    for commit in (made.warm_up(NUM_WARMUP, 60.0), made.sample(NUM_RESULTS, 8.0, 7)):
        commit()
    with terminal(width) as tty:
        monkeypatch.setattr(sys, shown, tty.stream)
        run(f"diagnose run --follow {option}")
        tty.stream.flush()
        first, *others = tty.lines()
    assert first.startswith("sampling 100 %")
    # A line that the terminal had to break would go on without these spaces.
    *_, last = itertools.takewhile(lambda line: line.startswith("    "), others)
    assert last.endswith("size 0.05")


@pytest.mark.parametrize("columns", [50, 120])
def test_help_follows_the_terminal_and_leaves_examples_alone(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    prose, command = 30 * "words of\nprose ", "  tfbnn fit " + 20 * "--option "
    parser = argparse.ArgumentParser(
        formatter_class=HelpFormatter, description=prose, epilog=f"example:\n{command}\n\n{prose}"
    )
    lines = parser.format_help().splitlines()
    assert command.rstrip() in [line.rstrip() for line in lines]
    filled = [line for line in lines if line.startswith(("words", "of", "prose"))]
    assert columns - 10 < max(map(len, filled)) <= columns - 2
    assert lines[lines.index("example:") + 2] == ""
