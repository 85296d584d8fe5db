"""A population that is cooled: temperatures, resampling, evidence, and what a search makes of it."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import multivariate_normal

import tfbnn
from tests.support.builders import plain_spec
from tests.support.starts import search
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts import cooling, find
from tfbnn.engine.starts.check import draw_prior
from tfbnn.likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, Poisson, StudentT
from tfbnn.priors import HierarchicalNormal, Normal
from tfbnn.run.config import Starts
from tfbnn.run.options import Sampling
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import draw_parameters
from tfbnn.spec.priors import EarlierRows
from tfbnn.spec.rows import NetworkRows

GENERATOR = np.random.default_rng(0)
X2 = GENERATOR.normal(size=(60, 2))
CURVE = np.sin(2.0 * X2[:, :1]) + X2[:, 1:]
KNOWN = plain_spec([2, 3, 1], prior=Normal(1.0), likelihood=Gaussian(0.1))


def starts(spec, y, num_chains=4, num_particles=8, seed=0, data=None, notify=None):
    data = make_data(X2, y, None, spec.dtype) if data is None else data
    sampling = Sampling(seed=seed, num_chains=num_chains, jit_compile=False)
    return cooling.cooled_starts(spec, data, num_particles, sampling, notify or Notifier())


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0 - 1e-12])
def test_each_particle_is_kept_as_often_as_its_weight_says(uniform):
    log_weights = np.log([0.5, 1e-300, 0.25, 0.25])
    found = cooling.resampled(log_weights, uniform)
    np.testing.assert_array_equal(found, [0, 0, 2, 3])


def test_half_of_the_particles_count_at_the_next_temperature():
    squares = GENERATOR.chisquare(100, size=64) * 1e-4

    def log_weights(temperature):
        return -0.5 * squares / temperature**2

    found = cooling.next_temperature(log_weights, 1e3)
    weights = np.exp(log_weights(found) - log_weights(found).max())
    each = weights.reshape(2, 32)
    counted = each.sum(axis=1) ** 2 / (each**2).sum(axis=1)
    assert counted.min() == pytest.approx(16, rel=0.1)
    # Not much lower than before, and none where it makes no difference.
    assert cooling.next_temperature(lambda _: np.zeros(8), 1.0) == 0.0
    # Particles that the likelihood does not allow count at no temperature.
    some = np.where(np.arange(64) % 4 > 0, -np.inf, 0.0)
    lower = cooling.next_temperature(lambda t: log_weights(t) + some, 1e3)
    assert found / 3.0 < lower < 3.0 * found
    steep = np.array([0.0, -1e30, -1e30] * 2)
    few = cooling.next_temperature(lambda t: steep * (t < 1e-6), 1.0)
    assert few == pytest.approx(0.7)


@pytest.mark.parametrize(
    "likelihood, row_noise, expected",
    [
        (Gaussian(0.3), None, np.hypot(0.3, 0.4)),
        (Gaussian(0.3), 0.2, np.hypot(0.2, 0.4)),
        (Gaussian("learned"), None, 0.4),
        (StudentT(noise_scale=0.3), None, np.hypot(0.3, 0.4)),
    ],
)
def test_rows_at_a_temperature_have_so_much_more_noise(likelihood, row_noise, expected):
    spec = plain_spec([2, 3, 1], likelihood=likelihood)
    noise = None if row_noise is None else np.full_like(CURVE, row_noise)
    data = make_data(X2, CURVE, noise, "float64")
    found = cooling.warmed(spec, data, 0.4)
    np.testing.assert_allclose(found.row_noise, np.full(data.y.shape, expected))


def test_networks_that_the_likelihood_does_not_allow_are_left_behind():
    """Rates of e^1000; without any other network the prior is named."""
    spec = plain_spec([2, 3, 1], prior=Normal(1.0), likelihood=Poisson(), activation="identity")
    counts = GENERATOR.poisson(2.0, size=(60, 1)).astype(float)
    data, sampling = (
        make_data(X2, counts, None, spec.dtype),
        Sampling(num_chains=4, jit_compile=False),
    )
    theta = np.stack([draw_parameters(spec, np.random.default_rng(seed)) for seed in range(16)])
    theta[[1, 9], -1] = 1e4
    population = cooling.Populations(theta, 1e3, -2.0, np.zeros(2))
    cooled = cooling.cooler(spec, data, population, sampling, 0)
    assert cooled.temperature < 1e3 and np.abs(cooled.theta).max() < 1e3
    theta[:, -1] = 1e4
    with pytest.raises(tfbnn.StartError, match="narrower prior"):
        cooling.cooler(spec, data, population, sampling, 0)


def test_class_labels_count_for_less():
    spec = plain_spec([2, 3, 1], likelihood=Bernoulli(), dtype="float64")
    data = make_data(X2, (CURVE > 0).astype(float), None, "float64")
    theta = tf.constant(draw_prior(spec, 0, 3))
    whole, warm = (
        Potential(spec).log_likelihood(theta, rows)
        for rows in (data, cooling.warmed(spec, data, 2.0))
    )
    np.testing.assert_allclose(warm, whole / 5.0)


@pytest.mark.statistics
def test_log_evidence_of_a_linear_model_is_that_in_closed_form():
    spec = plain_spec([2, 1], prior=Normal(1.0), likelihood=Gaussian(0.1), dtype="float64")
    inputs = np.column_stack([X2, np.ones(60)])
    covariance = inputs @ inputs.T + 0.01 * np.eye(60)
    truth = multivariate_normal(np.zeros(60), covariance).logpdf(CURVE[:, 0])
    data = make_data(X2, CURVE, None, spec.dtype)
    population, index = cooling.hot(spec, data, 64, 0), 0
    while population.temperature:
        population = cooling.cooler(spec, data, population, Sampling(), index)
        index += 1
    np.testing.assert_allclose(population.log_evidence, truth, atol=1.5)


@pytest.mark.statistics
def test_particles_end_in_the_posterior():
    found = starts(KNOWN, CURVE, num_chains=8)
    assert found.theta.shape == (8, KNOWN.num_parameters)
    assert "two populations of 8 cooled" in found.text and "log evidence" in found.text
    assert not found.interrupted and found.seconds.pretraining > 0
    data = make_data(X2, CURVE, None, KNOWN.dtype)
    missed = cooling.residual_scales(KNOWN, found.theta, data)
    assert missed.max() < 0.2
    first, other = (cooling.hot(KNOWN, data, 8, seed).theta for seed in (0, 1))
    assert np.all(first != other)
    # Each time; and chains come from both populations in turn, fewer from particles farther apart.
    np.testing.assert_array_equal(starts(KNOWN, CURVE).theta, found.theta[[0, 1, 4, 5]])
    np.testing.assert_array_equal(found.superchains, [0, 1, 0, 1, 0, 1, 0, 1])


def test_populations_share_no_particle(monkeypatch):
    monkeypatch.setattr(
        cooling, "_make_moves", lambda *_: lambda maps, rows, step, key: (maps.centre, step)
    )
    data = make_data(X2, CURVE, None, KNOWN.dtype)
    before = cooling.hot(KNOWN, data, 6, 0)
    after = cooling.cooler(KNOWN, data, before, Sampling(), 0)
    assert 0 < after.temperature < before.temperature
    for ours in (slice(0, 6), slice(6, 12)):
        there = {tuple(one) for one in before.theta[ours]}
        assert all(tuple(one) in there for one in after.theta[ours])
        assert len(np.unique(after.theta[ours], axis=0)) < 6


@pytest.mark.parametrize("gap, kept", [(5.0, [0, 2, 1, 3]), (50.0, [0, 0, 1, 1])])
def test_a_population_far_below_the_other_is_left_out(monkeypatch, gap, kept):
    theta = np.arange(4.0)[:, None] + np.zeros((4, KNOWN.num_parameters))
    cold = cooling.Populations(theta, 0.0, 0.0, np.zeros(2))
    monkeypatch.setattr(cooling, "hot", lambda *_: cold)
    monkeypatch.setattr(cooling, "_levels", lambda *_: np.array([gap, 0.0]))
    found = starts(KNOWN, CURVE, num_particles=2)
    np.testing.assert_array_equal(found.theta[:, 0], kept)
    assert ("one was left out, 50 nats below" in found.text) == (gap == 50.0)


@pytest.mark.statistics
def test_learned_noise_is_what_particles_miss_the_rows_by():
    spec = plain_spec([2, 3, 1], prior=HierarchicalNormal(), likelihood=Gaussian("learned"))
    noisy = CURVE + 0.2 * GENERATOR.normal(size=CURVE.shape)
    found = starts(spec, noisy)
    assert "to additional noise of" in found.text
    data = make_data(X2, noisy, None, spec.dtype)
    missed = cooling.residual_scales(spec, found.theta, data)
    noise = np.exp(found.theta[:, spec.layout.log_noise_scale])
    np.testing.assert_allclose(noise, missed, rtol=1e-5)
    assert np.all((0.1 < noise) & (noise < 0.3))


def test_of_many_rows_particles_see_a_sample(monkeypatch):
    monkeypatch.setattr(cooling, "_MOST_ROWS", 20)
    data = make_data(X2, CURVE, None, "float64", np.repeat([1.0, 3.0], 30))
    some = cooling.some_rows(data, 0)
    assert int(some.num_rows) == some.length == 20
    assert float(tf.reduce_mean(some.weights)) == pytest.approx(1.0)
    rows = {tuple(row) for row in np.column_stack([X2, CURVE])}
    assert all(tuple(row) in rows for row in np.concatenate([some.x, some.y]).T)
    found = starts(KNOWN, CURVE, num_particles=4)
    assert "to additional noise of" in found.text  # where it misses the others by more
    whole = make_data(X2[:20], CURVE[:20], None, "float64")
    assert cooling.some_rows(whole, 0) is whole


@pytest.mark.parametrize("error", [None, KeyboardInterrupt()], ids=["stop", "interrupt"])
def test_a_stop_leaves_the_population_where_it_is(error):
    told = []

    def third(event):
        told.append((event["phase"], event["transition"]))
        if len(told) == 3 and error is not None:
            raise error
        return len(told) == 3

    found = starts(KNOWN, CURVE, notify=Notifier(0, [third]))
    assert found.interrupted == (error is not None)
    assert told == [("population", 1), ("population", 2), ("population", 3)]
    assert "at 3 temperatures to additional noise" in found.text and np.isfinite(found.theta).all()


def test_an_interrupt_before_the_first_temperature_leaves_nothing(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cooling, "cooler", interrupted)
    with pytest.raises(KeyboardInterrupt):
        starts(KNOWN, CURVE)


def test_a_model_without_independent_draws_is_refused():
    kept = EarlierRows.of(
        x=X2, y=CURVE, noise=None, weights=np.ones(60), num_rows=60,
        networks=np.zeros((1, KNOWN.num_parameters)),
    )  # fmt: skip
    with pytest.raises(ValueError, match="num_particles cannot be used .* earlier posterior"):
        starts(KNOWN.after(kept), CURVE)


@pytest.mark.statistics
def test_a_search_cools_in_place_of_adam_and_polishes_what_gains():
    table = NetworkRows(X2, CURVE, None)
    spec = plain_spec([2, 3, 1], prior=Normal(1.0), likelihood=Gaussian(0.05))
    found = search(table, spec, share=0.0, num_particles=4, newton_iterations=30)
    assert "two populations of 4 cooled" in found.text and "ADAM" not in found.text
    assert "Levenberg-Marquardt (as asked" in found.text


@pytest.mark.statistics
def test_noise_by_the_inputs_begins_with_one_noise():
    table = NetworkRows(X2, CURVE, None)
    spec = plain_spec([2, 3, 2], prior=Normal(1.0), likelihood=HeteroscedasticGaussian())
    found = search(table, spec, share=0.0, num_particles=4)
    assert found.text.startswith("with one noise scale: two populations of 4 cooled")
    assert found.theta.shape == (2, spec.num_parameters)


@pytest.mark.statistics
def test_a_baseline_is_optimised_where_a_fit_has_particles(monkeypatch):
    def cooled(spec, data, num_particles, sampling, notify):
        return Starts(draw_prior(spec, 0, sampling.num_chains), f"{num_particles} particles")

    monkeypatch.setattr(find, "cooled_starts", cooled)
    model = tfbnn.BayesianMLP([2, 3, 1], prior=Normal(1.0), likelihood=Gaussian(0.01))
    baseline = model.fit_map(X2, CURVE, jit_compile=False, verbose=0)
    assert "ADAM" in baseline.start and "particles" not in baseline.start
    run = model.fit_posterior(
        X2, CURVE, kernel="hmc", num_results=2, num_burnin_steps=2, jit_compile=False, verbose=0
    )
    assert run.pretraining.startswith("16 particles")
