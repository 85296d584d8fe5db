"""Runs that write to a folder: resumed, extended, refused, loaded, and their chain groups advanced alone."""

import os
import shutil
import signal
import threading

import numpy as np
import pytest

import tfbnn
from tests.support import small_runs
from tests.support.marks import statistics_but
from tests.support.small_runs import X, Y, assert_same_draws, brief_fit, small_model
from tfbnn.engine.running.advance import advance_group
from tfbnn.engine.sampling.chain_group import ChainGroup
from tfbnn.exceptions import ChainError, NotFittedError, RunFolderError, RunLockedError
from tfbnn.fit.choices import rules
from tfbnn.kernels import HMC, RandomWalkMetropolis
from tfbnn.storage.run.folder import RunFolder

pytestmark = pytest.mark.filterwarnings(
    "ignore::tfbnn.ConvergenceWarning", "ignore:The run (was stopped|ended before)"
)

# Without XLA, whose programs go on bitwise in test_groups.py and in the tests of processes.
RUN = small_runs.BRIEF


def stop_after(count, phase="sampling"):
    """A callback that stops the run after so many events of a phase."""
    events = []

    def callback(event):
        events.extend([event] if event["phase"] == phase else [])
        return len(events) >= count

    return callback


short_blocks = small_runs.blocks_of(8)  # several to stop between


@pytest.fixture(scope="module")
def whole():
    """(model, run) that nothing interrupted, in memory."""
    return brief_fit()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run folder with a run that was stopped while it sampled."""
    path = tmp_path_factory.mktemp("stopped") / "run"
    brief_fit(output=path, callbacks=[stop_after(3)])
    return path


@pytest.fixture
def folder(stopped, tmp_path):
    """A copy of it."""
    return shutil.copytree(stopped, tmp_path / "run")


def test_an_interrupt_while_draws_are_read_back_loses_none(tmp_path, whole, monkeypatch):
    """The chains of this process have come to their ends, and committed."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tfbnn.engine.running.driver.gather_result", interrupted)
    model = small_model()
    with pytest.raises(KeyboardInterrupt):
        model.fit_posterior(X, Y, **RUN, output=tmp_path / "run")
    assert_same_draws(model, whole[0])


def test_groups_advance_by_what_is_in_the_folder(folder, whole):
    """In whatever portions, and in any order."""
    events = []

    def after_two(event):
        events.append(event)
        return len(events) % 2 == 0

    for group in (1, 0):
        while not advance_group(folder, group, commit_interval=0, notify=after_two):
            pass
    assert {event.phase for event in events} == {"sampling"} and len(events) >= 4
    assert advance_group(folder, 0)
    assert_same_draws(tfbnn.load(folder), whole[0])


def test_a_run_is_held_against_its_rows_while_it_goes_on_and_after(folder, whole):
    """The folder of a stopped run has the rows; a fit that has ended has said the result."""
    begun = tfbnn.load(folder).diagnose().fit.rows
    assert begun.num_rows == len(X) and begun.targets[0].r2 < 1
    model, run = whole
    (kept,), (told,) = (one.fit.rows.targets for one in (model.diagnose(), run.diagnosis))
    np.testing.assert_allclose(
        [kept.r2, kept.noise, *kept.coverage], [told.r2, told.noise, *told.coverage], rtol=1e-5
    )
    assert model.posterior.diagnostics["verdict"] == run.verdict
    with pytest.warns(tfbnn.ConvergenceWarning) as caught:
        _, run = tfbnn.resume(folder, verbose=0)
    (said,) = caught
    assert run.folder == str(folder)
    assert str(said.message) == (
        f"Verdict on these draws: {run.diagnosis.headline}. See run.report()."
    )


@pytest.mark.parametrize("phase, count", [("warmup", 2), ("sampling", 3)])
def test_a_stopped_run_goes_on_bitwise(tmp_path, whole, phase, count):
    stopped, run = brief_fit(output=tmp_path / "run", callbacks=[stop_after(count, phase)])
    assert run.num_results < 40
    model, run = brief_fit(output=tmp_path / "run", resume=True)
    assert_same_draws(model, whole[0])
    np.testing.assert_array_equal(run.num_gradients["warmup"], whole[1].num_gradients["warmup"])
    np.testing.assert_array_equal(run.acceptance_rate, whole[1].acceptance_rate)
    np.testing.assert_array_equal(run.start_log_prob, whole[1].start_log_prob)
    assert run.seconds["sampling"] > 0 and run.pretraining == whole[1].pretraining


