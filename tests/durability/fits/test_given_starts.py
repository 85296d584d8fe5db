"""Runs from given starts: where they begin, and that their folders know."""

import numpy as np
import pytest

import tfbnn
from tests.support.small_runs import (
    BRIEF,
    X,
    Y,
    assert_same_draws,
    blocks_of,
    small_fit,
    small_model,
)
from tfbnn.exceptions import RunFolderError

pytestmark = pytest.mark.filterwarnings(
    "ignore::tfbnn.ConvergenceWarning", "ignore:The run (was stopped|ended before)"
)
THETA = np.random.default_rng(5).normal(size=(2, 14)).astype(np.float32)
GIVEN = BRIEF | {"pretraining": "auto", "initial_state": THETA}
short_blocks = blocks_of(8)  # those of test_runs.py, whose program these runs share


@pytest.fixture(scope="module")
def whole():
    """(model, run) from given starts, in memory."""
    return small_fit(**GIVEN)


def stop_while_sampling(event):
    return event["phase"] == "sampling"


@pytest.mark.statistics
def test_the_first_transition_leaves_from_there(whole):
    model, run = whole
    np.testing.assert_allclose(run.start_log_prob, model.log_prob(THETA, X, Y), rtol=1e-4)
    kernel = tfbnn.kernels.RandomWalkMetropolis(step_size=1e-7)
    still, _ = small_fit(**GIVEN | dict(kernel=kernel, num_burnin_steps=0, num_results=4))
    np.testing.assert_allclose(still.posterior.draws[:, 0], THETA, atol=1e-5)


def test_a_run_from_given_starts_goes_on_by_its_folder(tmp_path, whole):
    small_fit(**GIVEN, output=tmp_path / "run", callbacks=[stop_while_sampling])
    model, run = tfbnn.resume(tmp_path / "run", verbose=0)
    assert_same_draws(model, whole[0])
    assert run.pretraining == whole[1].pretraining
    assert model.posterior.provenance == whole[0].posterior.provenance
    again, _ = small_fit(**GIVEN, output=tmp_path / "run", resume=True)
    assert_same_draws(again, whole[0])


def test_it_does_not_go_on_from_other_starts(tmp_path):
    small_fit(**GIVEN, output=tmp_path / "run", callbacks=[stop_while_sampling])
    for other in (THETA + 1, 0.5, None):
        with pytest.raises(RunFolderError, match="initial_state is"):
            changed = GIVEN | {"pretraining": None, "initial_state": other}
            small_fit(**changed, output=tmp_path / "run", resume=True)


@pytest.mark.statistics
def test_a_number_is_the_same_start_when_the_run_goes_on(tmp_path):
    """By its folder, and by the same call with more draws."""
    options = BRIEF | dict(pretraining=None, initial_state=0.5, output=tmp_path / "run")
    small_fit(**options, callbacks=[stop_while_sampling])
    more = BRIEF["num_results"] + 8
    for model, run, number in (
        (*tfbnn.resume(tmp_path / "run", verbose=0), BRIEF["num_results"]),
        (*small_fit(**options | dict(resume=True, num_results=more)), more),
    ):
        assert run.num_results == number and "N(0, 0.5^2)" in run.pretraining
        assert model.posterior.provenance.initial_state == run.pretraining


def test_a_run_that_ends_before_its_first_draw_keeps_where_it_was_to_start():
    model = small_model()
    model.fit_posterior(X, Y, **GIVEN, until=tfbnn.Until(max_seconds=1e-3))
    with pytest.warns(UserWarning, match="where the chains started: max_seconds"):
        posterior = model.posterior
    np.testing.assert_array_equal(posterior.draws[:, 0], THETA)


@pytest.mark.statistics
def test_a_run_from_a_model_goes_on_in_its_transforms(tmp_path, whole):
    """The transforms are those of rows elsewhere, and the folder of the run holds them."""
    model, data = small_model(), (X + 1.0, 3.0 * Y)
    options = GIVEN | dict(initial_state=whole[0], output=tmp_path / "run")
    model.fit_posterior(*data, **options, callbacks=[stop_while_sampling])
    resumed, run = tfbnn.resume(tmp_path / "run", verbose=0)
    assert run.num_results == BRIEF["num_results"]
    for found in (resumed, tfbnn.load(tmp_path / "run")):
        assert found.posterior.x_pipeline == whole[0].posterior.x_pipeline
        assert found.posterior.y_pipeline == whole[0].posterior.y_pipeline
    last = whole[0].posterior.draws[:, -1]
    np.testing.assert_allclose(run.start_log_prob, resumed.log_prob(last, *data), rtol=1e-4)
