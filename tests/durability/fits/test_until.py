"""Runs that end when they have enough: the same draws in one piece, in several, and of longer runs."""

import warnings

import numpy as np
import pytest

import tfbnn
from tests.support.small_runs import RUN, X, Y, assert_same_draws, blocks_of, calm_model
from tfbnn.engine.running.advance import advance_group
from tfbnn.engine.sampling.chain_group import ChainGroup
from tfbnn.engine.sampling.work import UNLIMITED, Work
from tfbnn.exceptions import RunFolderError
from tfbnn.storage.run.folder import RunFolder

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.filterwarnings(
        "ignore::tfbnn.ConvergenceWarning",
        "ignore:The networks of this model",
    ),
]

# Reached at the second look with a margin of two: ESS 34 at the first, 132 at the second.
UNTIL = tfbnn.Until(ess=70, rhat=1.05)
PLAIN = RUN | dict(jit_compile=False, seed=3)
LONG = PLAIN | dict(num_results=1000, until=UNTIL)


blocks_of_one_length = blocks_of(128)


def fit(**options):
    """(model, run) of the calm model."""
    model = calm_model()
    return model, model.fit_posterior(X, Y, **(LONG | options))


@pytest.fixture(scope="module")
def longer():
    """The draws of a run that has just its number of draws."""
    return fit(num_results=700, until=None)[0].posterior.draws


@pytest.fixture(scope="module")
def events():
    """Return the list of what a callback of `whole` was told."""
    return []


@pytest.fixture(scope="module")
def whole(events):
    """(model, run) of a run in memory that nothing interrupted, and that was listened to."""
    return fit(callbacks=[events.append])


@pytest.mark.statistics
def test_the_draws_are_the_first_of_a_longer_run(whole, longer):
    model, run = whole
    assert run.num_results == 200
    np.testing.assert_array_equal(model.posterior.draws, longer[:, :200])
    assert run.ended.startswith("ESS ") and run.ended.endswith("after 200 draws per chain")
    assert f"Ended        {run.ended}" in run.report(width=200)
    assert model.posterior.provenance.ended == run.ended
    assert model.posterior.provenance.until == "ess=70,rhat=1.05"


def test_what_was_found_is_what_the_diagnosis_says(whole):
    """The judge and the verdict look at the same inputs, with the same functions."""
    diagnosis = whole[1].diagnosis
    smallest = min(diagnosis.ess_function.min(), diagnosis.tail_ess_function.min())
    q95 = np.quantile(diagnosis.rhat_function, 0.95, method="higher")
    assert whole[1].ended.startswith(f"ESS {smallest:.0f} and R-hat {q95:.4g} after")


def test_the_looks_are_in_the_events_and_in_the_history(whole, events):
    looks = whole[1].history["looks"]
    assert looks["num_results"] == [100, 200]
    assert whole[1].ended.startswith(f"ESS {looks['ess'][1]:.0f} and R-hat {looks['rhat'][1]:.4g}")
    told = [event for event in events if event["phase"] == "sampling"]
    assert np.isnan(told[0]["rhat"]) and told[0]["num_judged"] == 0
    assert (told[-1]["rhat"], told[-1]["ess"]) == (looks["rhat"][1], looks["ess"][1])
    # Up to the first look nothing is known, and from then on always something.
    judged = [event["num_judged"] for event in told]
    assert judged == sorted(judged) and set(judged) == {0, 100, 200}


def test_the_history_has_every_phase(whole):
    history = whole[1].history
    assert list(history) == ["pretraining", "warmup", "sampling", "looks"]
    assert history["pretraining"]["epoch"][-1] == 3
    assert history["warmup"]["transition"][-1] == 40
    assert history["sampling"]["num_kept"][-1] == 200
    for columns in history.values():
        assert len({len(column) for column in columns.values()}) == 1


@pytest.mark.statistics
def test_a_chain_that_failed_goes_on_when_the_run_does(tmp_path, whole, monkeypatch):
    """The others had enough, which is no end of the run."""
    advance = ChainGroup.advance

    def fail(self, at_most=None):
        if self.chains == [1] and self.num_kept >= 10:
            raise OSError(28, "No space left on device")
        return advance(self, Work(10, UNLIMITED))

    with monkeypatch.context() as patch:
        patch.setattr(ChainGroup, "advance", fail)
        with pytest.raises(tfbnn.ChainError, match="chain 1: OSError"):
            fit(output=tmp_path / "run", commit_interval=0, until=tfbnn.Until(ess=5, rhat=20.0))
    model, run = tfbnn.resume(tmp_path / "run", verbose=0)
    assert model.posterior.draws.shape[:2] == (2, run.num_results) and run.num_results >= 100
    count = run.num_results
    np.testing.assert_array_equal(model.posterior.draws, whole[0].posterior.draws[:, :count])


