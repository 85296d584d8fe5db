"""A model that is being saved when a fit ends is saved, and the exit code tells the truth."""

import argparse
import contextlib
import dataclasses
import os
import signal
from types import SimpleNamespace

import pytest

import tfbnn
from tests.support.builders import synthetic_ensemble
from tests.support.commands import check_refusal
from tests.support.run_folders import created_run
from tests.support.run_records import make_run
from tfbnn.cli.runs import is_own_folder, own_folder, run_to_the_end
from tfbnn.fit.job import estimated_fit_seconds
from tfbnn.fit.model import BayesianMLP
from tfbnn.run.options import FitOptions
from tfbnn.spec.settings_json import Pretraining
from tfbnn.storage.run.folder import RunFolder
from tfbnn.system.signals import STOP_SIGNALS, signals_held

RUN = SimpleNamespace(report=lambda **_: "the report", diagnosis=None, num_results=15)


class SlowModel(BayesianMLP):
    """A model during whose saving one asks to stop, again and again."""

    signals = ()

    def save(self, path):
        for number in self.signals:
            os.kill(os.getpid(), number)
        super().save(path)


@pytest.fixture
def model():
    return SlowModel.from_ensemble(synthetic_ensemble())


def end(model, go_on, folder=None, model_file=None):
    """The exit code of a command whose run is `go_on`, handlers as in `tfbnn`."""
    args = argparse.Namespace(model_file=model_file, json=False, strict=False)
    with signals_held() as hold, hold.lifted():
        return run_to_the_end(model, go_on, folder, args)


def stopped():
    raise KeyboardInterrupt


@pytest.mark.parametrize("number", [signal.SIGINT, *STOP_SIGNALS])
@pytest.mark.parametrize("count, is_stopped", [(1, False), (3, False), (2, True)])
def test_signals_while_a_run_is_saved(tmp_path, model, capsys, number, count, is_stopped):
    path, go_on = tmp_path / "bnn.h5", stopped if is_stopped else lambda: RUN
    model.signals = [number] * count
    assert end(model, go_on, model_file=str(path)) == (85 if is_stopped else 0)
    out, err = capsys.readouterr()
    assert tfbnn.load(path).posterior.num_results == model.posterior.num_results
    assert out == ("" if is_stopped else "the report\n")
    assert "saving the draws so far" in err and f"Saved {path}. It takes 0." in err
    assert ("results are complete" in err) != is_stopped == ("With --output FOLDER" in err)


def test_a_signal_during_the_report(model, capsys):
    def report(**_):
        os.kill(os.getpid(), signal.SIGTERM)
        return "the report"

    run = SimpleNamespace(report=report, diagnosis=None, num_results=15)
    assert end(model, lambda: run) == 0
    assert capsys.readouterr().out == "the report\n"


def test_the_run_itself_is_stopped(model, capsys):
    assert end(model, lambda: os.kill(os.getpid(), signal.SIGTERM)) == 85
    assert "draws kept per chain" in capsys.readouterr().err


def test_what_is_committed_is_not_called_nothing(tmp_path, model, capsys, monkeypatch):
    """A stop before the model had its draws, of a run that had been stopped before."""
    monkeypatch.setattr("tfbnn.cli.runs.load", lambda path: model)
    created_run(tmp_path / "run", {}, {}, 1)
    fresh, path = BayesianMLP.from_spec(model.spec), tmp_path / "bnn.h5"
    assert end(fresh, stopped, str(tmp_path / "run"), str(path)) == 85
    err = capsys.readouterr().err
    assert f"Stopped with {model.posterior.num_results} draws" in err and "nothing" not in err
    assert f"Go on with: tfbnn resume {tmp_path / 'run'} -o {path}" in err and path.exists()


