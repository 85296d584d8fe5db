"""The command line: every command, every exit code, and what a user gets wrong."""

import argparse
import contextlib
import dataclasses
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.commands import QUICK, check_refusal
from tests.support.without_tensorflow import command_without_tensorflow
from tfbnn.cli import demo, main
from tfbnn.data.csv_tables import write_csv
from tfbnn.data.tables import read_table
from tfbnn.model import BayesianMLP

COMMANDS = ("demo", "fit", "predict", "evaluate", "diagnose", "plot", "info", "resume")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, synthetic_ensemble):
    """A table with text and noise columns, and models saved with and without column names."""
    folder = tmp_path_factory.mktemp("cli")
    x, y = make_rows(60, 2, 1)
    write_csv(folder / "points.csv", ["b", "a"], x[:, ::-1])
    write_csv(folder / "rows.csv", ["a", "b", "y"], np.column_stack([x, y]))
    values = np.column_stack([x, y, np.full(60, 0.3)]).tolist()
    lines = ["name,a,b,y,sd", *(f"row,{','.join(map(repr, row))}" for row in values)]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    named = {"feature_names": ("a", "b"), "provenance": {"target_names": ["y"]}}
    for name, settings in {
        "named": named,
        "unnamed": {},
        "two": {"layer_sizes": (2, 4, 2)},
        "noisy": named | {"row_noise": True},
    }.items():
        BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / f"{name}.h5")
    return folder


# ----------------------------------------------------------------------------------------
# The parser.
# ----------------------------------------------------------------------------------------


def test_version_and_help(run):
    assert run("--version")[:2] == (0, f"tfbnn {tfbnn.__version__}\n")
    code, out, _ = run("--help")
    assert code == 0 and all(command in out for command in COMMANDS)
    for command in COMMANDS:
        code, out, _ = run(f"{command} --help")
        assert code == 0 and len(out.splitlines()) > 5


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


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("", "COMMAND"),
        ("nonsense", "invalid choice"),
        ("fit", "required"),
        ("fit train.csv --target y --layers x", "widths such as 20,20"),
        ("fit train.csv --target y --layers 3 --num-res 5", "--num-res"),
        ("fit train.csv --target y --layers 3 --num-results few", "invalid int"),
        ("fit train.csv --target y --layers 3 --batch-size some", "or full"),
        ("fit train.csv --target y --layers 3 --noise-scale big", "or learned"),
        ("predict named.h5", "POINTS"),
        ("plot named.h5", "-o"),
    ],
)
def test_bad_command_lines(run, command, word):
    check_refusal(run(command), word, "--help")


def test_module_runs_as_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "tfbnn", "resume", "folder"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "no run in folder" in done.stderr and "Traceback" not in done.stderr


# ----------------------------------------------------------------------------------------
# predict
# ----------------------------------------------------------------------------------------


def table_of(text):
    lines = text.splitlines()
    rows = [[float(cell) for cell in line.split(",")] for line in lines[1:]]
    return lines[0].split(","), np.array(rows)


def test_predict_without_tensorflow(folder):
    done = command_without_tensorflow(folder, "predict", "named.h5", "points.csv")
    assert (done.returncode, done.stderr) == (0, "")
    names, values = table_of(done.stdout)
    assert names == ["mean", "stddev"]
    mean, stddev = tfbnn.load(folder / "named.h5").predict(make_rows(60, 2, 1)[0])
    np.testing.assert_allclose(values, np.hstack([mean, stddev]), rtol=1e-5)


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
    stream = io.StringIO()
    write_csv(stream, ["a", "b"], x)
    stream.seek(0)
    monkeypatch.setattr(sys, "stdin", stream)
    code, out, err = run("predict named.h5 -")
    assert (code, err) == (0, "")
    mean, stddev = tfbnn.load(folder / "named.h5").predict(x)
    np.testing.assert_allclose(table_of(out)[1], np.hstack([mean, stddev]), rtol=1e-7)


