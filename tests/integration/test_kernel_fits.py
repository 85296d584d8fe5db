"""The kernels besides HMC and NUTS through `fit_posterior`: adaptation, laws, reports, refusals."""

import numpy as np
import pytest

from tests.support.linear import (
    NOISE,
    RUN,
    START,
    check_moments,
    linear_model,
    linear_rows,
    short_fit,
)
from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.engine.density.potential import Potential
from tfbnn.kernels import (
    MALA,
    PCN,
    PCNL,
    ChEESHMC,
    Microcanonical,
    RandomWalkMetropolis,
    TruncatedMALA,
    UnderdampedLangevin,
)
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal, Uniform

BOX = Uniform(-0.5, 0.75)


def boxed_posterior(x, y, count=400_000):
    """Draws of the linear model's posterior under a flat prior in BOX: a normal, cut."""
    design = np.column_stack([x, np.ones(len(x))])
    covariance = np.linalg.inv(design.T @ design) * NOISE**2
    mean = covariance @ design.T @ y / NOISE**2
    draws = np.random.default_rng(2).multivariate_normal(mean, covariance, size=count)
    return draws[np.all((draws > BOX.low) & (draws < BOX.high), axis=1)]


@pytest.mark.statistics
@pytest.mark.parametrize(
    "kernel, lowest, highest, gradients",
    [
        (RandomWalkMetropolis(), 0.12, 0.4, 0),
        (PCN(), 0.12, 0.4, 0),
        (PCNL(), 0.4, 0.8, 1),
        (MALA(), 0.45, 0.8, 1),
        (UnderdampedLangevin(), 0.75, 0.97, 1),
        (Microcanonical(), 0.8, 0.99, None),
        (ChEESHMC(), 0.6, 0.95, None),
    ],
    ids=["random walk", "pcn", "pcnl", "mala", "underdamped", "microcanonical", "chees"],
)
def test_adapts_and_samples_the_linear_posterior(kernel, lowest, highest, gradients):
    """Within 4.5 MCSE of the closed form, from any start, in adapted coordinates.

    `gradients` is their number per transition, None where it varies.
    """
    x, y = linear_rows()
    model = linear_model()
    run = model.fit_posterior(x, y, kernel=kernel, pretraining=START, **RUN)
    check_moments(model.posterior.draws, x, y)
    assert np.all((run.acceptance_rate > lowest) & (run.acceptance_rate < highest))
    coordinates = "diagonal" if kernel.no_whitening else "gauss_newton"
    assert run.geometry.startswith("prior" if isinstance(kernel, PCN) else coordinates)
    assert "(default" in run.report()
    steps = model.posterior.sample_stats["n_steps"]
    assert np.all(steps == gradients) or (gradients is None and np.ptp(steps) > 0)
    assert run.num_gradients["sampling"].sum() == steps.sum()


@pytest.mark.statistics
def test_truncated_mala_samples_a_posterior_that_its_box_cuts():
    x, y = linear_rows()
    model, exact = linear_model(prior=BOX), boxed_posterior(x, y)
    run = model.fit_posterior(x, y, kernel="truncated_mala", pretraining=START, **RUN)
    draws = model.posterior.draws.astype(np.float64)
    assert draws.min() >= BOX.low and draws.max() <= BOX.high
    for power in (1, 2):
        found, expected = draws**power, (exact**power).mean(axis=0)
        error = np.hypot(mcse_mean(found), (exact**power).std(axis=0) / len(exact) ** 0.5)
        assert np.all(np.abs(found.mean(axis=(0, 1)) - expected) < 4.5 * error)
    # The upper wall matters: without it a weight would be elsewhere.
    assert np.max(draws[..., 0]) > BOX.high - 0.01
    assert np.all((run.acceptance_rate > 0.35) & (run.acceptance_rate < 0.85))
    assert run.geometry.startswith("diagonal")


@pytest.mark.statistics
def test_truncated_mala_leaves_a_learned_noise_scale_unlimited():
    x, y = linear_rows()
    model = linear_model(prior=Uniform(-3, 3), likelihood=Gaussian("learned"))
    options = dict(num_results=200, num_burnin_steps=200, jit_compile=False)
    short_fit(model, x, y, kernel=TruncatedMALA(), **options)
    scale = np.exp(model.posterior.draws[..., -1])
    assert 0.35 < np.median(scale) < 0.7
    low, high = Potential(model.spec).limits
    np.testing.assert_array_equal(high, [3, 3, 3, np.inf])
    np.testing.assert_array_equal(low, -high)


class TestRefusals:
    def test_truncated_mala_names_the_priors_that_have_no_box(self):
        model = linear_model(prior={"kernel": BOX, "bias": Normal(2.0)})
        with pytest.raises(ValueError, match=r"layer 1 bias: Normal\(scale=2.0\)"):
            short_fit(model, *linear_rows(), kernel=TruncatedMALA())

    def test_a_kernel_by_an_unknown_name_hears_the_names_there_are(self):
        with pytest.raises(ValueError, match="underdamped_langevin"):
            short_fit(linear_model(), *linear_rows(), kernel="gibbs")


class TestSettings:
    @pytest.mark.statistics
    def test_a_given_step_size_is_used_as_it_is(self):
        for kernel in (RandomWalkMetropolis(step_size=0.03), UnderdampedLangevin(step_size=0.03)):
            run = short_fit(linear_model(), *linear_rows(), kernel=kernel, jit_compile=False)
            np.testing.assert_allclose(run.step_size, 0.03, rtol=1e-6)
            assert run.accept_target is None

    def test_first_step_sizes_follow_from_a_leapfrog_step(self):
        leapfrog = np.array([0.5, 2.0], np.float32)
        np.testing.assert_allclose(MALA().first_step_size(leapfrog, 100), [0.25, 4.0])
        np.testing.assert_allclose(
            RandomWalkMetropolis().first_step_size(leapfrog, 100), 0.238 * leapfrog, rtol=1e-6
        )
        found = RandomWalkMetropolis().first_step_size(leapfrog, 100)
        assert found.dtype == np.float32


@pytest.mark.statistics
@pytest.mark.parametrize("kernel", [UnderdampedLangevin])
def test_reports_label_an_unadjusted_run_as_biased(kernel, tmp_path, capsys):
    from tfbnn.cli.app import main

    model = linear_model()
    exact = short_fit(model, *linear_rows(), kernel=kernel(), jit_compile=False)
    assert "BIASED" not in exact.report() and exact.to_dict()["notes"] == []
    run = short_fit(model, *linear_rows(), kernel=kernel(adjusted=False), jit_compile=False)
    assert "BIASED" in run.report() and "BIASED" in run.to_dict()["notes"][0]
    path = tmp_path / "bnn.h5"
    model.save(path)
    for command in ("info", "diagnose"):
        assert main([command, str(path)]) == 0
        assert "BIASED" in capsys.readouterr().out
