"""Runs with a limit in seconds: warm-up that is cut short, runs without a draw, and going on."""

import dataclasses
import shutil

import numpy as np
import pytest

import tfbnn
from tests.support.small_runs import RUN, X, Y, assert_same_draws, blocks_of, calm_model
from tfbnn.fit.assemble import read_run
from tfbnn.fit.choices import by_clock
from tfbnn.run.counters import Counters
from tfbnn.run.deadline import Deadline
from tfbnn.run.options import FitOptions
from tfbnn.run.plan import Plan, Stage
from tfbnn.spec.rows import NetworkRows
from tfbnn.storage.run.folder import RunFolder

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning"),
]

LIMITED = RUN | dict(
    jit_compile=False, seed=3, num_results=60, until=tfbnn.Until(ess=10_000, max_seconds=600)
)


blocks_of_one_length = blocks_of(128)


def fit(**options):
    """(model, run) of the calm model."""
    model = calm_model()
    return model, model.fit_posterior(X, Y, **(LIMITED | options))


@pytest.fixture
def no_time_to_warm_up(monkeypatch):
    monkeypatch.setattr(Deadline, "for_warmup", lambda self, left=None: 0.0)


@pytest.fixture(scope="module")
def whole():
    """(model, run) of a run whose warm-up was cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deadline, "for_warmup", lambda self, left=None: 0.0)
        return fit()


def stop_after_a_draw(event):
    return event.get("num_kept", 0) >= 1


def test_a_warmup_that_is_cut_short_is_followed_by_draws(whole):
    model, run = whole
    assert run.num_results == 60 and run.num_burnin_steps < RUN["num_burnin_steps"]
    text = f"Warm-up was cut short at {run.num_burnin_steps} of {RUN['num_burnin_steps']} steps"
    assert text in run.report(width=200)
    assert model.posterior.provenance.num_burnin_steps == run.num_burnin_steps
    assert np.isfinite(model.posterior.draws).all() and model.posterior.draws.std() > 0


@pytest.mark.statistics
def test_a_run_goes_on_with_the_warmup_that_was_cut(
    tmp_path, whole, no_time_to_warm_up, monkeypatch
):
    """Also where a kill left a chain group behind that had not heard of the cut."""
    folder = tmp_path / "run"
    fit(output=folder, callbacks=[stop_after_a_draw])
    shutil.rmtree(RunFolder.open(folder)._group(1).folder)
    monkeypatch.undo()  # there is time for all of warm-up now, but the run has decided already
    model, run = tfbnn.resume(folder, verbose=0)
    assert run.num_results == 60
    assert_same_draws(model, whole[0])


def test_a_warmup_without_time_for_a_draw_goes_on_when_the_run_does(tmp_path, monkeypatch):
    def none_left(self, left=None):
        self.max_seconds = 0.0
        return 0.0

    monkeypatch.setattr(Deadline, "for_warmup", none_left)
    folder = tmp_path / "run"
    with pytest.warns(UserWarning, match="before its first draw"):
        assert fit(output=folder)[1].num_results == 0
    monkeypatch.undo()
    model, run = tfbnn.resume(folder, verbose=0)
    assert run.num_results == 60 and run.num_burnin_steps == RUN["num_burnin_steps"]
    assert_same_draws(model, fit()[0])


def test_without_time_for_a_draw_a_model_refuses_to_predict_and_the_same_call_ends(
    tmp_path, monkeypatch
):
    folder = tmp_path / "run"
    with pytest.warns(UserWarning, match="before its first draw") as told:
        model, run = fit(output=folder, until="auto", max_seconds=1e-3)
    assert len([one for one in told if one.category is UserWarning]) == 1
    assert (
        run.num_results == 0 and run.ended == "max_seconds=0.001 was reached before the first draw"
    )
    for refused in (model.predict, model.predict_draws, model.predict_gradient):
        with pytest.raises(tfbnn.NotFittedError, match="ended before its first draw"):
            refused(X)
    with pytest.raises(tfbnn.NotFittedError, match="allow_unsampled=True"):
        model.evaluate(X, Y)
    with pytest.warns(UserWarning, match="not sampled"):
        mean, _ = model.predict(X, allow_unsampled=True)
    assert np.isfinite(mean).all()
    # It ended in the search for its starts, which the same call begins again.
    assert run.folder is None and "tfbnn.resume" not in run.report()
    with pytest.raises(tfbnn.RunFolderError, match="not a run folder"):
        tfbnn.resume(folder, max_seconds=600, num_results=20, verbose=0)
    model, run = fit(output=folder, resume=True, max_seconds=600, num_results=20)
    assert run.num_results == 20 and model.predict(X).mean.shape == mean.shape


@pytest.mark.statistics
def test_the_plan_is_stored_and_a_resume_repeats_it(tmp_path, monkeypatch):
    """A slow machine plans few steps of few gradients; a fast one that goes on takes these."""
    options = dict(kernel="auto", num_burnin_steps="auto", num_results="auto", pretraining=None)
    monkeypatch.setattr(by_clock, "_MOST_DRAWS", 70)
    monkeypatch.setattr("tfbnn.run.cost._DRAWS_BYTES", 1.0)  # as many draws as need be for a look
    monkeypatch.setattr(by_clock, "measured_seconds", lambda *_: 0.35)
    folder = tmp_path / "run"
    model = tfbnn.BayesianMLP([2, 12, 1])
    asked = LIMITED | options
    run = model.fit_posterior(X, Y, **asked, output=folder, callbacks=[stop_after_a_draw])
    steps = RunFolder.open(folder).description["fixed"]["kernel"]["num_leapfrog_steps"]
    chosen = {choice.what: choice for choice in run.choices}
    assert "max_seconds=600 leaves" in chosen["num_burnin_steps"].why
    assert steps == 8 and 8 * 0.35 * run.num_burnin_steps <= 200
    assert run.num_steps_between_results > 0 and run.num_results < 100
    monkeypatch.setattr(by_clock, "measured_seconds", lambda *_: 1e-9)
    resumed, again = tfbnn.resume(folder, verbose=0)
    assert again.num_results == 100 and again.num_burnin_steps == run.num_burnin_steps
    assert again.num_steps_between_results == run.num_steps_between_results
    by_arguments = tfbnn.BayesianMLP([2, 12, 1])
    by_arguments.fit_posterior(X, Y, **asked, output=folder, resume=True)
    assert_same_draws(by_arguments, resumed)


MEASURED = (
    tfbnn.BayesianMLP([2, 3, 1], y_transform=None).spec,
    NetworkRows(X[:10], Y[:10, None], None),
    FitOptions(kernel=tfbnn.kernels.HMC(), num_chains=6, jit_compile=False),
)


@pytest.mark.statistics
def test_a_gradient_takes_time():
    assert by_clock.measured_seconds(*MEASURED) > 0


def test_seconds_of_all_chains_are_those_of_a_chain_by_the_turns_that_cores_take(monkeypatch):
    measured = []

    def seconds_per_gradient(potential, theta, data, num_threads, jit_compile):
        measured.append((potential.log_prob(theta, data).shape[0], num_threads))
        return 0.5

    monkeypatch.setattr(by_clock, "seconds_per_gradient", seconds_per_gradient)
    monkeypatch.setattr(by_clock, "num_cores", lambda: 2)
    assert by_clock.measured_seconds(*MEASURED) == 3 * 0.5
    assert measured == [(1, 2)]


def test_a_limit_leaves_a_fixed_number_of_draws_as_it_is(tmp_path):
    folder = tmp_path / "run"
    fit(output=folder, until=None, num_results=30)
    _, options = read_run(folder, max_seconds=60)
    assert options.num_results == 30 and options.limit == 60
    assert str(options.until) == "max_seconds=60"  # no check ends it before
    _, options = read_run(folder, num_results=60, max_seconds=60)
    assert options.num_results == 60 and str(options.until) == "max_seconds=60"
    tfbnn.resume(folder, max_seconds=60, verbose=0)
    for given in ({}, {"until": None}):
        _, options = read_run(folder, **given)
        assert options.num_results == 30 and options.until is None
    with pytest.raises(ValueError, match="until=None asks for exactly"):
        read_run(folder, until=None, max_seconds=60)
    with pytest.raises(ValueError, match="max_seconds must be given once"):
        read_run(folder, until=tfbnn.Until(max_seconds=30), max_seconds=60)


def test_each_group_ends_a_cut_warmup_by_itself():
    stages = [
        Stage("warmup", 75, True),
        Stage("warmup", 100, True, True),
        Stage("warmup", 25, True),
    ]
    plan = Plan([[0], [1]], 16, [*stages, Stage("sampling", 50)], 50, 1)
    # Just after a renewal a step size is sought for ten transitions, unless there were fewer.
    assert [plan.warmup_cut_after(n) for n in (0, 3, 60, 80, 176, 199)] == [1, 6, 61, 85, 185, 200]
    cut = plan.with_warmup_cut(85)
    assert [(stage.length, stage.renew) for stage in cut.stages] == [
        (75, False),
        (10, False),
        (50, False),
    ]
    group = dataclasses.replace(Counters.nothing([0]), transitions={"warmup": 85, "sampling": 0})
    assert plan.is_warming_up(group)
    group = dataclasses.replace(group, warmup_cut=85)
    assert not plan.is_warming_up(group) and plan.end_of(group) == 135
