"""Runs with repriorised and collapsed readout through `fit_posterior`: laws, predictions, refusals."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow_probability as tfp
from scipy import stats

import tfbnn
from tests.support.linear import short_fit
from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.kernels import (
    HMC,
    SMMALA,
    PowerPosterior,
    Repriorised,
    TruncatedMALA,
    UnderdampedLangevin,
)
from tfbnn.likelihoods import Categorical, Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.posterior.ensemble import Readouts
from tfbnn.posterior.prediction import function_draws
from tfbnn.priors import Laplace, Normal

RUN = dict(num_chains=2, num_results=150, num_burnin_steps=100, jit_compile=False)
RUN |= dict(verbose=0, seed=1)
COLLAPSED = Repriorised(HMC(num_leapfrog_steps=4), collapse_readout=True)


@pytest.fixture(scope="module")
def collapsed(tiny_data):
    """(model [2, 8, 1] with a collapsed run, Run)."""
    model = tfbnn.BayesianMLP([2, 8, 1], prior=tfbnn.priors.Normal(1.0), parameterization="ntk")
    return model, model.fit_posterior(*tiny_data, kernel=COLLAPSED, pretraining=None, **RUN)


@pytest.mark.statistics
class TestPredictions:
    def test_drawn_readouts_add_nothing_but_noise_to_the_means(self, collapsed):
        """Both have one expectation, and the means the smaller Monte Carlo error (Rao, Blackwell).

        For the difference is independent of everything before it, the draw before it included.
        Given the rest of all draws, its standardised form is N(0, I), and so are both sums below:
        p < 1e-4 in one of 5000 seeds, whatever the chains do.
        """
        ensemble = collapsed[0].posterior
        kernel, bias = ensemble.spec.layout.layers[-1]
        readout = slice(kernel.weights.start, bias.weights.stop)
        draws = ensemble.draws.copy()
        normals = np.linalg.solve(
            ensemble.readouts.factors(9)[:, 0],
            (draws[..., readout] - ensemble.readouts.mean).reshape(-1, 9, 1),
        ).reshape(2, 150, 9)
        draws[..., readout] = ensemble.readouts.mean
        x = ensemble.x_pipeline.forward(ensemble.x_reference)
        images = function_draws(ensemble.mirrored, x).reshape(2, 2, 150, -1).mean(axis=1)
        means = function_draws(replace(ensemble, draws=draws, readouts=None), x)
        np.testing.assert_allclose(images.reshape(means.shape[:2]), means[..., 0], atol=1e-5)
        sums = normals.sum(axis=(0, 1)) / np.sqrt(300)
        assert stats.chi2.sf(np.sum(sums**2), 9) > 1e-4
        products = np.sum(normals[:, 1:] * normals[:, :-1]) / np.sqrt(2 * 149 * 9)
        assert 2.0 * stats.norm.sf(abs(products)) > 1e-4

    @pytest.mark.parametrize("keep", [True, False])
    @pytest.mark.parametrize("untrusted", [True, False])
    def test_a_saved_model_predicts_the_same(self, collapsed, tmp_path, keep, untrusted):
        ensemble = collapsed[0].posterior
        if not keep:
            ensemble = replace(ensemble, readouts=Readouts(ensemble.readouts.mean))
        model, x = tfbnn.BayesianMLP.from_ensemble(ensemble), ensemble.x_reference
        model.save(tmp_path / "model.h5")
        loaded = tfbnn.load(tmp_path / "model.h5", untrusted=untrusted)
        for found, expected in zip(loaded.predict(x), model.predict(x)):
            np.testing.assert_array_equal(found, expected)

    def test_readouts_of_another_size_are_refused(self, collapsed, tmp_path):
        ensemble = collapsed[0].posterior
        wrong = replace(ensemble, readouts=Readouts(ensemble.readouts.mean[..., 1:]))
        with pytest.raises(tfbnn.ModelFileError, match="readout"):
            tfbnn.BayesianMLP.from_ensemble(wrong).save(tmp_path / "model.h5")

    def test_compressed_draws_are_ordinary_ones(self, collapsed):
        model = collapsed[0]
        small = model.compress(20, x_reference=model.posterior.x_reference)
        assert small.posterior.readouts is None
        assert np.isfinite(small.predict(model.posterior.x_reference[:3]).stddev).all()


@pytest.mark.statistics
class TestRuns:
    def test_readouts_are_drawn_from_their_distribution(self, collapsed):
        """Standardised by mean and factor, drawn readouts are N(0, I)."""
        ensemble = collapsed[0].posterior
        kernel, bias = ensemble.spec.layout.layers[-1]
        drawn = ensemble.draws[..., kernel.weights.start : bias.weights.stop]
        shift = (drawn - ensemble.readouts.mean).reshape(-1, 9, 1)
        normals = np.linalg.solve(ensemble.readouts.factors(9)[:, 0], shift)[..., 0]
        assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-3
        assert stats.kstest((normals**2).sum(axis=1), "chi2", args=(9,)).pvalue > 1e-3

    def test_lp_is_the_density_of_theta(self, collapsed, tiny_data):
        model, _ = collapsed
        expected = model.log_prob(model.posterior.draws[:, ::50], *tiny_data)
        lp = model.posterior.sample_stats["lp"][:, ::50]
        np.testing.assert_allclose(lp, expected, atol=2e-3)

    def test_report_says_what_was_done(self, collapsed):
        _, run = collapsed
        assert "collapse_readout=True" in run.kernel
        text = " ".join(run.report(details=True).split())
        assert "readout collapsed in feature space (p = 9, N = 120)" in text

    def test_classes_are_sampled_with_a_regulariser(self):
        """The posterior of a linear classifier, as plain HMC finds it."""
        generator = np.random.default_rng(0)
        x = generator.normal(size=(30, 2))
        labels = np.where(x[:, 0] + 0.5 * generator.normal(size=30) > 0, "yes", "no")
        found = []
        for kernel in (
            HMC(num_leapfrog_steps=4),
            Repriorised(HMC(num_leapfrog_steps=4), regulariser=2.0),
        ):
            model = tfbnn.BayesianMLP(
                [2, 2], prior=tfbnn.priors.Normal(1.0), likelihood=Categorical()
            )
            short_fit(model, x, labels, kernel=kernel, num_results=500, jit_compile=False)
            found.append(model.posterior.draws.astype(float))
        error = np.hypot(*(mcse_mean(draws) for draws in found))
        shift = np.abs(found[0].mean(axis=(0, 1)) - found[1].mean(axis=(0, 1)))
        np.testing.assert_array_less(shift, 4 * error)


def test_the_setting_of_the_paper_is_labelled_as_biased():
    kernel = Repriorised(UnderdampedLangevin(adjusted=False, target_accept_prob=0.98))
    assert "BIASED" in kernel.bias_note


class TestRefusals:
    @pytest.mark.parametrize("inner", [SMMALA(), TruncatedMALA(), PowerPosterior(), Repriorised()])
    def test_inner_kernels_that_need_theta(self, inner):
        with pytest.raises(ValueError, match="any coordinates"):
            Repriorised(inner)

    def test_an_inner_kernel_that_is_a_function(self):
        with pytest.raises(ValueError, match="and a function has none.*'nuts'"):
            Repriorised(tfp.mcmc.RandomWalkMetropolis)

    def test_it_cannot_move_rungs(self):
        with pytest.raises(ValueError, match="other densities"):
            PowerPosterior(Repriorised())

    LAPLACE = dict(prior=[Normal(1.0), Laplace(1.0)])
    WHITENED = Repriorised(HMC(preconditioner="gauss_newton"))
    NOISY = dict(likelihood=HeteroscedasticGaussian(), prior=Normal(1.0))

    @pytest.mark.parametrize(
        "kernel, layers, model, words",
        [
            (COLLAPSED, [2, 3, 1], dict(likelihood=StudentT()), "Gaussian"),
            (Repriorised(), [2, 3, 1], dict(likelihood=StudentT()), "regulariser"),
            (COLLAPSED, [2, 3, 1], LAPLACE, "HierarchicalNormal"),
            (WHITENED, [2, 3, 1], LAPLACE, "gauss_newton"),
            (COLLAPSED, [2, 3, 2], NOISY, "HeteroscedasticGaussian"),
            # Nothing is left to sample.
            (
                COLLAPSED,
                [2, 1],
                dict(likelihood=Gaussian(0.1), prior=Normal(1.0)),
                "nothing to sam",
            ),
        ],
    )
    def test_models(self, tiny_data, kernel, layers, model, words):
        with pytest.raises(ValueError, match=words):
            tfbnn.BayesianMLP(layers, **model).fit_posterior(*tiny_data, kernel=kernel)

    def test_noise_of_rows_with_learned_noise(self, tiny_data):
        model = tfbnn.BayesianMLP([2, 3, 1], prior=Normal(1.0))
        with pytest.raises(ValueError, match="known per row"):
            model.fit_posterior(*tiny_data, noise_scale=np.full(120, 0.1), kernel=COLLAPSED)
