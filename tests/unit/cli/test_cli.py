"""The command line: every command, every exit code, and what a user gets wrong."""

import dataclasses
import inspect
import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.commands import check_refusal
from tests.support.tables import write_csv
from tests.support.without_tensorflow import commands_without_tensorflow
from tfbnn.data.tables import read_table
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Categorical

COMMANDS = (
    *"demo fit predict evaluate calibrate diagnose plot report info resume compress stack".split(),
    *("export", "completion", "slha", "slha make", "slha info", "slha eval"),
)


# ----------------------------------------------------------------------------------------
# The parser.
# ----------------------------------------------------------------------------------------


def test_version_and_help(run):
    assert run("--version")[:2] == (0, f"tfbnn {tfbnn.__version__}\n")
    code, out, _ = run("--help")
    assert code == 0 and all(command.split()[0] in out for command in COMMANDS)
    for command in COMMANDS:
        code, out, _ = run(f"{command} --help")
        assert code == 0 and len(out.splitlines()) > 5


def test_help_waits_for_no_library():
    code = """
import sys
from tfbnn.cli import main
for option in ("--help", "--version"):
    assert main([option]) == 0
assert not {"numpy", "h5py"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_fit_has_every_argument_of_fit_posterior(run):
    out = " ".join(run("fit --help")[1].split())
    parameters = inspect.signature(BayesianMLP.fit_posterior).parameters.values()
    data = {"self", "x", "y", "noise_scale", "validation_data", "pretraining", "callbacks"}
    for parameter in parameters:
        if parameter.name not in data:
            assert "--" + parameter.name.replace("_", "-") in out
            if type(parameter.default) is int:
                assert re.search(rf"{parameter.name.replace('_', '-')} \w.*?default "
                                 rf"{parameter.default}\b", out)  # fmt: skip
    for field in dataclasses.fields(tfbnn.Pretraining):
        if isinstance(field.default, float) or type(field.default) is int:
            assert f"default {field.default}" in out


# ----------------------------------------------------------------------------------------
# predict
# ----------------------------------------------------------------------------------------


def table_of(text):
    """(Names, numbers) of a table on standard output."""
    names, *rows = (line.split(",") for line in text.splitlines())
    return names, np.array(rows, float)


def test_predict_with_everything(run, folder):
    options = "--quantiles 0.16,0.84 --include-noise --space transformed -o out.csv"
    assert run(f"predict named.h5 points.csv {options}") == (0, "", "")
    table = read_table(folder / "out.csv")
    assert table.columns == ("mean", "stddev", "q0.16", "q0.84")
    x, model = make_rows(60, 2, 1)[0], tfbnn.load(folder / "named.h5")
    p = model.predict(x, include_noise=True, quantiles=[0.16, 0.84], space="transformed")
    expected = np.hstack([p.mean, p.stddev, *p.quantiles])
    np.testing.assert_allclose(table.values, expected, rtol=1e-7)
    assert [name for name in os.listdir(folder) if name.startswith(".")] == []


def test_predict_from_standard_input_in_pieces(run, folder, monkeypatch):
    x = np.random.default_rng(0).normal(size=(2500, 2))
    write_csv(folder / "many.csv", ["a", "b"], x)
    monkeypatch.setattr(sys, "stdin", io.StringIO((folder / "many.csv").read_text()))
    code, out, err = run("predict named.h5 -")
    assert (code, err) == (0, "")
    mean, stddev = tfbnn.load(folder / "named.h5").predict(x)
    np.testing.assert_allclose(table_of(out)[1], np.hstack([mean, stddev]), rtol=1e-7)


def test_predict_picks_columns_by_name_or_by_order(run, folder):
    expected = run("predict named.h5 points.csv")[1]
    assert run("predict named.h5 train.csv")[1] == expected  # among text and targets
    (folder / "other.csv").write_text((folder / "points.csv").read_text().replace("b,a", "p,q"))
    code, out, err = run("predict named.h5 other.csv")
    assert code == 0 and out != expected
    assert err.startswith("Warning: other.csv has none of the model's columns a, b")
    code, out_unnamed, err = run("predict unnamed.h5 other.csv")
    assert (code, out_unnamed, err) == (0, out, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,c\n1,2\n", ["no column b", "a, c"]),
        ("p,q,r\n1,2,3\n", ["2 feature columns", "received 3: p, q, r"]),
        ("a,b\n1,2\n3,x\n", ["bad.csv, line 3, column b", "'x'"]),
    ],
)
def test_predict_refuses_bad_tables(run, folder, text, words):
    (folder / "bad.csv").write_text(text)
    check_refusal(run("predict named.h5 bad.csv"), "tfbnn predict: error:", *words)
    check_refusal(run("predict named.h5 bad.csv -o never.csv"), *words)
    assert not (folder / "never.csv").exists()


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("predict absent.h5 points.csv", "absent.h5"),
        ("predict named.h5 absent.csv", "absent.csv"),
        ("predict points.csv points.csv", "points.csv"),
        ("predict named.h5 points.csv --quantiles 0.5,x", "--quantiles"),
        ("predict named.h5 points.csv --quantiles 1.5", "quantiles"),
        ("predict noisy.h5 train.csv --include-noise", "noise_scale"),
        ("evaluate unnamed.h5 rows.csv", "--target COLUMN"),
        ("evaluate named.h5 points.csv", "no column y"),
        ("evaluate two.h5 rows.csv --target y", "2 targets, received 1"),
    ],
)
def test_what_is_refused(run, command, word):
    check_refusal(run(command), word)


def test_noise_that_is_known_is_a_column(run, folder):
    assert run("predict noisy.h5 train.csv")[0] == 0
    assert run("evaluate noisy.h5 train.csv --noise-column sd")[0] == 0
    code, out, _ = run("predict noisy.h5 train.csv --include-noise --noise-column sd")
    x, model = make_rows(60, 2, 1)[0], tfbnn.load(folder / "noisy.h5")
    p = model.predict(x, include_noise=True, noise_scale=np.full(60, 0.3))
    np.testing.assert_allclose(table_of(out)[1], np.hstack([p.mean, p.stddev]), rtol=1e-7)


def test_reader_that_stops_early(folder):
    lines = [f"{number},{number}" for number in range(8000)]  # more than a pipe holds
    (folder / "long.csv").write_text("\n".join(["a,b", *lines]))
    command = [sys.executable, "-m", "tfbnn", "predict", "named.h5", "long.csv"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, **pipes) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


@pytest.mark.parametrize("command", ["info", "predict", "evaluate", "diagnose", "plot"])
def test_model_files_are_foreign_unless_trusted(run, monkeypatch, command):
    calls = []

    def load(path, **settings):
        calls.append(settings)
        raise tfbnn.ModelFileError("seen")

    monkeypatch.setattr("tfbnn.cli.arguments.load", load)
    more = {"predict": "points.csv", "evaluate": "rows.csv", "plot": "-o figures"}.get(command, "")
    for option in ("", "--trusted"):
        assert run(f"{command} named.h5 {more} {option}")[0] == 2
    assert calls[0] == {"untrusted": True}
    assert not calls[1].get("untrusted")


def test_traceback_on_demand(run):
    with pytest.raises(FileNotFoundError):
        run("--traceback predict absent.h5 points.csv")


# ----------------------------------------------------------------------------------------
# evaluate, diagnose, info, plot, resume
# ----------------------------------------------------------------------------------------


def test_evaluate(run, folder):
    code, out, err = run("evaluate named.h5 rows.csv")
    assert (code, err) == (0, "")
    assert "RMSE" in out and "Within 1 sigma" in out and "68.27 % nominal" in out
    code, out, _ = run("evaluate unnamed.h5 rows.csv --target y --json")
    scores, rows = json.loads(out), make_rows(60, 2, 1)
    expected = tfbnn.load(folder / "unnamed.h5").evaluate(*rows)
    assert scores["rmse"] == pytest.approx(expected["rmse"])
    assert scores["coverage"]["1"] == pytest.approx(expected["coverage"][1])


def test_evaluate_several_targets(run, folder):
    x, y = make_rows(60, 2, 2)
    write_csv(folder / "both.csv", ["a", "b", "u", "v"], np.hstack([x, y]))
    code, out, _ = run("evaluate two.h5 both.csv --target u --target v")
    assert code == 0 and out.splitlines()[0].split() == ["u", "v"]


def test_diagnose(run):
    code, out, _ = run("diagnose named.h5")
    assert code == 0 and "R-hat" in out and "\n! " in out
    code, out, _ = run("diagnose named.h5 --json --strict")
    assert code == 3 and json.loads(out)["warnings"]


def test_info(run):
    code, out, _ = run("info named.h5")
    assert code == 0
    assert "BayesianMLP 2-5-1" in out and "a, b" in out and "2 x 15 draws" in out
    assert re.search(r"^File +0\.\d MB$", out, re.MULTILINE)
    code, out, _ = run("info named.h5 --json")
    contents = json.loads(out)
    assert contents["spec"]["layer_sizes"] == [2, 5, 1]
    assert contents["provenance"]["target_names"] == ["y"]
    assert run("info unnamed.h5")[0] == 0


def test_plot(run, folder, monkeypatch):
    figure, saved = pytest.importorskip("matplotlib.figure").Figure, []
    monkeypatch.setattr(figure, "savefig", lambda *_, **options: saved.append(options["format"]))
    code, out, _ = run("plot named.h5 -o figures")
    assert code == 0 and out.split() == ["figures/convergence.png", "figures/slices.png"]
    code, out, _ = run("plot named.h5 rows.csv -o figures --format svg")
    assert code == 0 and len(out.splitlines()) == 5 and saved == ["png"] * 2 + ["svg"] * 5


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("absent.csv --target y --layers 3", "absent.csv"),
        ("train.csv --target name --layers 3", "column name: expected numbers"),
        ("rows.csv --target y --layers 3 --features a,y", "only one of"),
        ("rows.csv --target y --layers 3 --noise-column y", "only one of"),
        ("rows.csv --target a --target b --target y --layers 3", "no feature columns"),
        ("rows.csv --target y --layers 0", "layer_sizes"),
        ("rows.csv --target y --layers 3 --noise-scale 0.1 --likelihood heteroscedastic", "noise"),
        ("rows.csv --target y --layers 3 --epochs -1", "epochs"),
        ("rows.csv --target y --layers 3 --epochs 5 --no-pretraining", "--no-pretraining"),
        ("rows.csv --target y --layers 3 --validation points.csv", "no column y"),
    ],
)
def test_fit_refuses_before_tensorflow_starts(run, monkeypatch, options, word):
    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", None)
    result = run(f"fit {options}")
    result = (*result[:2], "\n".join(x for x in result[2].splitlines() if "Without -o" not in x))
    check_refusal(result, word)


LACKING = {
    "fit rows.csv --target y --layers 3 --num-results 9 -o new.h5": (
        "Sampling, log_prob and SavedModel need TensorFlow",
        "fit",
    ),
    "plot named.h5 rows.csv --target y -o figures": ("Plots need Matplotlib", "plots"),
    "evaluate named.h5 rows.parquet": ("Reading rows.parquet needs pyarrow", "parquet"),
}
# One of them reads the model file in a child, which takes 0.2 s.
SAME = (
    *("evaluate named.h5 rows.csv --json --trusted", "info named.h5 --json"),
    "diagnose named.h5 --json --trusted",
)
PREDICTIONS = [f"predict {name}.h5 points.csv --trusted" for name in ("named", "classes")]
WRITING = {
    "compress named.h5 -n 5 --method stride -o stride.h5 --trusted": "stride.h5",
    "calibrate named.h5 rows.csv -o light.h5 --trusted": "light.h5",
    "stack named.h5 rows.csv -o stacked.h5 --trusted": "stacked.h5",
}


def test_the_light_install_says_the_same_or_names_the_extra_it_lacks(folder, run):
    """All commands in one process, which has NumPy and h5py alone."""
    (folder / "rows.parquet").touch()
    labels = synthetic_ensemble((2, 4, 3), likelihood=Categorical(), feature_names=("a", "b"))
    BayesianMLP.from_ensemble(labels).save(folder / "classes.h5")
    done = commands_without_tensorflow(folder, [*LACKING, *SAME, *WRITING, *PREDICTIONS])
    for (need, extra), result in zip(LACKING.values(), done):
        check_refusal(result, f"{need}, which is not installed")
        assert f": pip install 'tfbnn[{extra}]'" in result[2]
    for command, (code, out, err) in zip((*SAME, *WRITING), done[len(LACKING) :]):
        assert (code, err) == (0, ""), command
        if command in SAME:
            assert json.loads(out) == json.loads(run(command)[1])
        else:
            assert tfbnn.load(folder / WRITING[command]).posterior.num_draws in (5, 30)
    assert done[-2:] == [run(command) for command in PREDICTIONS]
    assert [out.split(",")[0] for _, out, _ in done[-2:]] == ["mean", "class"]
