"""Every exact kernel against the known predictions of a tiny network (`tiny_bnn`).

Many chains adapt and sample in one program; the scatter of their means is the Monte Carlo error,
however correlated the draws of a chain are. Mean and variance of the function at twenty inputs have
to agree within 4 standard errors: by Bonferroni, a kernel without fault fails in at most 40 x
6.3e-5 = 0.25 % of all seeds (0.36 % with the t distribution of 200 chains). Weights are not
compared: they have eight modes that are the same function.
"""

import numpy as np
import pytest

import tfbnn
from tests.support.tiny_bnn import INPUTS, NOISE, PRIORS, Truth, X, Y, golden, importance, outputs
from tfbnn import kernels, priors
from tfbnn.engine.kernels.registry import available, resolve_kernel
from tfbnn.engine.sampling import program
from tfbnn.likelihoods import Gaussian

# Shorter trajectories and ladders than by default: seven weights need no more. Kernels not named here run
# with their default settings.
SETTINGS = {
    "hmc": kernels.HMC(num_leapfrog_steps=8),
    "nuts": kernels.NUTS(max_tree_depth=4),
    "power_posterior": kernels.PowerPosterior(num_temperatures=4),
    "repriorised": kernels.Repriorised(kernels.HMC(num_leapfrog_steps=8)),
    "collapsed": kernels.Repriorised(kernels.HMC(num_leapfrog_steps=8), collapse_readout=True),
}
PRIOR_OF = {"truncated_mala": "uniform"}
FAMILIES = {"normal": priors.Normal(1.0), "uniform": priors.Uniform(-2.0, 2.0)}
LIMIT = 4.0
# HMC and NUTS, and what tests/integration/test_kernel_fits.py and test_sample.py do not run on an exact posterior.
HERE = ["hmc", "nuts", "collapsed"]


def settings_of(name):
    return SETTINGS[name] if name in SETTINGS else resolve_kernel(name)


def predictions(settings, prior, *, num_chains, num_results, jit_compile):
    """Function draws [num_chains, num_results, 20], of chains that start anywhere."""
    model = tfbnn.BayesianMLP(
        [1, 2, 1],
        activation="tanh",
        prior=FAMILIES[prior],
        likelihood=Gaussian(NOISE),
        x_transform=None,
        y_transform=None,
        dtype="float64",
    )
    # Kernels that follow one gradient make many short transitions, the others few long ones.
    stride = 10 if settings.gradients_per_transition == 1 else 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "chain_groups", lambda count, **_: [list(range(count))])
        model.fit_posterior(
            X[:, None],
            Y,
            kernel=settings,
            num_chains=num_chains,
            num_results=num_results,
            num_burnin_steps=200 + 40 * stride,
            num_steps_between_results=stride - 1,
            pretraining=None,
            seed=5,
            jit_compile=jit_compile,
            verbose=0,
        )
    return outputs(model.posterior.draws, INPUTS)


def largest_deviation(f, truth):
    """The largest error of means and variances, in standard errors; f is [chains, draws, 20]."""
    found = {}
    for name, values in (("mean", f), ("variance", (f - truth.mean) ** 2)):
        per_chain = values.mean(axis=1)
        error = per_chain.std(axis=0, ddof=1) / len(f) ** 0.5
        # The power of the test: errors are small against what they would have to reveal.
        scale = truth.variance**0.5 if name == "mean" else truth.variance
        assert np.all(error < 0.06 * scale), f"{name}: too few draws to see anything"
        deviation = per_chain.mean(axis=0) - getattr(truth, name)
        found[name] = deviation / np.hypot(error, getattr(truth, f"{name}_error"))
    return max(np.abs(z).max() for z in found.values())


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.statistics) for name in HERE),
        *(pytest.param(name, marks=pytest.mark.slow) for name in available() if name not in HERE),
    ],
)
@pytest.mark.parametrize(
    "size",
    [
        dict(num_chains=200, num_results=200, jit_compile=False),
        pytest.param(
            dict(num_chains=500, num_results=500, jit_compile=True), marks=pytest.mark.slow
        ),
    ],
    ids=["small", "large"],
)
def test_kernel_predicts_the_truth(name, size):
    settings, prior = settings_of(name), PRIOR_OF.get(name, "normal")
    assert settings.bias_note is None, "name settings in SETTINGS with which the kernel is exact"
    f = predictions(settings, prior, **size)
    assert largest_deviation(f, golden(prior)) < LIMIT


@pytest.mark.statistics
def test_a_biased_kernel_is_seen():
    settings = kernels.UnderdampedLangevin(step_size=0.1, preconditioner="identity", adjusted=False)
    f = predictions(settings, "normal", num_chains=200, num_results=200, jit_compile=False)
    assert largest_deviation(f, golden("normal")) > 2 * LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS)
def test_the_table_is_what_importance_sampling_finds(prior):
    table, again, other = golden(prior), importance(prior, seed=1), importance(prior, seed=2)
    for name in Truth._fields:
        np.testing.assert_allclose(getattr(table, name), getattr(again, name), rtol=1e-6)
    assert min(table.size, other.size) > 1e4
    for name in ("mean", "variance"):
        difference = getattr(table, name) - getattr(other, name)
        errors = [getattr(truth, f"{name}_error") for truth in (table, other)]
        assert np.all(np.abs(difference) < 3 * np.hypot(*errors))
