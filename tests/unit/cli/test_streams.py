"""Check commands with streams that are closed or narrow, and with names that move a cursor."""

import io
import json
import re
import subprocess
import sys
import warnings

import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.commands import check_refusal
from tests.support.tables import write_csv
from tfbnn.cli import main
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Categorical

EVIL = "a\x1b]0;owned\x07\r\x9b2J"
GREEK = ("été", "α", "plain")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with names that a terminal would obey, and a classifier with letters beyond ASCII."""
    folder = tmp_path_factory.mktemp("streams")
    x = make_rows(5, 2, 1)[0]
    write_csv(folder / "points.csv", ["a", "b"], x)
    write_csv(folder / "part.csv", ["b", "c"], x)
    provenance = {"target_names": [EVIL], "kernel": EVIL, "bias": EVIL}
    settings = {"feature_names": (EVIL, "b"), "provenance": provenance}
    BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / "evil.h5")
    settings = {"layer_sizes": (2, 4, 3), "likelihood": Categorical(), "classes": GREEK}
    BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / "greek.h5")
    return folder


def start(folder, command, redirection):
    """The finished process of a command, with streams closed by the shell before it starts."""
    shell = f'exec "$0" -m tfbnn {command} {redirection}'
    command = ["sh", "-c", shell, sys.executable]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=60)


def test_closed_standard_output(folder):
    done = start(folder, "predict --trusted greek.h5 points.csv -o out.csv", ">&-")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (folder / "out.csv").read_text().count("\n") == 6
    done = start(folder, "predict --trusted greek.h5 points.csv", ">&-")
    assert done.returncode == 2 and b"Standard output is closed" in done.stderr


def test_closed_standard_error(folder):
    done = start(folder, "fit points.csv --target b --layers 3 --kernel hcm", "2>&-")
    assert (done.returncode, done.stdout) == (2, b"")


def test_closed_standard_input(folder):
    done = start(folder, "predict --trusted greek.h5 -", "<&-")
    assert done.returncode == 2 and done.stdout == b""
    assert b"standard input is empty" in done.stderr and b"Traceback" not in done.stderr


def test_letters_that_standard_output_lacks(folder, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.chdir(folder)
    assert main(["predict", "--trusted", "greek.h5", "points.csv"]) == 0
    stream.flush()
    header = stream.buffer.getvalue().decode("latin-1").splitlines()[0]
    assert r"p_\u03b1" in header and "p_été" in header


@pytest.mark.parametrize(
    "command",
    [
        "info evil.h5", "info evil.h5 --json", "diagnose evil.h5", "predict evil.h5 part.csv",
        "predict evil.h5 points.csv", "evaluate evil.h5 points.csv",
        ["fit points.csv --layers 3 --target", EVIL], ["predict evil.h5", EVIL],
    ],
)  # fmt: skip
def test_no_control_character_reaches_the_terminal(run, command):
    code, out, err = run(*([command] if isinstance(command, str) else command))
    assert code in (0, 2)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out + err)
    assert "owned" in out + err or command == "predict evil.h5 points.csv"


def test_warnings_show_no_control_character(run, monkeypatch):
    def load(*_, **__):
        warnings.warn(EVIL, UserWarning, stacklevel=1)
        raise tfbnn.ModelFileError(EVIL)

    monkeypatch.setattr("tfbnn.cli.arguments.load", load)
    result = run("info evil.h5")
    check_refusal(result, "Warning: ", r"\x1b]0;owned\x07")
    assert "\x1b" not in result[2] and "\x07" not in result[2]


def test_json_is_still_json(run):
    assert json.loads(run("info evil.h5 --json")[1])["feature_names"] == [EVIL, "b"]
