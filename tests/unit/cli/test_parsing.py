"""Slips on the command line: the message says what may have been meant, and where to look."""

import argparse

import pytest

from tests.support.commands import check_refusal
from tfbnn.cli.app import parsers
from tfbnn.cli.parsing import HelpFormatter, parse

AUTO = "fit rows.csv --target y"
GOES = ["--prior-scale goes with --prior normal"]
FIT = f"{AUTO} --layers 3"


def test_rows_may_follow_an_option():
    found = parse(parsers()[0], ["plot", "m.h5", "-o", "figures", "rows.csv"])
    assert (found.model, found.data, found.output) == ("m.h5", "rows.csv", "figures")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", ["COMMAND", "tfbnn --help"]),
        ("fit", ["required", "tfbnn fit --help"]),
        ("fit rows.csv --target y --layers x", ["widths such as 20,20", "tfbnn fit --help"]),
        (f"{FIT} --num-results few", ["auto or a whole number", "tfbnn fit --help"]),
        (f"{FIT} --until draws=5", ["ess=X,rhat=X,max_seconds=X", "tfbnn fit --help"]),
        ("resume run --until rhat=0.9", ["rhat must be > 1", "tfbnn resume --help"]),
        (f"{FIT} --batch-size some", ["or full", "tfbnn fit --help"]),
        (f"{FIT} --noise-scale big", ["or learned", "tfbnn fit --help"]),
        ("predict named.h5", ["POINTS", "tfbnn predict --help"]),
        ("plot named.h5", ["-o", "tfbnn plot --help"]),
        (f"{FIT} --layer 20", ["unknown option --layer", "'--layers'", "tfbnn fit --help"]),
        ("fit rows.csv --target y --layer=20", ["unknown option --layer", "'--layers'"]),
        ("--traceback fit rows.csv --targt y", ["unknown option --targt", "'--target'"]),
        (f"{FIT} --random-state=5", ["unknown option --random-state.", "'--seed'"]),
        (f"{FIT} --quiet", ["'--verbose'"]),
        ("predict m.h5 x.csv --random-state 5", ["It belongs to a fit: tfbnn fit with --seed."]),
        ("resume run --step-size 1", ["for example tfbnn fit --kernel hmc --step-size."]),
        ("evaluate m.h5 rows.csv --quantiles 0.5", ["tfbnn predict --quantiles 0.16,0.84 gives"]),
        (f"{FIT} 20", ["argument '20'. Separate the entries of a list", "tfbnn fit --help"]),
        ("fit --layers 20 20 --target y rows.csv", ["'rows.csv'. Separate the entries of a list"]),
        ("predict model.h5 rows.csv --quantiles 0.1 0.9", ["argument '0.9'. Separate the entries"]),
        ("predict m.h5 rows.csv more.csv", ["unexpected argument 'more.csv'", "predict --help"]),
        ("predct model.h5", ["invalid choice: 'predct'", "Did you mean 'predict'?", "evaluate"]),
        (f"{FIT} --kernel hcm", ["Did you mean 'hmc'?", "received 'hcm'", "tfbnn fit --help"]),
        (f"{FIT} --activation tahn", ["activation must be one of", "Did you mean 'tanh'?"]),
        (f"{FIT} --activation tanh,ReLU --layers 3,3", ["Did you mean 'relu'?"]),
        (f"{FIT} --prior normla", ["--prior", "Did you mean 'normal'?", "tfbnn fit --help"]),
        (f"{FIT} --y-transform log10,standardise", ["Did you mean 'standardize'?"]),
        (f"{FIT} --until es=100", ["--until", "Did you mean 'ess'?"]),
        ("fit rows.csv --target yy", ["no column yy", "Did you mean 'y'?"]),
        ("fit rows.csv --target y --features aa", ["no column aa", "Did you mean 'a'?"]),
        ("slha evla gauginos", ["invalid choice: 'evla'", "Did you mean 'eval'?", "slha --help"]),
        ("slha", ["COMMAND", "tfbnn slha --help"]),
        ("slha make d.toml -o g --exist add", ["--exist.", "'--existing'", "slha make --help"]),
        (f"{FIT} --xyzzy", ["unknown option --xyzzy.\n"]),
        ("predict m.h5 rows.csv --quantiles 0.5,0.5", ["--quantiles", "different"]),
        (f"{FIT} --learning-rate nan", ["learning_rate"]),
        (f"{FIT} --learning-rate -1e400", ["learning_rate"]),
        (f"{AUTO} --step-size 1", ["--step-size is a setting of a kernel, received --kernel auto"]),
        (f"{AUTO} --prior hierarchical --prior-scale 2", GOES),
        (f"{FIT} --output=", ["output must be a folder's path", "''"]),
    ],
)
def test_slips(run, monkeypatch, command, words):
    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", None)
    check_refusal(run(command), *words)


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
