"""Workers whose lifetime is shorter than pretraining."""

import itertools
from types import SimpleNamespace

import pytest

import tfbnn
from tests.support.small_runs import RUN, X, Y, assert_same_draws, small_model
from tfbnn.cluster import tasks
from tfbnn.cluster.crew import PreparationTask
from tfbnn.run.plan import Plan
from tfbnn.run.preparation import preparation_in

pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings(
    "ignore::tfbnn.ConvergenceWarning", "ignore:The run was stopped"
)
PRETRAINING = tfbnn.Pretraining(epochs=3, batch_size=10, newton_iterations=2)


class ShortLived:
    """A worker that closes as soon as it has got anywhere."""

    answers = itertools.cycle([distributed.Status.running, distributed.Status.closing])
    status = property(lambda self: next(self.answers))


class Closed:
    """The future of a task whose worker closed."""

    status, key = "finished", "key"

    def result(self):
        return False


def test_each_attempt_gets_further(tmp_path, monkeypatch):
    """By one call of ADAM, or one iteration of Levenberg-Marquardt, which the crew sees."""
    monkeypatch.setattr("tfbnn.engine.starts.pretraining.affordable_steps", lambda flops: 1)
    options = RUN | dict(
        num_results=10, num_burnin_steps=10, pretraining=PRETRAINING, jit_compile=False
    )
    expected, path = small_model(), str(tmp_path / "run")
    expected.fit_posterior(X, Y, **options)
    small_model().fit_posterior(X, Y, **options, callbacks=[lambda event: True], output=path)
    monkeypatch.setattr("distributed.get_worker", ShortLived)
    monkeypatch.setattr("tfbnn.engine.basis.threads.limit_threads", lambda: None)
    folder, attempts, reached = preparation_in(path), 1, []
    plan, client = Plan([[0, 1]], 1, [], 1, 1), SimpleNamespace(status="running")
    while not tasks.prepare(folder.path, folder.run_id, path, 0, str(tmp_path / "stop")):
        attempts += 1
        crew = PreparationTask(plan, client, folder, path, 0)
        crew.running[Closed()] = 0
        assert not list(crew.reports()) and crew._waiting
        reached.append(crew.counters[0].transition)
    assert attempts == 3 + 2 * 2 and reached == sorted(set(reached))
    assert_same_draws(tfbnn.resume(path, verbose=0)[0], expected)
