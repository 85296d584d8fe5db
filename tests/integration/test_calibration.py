"""Calibration of sampled models: rows left out, rows of the fit, run folders."""

from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.small_runs import RUN, small_model
from tfbnn.cli import main
from tfbnn.fit.job import calibrated_at_the_end
from tfbnn.posterior.calibration import left_out

NOISE = 0.5
LONG = RUN | {"num_results": 200, "num_burnin_steps": 100, "jit_compile": False}


def rows(count, seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 2))
    return x, np.sin(x[:, 0]) + NOISE * generator.normal(size=count)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """(Model, its run folder) of a fit that does not calibrate, of the rows of `ended`."""
    model, folder = small_model(), tmp_path_factory.mktemp("calibration") / "run"
    model.fit_posterior(*rows(160, 1), output=folder, calibrate=False, **LONG)
    return model, folder


@pytest.mark.statistics
def test_rows_of_the_fit_left_out_calibrate(fitted):
    model, folder = fitted
    model = tfbnn.load(folder)
    record = model.calibrate(method="loo")
    assert record.method == "loo" and record.num_rows >= 150
    coverage = model.evaluate(*rows(2000, 2))["coverage"]
    # 160 rows say where 68 % lie to .04, and the fit is one of many.
    assert abs(coverage[1] - 0.683) < 0.13 and abs(coverage[2] - 0.954) < 0.05


def test_rows_of_the_fit_are_refused_by_a_file_too(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    with pytest.raises(ValueError, match="160 of which 160 are rows of the fit"):
        loaded.calibrate(*rows(160, 1))
    with pytest.raises(ValueError, match="method='loo' needs the training rows"):
        loaded.calibrate(method="loo")
    x, y = (np.concatenate(pair) for pair in zip((part[:60] for part in rows(160, 1)), rows(90, 4)))
    with pytest.warns(UserWarning, match="60 of the 150 rows have the values of rows of the fit"):
        loaded.calibrate(x, y)


def test_the_command_calibrates_a_run_folder_by_its_own_rows(fitted, tmp_path, capsys):
    model, folder = fitted
    assert main(["calibrate", str(folder), "-o", str(tmp_path / "out.h5")]) == 0
    assert "rows of the fit, each left out in turn" in capsys.readouterr().out
    assert tfbnn.load(tmp_path / "out.h5").calibration.method == "loo"


def test_a_run_folder_has_the_rows_for_the_misfit(fitted, tmp_path, capsys):
    _, folder = fitted
    table = np.column_stack(rows(100, 5))
    np.savetxt(tmp_path / "new.csv", table, delimiter=",", header="x1,x2,y", comments="")
    for data in ([], [str(tmp_path / "new.csv"), "--target", "y"]):
        out = tmp_path / f"out{len(data)}.h5"
        assert main(["calibrate", str(folder), *data, "--scale", "misfit", "-o", str(out)]) == 0
        assert "scaled by the local misfit" in capsys.readouterr().out
        assert tfbnn.load(out).calibration.scale == "misfit"


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """(Model, Run, its folder) of rows that are enough for the fit to end with a calibration."""
    model, folder = small_model(), tmp_path_factory.mktemp("ended") / "run"
    run = model.fit_posterior(*rows(160, 1), output=folder, **LONG)
    return model, run, folder


def test_a_fit_ends_with_a_calibration_by_its_own_rows(ended, tmp_path):
    model, run, folder = ended
    record = model.calibration
    assert record.method == "loo" and run.calibration is record
    assert "calibrate leave-one-out: the noise is learned" in run.report()
    assert f"Calibrated   by {record.num_rows} rows of the fit" in run.report()
    model.save(tmp_path / "model.h5")
    assert tfbnn.load(tmp_path / "model.h5").calibration.to_json() == record.to_json()
    # Half of the rows judge the bars that the others would have, also after a resume, and in the file.
    found = run.predictions
    assert found.is_calibrated and found.num_rows == record.num_rows and found.ok is not None
    assert tfbnn.load(tmp_path / "model.h5").diagnose().predictions.text == found.text
    assert f"Chains       {'yes' if run.chains.ok else 'no'}. " in run.report()
    # It is what the method finds, which a run folder needs: that is of the draws alone.
    loaded = tfbnn.load(folder)
    assert loaded.calibration is None
    assert not loaded.diagnose().predictions.is_calibrated
    assert loaded.calibrate(method="loo").to_json() == record.to_json()
    assert loaded.diagnose().predictions.text == found.text


def test_a_run_that_goes_on_ends_as_it_was_begun_or_as_it_is_told(ended):
    model, first, folder = ended
    resumed, again = tfbnn.resume(folder, verbose=0)
    assert again.verdict == first.verdict and again.predictions.text == first.predictions.text
    assert resumed.calibration.to_json() == model.calibration.to_json()
    # And no calibration outlives the draws that it was of.
    other = resumed
    run = other.fit_posterior(
        *rows(160, 1), output=folder, resume=True, **(LONG | {"calibrate": False})
    )
    assert (
        other.calibration is None and run.calibration is None and "Calibrated" not in run.report()
    )
    np.testing.assert_array_equal(other.posterior.draws, model.posterior.draws)


def test_what_chains_that_hardly_move_cannot_tell_is_a_note(fitted, monkeypatch):
    """Their variance is none, and rows of the fit would pass for rows that are left out.

    But for the derivatives of networks whose weights are not too many.
    """
    model, folder = fitted
    standing = model.posterior.picked(lambda values: values[:, np.repeat([0, 99, 199], 60)])
    # Few for the weights: with more of them the variance hardly matters.
    rows = tfbnn.load(folder)._training_rows.part(60)
    standing = replace(standing, calibration=None)
    known, _ = calibrated_at_the_end(standing, rows)
    assert known.calibration.num_rows == 60
    monkeypatch.setattr(left_out, "MOST_FEATURES", 0)
    same, (note,) = calibrated_at_the_end(standing, rows)
    assert same.calibration is None
    assert "not calibrated: method='loo' needs 10 independent draws or more" in note


def test_rows_that_decide_their_own_predictions_are_a_note(ended, monkeypatch):
    model, _, _ = ended
    monkeypatch.setattr(left_out, "_LARGEST_LEVERAGE", 1e-9)
    plain = replace(model.posterior, calibration=None)
    same, (note,) = calibrated_at_the_end(plain, model._training_rows)
    assert same is plain and "not calibrated: method='loo' can use only" in note


@pytest.mark.statistics
def test_networks_that_are_not_sampled_have_no_leverage():
    model = small_model()
    model.fit_map(*rows(60, 1), pretraining=tfbnn.Pretraining(epochs=5), seed=0, verbose=0)
    with pytest.warns(UserWarning, match="not sampled"):
        with pytest.raises(ValueError, match="method='loo' needs draws of a posterior"):
            model.calibrate(method="loo")
        model.calibrate(*rows(300, 3))
        assert abs(model.evaluate(*rows(2000, 2))["coverage"][1] - 0.683) < 0.06


@pytest.mark.statistics
def test_a_laplace_approximation_can_leave_out_rows():
    model = small_model()
    settings = tfbnn.Pretraining(epochs=50, newton_iterations=20)
    model.fit_laplace(*rows(60, 1), pretraining=settings, num_results=400, seed=0, verbose=0)
    with pytest.warns(UserWarning, match="not sampled"):
        assert model.calibrate(method="loo").num_rows >= 50
