"""Worker processes of a run that ends when it has enough: they wait for each other, and for a look."""

import os
import signal

import pytest

import tfbnn
from tests.support.small_runs import RUN, X, Y, assert_same_draws, calm_model
from tests.support.workers import workers_of
from tfbnn.run.until import FIRST_LOOK

pytestmark = pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning")

# Reached after more than two looks.
OPTIONS = RUN | dict(
    num_results=1000, until=tfbnn.Until(ess=400, rhat=1.05), jit_compile=False, num_chains=3
)


@pytest.fixture(scope="module")
def whole():
    """(model, run) in threads of this process."""
    model = calm_model()
    return model, model.fit_posterior(X, Y, **OPTIONS)


def test_they_end_as_one_process_does(whole, tmp_path):
    """Also where one of them is killed between two looks; none is started anew for a look."""
    seen, killed = set(), []

    def callback(event):
        seen.update(workers_of(os.getpid()))
        if event.get("num_kept", 0) > FIRST_LOOK and not killed:
            killed.append(workers_of(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    model = calm_model()
    with pytest.warns(tfbnn.WorkerWarning, match="SIGKILL.*goes on from the last"):
        run = model.fit_posterior(
            X, Y, **OPTIONS, output=tmp_path / "run", num_workers=2, callbacks=[callback]
        )
    assert run.ended == whole[1].ended and run.num_results > 2 * FIRST_LOOK
    assert run.history["looks"] == whole[1].history["looks"]
    assert_same_draws(model, whole[0])
    assert killed and len(seen) <= 3 and not workers_of(os.getpid())
