"""Kernels that users build: any results, bias that is told, and words for what cannot work."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.support.linear import linear_model, linear_rows, short_fit
from tfbnn.engine.kernels.from_callable import CallableKernel


class Walk(tfp.mcmc.TransitionKernel):
    """A random walk with the results that `pack` makes of (log density [C], accepted [C])."""

    def __init__(self, target, pack, calibrated=True):
        self.target, self.pack, self.calibrated = target, pack, calibrated

    is_calibrated = property(lambda self: self.calibrated)

    def bootstrap_results(self, init_state):
        return self.pack(self.target(init_state), tf.ones(init_state.shape[:1], tf.bool))

    def one_step(self, current_state, previous_kernel_results, seed=None):
        proposal_seed, accept_seed = tf.unstack(tf.random.split(seed, 2))
        noise = tf.random.stateless_normal(
            current_state.shape, proposal_seed, dtype=current_state.dtype
        )
        proposal = current_state + 0.1 * noise
        ratio = self.target(proposal) - self.target(current_state)
        uniform = tf.random.stateless_uniform(ratio.shape, accept_seed, dtype=ratio.dtype)
        accepted = tf.math.log(uniform) < ratio
        state = tf.where(accepted[:, None], proposal, current_state)
        return state, self.pack(self.target(state), accepted)


class Named(NamedTuple):
    target_log_prob: tf.Tensor
    is_accepted: tf.Tensor


class Density(NamedTuple):
    target_log_prob: tf.Tensor


class Around(NamedTuple):
    inner_results: object
    extra: list


# Results, and whether they say what was accepted.
RESULTS = {
    "a tensor": (lambda value, accepted: 2.0 * value, False),
    "nothing": (lambda value, accepted: (), False),
    "no acceptance": (lambda value, accepted: Density(value), False),
    "named": (Named, True),
    "nested": (lambda value, accepted: Around(Named(value, accepted), []), True),
    "a dict": (lambda value, accepted: {"is_accepted": accepted, "count": 3}, True),
    "of another shape": (lambda value, accepted: Named(value[:, None], accepted[:1, None]), False),
    "a number": (lambda value, accepted: (1, 2.5), False),
}
STATE = tf.constant(np.random.default_rng(0).normal(size=(6, 3)))


def density(theta):
    return -0.5 * tf.reduce_sum(theta**2, axis=-1)


def one_transition(settings):
    """(position [C, P], results)."""
    kernel = settings.build(density, None)
    return kernel.one_step(STATE, kernel.bootstrap_results(STATE), tf.constant([1, 2]))


@pytest.mark.parametrize("name", RESULTS)
def test_any_results_will_do(name):
    pack, says = RESULTS[name]
    settings = CallableKernel(lambda target: Walk(target, pack))
    z, results = one_transition(settings)
    np.testing.assert_array_equal(settings.target_log_prob(results), density(z))
    statistics = settings.statistics(results)
    moved = np.any(z.numpy() != STATE.numpy(), axis=1)
    expected = moved if says else np.full(6, np.nan)
    np.testing.assert_array_equal(statistics.acceptance_rate, expected)
    assert statistics.n_steps.numpy().tolist() == [1] * 6
    assert not statistics.diverging.numpy().any()
    assert settings.bias_note is None


def test_a_density_in_other_coordinates_is_not_that_of_theta():
    shrink = tfp.bijectors.Scale(tf.constant(0.5, tf.float64))

    def transformed(target):
        return tfp.mcmc.TransformedTransitionKernel(
            tfp.mcmc.HamiltonianMonteCarlo(target, tf.constant(0.1, tf.float64), 2), shrink
        )

    for build in (
        transformed,
        lambda target: tfp.mcmc.SimpleStepSizeAdaptation(transformed(target), 5),
    ):
        settings = CallableKernel(build)
        z, results = one_transition(settings)
        np.testing.assert_allclose(settings.target_log_prob(results), density(z), rtol=1e-12)
        assert np.isfinite(settings.statistics(results).acceptance_rate).all()


def test_tfp_kernels_report_what_they_did():
    # TFP keeps the number of steps where it may change only.
    hmc = CallableKernel(
        lambda target: tfp.mcmc.HamiltonianMonteCarlo(
            target, 0.1, 3, store_parameters_in_results=True
        )
    )
    nuts = CallableKernel(lambda target: tfp.mcmc.NoUTurnSampler(target, 0.1, max_tree_depth=2))
    for settings, steps in ((hmc, {3}), (nuts, {1, 2, 3})):
        z, results = one_transition(settings)
        np.testing.assert_allclose(settings.target_log_prob(results), density(z), rtol=1e-12)
        statistics = settings.statistics(results)
        assert set(statistics.n_steps.numpy().tolist()) <= steps
        assert np.all(statistics.acceptance_rate.numpy() > 0.9)


def test_a_run_says_that_it_is_biased_and_what_it_does_not_know():
    model = linear_model()
    report = short_fit(
        model,
        *linear_rows(),
        kernel=lambda target: Walk(target, lambda *_: (), calibrated=False),
        num_chains=1,
        num_results=8,
        num_burnin_steps=8,
        jit_compile=False,
    ).report(details=True)
    assert "Acceptance   not known of this kernel\n" in report
    assert "Step size    unknown\n" in report
    assert "BIASED draws: the kernel says of itself that it is not calibrated" in report
    assert "_is_calibrated" not in report
    assert "not calibrated" in model.posterior.provenance.bias


class NoSeed(Walk):
    def one_step(self, current_state, previous_kernel_results):
        return current_state, previous_kernel_results


class Listing(Walk):
    def one_step(self, current_state, previous_kernel_results, seed=None):
        state, results = super().one_step(current_state, previous_kernel_results, seed)
        return [state], results


class Growing(Walk):
    def one_step(self, current_state, previous_kernel_results, seed=None):
        state, results = super().one_step(current_state, previous_kernel_results, seed)
        return state, (results, results)


@pytest.mark.parametrize(
    ("kernel", "pack", "words"),
    [
        (NoSeed, Named, "previous_kernel_results and seed, received NoSeed"),
        (Listing, Named, "must return a state like the one"),
        (Growing, lambda *_: (), r"results like those of bootstrap_results, \(\), received"),
        (Walk, lambda *_: (None,), r"must be tensors, or nested .* received \(None,\)"),
    ],
)
def test_what_cannot_work_is_refused_with_what_was_expected(kernel, pack, words):
    with pytest.raises(TypeError, match=words):
        one_transition(CallableKernel(lambda target: kernel(target, pack)))
