"""ADAM begins again from steeper first layers until there is a start for each chain that follows the rows."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tests.support.small_runs import X, Y
from tfbnn.engine.density.data import make_data
from tfbnn.engine.starts import pretraining
from tfbnn.engine.starts.check import draw_prior, draw_starts, misfits
from tfbnn.engine.starts.pretraining import PretrainingResult
from tfbnn.likelihoods import Bernoulli, HeteroscedasticGaussian, StudentT
from tfbnn.priors import ARD, HierarchicalNormal, Normal
from tfbnn.run.counters import Seconds

SCALED = HierarchicalNormal()
SPEC = plain_spec([2, 3, 1], prior=SCALED)
KERNEL_FIXED = {"kernel": Normal(1.0), "bias": SCALED}


@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
@pytest.mark.parametrize(
    "prior", [SCALED, [{"kernel": ARD(), "bias": SCALED}, SCALED]], ids=["layer", "input"]
)
def test_a_steeper_start_is_the_draw_with_another_scale_of_the_first_layer(parameterization, prior):
    spec = plain_spec([2, 3, 1], prior=prior, parameterization=parameterization)
    drawn, steeper = draw_prior(spec, 1, 4), draw_starts(spec, 1, 4, 6.0)
    np.testing.assert_array_equal(draw_starts(spec, 1, 4, None), drawn)
    first = spec.layout.layers[0]
    kernels = first.kernel.weights
    np.testing.assert_allclose(steeper[:, first.kernel.scales], np.log(6.0))
    np.testing.assert_allclose(steeper[:, first.bias.scales], np.log(6.0))
    if parameterization == "ntk":  # theta times the scale is the weight
        np.testing.assert_array_equal(steeper[:, kernels], drawn[:, kernels])
    else:
        scales = np.exp(drawn[:, first.kernel.scales])
        scales = np.repeat(scales, 6 // scales.shape[1], axis=1)
        np.testing.assert_allclose(steeper[:, kernels], drawn[:, kernels] / scales * 6.0)
    rest = np.ones(spec.layout.num_parameters, bool)
    for slot in first:
        rest[slot.weights] = rest[slot.scales] = False
    np.testing.assert_array_equal(steeper[:, rest], drawn[:, rest])


def test_fixed_scales_stay():
    spec = plain_spec([2, 3, 1])
    assert not spec.samples_input_scales and SPEC.samples_input_scales
    np.testing.assert_array_equal(draw_starts(spec, 1, 4, 6.0), draw_prior(spec, 1, 4))


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


class Asked:
    """Pretraining that is told what each attempt misses the rows by: its starts are these numbers."""

    stopped = False

    def __init__(self, monkeypatch, misfits_of, stop_in="never"):
        monkeypatch.setattr(pretraining, "misfits", lambda spec, theta, data: theta[:, 0])
        self.misfits_of, self.stop_in = misfits_of, stop_in
        self.scales = []

    def __call__(self, scale):
        self.scales.append(scale)
        missed = np.array(self.misfits_of[scale], float)
        self.stopped = scale == self.stop_in
        spent, epochs = Seconds(pretraining=1.0), np.full(len(missed), 10 + len(self.scales))
        theta = np.column_stack([missed, np.full(len(missed), scale or 0.0)])
        return PretrainingResult(theta, epochs, np.full(len(missed), np.nan), spent, False)


def follow(asked, limit=0.5, spec=SPEC):
    return pretraining.follow_rows(spec, None, 2, limit, asked, asked)


ALONE = {
    "no limit": (None, SPEC),
    "scales are fixed": (0.5, plain_spec([2, 3, 1])),
    "those of the kernel are": (0.5, plain_spec([2, 3, 1], prior=[KERNEL_FIXED, SCALED])),
    "no hidden layer": (0.5, plain_spec([2, 1], prior=SCALED)),
    "classes": (0.5, plain_spec([2, 3, 1], prior=SCALED, likelihood=Bernoulli())),
}


@pytest.mark.parametrize("limit, spec", ALONE.values(), ids=ALONE)
def test_one_attempt_is_made_where_no_other_can_help(monkeypatch, limit, spec):
    asked = Asked(monkeypatch, {None: [0.9, 0.9]})
    found = follow(asked, limit, spec=spec)
    assert asked.scales == [None] and found.text == "ADAM, 11 epochs"
    np.testing.assert_array_equal(found.theta[:, 0], [0.9, 0.9])


def test_one_attempt_is_made_where_as_many_starts_as_chains_follow_the_rows(monkeypatch):
    asked = Asked(monkeypatch, {None: [0.9, 0.4, 0.5]})
    found = follow(asked)
    assert asked.scales == [None] and len(found.theta) == 3


def test_each_start_keeps_the_attempt_that_misses_by_least(monkeypatch):
    asked = Asked(
        monkeypatch, {None: [0.4, 0.9, np.nan], 6.0: [0.6, 0.8, 0.7], 12.0: [0.3, 0.9, 0.2]}
    )
    found = follow(asked)
    assert asked.scales == [None, 6.0, 12.0]
    # What follows the rows is kept: that another comes closer may be noise.
    np.testing.assert_array_equal(found.theta, [[0.4, 0.0], [0.8, 6.0], [0.2, 12.0]])
    assert found.seconds.pretraining == 3.0 and not found.interrupted
    assert "11 to 13 epochs (2 of 3 starts from first layers of prior scale 6 to 12" in found.text


def test_a_function_that_no_attempt_follows_ends_the_search_with_the_best(monkeypatch):
    asked = Asked(monkeypatch, dict.fromkeys((None, 6.0, 12.0, 24.0, 48.0), [0.9, 0.9]))
    found = follow(asked)
    assert len(asked.scales) == 5
    np.testing.assert_array_equal(found.theta[:, 1], [0.0, 0.0])  # later ones are no better


def test_a_stop_ends_it(monkeypatch):
    asked = Asked(monkeypatch, dict.fromkeys((None, 6.0, 12.0), [0.9, 0.9]), stop_in=12.0)
    assert follow(asked).seconds.pretraining == 3.0 and asked.scales == [None, 6.0, 12.0]


def test_an_interrupt_in_a_later_attempt_leaves_the_best_so_far(monkeypatch):
    asked = Asked(monkeypatch, {None: [0.7, 0.9]})  # there is no other

    def pretrain(scale):
        if scale is not None:
            raise KeyboardInterrupt
        return asked(scale)

    found = pretraining.follow_rows(SPEC, None, 2, 0.5, pretrain, asked)
    assert found.interrupted and found.seconds.pretraining == 1.0
    np.testing.assert_array_equal(found.theta[:, 0], [0.7, 0.9])

    def at_once(scale):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretraining.follow_rows(SPEC, None, 2, 0.5, at_once, asked)


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
    """Of draws of the prior the best missed these by .97 or more."""
    generator = np.random.default_rng(6)
    x, new = generator.uniform(-1.0, 1.0, (2, 500, num_inputs))
    model = tfbnn.BayesianMLP([num_inputs, 50, 1])
    baseline = model.fit_ensemble(
        x, function(x) + 0.1 * generator.normal(size=500), num_members=4, verbose=0
    )
    assert "from first layers of prior scale" in baseline.start
    assert np.std(np.ravel(model.predict(new).mean) - function(new)) < 0.12