def test_predict_for_arrays_and_several_targets(run, folder):
    x, _ = make_rows(60, 2, 1)
    np.savez(folder / "points.npz", x=x)
    code, out, err = run("predict two.h5 points.npz")
    names, values = table_of(out)
    assert (code, err) == (0, "")
    assert names == ["y1_mean", "y1_stddev", "y2_mean", "y2_stddev"]
    mean, stddev = tfbnn.load(folder / "two.h5").predict(x)
    np.testing.assert_allclose(values[:, [0, 2, 1, 3]], np.hstack([mean, stddev]), rtol=1e-7)


def test_predict_picks_columns_by_name_or_by_order(run, folder):
    expected = run("predict named.h5 points.csv")[1]
    assert run("predict named.h5 train.csv")[1] == expected  # among text and targets
    (folder / "other.csv").write_text((folder / "points.csv").read_text().replace("b,a", "p,q"))
    code, out, err = run("predict named.h5 other.csv")
    assert code == 0 and out != expected
    assert err.startswith("Warning: other.csv has none of the model's columns a, b")
    code, out_unnamed, err = run("predict unnamed.h5 other.csv")
    assert (code, out_unnamed, err) == (0, out, "")


def test_predict_with_known_noise(run, folder):
    check_refusal(run("predict noisy.h5 train.csv --include-noise"), "noise_scale")
    assert run("predict noisy.h5 train.csv")[0] == 0
    code, out, _ = run("predict noisy.h5 train.csv --include-noise --noise-column sd")
    x, _ = make_rows(60, 2, 1)
    model = tfbnn.load(folder / "noisy.h5")
    p = model.predict(x, include_noise=True, noise_scale=np.full(60, 0.3))
    np.testing.assert_allclose(table_of(out)[1], np.hstack([p.mean, p.stddev]), rtol=1e-7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,c\n1,2\n", ["no column b", "a, b"]),
        ("p,q,r\n1,2,3\n", ["2 feature columns", "received 3: p, q, r"]),
        ("a,b\n1,2\n3,x\n", ["bad.csv, line 3, column b", "'x'"]),
        ("a,b\n1,nan\n", ["line 2, column b"]),
        ("a,b\n1\n", ["line 2", "expected 2 cells"]),
        ("1,2\n3,4\n", ["header"]),
        ("a,b\n", ["no rows"]),
        ("", ["is empty"]),
        ("a,a,b\n1,2,3\n", ["2 columns a"]),
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
        ("predict named.h5 points.csv --space log", "invalid choice"),
        ("predict named.h5 points.csv -o absent/out.csv", "absent"),
        ("predict named.h5 points.xlsx", ".xlsx"),
    ],
)
def test_predict_refuses_bad_arguments(run, command, word):
    check_refusal(run(command), word)