@pytest.mark.statistics
def test_thinned_runs_with_known_noise_and_validation_rows_go_on_by_their_folder(tmp_path):
    options = dict(
        num_steps_between_results=2,
        num_results=12,
        num_burnin_steps=16,
        noise_scale=np.full(40, 0.2),
        validation_data=(X[:9], Y[:9], np.full(9, 0.2)),
        pretraining=tfbnn.Pretraining(epochs=4, early_stopping=2, newton_iterations=0),
    )
    expected, _ = brief_fit(**options)
    brief_fit(output=tmp_path / "run", callbacks=[stop_after(2)], **options)
    model, run = tfbnn.resume(tmp_path / "run", verbose=0)
    assert_same_draws(model, expected)
    np.testing.assert_array_equal(model.posterior.x_reference, expected.posterior.x_reference)
    assert model.posterior.provenance == expected.posterior.provenance
    assert model.posterior.diagnostics == expected.posterior.diagnostics
    np.testing.assert_array_equal(model.predict(X).mean, expected.predict(X).mean)


def test_a_finished_run_is_read_and_not_run(tmp_path, whole, monkeypatch):
    brief_fit(output=tmp_path / "run")
    monkeypatch.setattr("tfbnn.engine.running.driver.run_chains", None)
    model, run = brief_fit(output=tmp_path / "run", resume=True)
    assert_same_draws(model, whole[0])
    np.testing.assert_array_equal(run.step_size, whole[1].step_size)


def test_more_draws_are_those_of_a_longer_run(folder):
    """Check a run that was stopped, and one that is finished."""
    for number in (60, 70):
        model, run = tfbnn.resume(folder, num_results=number, verbose=0)
        assert run.num_results == number == model.posterior.provenance.num_results_requested
    assert_same_draws(model, brief_fit(num_results=70)[0])
    with pytest.raises(RunFolderError, match="num_results=70, received 40"):
        brief_fit(output=folder, resume=True)


def test_more_draws_are_refused_while_a_group_is_written_and_change_nothing(folder, whole):
    with RunFolder.open(folder).writer(1), pytest.raises(RunLockedError, match="lane-001"):
        tfbnn.resume(folder, num_results=60, verbose=0)
    assert_same_draws(brief_fit(output=folder, resume=True)[0], whole[0])


def test_an_empty_or_missing_folder_starts_afresh(tmp_path, whole):
    model, _ = brief_fit(output=tmp_path, resume=True)
    assert_same_draws(model, whole[0])


@pytest.mark.statistics
def test_a_ladder_keeps_its_evidence(tmp_path):
    kernel = tfbnn.kernels.PowerPosterior("mala", num_temperatures=3)
    options = dict(kernel=kernel, num_results=16)
    model, run = brief_fit(output=tmp_path / "run", **options)
    expected, expected_run = brief_fit(**options)
    assert_same_draws(model, expected)
    assert run.log_evidence.to_dict() == expected_run.log_evidence.to_dict()
    loaded = tfbnn.load(tmp_path / "run").posterior
    assert loaded.provenance == expected.posterior.provenance


@pytest.mark.statistics
def test_a_collapsed_run_keeps_its_readouts(tmp_path):
    """In chains that share a program, as those of ChEES do."""
    inner = tfbnn.kernels.ChEESHMC(max_leapfrog_steps=4)
    kernel = tfbnn.kernels.Repriorised(inner, collapse_readout=True)
    options = dict(kernel=kernel, num_results=10)
    expected, _ = brief_fit(**options)
    brief_fit(output=tmp_path / "run", callbacks=[stop_after(1)], **options)
    model, _ = tfbnn.resume(tmp_path / "run", verbose=0)
    loaded = tfbnn.load(tmp_path / "run")
    assert_same_draws(model, expected)
    for found in (model, loaded):
        np.testing.assert_array_equal(found.predict(X).stddev, expected.predict(X).stddev)


