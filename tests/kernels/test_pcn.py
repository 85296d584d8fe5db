"""The Crank-Nicolson kernels: what they owe to N(0, I), at any width, and in which coordinates."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbnn
from tests.support.builders import plain_spec
from tests.support.kernels.cases import advance
from tests.support.linear import closed_form, linear_model, linear_rows, short_fit
from tests.support.marks import statistics_but
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.linear_map import as_tensors, scaling_map
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.engine.kernels.metropolis import Point
from tfbnn.engine.kernels.pcn import CrankNicolsonProposal
from tfbnn.engine.kernels.pcnl import LangevinCrankNicolsonProposal
from tfbnn.engine.starts.check import draw_prior
from tfbnn.kernels import HMC, PCN, PCNL, PowerPosterior, Repriorised
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal

NUM_CHAINS = 4
# So much noise that the rows say nothing.
FLAT = Gaussian(1e6)


def prior_target(width, prior, dtype="float32"):
    """(Target, exact draws z [C, P]) of the prior of a network, in units of its scales."""
    spec = plain_spec([1, width, width, 1], prior=prior, likelihood=FLAT, dtype=dtype)
    theta = draw_prior(spec, 3, NUM_CHAINS)
    potential, data = Potential(spec), make_data(np.zeros((1, 1)), np.zeros((1, 1)), None, dtype)
    linear_map = as_tensors(scaling_map(potential.prior_scales, theta))
    reference = potential.log_prob(tf.constant(theta), data)
    return Target(potential, data, linear_map, reference, (1.0,)), linear_map.inverse(theta).numpy()


class TestUnderThePrior:
    @pytest.mark.parametrize("kernel", statistics_but([PCNL], [PCN, PCNL]))
    def test_everything_is_accepted_at_any_width(self, kernel):
        """66 000 weights in float32: the log ratio is rounding, and takes no 1e-3 of proposals."""
        target, start = prior_target(256, Normal(0.3))
        acceptance, end = advance(kernel(step_size=1.0), target, start, num_transitions=5)
        assert acceptance > 0.999
        assert np.all(np.abs(np.mean(end**2, axis=1) - 1.0) < 6.0 * (2.0 / end.shape[1]) ** 0.5)

    @pytest.mark.parametrize("proposal", [CrankNicolsonProposal, LangevinCrankNicolsonProposal])
    def test_a_long_step_is_a_draw_of_the_prior(self, proposal):
        """Wherever the chain is, whose gradient there is -z."""
        step, near = tf.fill([2, 1], 10.0), tf.random.stateless_normal([2, 50], [1, 2])
        draw, other = (
            proposal(None, step).draw(Point(z, -z), step, [3, 4]) for z in (near, 5.0 * near)
        )
        np.testing.assert_allclose(draw, other, atol=1e-5)
        assert 0.7 < np.std(draw) < 1.3


class TestFits:
    @pytest.mark.parametrize("parameterization", statistics_but(["standard"], ["standard", "ntk"]))
    def test_coordinates_are_those_in_which_the_prior_is_standard_normal(self, parameterization):
        """Under the prior alone all is accepted, and the step grows to the largest there is."""
        model = tfbnn.BayesianMLP(
            [2, 5, 1],
            prior=Normal(0.2),
            likelihood=FLAT,
            parameterization=parameterization,
            y_transform=None,
        )
        run = short_fit(
            model, *linear_rows(), kernel=PCN(), num_burnin_steps=100, jit_compile=False
        )
        assert np.all(run.acceptance_rate > 0.999)
        np.testing.assert_allclose(run.step_size, PCN.largest_step_size, rtol=0.05)
        assert run.geometry == "prior: proposals keep N(0, I)"
        # Every draw is a new one of 42 weights.
        assert (
            abs(
                np.std(model.posterior.draws) / (0.2 if parameterization == "standard" else 1.0) - 1
            )
            < 0.1
        )

    @pytest.mark.statistics
    @pytest.mark.parametrize("kernel", [PCN, PCNL])
    def test_a_repriorised_line_is_drawn_exactly(self, kernel):
        """All is readout, and N(0, I): draws are independent; false alarms in 3e-5 of seeds."""
        x, y = linear_rows()
        model = linear_model()
        run = short_fit(
            model,
            x,
            y,
            kernel=Repriorised(kernel()),
            num_results=500,
            num_burnin_steps=100,
            jit_compile=False,
        )
        assert np.all(run.acceptance_rate > 0.999)
        mean, covariance = closed_form(x, y)
        draws = model.posterior.draws.reshape(-1, 3).astype(float) - mean
        z = draws @ np.linalg.inv(np.linalg.cholesky(covariance)).T
        assert stats.kstest(z.ravel(), "norm").pvalue > 1e-5
        correlated = np.einsum("ij,ik->jk", z, z) / len(z) - np.eye(3)
        assert np.all(np.abs(correlated) < 4.5 * (2.0 / len(z)) ** 0.5)


class TestSettings:
    @pytest.mark.parametrize("kernel", [PCN, PCNL])
    @pytest.mark.parametrize("preconditioner", ["diagonal", "gauss_newton"])
    def test_other_coordinates_are_refused(self, kernel, preconditioner):
        with pytest.raises(
            ValueError, match=f"must be one of .*'auto'.*'prior'.* {kernel.__name__}: "
        ):
            kernel(preconditioner=preconditioner)

    def test_identity_is_theta_itself(self):
        settings, why = PCN(preconditioner="identity").resolve(plain_spec([1, 1]), 5)
        assert settings.preconditioner == "identity" and why == "identity, as asked"
        assert not settings.preconditions

    def test_they_go_into_others(self):
        spec = plain_spec([1, 2, 1], likelihood=Gaussian(0.1))
        for around in (Repriorised(PCN()), PowerPosterior(PCNL())):
            settings, why = around.resolve(spec, 5)
            assert settings.preconditioner == "prior" and why.startswith("prior")
            assert settings.largest_step_size == 3.0 and not settings.preconditions
        assert HMC().largest_step_size == np.inf

    def test_the_first_step_is_no_longer_than_the_largest(self):
        found = PCN().first_step_size(np.array([0.5, 7.0], np.float32), 10**6)
        np.testing.assert_array_equal(found, np.array([0.5, 3.0], np.float32))
        assert found.dtype == np.float32