def test_reader_that_stops_early(folder):
    lines = [f"{number},{number}" for number in range(20000)]
    (folder / "long.csv").write_text("\n".join(["a,b", *lines]))
    command = [sys.executable, "-m", "tfbnn", "predict", "named.h5", "long.csv"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_interrupt(run, monkeypatch):
    def interrupt(path, **settings):
        os.kill(os.getpid(), signal.SIGTERM)

    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("tfbnn.cli.models.load", interrupt)
    assert run("predict named.h5 points.csv") == (85, "", "Stopped.\n")
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize("command", ["info", "predict", "evaluate", "diagnose", "plot"])
def test_model_files_are_foreign_unless_trusted(run, monkeypatch, command):
    calls = []

    def load(path, **settings):
        calls.append(settings)
        raise tfbnn.ModelFileError("seen")

    monkeypatch.setattr("tfbnn.cli.models.load", load)
    more = {"predict": "points.csv", "evaluate": "rows.csv", "plot": "-o figures"}.get(command, "")
    for option in ("", "--trusted"):
        assert run(f"{command} named.h5 {more} {option}")[0] == 2
    assert calls[0] == {"untrusted": True}
    assert not calls[1].get("untrusted")


def test_a_damaged_model_file_takes_three_lines_at_most(run, folder):
    content = (folder / "named.h5").read_bytes()
    (folder / "damaged.h5").write_bytes(content[:3000] + b"?" + content[3001:])
    code, out, err = run("info damaged.h5")
    assert (code, out) == (2, "") and len(err.splitlines()) <= 3
    assert "damaged.h5" in err and "does not match its seal" in err


def test_a_command_reads_a_model_file_in_a_child(folder):
    command = [sys.executable, "-m", "tfbnn", "info", "named.h5", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and json.loads(done.stdout)["num_chains"] == 2, done.stderr


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
    check_refusal(run("evaluate two.h5 both.csv --target u"), "2 targets, received 1")


def test_evaluate_with_known_noise(run):
    check_refusal(run("evaluate noisy.h5 rows.csv"), "noise_scale")
    assert run("evaluate noisy.h5 train.csv --noise-column sd")[0] == 0


def test_evaluate_refuses(run):
    check_refusal(run("evaluate unnamed.h5 rows.csv"), "--target COLUMN")
    check_refusal(run("evaluate named.h5 points.csv"), "no column y")
    check_refusal(run("evaluate named.h5 rows.csv --target z"), "no column z")


def test_diagnose(run):
    code, out, _ = run("diagnose named.h5")
    assert code == 0 and "R-hat" in out and "\n! " in out
    code, out, _ = run("diagnose named.h5 --json --strict")
    assert code == 3 and json.loads(out)["warnings"]


def test_info(run):
    code, out, _ = run("info named.h5")
    assert code == 0
    assert "BayesianMLP 2-5-1" in out and "a, b" in out and "2 chains x 15" in out
    code, out, _ = run("info named.h5 --json")
    contents = json.loads(out)
    assert contents["spec"]["layer_sizes"] == [2, 5, 1]
    assert contents["provenance"]["target_names"] == ["y"]
    assert run("info unnamed.h5")[0] == 0


def test_plot(run, folder):
    pytest.importorskip("matplotlib")
    code, out, _ = run("plot named.h5 -o figures")
    assert code == 0 and len(out.splitlines()) == 2
    code, out, _ = run("plot named.h5 rows.csv -o figures --format svg")
    paths = out.splitlines()
    assert code == 0 and len(paths) == 5
    assert all((folder / path).stat().st_size > 1000 for path in paths)


def test_plot_without_matplotlib(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    check_refusal(run("plot named.h5 -o figures"), "tfbnn[plots]")


# ----------------------------------------------------------------------------------------
# fit and demo: these sample.
# ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(folder):
    """(exit code, standard output, standard error) of a fit that wrote fitted.h5."""
    options = "--epochs 5 --batch-size full --kernel hmc --num-leapfrog-steps 4"
    command = ["fit", "train.csv", "--target", "y", "--features", "b,a", *QUICK, *options.split()]
    command += "--validation-fraction 0.2 --y-transform log10,standardize -o fitted.h5".split()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.tensorflow
def test_fit(fitted, folder):
    code, out, err = fitted
    assert code == 0
    assert "Acceptance" in out and "R-hat" in out
    assert "48 training rows: b, a -> y." in err and "Saved fitted.h5." in err
    warnings = [line for line in err.splitlines() if line.startswith("Warning: ")]
    assert len(warnings) == 1 and "diagnostics failed" in warnings[0]
    ensemble = tfbnn.load(folder / "fitted.h5").posterior
    assert ensemble.feature_names == ("b", "a")
    assert ensemble.spec.layer_sizes == (2, 3, 1)
    assert ensemble.spec.y_transform == ("log10", "standardize")
    assert (ensemble.num_chains, ensemble.num_results) == (2, 12)
    assert len(ensemble.x_reference) == 12


@pytest.mark.tensorflow
def test_fitted_model_in_every_command(fitted, run):
    for command in ("predict fitted.h5 points.csv", "evaluate fitted.h5 rows.csv"):
        code, out, err = run(command)
        assert (code, err) == (0, "") and out
    assert run("diagnose fitted.h5")[0] == 0
    code, out, _ = run("info fitted.h5")
    assert code == 0 and "warnings after the fit; see tfbnn diagnose" in out


@pytest.mark.tensorflow
def test_fit_json_strict_with_row_noise(run, folder):
    options = "--noise-column sd --likelihood student_t --noise-scale 0.5 --prior-scale 0.7"
    options += " --kernel nuts --max-tree-depth 2 --no-pretraining --no-jit-compile --seed 3"
    options += " --validation rows2.csv --json --strict -o noisy_fit.h5"
    text = (folder / "train.csv").read_text().splitlines()
    (folder / "rows2.csv").write_text("\n".join(text[:11]))
    code, out, _ = run(f"fit train.csv --target y {options}", *QUICK)
    assert code == 3
    record = json.loads(out)
    assert record["num_results"] == 12 and "max_tree_depth=2" in record["kernel"]
    ensemble = tfbnn.load(folder / "noisy_fit.h5").posterior
    assert ensemble.row_noise and ensemble.provenance.seed == 3
    assert len(ensemble.x_reference) == 10
    # The name of the noise column is remembered.
    assert run("evaluate noisy_fit.h5 train.csv")[0] == 0
    assert run("predict noisy_fit.h5 train.csv --include-noise")[0] == 0


def stop_in(phase, monkeypatch):
    """Lets the run receive SIGTERM in a phase, once five draws are kept where it keeps any."""
    from tfbnn.run.progress import Progress

    def stop(self, event):
        if event["phase"] == phase and (phase == "warmup" or event["num_kept"] >= 5):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Progress, "__call__", stop)


@pytest.mark.tensorflow
def test_fit_that_is_stopped_saves_what_it_has(run, monkeypatch, folder):
    stop_in("sampling", monkeypatch)
    options = "--no-pretraining --kernel hmc --num-leapfrog-steps 1 --num-results 100000"
    code, out, err = run(f"fit rows.csv --target y -o part.h5 {' '.join(QUICK)} {options}")
    assert (code, out) == (85, "")
    kept = tfbnn.load(folder / "part.h5")
    num_kept = kept._ensemble.num_results
    assert 5 <= num_kept < 100000
    assert f"Stopped with {num_kept} draws kept per chain." in err and "Saved part.h5." in err
    code, _, err = run("predict part.h5 points.csv")
    assert code == 0 and err.startswith("Warning: The run was stopped early")
    assert len(err.splitlines()) == 1


@pytest.mark.tensorflow
def test_fit_that_is_stopped_too_early(run, monkeypatch, folder):
    stop_in("warmup", monkeypatch)
    options = "--no-pretraining --no-jit-compile --kernel hmc --num-leapfrog-steps 1"
    code, out, err = run(f"fit rows.csv --target y -o none.h5 {options}", *QUICK)
    assert (code, out) == (85, "")
    assert "nothing is saved" in err and not (folder / "none.h5").exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("absent.csv --target y --layers 3", "absent.csv"),
        ("rows.csv --target z --layers 3", "no column z"),
        ("train.csv --target name --layers 3", "no column name"),
        ("rows.csv --target y --layers 3 --features a,z", "no column z"),
        ("rows.csv --target y --layers 3 --features a,y", "only one of"),
        ("rows.csv --target y --layers 3 --noise-column y", "only one of"),
        ("rows.csv --target a --target b --target y --layers 3", "no feature columns"),
        ("rows.csv --target y --layers 0", "layer_sizes"),
        ("rows.csv --target y --layers 3 --activation step", "activation"),
        ("rows.csv --target y --layers 3 --prior-scale -1", "scale"),
        ("rows.csv --target y --layers 3 --y-transform sqrt", "sqrt"),
        ("rows.csv --target y --layers 3 --dtype int8", "dtype"),
        ("rows.csv --target y --layers 3 --noise-scale 0", "noise_scale"),
        ("rows.csv --target y --layers 3 --noise-scale 0.1 --likelihood heteroscedastic", "noise"),
        ("rows.csv --target y --layers 3 --epochs -1", "epochs"),
        ("rows.csv --target y --layers 3 --epochs 5 --no-pretraining", "--no-pretraining"),
        ("rows.csv --target y --layers 3 --validation-fraction 1.5", "--validation-fraction"),
        ("rows.csv --target y --layers 3 --validation points.csv", "no column y"),
        ("rows.csv --target y --layers 3 -o absent/bnn.h5", "absent"),
        ("rows.csv --target y --layers 3 -o .", "cannot be written"),
    ],
)
def test_fit_refuses_before_tensorflow_starts(run, monkeypatch, options, word):
    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", None)
    result = run(f"fit {options}")
    result = (*result[:2], "\n".join(x for x in result[2].splitlines() if "Without -o" not in x))
    check_refusal(result, word)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--kernel gibbs", "gibbs"),
        ("--kernel hmc --max-tree-depth 3", "--max-tree-depth is no setting of the kernel hmc"),
        ("--kernel hmc --step-size -1", "step_size"),
        ("--kernel hmc --inner nuts", "--inner is no setting of the kernel hmc"),
        ("--kernel repriorised --max-tree-depth 3", "--max-tree-depth is no setting"),
        ("--kernel repriorised --collapse-readout --regulariser 1", "collapse_readout"),
        ("--output named.h5", "named.h5"),
        ("--resume", "resume=True"),
        ("--commit-interval -1", "commit_interval"),
        ("--num-workers 0", "num_workers"),
        ("--num-results 0", "num_results"),
        ("--early-stopping 5", "early_stopping"),
        ("--verbose 7", "verbose"),
    ],
)
def test_fit_refuses(run, options, word):
    code, out, err = run(f"fit rows.csv --target y --layers 3 {options}")
    lines = [line for line in err.splitlines() if "error" in line]
    assert (code, out, len(lines)) == (2, "", 1)
    assert word in lines[0]


