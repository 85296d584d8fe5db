"""Checks of the density and of the engine that seeded bugs are held against, too."""

from contextlib import contextmanager

import numpy as np
import pytest
import tensorflow as tf

from tests.support import reference
from tests.support.linear import linear_model, linear_rows, short_fit
from tests.support.specs import build, random_rows
from tfbnn.engine.basis import seeds
from tfbnn.engine.density import regression, row_blocks
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import log_prob_terms
from tfbnn.engine.running import driver


def check_density(
    name, dtype="float64", tolerance=1e-10, with_row_noise=False, num_rows=11, num_networks=50
):
    """The log prior and the log likelihood of a model of `specs.MODELS` against NumPy."""
    spec, generator = build(name, dtype), np.random.default_rng(1)
    x, y, noise = random_rows(spec, generator, num_rows)
    noise = noise if with_row_noise else None
    theta = generator.normal(size=(num_networks, spec.layout.num_parameters)).astype(dtype)
    found = log_prob_terms(spec, theta, x, y, noise)
    wide = theta.astype(np.float64)
    expected = [reference.log_prior(spec, t) for t in wide]
    np.testing.assert_allclose(found["log_prior"], expected, rtol=tolerance)
    expected = [reference.log_likelihood(spec, t, x, y, noise) for t in wide]
    np.testing.assert_allclose(found["log_likelihood"], expected, rtol=tolerance)


@contextmanager
def small_blocks(num_rows=32):
    """Has potentials and readouts sum over blocks of at most so many rows, a multiple of 16."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "_MOST_ROWS", num_rows)
        patch.setattr(regression, "_LONGER", 1)
        yield


def blocks_of(data, most):
    """All blocks of at most so many rows, one after the other."""
    length = data.even_length(most)
    return [data.block(tf.constant(i), length) for i in range(int(data.num_blocks(length)))]


def has_overlap(data, num_rows=32):
    """Return whether these rows have blocks of which the last reaches back and is not full."""
    last = blocks_of(data, num_rows)[-1]
    return last.first > 0 and last.last < last.length


def check_blocks(name, dtype="float64", tolerance=1e-12, with_row_noise=False):
    """Density and gradient summed over blocks, of which the last is not full, and over all rows."""
    spec, generator = build(name, dtype), np.random.default_rng(1)
    x, y, noise = random_rows(spec, generator, 70)
    noise = noise if with_row_noise else None
    theta = generator.normal(size=(3, spec.layout.num_parameters)).astype(dtype)
    potential, data = Potential(spec), make_data(x, y, noise, dtype)
    assert has_overlap(data)
    # The rows alone, in arrays that have no room for more.
    whole = potential.value_and_gradient(tf.constant(theta), data.rows())
    with small_blocks():
        value = potential.log_prob(tf.constant(theta), data)
        parts = potential.value_and_gradient(tf.constant(theta), data)
    np.testing.assert_allclose(parts[0], whole[0], rtol=tolerance)
    np.testing.assert_array_equal(value, parts[0])
    # Terms of a gradient cancel; they are as large as its largest entries.
    size = np.abs(whole[1]).max(axis=1, keepdims=True)
    np.testing.assert_allclose(parts[1] / size, whole[1] / size, rtol=tolerance, atol=tolerance)


def check_keys_are_distinct():
    """A million keys of ten chains."""
    found = [
        seeds.keys(seed, "transition", chain, 0, 100_000)
        for seed in (0, 1)
        for chain in (0, 1, 2, 3, -1)
    ]
    packed = np.concatenate(found).astype("<i4").view("<i8")
    assert len(np.unique(packed)) == 1_000_000


def check_chains_have_numbers_of_their_own():
    """From the same start they go different ways."""

    def same_start(*arguments, find=driver.find_starts, **options):
        starts = find(*arguments, **options)
        return starts._replace(theta=starts.theta[[0, 0]])

    model = linear_model()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "find_starts", same_start)
        short_fit(model, *linear_rows(), num_burnin_steps=0, jit_compile=False)
    assert not np.any(np.all(model.posterior.draws[0] == model.posterior.draws[1], axis=-1))


def check_thinning_keeps_every_third_transition():
    x, y = linear_rows()
    every, third = linear_model(), linear_model()
    short_fit(every, x, y, num_results=21, jit_compile=False)
    short_fit(third, x, y, num_results=7, num_steps_between_results=2, jit_compile=False)
    np.testing.assert_array_equal(third.posterior.draws, every.posterior.draws[:, 2::3])
    for name, values in every.posterior.sample_stats.items():
        np.testing.assert_array_equal(
            third.posterior.sample_stats[name], values[:, 2::3], err_msg=name
        )


def check_step_size_stands_still_while_sampling(**options):
    """A step size that follows the chain is part of its state, and the draws are biased."""
    model = linear_model()
    short_fit(model, *linear_rows(), num_burnin_steps=40, num_results=20, **options)
    steps = model.posterior.sample_stats["step_size"]
    np.testing.assert_array_equal(steps, np.repeat(steps[:, :1], 20, axis=1))
    # It was adapted before, by each chain for itself.
    assert steps[0, 0] != steps[1, 0]
