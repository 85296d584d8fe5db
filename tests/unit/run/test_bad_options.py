"""Bad arguments of `fit_posterior`, and what is left of a model whose fit failed."""

import inspect

import numpy as np
import pytest

import tfbnn
from tests.support.entries import NOISE, X, Y, fake_fit, refuses, with_cell
from tfbnn import BayesianMLP, NotFittedError

EARLY = tfbnn.Pretraining(early_stopping=5)
BAD_SETTINGS = [
    ({"num_chains": 0}, ValueError, ["num_chains", "at least 1", "0"]),
    ({"num_chains": True}, TypeError, ["num_chains", "integer", "True"]),
    ({"num_results": 0}, ValueError, ["num_results", "at least 1", "0"]),
    ({"num_burnin_steps": -1}, ValueError, ["num_burnin_steps", "at least 0", "-1"]),
    ({"num_steps_between_results": -1}, ValueError, ["num_steps_between_results", "at least 0"]),
    ({"seed": -1}, ValueError, ["seed", "at least 0", "-1"]),
    ({"seed": None}, TypeError, ["seed", "integer", "None"]),
    ({"likelihood_power": 0.0}, ValueError, ["likelihood_power", "> 0", "<= 1", "0.0"]),
    ({"likelihood_power": 1.01}, ValueError, ["likelihood_power", "<= 1", "1.01"]),
    ({"effort": 0}, ValueError, ["effort", "> 0", "<= 1", "0"]),
    ({"pretraining": True}, TypeError, ["pretraining", "Pretraining", "True"]),
    ({"pretraining": EARLY}, ValueError, ["early_stopping", "validation_data"]),
    ({"jit_compile": "yes"}, TypeError, ["jit_compile", "True or False", "'yes'"]),
    ({"output": 3}, TypeError, ["output", "path", "3"]),
    ({"output": "absent/run"}, FileNotFoundError, ["absent", "Create it first"]),
    ({"output": __file__}, ValueError, ["test_bad_options.py", "not a run folder"]),
    ({"resume": True}, ValueError, ["resume=True", "output=None"]),
    ({"commit_interval": -1}, ValueError, ["commit_interval", ">= 0", "-1"]),
    ({"verbose": 7}, ValueError, ["verbose", "'auto', 0, 1 or 2", "7"]),
    ({"callbacks": print}, TypeError, ["callbacks"]),
    ({"callbacks": [1]}, TypeError, ["callback", "callable", "1"]),
    ({"validation_data": X}, ValueError, ["validation_data", "(x, y)", "ndarray"]),
    ({"validation_data": (X, Y, NOISE, 1)}, ValueError, ["validation_data", "(x, y)"]),
    ({"kernel": "hcm"}, ValueError, ["kernel", "hmc", "nuts", "'hcm'"]),
    ({"kernel": None}, TypeError, ["kernel", "hmc", "nuts", "None"]),
    ({"kernel": lambda target_log_prob_fn: None}, TypeError, ["kernel", "TransitionKernel"]),
    ({"kernel": lambda: None}, TypeError, ["kernel", "target_log_prob_fn"]),
]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("settings", "error", "words"),
    BAD_SETTINGS,
    ids=[", ".join(words) for _, _, words in BAD_SETTINGS],
)
def test_bad_settings_are_refused_before_the_engine_starts(settings, error, words, fitted, engine):
    refuses(lambda: fitted.fit_posterior(X, Y, **settings), fitted, engine, error, words)


def test_after_a_refused_first_fit_the_model_is_still_not_fitted(engine):
    model = BayesianMLP([2, 5, 1])
    with pytest.raises(ValueError, match="finite"):
        model.fit_posterior(with_cell(np.nan), Y)
    with pytest.raises(NotFittedError, match="fit_posterior"):
        model.predict(X)


@pytest.mark.tensorflow
def test_after_a_failure_inside_the_engine_the_first_posterior_is_still_there(fitted, engine):
    before = fitted.predict(X).mean
    with pytest.raises(AssertionError, match="pretraining was reached"):
        fitted.fit_posterior(X, Y)
    np.testing.assert_array_equal(fitted.predict(X).mean, before)


@pytest.mark.tensorflow
def test_a_run_stopped_before_the_first_draw_leaves_the_first_posterior(fitted, engine):
    before, engine.num_kept = fitted.posterior, 0
    with pytest.warns(UserWarning, match="keeps its earlier posterior"):
        run = fake_fit(fitted)
    assert run.num_results == 0 and run.verdict == "not sampled" in run.report()
    assert fitted.posterior is before


@pytest.mark.tensorflow
@pytest.mark.parametrize("num_kept, told", [(0, "ended before"), (40, "Verdict on these")])
def test_warnings_are_about_the_line_that_fits(fitted, engine, num_kept, told):
    engine.num_kept = num_kept
    with pytest.warns(UserWarning, match=told) as caught:
        fake_fit(fitted, num_results=40)
    assert {one.filename for one in caught} == {inspect.getsourcefile(fake_fit)}


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore:The run was stopped early:UserWarning")
def test_an_interrupted_run_raises_and_leaves_its_draws(engine):
    model, engine.num_kept, engine.interrupted = BayesianMLP([2, 5, 1]), 4, True
    with pytest.raises(KeyboardInterrupt):
        fake_fit(model)
    assert model.posterior.num_results == 4
    assert np.isfinite(model.predict(X).mean).all()


@pytest.mark.tensorflow
def test_a_model_fitted_with_numpy_numbers_can_be_saved(engine, tmp_path):
    model, kernel = BayesianMLP([2, 5, 1]), tfbnn.kernels.NUTS(max_tree_depth=np.int64(4))
    sizes = {"num_chains": np.int64(2), "num_results": np.int32(6), "num_burnin_steps": np.int64(3)}
    others = {"num_steps_between_results": np.uint8(1), "seed": np.int64(7), "kernel": kernel}
    fake_fit(model, **sizes, **others)
    model.save(tmp_path / "model.h5")
    assert tfbnn.load(tmp_path / "model.h5").posterior.num_results == 6
