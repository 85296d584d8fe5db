"""Run folders from the command line: stopped with exit code 85, resumed, used."""

import contextlib
import io
import json
import os
import shutil
import signal

import numpy as np
import pytest

import tfbnn
from tests.support.small_runs import blocks_of
from tests.support.tables import write_csv
from tfbnn.cli import main
from tfbnn.run.progress import Progress

FIT = (
    "fit rows.csv --target y --prior normal --layers 2 --kernel hmc --num-leapfrog-steps 1 "
    "--num-chains 2 --num-results 48 --num-burnin-steps 16 --no-pretraining --no-jit-compile --verbose 0"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table."""
    folder = tmp_path_factory.mktemp("runs")
    x = np.random.default_rng(0).normal(size=(30, 2))
    write_csv(folder / "rows.csv", ["a", "b", "y"], np.column_stack([x, np.sin(x[:, 0])]))
    return folder


short_blocks = blocks_of(8)


def stop(self, event):
    """A Progress that lets the run receive SIGTERM once it has kept eight draws."""
    if getattr(event, "num_kept", 0) >= 8:
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(scope="module")
def begun(folder):
    """(run folder, standard error) of a fit that SIGTERM stopped once it had kept eight draws."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setattr(Progress, "__call__", stop)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(f"{FIT} --output {folder / 'begun'} --commit-interval 0".split())
    assert (code, out.getvalue()) == (85, "")
    return folder / "begun", err.getvalue()


@pytest.fixture
def stopped(begun, tmp_path):
    """A copy of that run folder."""
    return shutil.copytree(begun[0], tmp_path / "run")


@pytest.fixture(scope="module")
def whole(folder):
    """The draws of the fit that nothing stopped."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        assert main(f"{FIT} -o whole.h5".split()) == 0
    return tfbnn.load(folder / "whole.h5").posterior.draws


def test_a_stopped_run_says_how_to_go_on_and_does(run, folder, begun, stopped, whole):
    path, err = begun
    assert "draws kept per chain" in err and f"Go on with: tfbnn resume {path}" in err
    assert "Without -o" not in err
    path = stopped
    code, out, err = run(f"resume {path} -o model.h5 --json --verbose 0")
    assert code == 0 and json.loads(out)["num_results"] == 48
    assert "Saved model.h5." in err
    resumed = tfbnn.load(folder / "model.h5").posterior
    assert resumed.feature_names == ("a", "b")
    assert resumed.provenance.target_names == ["y"]
    np.testing.assert_array_equal(resumed.draws, whole)
    # The same command with --resume is another way, and more draws are one option away.
    code, out, _ = run(f"{FIT} --output {path} --resume")
    assert code == 0 and "2 chains x 48 kept" in out
    code, out, _ = run(f"resume {path} --num-results 50 --strict")
    assert code == 3 and "2 chains x 50 kept" in out


@pytest.mark.statistics
def test_a_long_run_keeps_a_folder_until_it_is_saved(run, folder, whole, monkeypatch):
    """With the draws of a run that keeps none, whether it is stopped or not."""
    assert not (folder / "whole.h5.run").exists()
    monkeypatch.setattr("tfbnn.cli.runs._LONG_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "__call__", stop)
        code, out, err = run(f"{FIT} -o long.h5")
    assert (code, out) == (85, "") and "Saved long.h5." in err
    assert err.splitlines()[-1] == "Go on with: tfbnn resume long.h5.run -o long.h5"
    code, _, err = run(f"{FIT} -o long.h5")
    assert code == 2 and "tfbnn resume long.h5.run -o long.h5" in err
    # A run that time ended keeps its folder, to be continued for some time more.
    code, _, err = run("resume long.h5.run -o long.h5 --verbose 0 --max-seconds 1e-3")
    assert code == 0 and "Go on with: tfbnn resume long.h5.run -o long.h5" in err
    assert run("resume long.h5.run -o long.h5 --verbose 0")[0] == 0
    assert run(f"{FIT} -o unstopped.h5")[0] == 0
    for name in ("long", "unstopped"):
        np.testing.assert_array_equal(tfbnn.load(folder / f"{name}.h5").posterior.draws, whole)
    assert not [path for path in folder.iterdir() if path.suffix == ".run"]


def test_commands_take_a_run_folder_for_a_model_file(run, stopped):
    path = stopped
    for command in (
        f"predict {path} rows.csv",
        f"evaluate {path} rows.csv",
        f"info {path}",
        f"diagnose {path} --json",
    ):
        code, out, err = run(command)
        assert code == 0 and out
        assert err.startswith("Warning: The run was stopped early") and err.count("\n") == 1


@pytest.mark.statistics
def test_a_stop_during_pretraining_saves_its_networks_and_the_same_command_begins_anew(
    run, folder, monkeypatch, tmp_path
):
    def stop(self, event):
        os.kill(os.getpid(), signal.SIGTERM)

    fit = FIT.replace("--no-pretraining", "--epochs 20 --newton-iterations 0")
    path = tmp_path / "run"
    monkeypatch.setattr("tfbnn.engine.starts.pretraining.affordable_steps", lambda flops: 1)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "__call__", stop)
        code, out, err = run(f"{fit} --output {path} -o pretrained.h5")
    assert (code, out) == (85, "") and "no posterior error bars" in err
    assert "Saved pretrained.h5." in err and "run the same command again" in err
    networks = (folder / "pretrained.h5").read_bytes()
    assert tfbnn.load(folder / "pretrained.h5")._ensemble.provenance.not_sampled
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "__call__", stop)
        code, out, err = run(f"{fit} --output {path} -o pretrained.h5")
    assert code == 85 and "pretrained.h5 already exists" in err
    assert (folder / "pretrained.h5").read_bytes() == networks
    code, out, err = run(f"{fit} --output {path} -o pretrained.h5 --json")
    assert code == 0 and json.loads(out)["num_results"] == 48
    assert tfbnn.load(folder / "pretrained.h5").posterior.num_results == 48


def test_a_failed_chain_ends_with_exit_code_1(run, monkeypatch, tmp_path):
    from tfbnn.engine.sampling.chain_group import ChainGroup

    advance = ChainGroup.advance

    def fail(self, *at_most):
        if self.chains == [1]:
            raise OSError(28, "No space left on device", "run/lane-001")
        return advance(self, *at_most)

    monkeypatch.setattr(ChainGroup, "advance", fail)
    code, out, err = run(f"{FIT} --output {tmp_path / 'run'}")
    assert (code, out) == (1, "")
    assert "chain 1: OSError" in err and f"tfbnn resume {tmp_path / 'run'}" in err


@pytest.mark.parametrize(
    "command, word",
    [
        ("resume absent", "no run in absent"),
        ("resume rows.csv", "not a run folder"),
        (f"{FIT} --output absent/run", "absent"),
        (f"{FIT} --resume", "resume=True"),
    ],
)
def test_refusals(run, command, word):
    code, out, err = run(command)
    assert (code, out) == (2, "") and word in err and "Traceback" not in err


def test_a_second_fit_into_the_folder_is_refused(run, stopped):
    code, _, err = run(f"{FIT} --output {stopped}")
    assert code == 2 and "holds a run already" in err and "--resume" in err
    code, _, err = run(f"{FIT} --output {stopped} --resume --seed 3")
    assert code == 2 and "numbers.seed is 0 there and 3 here" in err
