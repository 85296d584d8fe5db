"""Populations take the place of ADAM's starts where those do not follow the rows."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tests.support.small_runs import X, Y
from tfbnn.engine.density.data import make_data
from tfbnn.engine.starts import find
from tfbnn.engine.starts.check import misfits
from tfbnn.likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, StudentT
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


@pytest.mark.parametrize(
    "likelihood, num_outputs, other",
    [
        (HeteroscedasticGaussian(), 4, 2.0 * Y),
        (StudentT(), 2, 2.0 * Y),
        (Gaussian(), 2, np.full(40, 3.0)),
    ],
    ids=["the noise is an output, too", "Student-t", "a constant is missed by nothing"],
)
def test_the_first_outputs_are_what_misses_the_targets(likelihood, num_outputs, other):
    spec = plain_spec([2, 3, num_outputs], likelihood=likelihood)
    theta = np.zeros((3, spec.layout.num_parameters))
    found = misfits(spec, theta, make_data(X, np.column_stack([Y, other]), None, "float64"))
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


NONE, BETTER = AssertionError("cooled"), [0.35, 0.2]
LEFT = "ADAM; populations missed the rows by more"
TAKEN = "ADAM, 1 of 3 starts followed the rows; cooled"


@pytest.mark.parametrize(
    "adam, populations, kept, text",
    [
        # As many follow as there are chains.
        ([0.9, 0.4, 0.5], NONE, [0.9, 0.4, 0.5], "ADAM"),
        ([0.1, 0.2], NONE, [0.1, 0.2], "ADAM"),
        ([0.9, 0.4, np.nan], BETTER, BETTER, TAKEN),
        ([np.nan, np.nan, 0.3], BETTER, BETTER, TAKEN),
        ([0.6, 0.7], [0.9, 0.9], [0.6, 0.7], LEFT),
        # The best of many count: one follows, and the next is close.
        ([0.05, 0.6, *[1.0] * 6], [0.8, 0.8], [0.05, 0.6, *[1.0] * 6], LEFT),
        # At the first temperature.
        ([0.6, 0.7], KeyboardInterrupt(), [0.6, 0.7], "ADAM"),
    ],
)
def test_populations_take_the_place_of_starts_that_do_not_follow(
    following, adam, populations, kept, text
):
    found, cooled = following(adam, populations), isinstance(populations, list)
    assert found.theta[:, 0].tolist() == kept and found.text == text
    assert found.seconds.pretraining == (3.0 if cooled else 1.0)
    assert found.interrupted == isinstance(populations, KeyboardInterrupt)


@pytest.mark.parametrize(
    "spec",
    [plain_spec([2, 3, 1], likelihood=Bernoulli()), plain_spec([2, 3, 1], activation="relu")],
)
def test_class_labels_and_networks_without_curvature_stay_with_adam(following, monkeypatch, spec):
    if not spec.has_classes:
        monkeypatch.setattr(find, "cooling_obstacle", lambda _: "it has none")
    assert following([0.9, 0.9], NONE, spec).text == "ADAM"


def test_a_population_that_takes_many_minutes_is_not_cooled(following, monkeypatch):
    monkeypatch.setattr(find, "_MOST_OPERATIONS", 1.0)
    assert following([0.9, 0.9], NONE).text == "ADAM"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The networks of this model are not sampled")
def test_by_default_networks_follow_functions_that_go_up_and_down():
    """ADAM's starts missed three periods by .97 or more.

    Run it after a change of the search: the tests above say when populations take the place of starts, and
    test_cooling.py what they find.
    """
    generator = np.random.default_rng(6)
    x, new = generator.uniform(-1.0, 1.0, (2, 500, 1))
    y = np.sin(10.0 * x[:, 0]) + 0.1 * generator.normal(size=500)
    model = tfbnn.BayesianMLP([1, 50, 1])
    baseline = model.fit_ensemble(x, y, num_members=4, verbose=0)
    assert "followed the rows; two populations of 8 cooled" in baseline.start
    assert np.std(np.ravel(model.predict(new).mean) - np.sin(10.0 * new[:, 0])) < 0.12
