"""`tfbnn fit` and `tfbnn demo`: they sample, stop, refuse, and what they save is of use."""

import argparse
import contextlib
import io
import json
import os
import re
import signal
import sys

import pytest

import tfbnn
from tests.support.commands import QUICK, write_tables_and_models
from tests.support.small_runs import blocks_of
from tfbnn.cli import demo, main

# Of fits that share one program, of blocks that are short enough to stop between.
SMALL = "--validation few.csv --y-transform log10,standardize --kernel hmc --num-leapfrog-steps 4 --no-jit-compile"


short_blocks = blocks_of(16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_tables_and_models(folder)
    header, *lines = (folder / "train.csv").read_text().splitlines()
    for name, some in (("most", lines[:48]), ("few", lines[48:])):
        (folder / f"{name}.csv").write_text("\n".join([header, *some]) + "\n")
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    """(exit code, standard output, standard error) of a fit that wrote fitted.h5."""
    options = f"--epochs 5 --batch-size full {SMALL}"
    command = ["fit", "most.csv", "--target", "y", "--features", "b,a", *QUICK, *options.split()]
    command += ["-o", "fitted.h5"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command)
    return code, out.getvalue(), err.getvalue()


def test_fit(fitted, folder):
    code, out, err = fitted
    assert code == 0
    assert "Acceptance" in out and "R-hat" in out
    assert "48 training rows: b, a -> y." in err and "Saved fitted.h5." in err
    # The report says it all, once, in the words of the command line.
    assert "Warning" not in err and out.startswith("Verdict      not yet (")
    # Advice can be pasted: the command as it was, with one more option.
    words = " ".join(out.replace("\\\n", "").split())
    assert "Next: tfbnn fit most.csv --target y --features b,a " in words
    assert "-o fitted.h5 --num-results " in words and "run.report" not in out
    ensemble = tfbnn.load(folder / "fitted.h5").posterior
    assert ensemble.feature_names == ("b", "a")
    assert ensemble.spec.layer_sizes == (2, 3, 1)
    assert ensemble.spec.y_transform == ("log10", "standardize")
    assert (ensemble.num_chains, ensemble.num_results) == (2, 12)
    assert len(ensemble.x_reference) == 12
    # One target column is a vector.
    assert tfbnn.load(folder / "fitted.h5").predict([[1.0, 2.0]] * 3).mean.shape == (3,)


def test_fitted_model_in_every_command(fitted, run):
    for command in ("predict fitted.h5 points.csv", "evaluate fitted.h5 rows.csv"):
        code, out, err = run(command)
        assert (code, err) == (0, "") and out
    assert run("diagnose fitted.h5")[0] == 0
    code, out, _ = run("info fitted.h5")
    assert code == 0 and "after the fit; see tfbnn diagnose" in out
    assert re.search("Diagnosis  +not yet, ", out)


@pytest.mark.statistics
def test_fit_json_strict_with_row_noise(run, folder):
    options = "--noise-column sd --likelihood student_t --noise-scale 0.5 --prior-scale 0.7"
    options += " --kernel mala --target-accept-prob 0.6 --no-pretraining --no-jit-compile --seed 3"
    options += " --validation rows2.csv --json --strict -o noisy_fit.h5"
    text = (folder / "train.csv").read_text().splitlines()
    (folder / "rows2.csv").write_text("\n".join(text[:11]))
    code, out, _ = run(f"fit train.csv --target y {options}", *QUICK)
    assert code == 3
    record = json.loads(out)
    assert record["num_results"] == 12 and "target_accept_prob=0.6" in record["kernel"]
    ensemble = tfbnn.load(folder / "noisy_fit.h5").posterior
    assert ensemble.row_noise and ensemble.provenance.seed == 3
    assert len(ensemble.x_reference) == 10
    # The name of the noise column is remembered.
    assert run("evaluate noisy_fit.h5 train.csv")[0] == 0
    assert run("predict noisy_fit.h5 train.csv --include-noise")[0] == 0


def test_fit_that_is_stopped_too_early(run, monkeypatch, folder):
    def stop(progress, event):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("tfbnn.run.progress.Progress.__call__", stop)
    options = f"--no-pretraining {SMALL}"
    code, out, err = run(f"fit rows.csv --target y -o none.h5 {options}", *QUICK)
    assert (code, out) == (85, "")
    assert "nothing is saved" in err and not (folder / "none.h5").exists()


def test_a_kernel_inside_another_has_its_options():
    from tfbnn import kernels
    from tfbnn.cli.fit_options import add_options, kernel_argument

    parser = argparse.ArgumentParser()
    add_options(parser)
    options = "--inner nuts --max-tree-depth 3 --step-size 0.1 --collapse-readout"
    given = f"t.csv --target y --layers 3 --kernel repriorised {options}".split()
    assert kernel_argument(parser.parse_args(given)) == {
        "kernel": kernels.Repriorised(
            kernels.NUTS(max_tree_depth=3, step_size=0.1), collapse_readout=True
        )
    }
    given = "t.csv --target y --layers 3 --kernel power_posterior --num-temperatures 4 --power 2".split()
    expected = kernels.PowerPosterior(num_temperatures=4, power=2.0)
    assert kernel_argument(parser.parse_args(given)) == {"kernel": expected}


@pytest.mark.statistics
def test_demo(run, monkeypatch, folder):
    pytest.importorskip("matplotlib")
    lengths = "--layers 50 --num-chains 2 --num-burnin-steps 12 --num-results 12 --verbose 0"
    quick = "--kernel hmc --num-leapfrog-steps 2 --epochs 2 --newton-iterations 0 --no-jit-compile"
    monkeypatch.setattr(demo, "NUM_ROWS", 60)
    monkeypatch.setattr(demo, "GIVEN", (*lengths.split(), *quick.split()))
    code, out, err = run("demo -o story")
    assert code == 0, err
    for words in ("GeV", "R-hat", "Within 2 sigma", "+-", "exact", "What next?"):
        assert words in out
    files = set(os.listdir(folder / "story"))
    assert {"demo.h5", "train.csv", "test.csv", "truth.png", "coverage.png"} <= files
    assert tfbnn.load(folder / "story" / "demo.h5").posterior.feature_names[0] == "m_chi10_GeV"
    assert run("predict story/demo.h5 story/test.csv --quantiles 0.16,0.84")[0] == 0
    told = run("evaluate story/demo.h5 story/test.csv")
    assert told[0] == 0

    # The command that is shown has its scores.
    (command,) = re.findall(r"\$ tfbnn (fit story.* -o) ", out)
    assert run(f"{command} mine.h5")[0] == 0
    assert run("evaluate mine.h5 story/test.csv") == told

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(demo, "_fit", lambda *_: 0)
    code, out, err = run("demo -o story")
    assert code == 0 and "What next?" in out and "tfbnn[plots]" in err
