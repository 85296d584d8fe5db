"""Starts of many rows are sought on a sample, in which each row stands for several."""

from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tests.support.starts import fit_starts
from tfbnn.engine.density.data import make_data
from tfbnn.engine.starts import find
from tfbnn.engine.starts.newton_plan import NewtonPlan, plan_newton, plan_on_all_rows
from tfbnn.fit.job import estimated_fit_seconds
from tfbnn.run.options import FitOptions
from tfbnn.spec.rows import NetworkRows, TransformedRows

SPEC = plain_spec([2, 4, 1], dtype="float64")
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 2))
Y = np.sin(X[:, :1]) + 0.1 * GENERATOR.normal(size=(300, 1))
ROWS = NetworkRows(X, Y, None)
SETTINGS = tfbnn.Pretraining(epochs=3, batch_size=16, newton_iterations=20, search_rows=60)


def ground(seed=0, spec=SPEC, **settings):
    """The Ground of a search on a sample of ROWS."""
    rows = TransformedRows(None, None, ROWS, None)
    data = make_data(*ROWS, spec.dtype)
    return find.ground_of(spec, rows, data, replace(SETTINGS, **settings), seed)[0]


def indices(sample):
    """Which of ROWS are in a sample."""
    x = sample.rows().x.numpy()[0]
    return [int(np.flatnonzero(X[:, 0] == value)[0]) for value in x]


def test_the_seed_draws_the_rows_once_each_and_they_stand_for_all():
    sample = ground().sample
    assert len(set(indices(sample))) == 60 and indices(sample) == sorted(indices(sample))
    assert indices(ground().sample) == indices(sample) != indices(ground(seed=1).sample)
    np.testing.assert_array_equal(sample.rows().weights.numpy(), np.full((1, 60), 5.0))
    np.testing.assert_array_equal(sample.rows().y.numpy()[0], Y[indices(sample), 0])


def test_rows_that_judge_are_not_among_them():
    found = ground(validation_split=0.2)
    judged = set(indices(found.holdout.data))
    assert len(judged) == 60 and not judged & set(indices(found.sample))
    np.testing.assert_array_equal(found.sample.rows().weights.numpy(), np.full((1, 60), 4.0))


@pytest.mark.parametrize("search_rows", [None, 300, 1000])
def test_of_no_more_rows_all_are_seen(search_rows):
    found = ground(search_rows=search_rows)
    assert found.sample is None and found.sought_on is found.data


def test_at_last_some_iterations_see_all_rows():
    plans = find._plans(SPEC, ground(), SETTINGS)
    assert [plan.num_iterations for plan in plans] == [20, 5]
    deep = plain_spec([5, 25, 25, 1])
    iterations = [
        plan_newton(deep, 20_000, tfbnn.Pretraining(search_rows=rows)).num_iterations
        for rows in (20_000, 20_001, None)
    ]
    assert iterations[0] > 3 * iterations[1] == 3 * iterations[2] > 0
    counts = [plan_on_all_rows(deep, n).num_iterations for n in (10**4, 10**7)]
    assert counts == [5, 0]


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning")
def test_the_last_iterations_bring_starts_from_the_mode_of_the_sample_to_that_of_all(monkeypatch):
    def log_prob():
        model = tfbnn.BayesianMLP([2, 3, 1], prior=tfbnn.priors.Normal(1.0), dtype="float64")
        run = fit_starts(model, X, Y[:, 0], num_chains=2, pretraining=SETTINGS)
        return run.start_log_prob

    after = log_prob()
    monkeypatch.setattr(find, "plan_on_all_rows", lambda *_: NewtonPlan(0, "dense", ""))
    assert np.all(after > log_prob() + 1.0)


def test_the_estimate_of_starts_is_that_of_the_sample():
    def seconds(num_rows, **settings):
        search = tfbnn.Pretraining(epochs=50, newton_iterations=30, **settings)
        few = {"kernel": tfbnn.kernels.HMC(num_leapfrog_steps=1), "num_results": 1}
        options = FitOptions(**few, num_burnin_steps=0, pretraining=search)
        return estimated_fit_seconds(SPEC, options, num_rows)

    few, many = seconds(10**4), seconds(10**6, search_rows=10**4)
    all_of_them = seconds(10**6)
    on_all = plan_on_all_rows(SPEC, 10**6)
    assert few < many < 0.2 * all_of_them and on_all.num_iterations == 5
    assert plan_newton(SPEC, 10**4, tfbnn.Pretraining()).num_iterations > 5
