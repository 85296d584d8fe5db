"""The search for starts, stopped or killed: it leaves nothing, and the same call begins it again."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import tfbnn
from tests.support.marks import statistics_but
from tests.support.run_folders import created_run
from tests.support.small_runs import BRIEF, assert_same_draws, blocks_of, small_fit
from tests.support.starts import SEARCHES
from tfbnn.exceptions import RunFolderError
from tfbnn.storage.run.folder import RunFolder

pytestmark = pytest.mark.filterwarnings(
    "ignore::tfbnn.ConvergenceWarning", "ignore:The run ended before"
)
OPTIONS = BRIEF | SEARCHES["held-out rows"]
short_blocks = blocks_of(8)  # those of test_runs.py, whose program these runs share


@pytest.fixture(scope="module")
def whole():
    """(model, run) that nothing interrupted, in memory."""
    return small_fit(**OPTIONS)


STOPS = [("newton", True), ("pretraining", False)]


@pytest.mark.parametrize(("phase", "resume"), statistics_but(STOPS[:1], STOPS))
def test_a_stopped_search_begins_again(tmp_path, whole, phase, resume):
    """Also where an earlier release has left how far its search was.

    Whatever the phase, the folder holds no run then, so that each goes with one of both arguments.
    """
    path = tmp_path / "run"
    model, _ = small_fit(output=path, callbacks=[lambda event: event["phase"] == phase], **OPTIONS)
    assert RunFolder.find(path) is None
    with pytest.warns(UserWarning, match="not sampled"):
        assert model.posterior.num_results == 1  # the networks so far
    created_run(path / "preparation", {}, {}, 1)
    with pytest.raises(RunFolderError):
        tfbnn.resume(path)
    model, run = small_fit(output=path, resume=resume, **OPTIONS)
    assert_same_draws(model, whole[0])
    assert run.pretraining == whole[1].pretraining
    assert_same_draws(tfbnn.load(path), model)


KILLED = """
import os, signal, sys
from tests.support.starts import SEARCHES
from tests.support.small_runs import BRIEF, small_fit

def kill(event):
    if event["phase"] == "newton":
        os.kill(os.getpid(), signal.SIGKILL)

options = BRIEF | SEARCHES["held-out rows"]
small_fit(output=sys.argv[1], commit_interval=0, callbacks=[kill], **options)
"""


@pytest.mark.processes
def test_a_killed_search_begins_again(tmp_path, whole):
    path = tmp_path / "run"
    killed = subprocess.run([sys.executable, "-c", KILLED, path], timeout=300, env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    model, _ = small_fit(output=path, resume=True, **OPTIONS)
    np.testing.assert_allclose(model.posterior.draws, whole[0].posterior.draws)