def test_a_stop_before_anything_was_kept(tmp_path, model, capsys):
    fresh = BayesianMLP.from_spec(model.spec)
    assert end(fresh, stopped, str(tmp_path / "run"), str(tmp_path / "bnn.h5")) == 85
    err = capsys.readouterr().err
    assert "nothing is saved" in err and "run the same command again" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interrupt_while_the_first_ends_the_command(run, monkeypatch, number):
    say, handler = tfbnn.cli.app.say, signal.getsignal(number)

    def interrupt(*_, **__):
        os.kill(os.getpid(), number)

    def say_and_be_interrupted(text):
        interrupt()
        say(text)

    monkeypatch.setattr("tfbnn.cli.arguments.load", interrupt)
    monkeypatch.setattr("tfbnn.cli.app.say", say_and_be_interrupted)
    assert run("predict named.h5 points.csv") == (85, "", "Stopped.\n")
    assert signal.getsignal(number) is handler


def test_a_failed_save_says_where_the_draws_are(tmp_path, model, capsys, monkeypatch):
    def full(self, path):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(SlowModel, "save", full)
    with pytest.raises(OSError, match="No space"):
        end(model, lambda: RUN, str(tmp_path / "bnn.h5.run"), str(tmp_path / "bnn.h5"))
    assert f"tfbnn resume {tmp_path / 'bnn.h5.run'} -o" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------
# The folder that a long run keeps by itself.
# ----------------------------------------------------------------------------------------


def test_a_long_run_keeps_a_folder_and_a_short_one_none(tmp_path, capsys):
    path = str(tmp_path / "bnn.h5")
    assert own_folder(path, seconds=15.0) is None and os.listdir(tmp_path) == []
    folder = own_folder(path, seconds=61.0)
    assert folder == f"{path}.run" and is_own_folder(folder, path) and os.listdir(tmp_path) == []
    assert f"draws are kept in {folder}" in capsys.readouterr().err
    assert not is_own_folder(str(tmp_path / "run"), path) and not is_own_folder(folder, None)
    with RunFolder.reserved(folder):
        pass  # a process that is killed here leaves what is no run
    assert own_folder(path, seconds=61.0) == folder


@pytest.mark.parametrize("seconds", [1.0, 100.0])
def test_a_run_that_is_there_is_not_removed(tmp_path, seconds):
    folder = tmp_path / "my bnn.h5.run"
    created_run(folder, {}, {}, 1)
    with pytest.raises(ValueError, match=r"tfbnn resume '.*my bnn.h5.run' -o '.*my bnn.h5'"):
        own_folder(str(tmp_path / "my bnn.h5"), seconds)
    assert RunFolder.find(folder) is not None


def test_no_folder_where_none_can_be_kept(tmp_path, capsys):
    (tmp_path / "bnn.h5.run").mkdir()
    (tmp_path / "bnn.h5.run" / "diary.txt").write_text("mine")
    assert own_folder(str(tmp_path / "bnn.h5"), seconds=61.0) is None
    assert "No run folder is kept" in capsys.readouterr().err
    with RunFolder.reserved(tmp_path / "other.h5.run"), pytest.raises(tfbnn.RunLockedError):
        own_folder(str(tmp_path / "other.h5"), seconds=61.0)


def test_the_folder_goes_with_the_end_of_its_run_only(tmp_path, model, capsys):
    path = str(tmp_path / "bnn.h5")
    for folder, goes in ((f"{path}.run", True), (str(tmp_path / "run"), False)):
        created_run(folder, {}, {}, 1)
        with contextlib.suppress(tfbnn.ChainError):
            end(model, failing, folder, path)
        assert end(model, stopped, folder, path) == 85
        assert RunFolder.find(folder) is not None
        assert end(model, lambda: RUN, folder, path) == 0
        assert os.path.exists(folder) != goes
    assert "Go on with: tfbnn resume" in capsys.readouterr().err


def failing():
    raise tfbnn.ChainError("chain 1")