@pytest.mark.statistics
class TestCallableKernels:
    @staticmethod
    def walk(target):
        import tensorflow_probability as tfp

        return tfp.mcmc.RandomWalkMetropolis(
            target, new_state_fn=tfp.mcmc.random_walk_normal_fn(scale=0.05)
        )

    def test_goes_on_with_the_callable_only(self, tmp_path):
        options = dict(num_chains=1, kernel=self.walk)
        brief_fit(output=tmp_path / "run", callbacks=[stop_after(2)], **options)
        with pytest.raises(ValueError, match="walk.*resume=True, kernel=that callable"):
            tfbnn.resume(tmp_path / "run")
        with pytest.raises(RunFolderError, match="kernel.function"):
            other = {"kernel": lambda target: self.walk(target)}
            brief_fit(output=tmp_path / "run", resume=True, **(options | other))
        model, _ = brief_fit(output=tmp_path / "run", resume=True, **options)
        assert_same_draws(model, brief_fit(**options)[0])


# What is chosen.


def test_a_run_goes_on_with_what_was_chosen_for_it_whatever_would_be_now(
    tmp_path, whole, monkeypatch
):
    def choose(number):
        monkeypatch.setattr(rules, "num_burnin_steps", lambda *_: (number, f"by rule {number}"))

    options = dict(output=tmp_path / "run", num_burnin_steps="auto")
    choose(16)
    brief_fit(callbacks=[stop_after(2, "pretraining")], **options)
    choose(50)
    with pytest.raises(RunFolderError, match="num_burnin_steps is 16 there and 17 here"):
        brief_fit(resume=True, **(options | {"num_burnin_steps": 17}))
    model, run = brief_fit(resume=True, **options)
    assert_same_draws(model, whole[0])
    assert "num_burnin_steps 16: by rule 16" in run.report(width=1000)
    assert run.to_dict()["choices"]["num_burnin_steps"] == {"chosen": "16", "why": "by rule 16"}
    assert tfbnn.resume(tmp_path / "run")[1].choices == run.choices
    assert tfbnn.load(tmp_path / "run").posterior.provenance.choices == run.choices