@pytest.mark.tensorflow
def test_a_kernel_inside_another_has_its_options():
    from tfbnn import kernels
    from tfbnn.cli.fit_options import add_options
    from tfbnn.cli.kernel_options import kernel_argument

    parser = argparse.ArgumentParser()
    add_options(parser)
    options = "--inner nuts --max-tree-depth 3 --step-size 0.1 --collapse-readout"
    options += " --no-keep-readout-factor"
    given = f"t.csv --target y --layers 3 --kernel repriorised {options}".split()
    assert kernel_argument(parser.parse_args(given)) == {
        "kernel": kernels.Repriorised(
            kernels.NUTS(max_tree_depth=3, step_size=0.1),
            collapse_readout=True,
            keep_readout_factor=False,
        )
    }
    given = "t.csv --target y --layers 3 --kernel power_posterior --num-temperatures 4".split()
    expected = kernels.PowerPosterior(num_temperatures=4)
    assert kernel_argument(parser.parse_args(given)) == {"kernel": expected}


def test_fit_without_tensorflow(folder):
    done = command_without_tensorflow(folder, "fit", "rows.csv", "--target", "y", "--layers", "3")
    assert done.returncode == 2
    assert "Sampling needs TensorFlow" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.tensorflow
def test_demo(run, monkeypatch, folder):
    pytest.importorskip("matplotlib")
    size = demo.Size(
        num_rows=60, epochs=5, num_leapfrog_steps=2, num_burnin_steps=8, num_results=12
    )
    monkeypatch.setattr(demo, "SIZE", size)
    code, out, err = run("demo -o story")
    assert code == 0, err
    for words in ("GeV", "R-hat", "Within 2 sigma", "+-", "exact", "What next?"):
        assert words in out
    files = set(os.listdir(folder / "story"))
    assert {"demo.h5", "train.csv", "test.csv", "truth.png", "coverage.png"} <= files
    assert tfbnn.load(folder / "story" / "demo.h5").posterior.feature_names[0] == "m_chi10_GeV"
    assert run("predict story/demo.h5 story/test.csv --quantiles 0.16,0.84")[0] == 0
    assert run("evaluate story/demo.h5 story/test.csv")[0] == 0

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(demo, "_fit", lambda data: tfbnn.load("story/demo.h5"))
    code, out, _ = run("demo -o story")
    assert code == 0 and "No figures:" in out and "tfbnn[plots]" in out
