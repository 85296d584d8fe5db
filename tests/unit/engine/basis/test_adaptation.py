"""Adaptation: dual averaging, running moments, windows, the first step size."""

import numpy as np
import pytest
import tensorflow as tf

from tfbnn.engine.basis import adaptation
from tfbnn.engine.density.linear_map import DiagonalMap, diagonal_map


def test_dual_averaging_follows_its_formula():
    generator = np.random.default_rng(9)
    acceptance = generator.uniform(size=(50, 2)).astype(np.float32)
    state = adaptation.restart_dual_averaging(np.array([0.1, 0.2], np.float32))
    for a in acceptance:
        state = state.update(tf.constant(a), 0.8)
    mu, t = np.log(10 * np.array([0.1, 0.2])), np.arange(1, 51)[:, None]
    log_step = mu - np.sqrt(t) / 0.05 * np.cumsum(0.8 - acceptance, axis=0) / (t + 10)
    average = np.log([0.1, 0.2])
    for count, value in enumerate(log_step, start=1):
        average = count**-0.75 * value + (1 - count**-0.75) * average
    np.testing.assert_allclose(state.log_step, log_step[-1], rtol=1e-4)
    np.testing.assert_allclose(state.log_average, average, rtol=1e-4)


def test_dual_averaging_does_not_run_away_from_the_largest_step():
    state = adaptation.restart_dual_averaging(np.array([0.01, 2.9], np.float32))
    for _ in range(200):
        state = state.update(tf.ones(2), 0.234, 3.0)
    np.testing.assert_allclose(np.exp(state.log_step), 3.0, rtol=1e-5)
    np.testing.assert_allclose(np.exp(state.log_average), 3.0, rtol=0.02)
    for _ in range(10):
        state = state.update(tf.zeros(2), 0.234, 3.0)
    assert np.all(np.exp(state.log_step) < 1.0), "what was accepted before does not hold it there"


def test_running_moments_are_mean_and_variance():
    draws = np.random.default_rng(10).normal(3.0, 2.0, size=(60, 2, 5))
    moments = adaptation.restart_moments((2, 5), "float64")
    for draw in draws:
        moments = moments.update(draw)
    np.testing.assert_allclose(moments.mean, draws.mean(axis=0))
    np.testing.assert_allclose(moments.squares / 59, draws.var(axis=0, ddof=1))


@pytest.mark.parametrize("num_steps", [0, 1, 7, 20, 40, 150, 160, 800, 5000])
def test_windows_fill_the_adapting_steps(num_steps):
    windows = adaptation.adaptation_windows(num_steps)
    assert sum(length for length, _ in windows) == num_steps
    if num_steps >= 40:
        assert any(renew for _, renew in windows) and not windows[-1][1]


def test_windows_double():
    lengths = [length for length, renew in adaptation.adaptation_windows(800) if renew]
    assert lengths == [25, 50, 100, 350]


def first_step_size(function, z):
    identity = DiagonalMap(np.ones(z.shape))
    return adaptation.find_initial_step_size(function, z, identity, np.random.default_rng(0))


def test_first_step_size_scales_with_the_target():
    def value_and_gradient(theta, spread=np.array([[1e-3], [1.0]])):
        return -0.5 * ((theta / spread) ** 2).sum(-1), -theta / spread**2

    z = np.array([[1e-3] * 4, [1.0] * 4])
    step = first_step_size(value_and_gradient, z)
    assert np.all(step / [1e-3, 1.0] > 0.2) and np.all(step / [1e-3, 1.0] < 5.0)


def test_first_step_size_survives_a_wall():
    def value_and_gradient(theta):
        inside = np.abs(theta).max(-1) < 1
        return np.where(inside, 0.0, np.nan), np.where(inside[:, None], 0.0 * theta, np.nan)

    assert 0 < first_step_size(value_and_gradient, np.zeros((1, 3)))[0] < 10


def test_diagonal_map_whitens_and_inverts():
    variance = np.array([[1e-6, 1.0, 1e4]])
    previous = DiagonalMap(np.ones((1, 3)))
    linear_map = diagonal_map(variance, num_draws=10_000, previous=previous)
    np.testing.assert_allclose(linear_map.scale, np.sqrt(variance), rtol=0.3)
    theta = np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(linear_map.forward(linear_map.inverse(theta)), theta)


def test_a_chain_that_stood_still_keeps_its_map():
    previous = DiagonalMap(np.full((2, 3), 7.0, np.float32))
    variance = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], np.float32)
    scale = diagonal_map(variance, num_draws=25, previous=previous).scale
    np.testing.assert_allclose(scale, [[7.0] * 3, [1.0] * 3])
