"""Where ADAM's starts do not follow the rows, populations take their place."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tests.support.small_runs import X, Y
from tfbnn.engine.density.data import make_data
from tfbnn.engine.starts import find
from tfbnn.engine.starts.check import misfits
from tfbnn.likelihoods import Bernoulli, HeteroscedasticGaussian, StudentT
from tfbnn.run.config import Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.options import Sampling
from tfbnn.run.progress import Notifier

SPEC = plain_spec([2, 3, 1])


def test_misfit_is_that_of_the_worst_target_in_its_standard_deviations():
    spec = plain_spec([2, 3, 2])
    generator = np.random.default_rng(0)
    y = 5.0 + generator.normal(size=(40, 2)) * [1.0, 7.0]
    weights = generator.uniform(0.5, 2.0, 40)
    theta = np.zeros((2, spec.layout.num_parameters))
    theta[1, spec.layout.layers[-1].bias.weights] = (
        y[:, 0].mean(),
        np.average(y[:, 1], weights=weights),
    )
    found = misfits(spec, theta, make_data(X, y, None, "float64", weights))
    mean = np.average(y, axis=0, weights=weights)
    variance = np.average((y - mean) ** 2, axis=0, weights=weights)
    at_zero = np.sqrt(np.average(y**2, axis=0, weights=weights) / variance)
    assert found[0] == pytest.approx(at_zero.max())
    assert found[1] == pytest.approx(1.0, abs=0.02)


def test_a_constant_target_is_missed_by_nothing():
    spec = plain_spec([2, 3, 2])
    y = np.column_stack([Y, np.full(40, 3.0)])
    theta = np.zeros((1, spec.layout.num_parameters))
    found = misfits(spec, theta, make_data(X, y, None, "float64"))
    assert found == pytest.approx(np.sqrt(np.mean(Y**2)) / Y.std())


@pytest.mark.parametrize("likelihood", [HeteroscedasticGaussian(), StudentT()], ids=["hetero", "t"])
def test_the_first_outputs_are_what_misses_the_targets(likelihood):
    num_outputs = 4 if likelihood == HeteroscedasticGaussian() else 2
    spec = plain_spec([2, 3, num_outputs], likelihood=likelihood)
    y = np.column_stack([Y, 2.0 * Y])
    theta = np.zeros((3, spec.layout.num_parameters))
    found = misfits(spec, theta, make_data(X, y, None, "float64"))
    np.testing.assert_allclose(found, np.sqrt(np.mean(Y**2)) / Y.std())


@pytest.fixture
def following(monkeypatch):
    """Function (misfits of ADAM's starts, those of populations or an error) -> Starts of two chains."""
    data = make_data(X, Y[:, None], None, SPEC.dtype)
    monkeypatch.setattr(find, "misfits", lambda spec, theta, data: theta[:, 0])

    def follow(adam, populations, spec=SPEC):
        def cooled(spec, data, num_particles, sampling, notify):
            assert num_particles == 8 and sampling.num_chains == 2
            if isinstance(populations, BaseException):
                raise populations
            return Starts(np.array(populations)[:, None], "cooled", Seconds(pretraining=2.0))

        monkeypatch.setattr(find, "cooled_starts", cooled)
        starts = Starts(np.array(adam)[:, None], "ADAM", Seconds(pretraining=1.0))
        return find._following(spec, data, starts, 0.5, Sampling(num_chains=2), Notifier())

    return follow


@pytest.mark.parametrize("adam", [[0.9, 0.4, 0.5], [0.1, 0.2]])
def test_adam_is_enough_where_as_many_starts_as_chains_follow_the_rows(following, adam):
    found = following(adam, AssertionError("cooled"))
    assert found.text == "ADAM" and found.theta[:, 0].tolist() == adam


@pytest.mark.parametrize(
    "spec",
    [plain_spec([2, 3, 1], likelihood=Bernoulli()), plain_spec([2, 3, 1], activation="relu")],
)
def test_class_labels_and_networks_without_curvature_stay_with_adam(following, monkeypatch, spec):
    if not spec.has_classes:
        monkeypatch.setattr(find, "cooling_obstacle", lambda _: "it has none")
    assert following([0.9, 0.9], AssertionError("cooled"), spec).text == "ADAM"


def test_a_population_that_takes_many_minutes_is_not_cooled(following, monkeypatch):
    monkeypatch.setattr(find, "_MOST_OPERATIONS", 1.0)
    assert following([0.9, 0.9], AssertionError("cooled")).text == "ADAM"


@pytest.mark.parametrize("adam", [[0.9, 0.4, np.nan], [np.nan, np.nan, 0.3]])
def test_populations_take_the_place_of_starts_that_do_not_follow(following, adam):
    found = following(adam, [0.35, 0.2])
    assert found.theta[:, 0].tolist() == [0.35, 0.2]
    assert found.text == "ADAM, 1 of 3 starts followed the rows; cooled"
    assert found.seconds.pretraining == 3.0 and not found.interrupted


def test_populations_that_miss_rows_by_more_are_left(following):
    found = following([0.6, 0.7], [0.9, 0.9])
    assert found.text == "ADAM; populations missed the rows by more"
    assert found.seconds.pretraining == 3.0


def test_the_best_of_many_starts_count(following):
    """Of eight starts for two chains one follows, and the next is close."""
    found = following([0.05, 0.6, *[1.0] * 6], [0.8, 0.8])
    assert found.theta[0] == 0.05 and len(found.theta) == 8


def test_an_interrupt_of_the_first_temperature_leaves_what_adam_found(following):
    found = following([0.6, 0.7], KeyboardInterrupt())
    assert found.interrupted and found.text == "ADAM"


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore:The networks of this model are not sampled")
@pytest.mark.parametrize(
    "function, num_inputs",
    [
        (lambda x: np.sin(10.0 * x[:, 0]), 1),
        pytest.param(lambda x: np.sin(25.0 * x[:, 0]), 1, marks=pytest.mark.slow),
        pytest.param(
            lambda x: np.sin(5.0 * x[:, 0]) * np.cos(5.0 * x[:, 1]), 2, marks=pytest.mark.slow
        ),
    ],
    ids=["three periods", "eight periods", "waves of two inputs"],
)
def test_by_default_networks_follow_functions_that_go_up_and_down(function, num_inputs):
    """ADAM's starts missed these by .97 or more."""
    generator = np.random.default_rng(6)
    x, new = generator.uniform(-1.0, 1.0, (2, 500, num_inputs))
    model = tfbnn.BayesianMLP([num_inputs, 50, 1])
    baseline = model.fit_ensemble(
        x, function(x) + 0.1 * generator.normal(size=500), num_members=4, verbose=0
    )
    assert "followed the rows; two populations of 8 cooled" in baseline.start
    assert np.std(np.ravel(model.predict(new).mean) - function(new)) < 0.12