def test_what_else_is_in_the_folder_stays(tmp_path, model, capsys):
    path = tmp_path / "bnn.h5"
    created_run(f"{path}.run", {}, {}, 1)
    (tmp_path / "bnn.h5.run" / "diary.txt").write_text("mine")
    assert end(model, lambda: RUN, f"{path}.run", str(path)) == 0
    assert os.listdir(f"{path}.run") == ["diary.txt"]
    assert "could not be removed" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt, tfbnn.StartError, tfbnn.ChainError])
def test_an_end_before_the_beginning_leaves_no_folder(tmp_path, model, error):
    path = str(tmp_path / "bnn.h5")
    folder = own_folder(path, seconds=61.0)

    def go_on():
        with RunFolder.reserved(folder):
            raise error

    with contextlib.suppress(ValueError, tfbnn.ChainError):
        assert end(BayesianMLP.from_spec(model.spec), go_on, folder, path) == 85
    assert os.listdir(tmp_path) == []


def test_the_estimate_counts_pretraining_and_kernels_and_chains(model, monkeypatch):
    def seconds(num_rows=1000, cores=2, **settings):
        monkeypatch.setattr("tfbnn.fit.job.num_cores", lambda: cores)
        options = FitOptions(**{"pretraining": None, "num_results": 1000} | settings)
        return estimated_fit_seconds(model.spec, options, num_rows)

    plain = seconds()
    assert plain == pytest.approx(seconds(num_results="auto", until=None, kernel="nuts"))
    assert seconds(kernel="hmc") < plain
    assert seconds(pretraining=Pretraining(epochs=5000)) > plain
    assert seconds(num_results=11_000) == pytest.approx(6 * plain)
    assert seconds(num_chains=400) > 10 * plain
    # With many rows a chain has all cores.
    plain = {"jit_compile": False}
    for num_rows, options, most in ((2**18, {}, 16), (1000, {}, 1), (2**18, plain, 1)):
        few, many = (seconds(num_rows, cores, num_chains=1, **options) for cores in (1, 64))
        assert few / many == pytest.approx(most)


def test_fit_hands_on_the_folder(run, folder, monkeypatch):
    asked = []

    def fit_data(model, x, y, noise_scale, options, *others):
        asked.append(options)
        raise ValueError("enough")

    monkeypatch.setattr(BayesianMLP, "fit_data", fit_data)
    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", lambda: None)
    monkeypatch.setattr("tfbnn.cli.fit.estimated_fit_seconds", lambda *_: 1e4)
    fit = "fit rows.csv --target y --layers 3"
    for more, expected in (
        ("-o long.h5", {"output": "long.h5.run"}),
        ("-o long.h5 --output run", {"output": "run"}),
        ("", {}),
    ):
        result = run(f"{fit} {more}")
        assert result[0] == 2 and "enough" in result[2]
        given = asked[-1].output
        assert ({} if given is None else {"output": given}) == expected
    created_run(folder / "old.h5.run", {}, {}, 1)
    check_refusal(run(f"{fit} -o old.h5"), "tfbnn resume old.h5.run -o old.h5")


def test_a_run_out_of_time_in_warm_up_keeps_its_folder_and_says_how_to_go_on(tmp_path, capsys):
    """With a larger limit: the same one would end it again; and never with the exit code of success."""
    origin = {"not_sampled": "pretrained networks: max_seconds=1 was reached before the first draw"}
    model, path = synthetic_ensemble(provenance=origin), tmp_path / "bnn.h5"
    folder = f"{path}.run"
    created_run(folder, {}, {}, 1)
    end_of_run = {"until": "max_seconds=1", "ended": "max_seconds=1 was reached"}
    run = dataclasses.replace(make_run(None), num_results=0, **end_of_run)
    with contextlib.suppress(UserWarning):
        assert end(BayesianMLP.from_ensemble(model), lambda: run, folder, str(path)) == 3
    out, err = capsys.readouterr()
    assert "no posterior error bars" in err and out.startswith("Verdict      not sampled\n")
    out = " ".join(out.replace("\\\n", "").split())
    assert f"tfbnn resume {folder} --max-seconds 3 -o {path}" in out
    assert path.exists() and os.path.isdir(folder)