@pytest.mark.filterwarnings("ignore:The run was stopped")
@pytest.mark.statistics
@pytest.mark.parametrize(("first", "second"), [(1, 130), (200, 30)])
def test_a_run_that_was_killed_ends_as_one_that_was_not(whole, tmp_path, first, second):
    """Wherever its chains were then."""
    folder = tmp_path / "run"
    fit(output=folder, callbacks=[lambda event: event.get("num_kept", 0) >= 1])
    for group, count in enumerate((first, second)):
        advance_group(folder, group, num_results=count)
    model, run = tfbnn.resume(folder, verbose=0)
    assert_same_draws(model, whole[0])
    assert run.ended == whole[1].ended
    # It is over, and says so without another look.
    assert_same_draws(tfbnn.load(folder), whole[0])
    again, run = tfbnn.resume(folder, verbose=0)
    assert_same_draws(again, whole[0])
    assert run.ended == whole[1].ended and run.seconds["compile"] < 60


@pytest.mark.statistics
def test_a_finished_run_goes_on_to_a_better_end_or_to_a_number(whole, longer, tmp_path):
    folder = tmp_path / "run"
    fit(output=folder)
    model, run = tfbnn.resume(folder, until=tfbnn.Until(ess=250, rhat=1.05), verbose=0)
    assert run.num_results in (400, 600)
    np.testing.assert_array_equal(model.posterior.draws, longer[:, : run.num_results])
    model, run = tfbnn.resume(folder, num_results=650, verbose=0)
    assert run.num_results == 650 and run.ended is None
    np.testing.assert_array_equal(model.posterior.draws, longer[:, :650])
    assert RunFolder.open(folder).description["until"] is None
    with pytest.raises(RunFolderError, match="num_results=650, received 200"):
        tfbnn.resume(folder, num_results=200, verbose=0)
    _, run = tfbnn.resume(folder, until=UNTIL, num_results=700, verbose=0)
    assert run.num_results == 700 and "after 700 draws" in run.ended


def test_the_most_draws_are_kept_where_the_end_is_not_reached():
    _, run = fit(num_results=150, until=tfbnn.Until(ess=10_000))
    assert run.num_results == 150 and run.ended.startswith("num_results=150 reached: ESS ")


def test_a_number_of_draws_alone_is_kept_exactly():
    model = calm_model()
    run = model.fit_posterior(X, Y, **(PLAIN | {"num_results": 130}))
    assert run.num_results == 130 and run.ended is None


def test_a_run_without_a_number_stays_within_its_budget(monkeypatch):
    monkeypatch.setattr("tfbnn.run.cost._BUDGET_SECONDS", 0.0)
    _, run = fit(num_results="auto", until=tfbnn.Until(ess=10_000))
    gradients = sum(counts.sum() for counts in run.num_gradients.values())
    assert run.num_results == 100
    assert run.ended.startswith(f"budget of {gradients} gradients spent: ESS ")


@pytest.mark.statistics
def test_a_share_of_the_budget_stays_one_when_the_run_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr("tfbnn.run.cost._MOST_RESULTS", 400)
    options = dict(num_results="auto", until=tfbnn.Until(ess=10_000), effort=0.5)
    _, whole = fit(**options)
    folder = tmp_path / "run"
    fit(**options, output=folder, callbacks=[lambda event: event["phase"] == "sampling"])
    _, resumed = tfbnn.resume(folder, verbose=0)
    assert resumed.ended == whole.ended
    assert resumed.ended.startswith("budget of") and resumed.num_results == 200


def test_the_first_line_says_how_long_it_may_take(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(verbose=1, num_results=100, until=UNTIL)
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("About ") and "at most after compiling: up to 2 chains x 100" in first
    assert "ess=70, rhat=1.05 is reached" in first
    fit(verbose=0, num_results=100)
    assert capsys.readouterr().err == ""
