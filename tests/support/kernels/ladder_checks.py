"""Checks of power posteriors that seeded bugs are held against, too."""

import itertools

import numpy as np
import tensorflow as tf
from scipy import special, stats

from tests.support.kernels.checks import gradient, inner
from tests.support.kernels.ladders import Conjugate, advance, make_target
from tests.support.reference import log_likelihood, log_prior
from tests.support.specs import build, random_rows
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.kernels import power_posterior
from tfbnn.kernels import (
    HMC,
    MALA,
    PCN,
    Microcanonical,
    PowerPosterior,
    RandomWalkMetropolis,
    UnderdampedLangevin,
)

TEMPERATURES = PowerPosterior(num_temperatures=5).temperatures
LADDER = PowerPosterior(MALA(step_size=1.0), num_temperatures=5)
INNER = {
    "random walk": RandomWalkMetropolis(step_size=0.8),
    "crank nicolson": PCN(step_size=0.8),
    "mala": MALA(step_size=1.0),
    "hmc": HMC(step_size=0.7, num_leapfrog_steps=3),
    "underdamped": UnderdampedLangevin(step_size=0.9),
    "microcanonical": Microcanonical(step_size=2.0),
}


def check_tempering():
    """A12: at every rung the density is log prior + t * log likelihood, by independent formulas."""
    spec, generator = build("gaussian_learned"), np.random.default_rng(2)
    x, y = random_rows(spec, generator, 9)[:2]
    theta = 0.5 * generator.normal(size=(5, spec.layout.num_parameters))
    weights = tf.constant(TEMPERATURES, tf.float64)
    data = make_data(x, y, None, "float64")
    found, _ = Potential(spec).value_and_gradient(tf.constant(theta), data, weights)
    expected = [
        log_prior(spec, row) + t * log_likelihood(spec, row, x, y)
        for t, row in zip(TEMPERATURES, theta)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def sweep_p_value(count=200_000):
    """p of a sweep from exact draws, by the chi-square of all permutations of four states."""
    values, temperatures = np.array([-6.0, -4.5, -2.0, -3.0]), (0.0, 0.1, 0.4, 1.0)
    orders = np.array(list(itertools.permutations(range(4))))
    law = special.softmax(values[orders] @ temperatures)
    picked = np.random.default_rng(6).choice(len(orders), size=count, p=law)
    held = orders[picked]
    order = power_posterior.sweep(
        tf.constant(values[held]), temperatures, tf.constant([3, 4])
    ).numpy()
    ended = np.take_along_axis(held, order, axis=1)
    assert np.mean(np.any(ended != held, axis=1)) > 0.5
    found = np.bincount(ended @ [64, 16, 4, 1], minlength=256)[orders @ [64, 16, 4, 1]]
    return stats.chisquare(found, count * law).pvalue


def check_cache(name):
    """A9: density, gradient and log likelihood cached after swaps are those of the state."""
    settings = PowerPosterior(INNER[name], num_temperatures=5)
    potential, num_chains = Conjugate(), 20
    target = make_target(potential, TEMPERATURES, num_chains)
    step = tf.fill([5 * num_chains, 1], tf.constant(settings.step_size, tf.float64))
    kernel = settings.build(target, step)
    start = potential.draw(TEMPERATURES, num_chains, np.random.default_rng(7))
    z = target.linear_map.inverse(tf.constant(start))
    results, kept = kernel.bootstrap_results(z), 0
    for index in range(3):
        before, key = z.numpy(), tf.constant([8, index])
        results = settings.prepare(results, step, key, False)
        z, results = kernel.one_step(z, results, seed=key)
        np.testing.assert_allclose(settings.target_log_prob(results), target(z), atol=1e-12)
        cached = getattr(inner(results.inner), "gradient", None)
        if name in ("mala", "underdamped", "microcanonical"):
            np.testing.assert_allclose(cached, gradient(target, z), atol=1e-12)
        np.testing.assert_allclose(
            results.log_likelihood.numpy().ravel(),
            target.log_likelihood(z),
            atol=1e-12,
        )
        kept += np.all(z.numpy() == before, axis=-1).sum()
    assert settings.statistics(results).n_steps.shape == [5 * num_chains]
    return kept


def law_p_value(num_chains=3000):
    """(p of the strongest evidence that a rung lost its law, mean acceptance), from exact draws."""
    potential = Conjugate()
    start = potential.draw(TEMPERATURES, num_chains, np.random.default_rng(11))
    end, _, results = advance(LADDER, potential, start, num_steps=10)
    mean, spread = potential.law(TEMPERATURES)
    scores = (end.reshape(num_chains, 5, 2) - mean) / spread
    p = [stats.kstest(scores[:, rung].ravel(), "norm").pvalue for rung in range(5)]
    p.append(stats.kstest((scores**2).sum(axis=(1, 2)), "chi2", (10,)).pvalue)
    return len(p) * min(p), np.mean(LADDER.statistics(results).acceptance_rate)