# Refusals.


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(seed=3), "numbers.seed is 2 there and 3 here"),
        (dict(num_chains=3), "numbers.num_chains is 2 there and 3 here"),
        (dict(num_burnin_steps=17), "num_burnin_steps"),
        (dict(num_steps_between_results=1), "num_steps_between_results"),
        (dict(jit_compile=True), "jit_compile is False there"),
        (dict(kernel=HMC(num_leapfrog_steps=4)), "kernel.num_leapfrog_steps is 1 there and 4"),
        (dict(kernel="nuts"), "kernel.name is 'HMC' there and 'NUTS' here"),
        (dict(pretraining=None), "pretraining"),
        (dict(noise_scale=np.full(40, 0.1)), "the training rows differ"),
        (dict(validation_data=(X, Y)), "the validation rows differ"),
        (dict(num_results=39), "num_results=40, received 39"),
        (dict(resume=False), "holds a run already. Pass resume=True"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_another_run_is_refused(folder, change, words):
    with pytest.raises(RunFolderError, match=words):
        brief_fit(**({"output": folder, "resume": True} | change))


def test_a_second_run_is_refused_while_the_first_seeks_its_starts(tmp_path, whole):
    refused = []

    def begin_another(event):
        if event["phase"] == "pretraining" and not refused:
            with pytest.raises(RunLockedError, match=f"process {os.getpid()} on host"):
                brief_fit(output=tmp_path)
            refused.append(event)

    model, _ = brief_fit(output=tmp_path, callbacks=[begin_another])
    assert refused
    assert_same_draws(model, whole[0])


@pytest.mark.parametrize(
    "settings, words",
    [
        (dict(dtype="float64"), "spec.dtype is 'float32' there and 'float64' here"),
        (dict(activation="relu"), "spec.activations"),
        (dict(likelihood=tfbnn.likelihoods.Gaussian(0.1)), "spec.likelihood.noise_scale"),
    ],
)
def test_another_model_is_refused(folder, settings, words):
    model = small_model(**settings)
    with pytest.raises(RunFolderError, match=words):
        model.fit_posterior(X, Y, output=folder, resume=True, **RUN)


@pytest.mark.parametrize(
    "entry, words",
    [
        ({"device": "TPU"}, "device is 'CPU' there and 'TPU' here"),
        ({"key_scheme": "older"}, "key_scheme"),
        ({"versions": {"tensorflow": "1.0"}}, "versions.tensorflow"),
    ],
)
def test_another_environment_is_refused(folder, monkeypatch, entry, words):
    from tfbnn.engine.basis.seeds import describe_environment

    def elsewhere():
        return describe_environment() | entry

    monkeypatch.setattr("tfbnn.engine.basis.seeds.describe_environment", elsewhere)
    monkeypatch.setattr("tfbnn.engine.running.advance.describe_environment", elsewhere)
    for go_on in (lambda: tfbnn.resume(folder), lambda: advance_group(folder, 0)):
        with pytest.raises(RunFolderError, match=words):
            go_on()


@pytest.mark.statistics
def test_labels_of_another_name_are_refused(tmp_path):
    model = tfbnn.BayesianMLP(
        [2, 1], prior=tfbnn.priors.Normal(1.0), likelihood=tfbnn.likelihoods.Bernoulli()
    )
    rows = X, np.where(Y > 0, "yes", "no")
    options = RUN | dict(output=tmp_path / "run", pretraining=None)
    model.fit_posterior(*rows, callbacks=[stop_after(1)], **options)
    with pytest.raises(RunFolderError, match="classes is .'no', 'yes'. there"):
        model.fit_posterior(X, np.where(Y > 0, "2", "1"), resume=True, **options)
    resumed, _ = tfbnn.resume(tmp_path / "run", verbose=0)
    assert resumed.classes == ("no", "yes")
    assert tfbnn.load(tmp_path / "run").predict_classes(X).dtype.kind == "U"


# What an unfinished folder is good for.


def test_a_run_in_progress_is_loaded(folder, whole, recwarn):
    model = tfbnn.load(folder)
    count = model._ensemble.num_results
    assert 0 < count < 40
    np.testing.assert_array_equal(model.posterior.draws, whole[0].posterior.draws[:, :count])
    assert any(f"{count} of 40 draws" in str(warning.message) for warning in recwarn)
    assert model.predict(X).mean.shape == (40,)
    assert model.diagnose().rhat_function.shape == (40, 1)
    model.save(folder / "model.h5")
    np.testing.assert_array_equal(
        tfbnn.load(folder / "model.h5")._ensemble.draws, model._ensemble.draws
    )


def test_a_run_without_draws_is_not_loaded(tmp_path):
    brief_fit(output=tmp_path / "run", callbacks=[stop_after(1, "warmup")])
    with pytest.raises(NotFittedError, match="has not committed a draw"):
        tfbnn.load(tmp_path / "run")
    with pytest.raises(ValueError, match="untrusted=True is for model files"):
        tfbnn.load(tmp_path / "run", untrusted=True)


def test_groups_are_cut_to_what_all_have(folder):
    counts = [RunFolder.open(folder).checkpoint(group).num_draws for group in (0, 1)]
    ahead = int(np.argmax(counts))
    assert tfbnn.load(folder)._ensemble.num_results == min(counts)
    advance_group(folder, ahead)
    assert tfbnn.load(folder)._ensemble.num_results == min(counts)
    advance_group(folder, 1 - ahead)
    assert tfbnn.load(folder)._ensemble.num_results == 40


@pytest.mark.parametrize("to_folder", statistics_but([True], [False, True]))
def test_a_chain_that_fails_does_not_take_the_others_with_it(
    tmp_path, whole, monkeypatch, to_folder
):

    advance = ChainGroup.advance

    def fail(self, *at_most):
        if self.chains == [1] and self.num_kept >= 16:
            raise MemoryError("no room")
        return advance(self, *at_most)

    output = {"output": tmp_path / "run", "commit_interval": 0} if to_folder else {}
    with monkeypatch.context() as patch:
        patch.setattr(ChainGroup, "advance", fail)
        model = small_model()
        with pytest.raises(ChainError, match="chain 1: MemoryError: no room") as caught:
            model.fit_posterior(X, Y, **RUN, **output)
    assert isinstance(caught.value.__cause__, MemoryError)
    assert ("tfbnn resume" in str(caught.value)) == to_folder
    np.testing.assert_array_equal(model.posterior.draws, whole[0].posterior.draws[:1])
    if to_folder:
        assert tfbnn.load(tmp_path / "run")._ensemble.num_results == 16
        assert_same_draws(tfbnn.resume(tmp_path / "run", verbose=0)[0], whole[0])


def test_an_interrupt_commits_and_keeps_the_draws(tmp_path, whole):
    """A second signal, while the last block is waited for, changes nothing."""
    model = small_model()

    def interrupt(event):
        if event["phase"] == "sampling" and event["num_kept"] >= 8:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        model.fit_posterior(X, Y, output=tmp_path / "run", callbacks=[interrupt], **RUN)
    count = model._ensemble.num_results
    assert 8 <= count < 40 and count == tfbnn.load(tmp_path / "run")._ensemble.num_results
    assert_same_draws(tfbnn.resume(tmp_path / "run", verbose=0)[0], whole[0])


@pytest.mark.statistics
def test_a_chain_that_fails_while_an_interrupt_is_handled_keeps_its_last_commit(
    tmp_path, whole, monkeypatch
):
    """The interrupt tells of it."""
    failing, interrupted, keep = threading.Event(), threading.Event(), ChainGroup._kept

    def fail(group, count, output):
        if group.chains == [1] and group.num_kept >= 8:
            failing.set()
            assert interrupted.wait(60)
            raise MemoryError("no room")
        return keep(group, count, output)

    def interrupt(event):
        if failing.is_set():
            # The block is waited for by then.
            threading.Timer(0.2, interrupted.set).start()
            raise KeyboardInterrupt

    model = small_model()
    with monkeypatch.context() as patch:
        patch.setattr(ChainGroup, "_kept", fail)
        with (
            pytest.warns(UserWarning, match="chain 1: MemoryError: no room"),
            pytest.raises(KeyboardInterrupt) as caught,
        ):
            model.fit_posterior(X, Y, output=tmp_path / "run", callbacks=[interrupt], **RUN)
    assert isinstance(caught.value.__cause__, ChainError) and model.posterior.num_chains == 1
    for group in range(2):
        counters = RunFolder.open(tmp_path / "run").checkpoint(group).counters
        assert sum(counters["transitions"].values()) == counters["transition"]
    assert_same_draws(tfbnn.resume(tmp_path / "run", verbose=0)[0], whole[0])


@pytest.mark.statistics
def test_a_chain_that_accepts_nothing_is_named_however_close_it_came(monkeypatch):
    """Acceptance probabilities above zero do not count, only moves."""
    monkeypatch.setattr("tfbnn.run.plan.block_length", lambda *_: 32)
    events = []
    kernel = RandomWalkMetropolis(step_size=0.5, preconditioner="identity")
    pretraining = tfbnn.Pretraining(
        epochs=300, batch_size=None, learning_rate=0.05, newton_iterations=0
    )
    options = dict(kernel=kernel, pretraining=pretraining, num_burnin_steps=0)
    model = small_model(likelihood=tfbnn.likelihoods.Gaussian(0.3))
    model.fit_posterior(X, Y, **(RUN | options), callbacks=[events.append])
    draws = model.posterior.draws
    assert np.all(draws == draws[:, :1])
    assert model.posterior.sample_stats["acceptance_rate"].max(axis=1).min() > 0
    assert events[-1]["standing_still"] == [0, 1]


@pytest.mark.statistics
def test_a_chain_that_stands_still_is_named_within_a_block(monkeypatch):
    monkeypatch.setattr("tfbnn.run.plan.block_length", lambda *_: 32)
    events = []
    kernel = HMC(step_size=50.0, num_leapfrog_steps=1, preconditioner="identity")
    with pytest.warns(tfbnn.ConvergenceWarning) as warned:
        brief_fit(kernel=kernel, num_burnin_steps=32, callbacks=[events.append])
    last = [event for event in events if event["phase"] == "warmup"][-1]
    assert last["standing_still"] == [0, 1]
    (text,) = [str(w.message) for w in warned if "accepted none" in str(w.message)]
    assert text.startswith("Chain")  # one warning for all of them
    monkeypatch.setattr("tfbnn.run.plan.block_length", lambda *_: 8)
    brief_fit(callbacks=[events.append])
    assert events[-1]["standing_still"] == []
