"""One sampled prior scale per input: where it is taken and refused, and its draws."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tfbnn import priors
from tfbnn.priors import ARD, LayerPrior, Normal
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import draw_parameters

FIRST = {"kernel": ARD(), "bias": Normal()}


@pytest.mark.parametrize(
    ("prior", "received"),
    [
        (ARD(), "layer 1 bias"),
        ({"kernel": ARD(), "bias": Normal()}, "layer 2 kernel"),
        ([FIRST, Normal(), {"kernel": Normal(), "bias": ARD()}], "layer 3 bias"),
        ([LayerPrior(Normal(), Normal()), Normal(), LayerPrior(ARD(), Normal())], "layer 3 kernel"),
    ],
    ids=str,
)  # fmt: skip
def test_other_places_are_refused_with_what_to_type(prior, received):
    wanted = rf"ARD .*on the inputs alone, received .*{received}.*'kernel': ARD\(\)"
    with pytest.raises(ValueError, match=wanted):
        tfbnn.BayesianMLP([2, 4, 3, 1], prior=prior)


def test_a_file_that_has_it_elsewhere_is_refused():
    entry = plain_spec([2, 4, 1], prior=[FIRST, Normal()]).to_json()
    entry["priors"].reverse()
    with pytest.raises(ValueError, match="on the inputs alone"):
        ModelSpec.from_json(entry)


@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
def test_prior_draws_have_the_moments_of_the_prior(parameterization):
    """False alarms: below 1e-5 for each of the comparisons, by normal quantiles."""
    width, count, scale_prior = 400, 300, priors.LogNormal(0.5, 0.7)
    spec = plain_spec(
        [3, width, 1],
        prior=[{"kernel": ARD(scale_prior), "bias": Normal(2.0)}, Normal(1.0)],
        parameterization=parameterization,
    )
    generator = np.random.default_rng(4)
    theta = np.stack([draw_parameters(spec, generator) for _ in range(count)])
    log_scales = theta[:, spec.layout.layers[0].kernel.scales]
    error = 4.5 * scale_prior.scale / np.sqrt(count)
    np.testing.assert_allclose(log_scales.mean(axis=0), scale_prior.loc, atol=error)
    np.testing.assert_allclose(log_scales.std(axis=0), scale_prior.scale, atol=error)
    correlations = np.corrcoef(log_scales.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(count)
    # The spread of each input's weights, in units of the scale that it should have.
    kernel = spec.layout.kernels_and_biases(theta)[0][0]
    unit = 1.0 if parameterization == "ntk" else np.exp(log_scales)
    np.testing.assert_allclose(kernel.std(axis=2) / unit, 1.0, atol=5.0 / np.sqrt(2 * width))
