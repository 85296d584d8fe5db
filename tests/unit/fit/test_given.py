"""Starts that the user gives: arrays, the size of random weights, and fitted models."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

import tfbnn
from tests.support.builders import synthetic_ensemble
from tests.support.entries import X, Y, fake_fit, refuses
from tests.support.linearised import linearised_ensemble
from tests.support.specs import build
from tfbnn import priors
from tfbnn.fit.given import given_starts
from tfbnn.posterior.forward import network_outputs
from tfbnn.run.options import Sampling
from tfbnn.spec.network_spec import draw_parameters

pytestmark = pytest.mark.tensorflow

NUM_PARAMETERS = 22  # of the fixture `fitted`


def with_entry(value):
    theta = np.zeros((2, NUM_PARAMETERS))
    theta[1, 3] = value
    return theta


def test_chains_start_at_the_lines_of_an_array(fitted, engine):
    """The report and the model say where the chains began."""
    theta = np.arange(2.0 * NUM_PARAMETERS).reshape(2, -1)
    run = fake_fit(fitted, pretraining="auto", initial_state=theta.tolist())
    definition = engine.calls[-1][1][0]
    np.testing.assert_array_equal(definition.initial_state.theta, theta)
    assert definition.initial_state.theta.dtype == np.float32
    assert definition.pretraining is None
    assert "pretraining" not in {choice.what for choice in run.choices}
    text = " ".join(run.report(details=True).split())
    assert "where the chains began: given as initial_state" in text
    assert fitted.posterior.provenance.initial_state == "given as initial_state"


def test_fits_that_were_told_nothing_say_nothing(fitted, engine):
    fake_fit(fitted)
    assert "initial_state" not in fitted.posterior.provenance.to_json()


def test_a_number_draws_weights_for_every_chain():
    """The same whenever the seed is; the size counts in theta, whatever the parameterisation."""
    spec = build("hierarchical_ntk")
    layout, sampling = spec.layout, Sampling(num_chains=400, seed=3)
    theta, text, *_ = given_starts(spec, 0.25, sampling)
    weights = theta[:, : layout.num_weights]
    assert stats.kstest(weights.ravel() / 0.25, "norm").pvalue > 1e-3
    assert "0.25" in text and len(np.unique(theta[:, 0])) == 400
    for number in (np.float32(0.25), np.array(0.25)):
        np.testing.assert_array_equal(given_starts(spec, number, sampling).theta, theta)
    assert given_starts(spec, theta, sampling).superchains is None
    theta[2] = theta[0]
    superchains = given_starts(spec, theta, sampling).superchains
    assert superchains[0] == superchains[2] and len(np.unique(superchains)) == 399
    fewer = given_starts(spec, 0.25, Sampling(num_chains=2, seed=3)).theta
    np.testing.assert_array_equal(fewer, theta[:2])
    other = given_starts(spec, 0.25, Sampling(num_chains=2, seed=4)).theta
    assert np.all(other[:, : layout.num_weights] != fewer[:, : layout.num_weights])


@pytest.mark.parametrize("name", ["gaussian_two_learned", "student_t", "mixed_priors", "ard"])
def test_with_a_number_scales_are_at_the_median_of_their_prior(name):
    """Half of the draws of the prior lie below, of every scale."""
    spec, generator = build(name), np.random.default_rng(0)
    scales = slice(spec.layout.num_weights, None)
    theta = given_starts(spec, 0.0, Sampling(num_chains=1)).theta[0]
    assert not theta[: spec.layout.num_weights].any()
    draws = np.stack([draw_parameters(spec, generator)[scales] for _ in range(3000)])
    below = np.mean(draws < theta[scales], axis=0)
    np.testing.assert_allclose(below, 0.5, atol=4 * 0.5 / np.sqrt(3000))


SCALES = [priors.HalfNormal(2.0), priors.HalfCauchy(0.3)]
SCALES += [priors.LogNormal(-1.0, 0.5), priors.InverseGamma(2.0, 0.5)]


@pytest.mark.parametrize("prior", SCALES, ids=lambda prior: type(prior).__name__)
def test_medians_of_scale_priors(prior):
    draws = prior.sample(np.random.default_rng(1), 40_000)
    assert np.mean(draws < prior.median) == pytest.approx(0.5, abs=0.01)


BAD = [
    (np.zeros((3, NUM_PARAMETERS)), ValueError, ["[2, 22]", "[3, 22]"]),
    (np.zeros(NUM_PARAMETERS), ValueError, ["[2, 22]", "received [22]"]),
    (with_entry(np.nan), ValueError, ["finite", "nan", "layer 1 kernel[0, 3]", "chain 1"]),
    (with_entry(1e39), ValueError, ["finite in float32", "inf", "chain 1"]),
    (-1.0, ValueError, ["initial_state", ">= 0"]),
    (True, TypeError, ["initial_state", "True"]),
    ("teacher", TypeError, ["initial_state", "numbers"]),
]


@pytest.mark.parametrize("state, error, words", BAD, ids=[", ".join(bad[2]) for bad in BAD])
def test_bad_starts_are_refused_before_the_engine_starts(state, error, words, fitted, engine):
    call = partial(fitted.fit_posterior, X, Y, num_chains=2, initial_state=state)
    refuses(call, fitted, engine, error, words)


def test_starts_are_given_or_found(fitted, engine):
    options = dict(num_chains=2, initial_state=0.1)

    call = partial(fake_fit, fitted, pretraining=tfbnn.Pretraining(epochs=3), **options)
    refuses(call, fitted, engine, ValueError, ["pretraining", "initial_state", "Leave one"])
    fake_fit(fitted, pretraining=None, **options)  # says the same twice


def test_starts_lie_inside_a_uniform_box(engine):
    box = tfbnn.priors.Uniform(-0.3, 0.2)
    model = tfbnn.BayesianMLP([2, 1], prior=box, likelihood=tfbnn.likelihoods.Gaussian(0.1))
    with pytest.raises(ValueError, match=r"box of its Uniform prior.*5\.0 as layer 1 bias\[0\]"):
        fake_fit(model, num_chains=1, pretraining="auto", initial_state=[[0.0, 0.2, 5.0]])
    with pytest.raises(ValueError, match="box of its Uniform prior"):
        fake_fit(model, pretraining="auto", initial_state=10.0)
    assert engine.calls == []
    fake_fit(model, num_chains=1, pretraining="auto", initial_state=[[-0.3, 0.2, 0.0]])


# Fitted models.

SAMPLED, OTHERS = priors.HierarchicalNormal(priors.HalfNormal(1.0)), priors.LogNormal(0.5, 0.3)
OF_INPUTS = {"kernel": priors.ARD(OTHERS), "bias": priors.Normal()}
PRIORS = {
    "fixed to fixed": (priors.Normal(2.0), priors.Normal(0.5)),
    "fixed to sampled": (priors.Normal(2.0), SAMPLED),
    "sampled to fixed": (SAMPLED, priors.Laplace(0.7)),
    "sampled to sampled": (SAMPLED, priors.HierarchicalNormal(OTHERS)),
    "one scale per input": (SAMPLED, [OF_INPUTS, priors.Normal(3.0)]),
}


def functions(ensemble, x):
    """[C, S, N, K] on the scale the network sees."""
    outputs = network_outputs(ensemble, ensemble.x_pipeline.forward(x))
    return outputs.reshape(*ensemble.draws.shape[:2], -1, len(x))


@pytest.mark.parametrize("parameterization", ["standard", "ntk"])
@pytest.mark.parametrize("name", PRIORS)
def test_chains_start_as_the_last_functions_of_a_model(name, parameterization):
    """Starts are the last functions of the model's chains in turn, whatever the priors."""
    there, here = (
        synthetic_ensemble((3, 5, 2), prior=prior, parameterization=parameterization)
        for prior in PRIORS[name]
    )
    theta = given_starts(here.spec, there, Sampling(num_chains=3)).theta
    x = np.random.default_rng(0).normal(size=(9, 3))
    found = functions(replace(here, draws=theta[:, None], chain_weights=np.ones(3) / 3), x)
    np.testing.assert_allclose(found[:, 0], functions(there, x)[[0, 1, 0], -1], rtol=1e-10)
    noise = here.spec.layout.log_noise_scale
    np.testing.assert_array_equal(theta[:, noise], there.draws[[0, 1, 0], -1][:, noise])


def test_chains_without_weight_start_no_others():
    there = synthetic_ensemble((3, 5, 2), num_chains=3, chain_weights=[0.0, 0.7, 0.3])
    theta = given_starts(there.spec, there, Sampling(num_chains=4)).theta
    np.testing.assert_array_equal(theta, there.draws[[1, 2, 1, 2], -1])


def test_a_model_hands_on_what_it_knows_of_rows(engine):
    """Transforms and names of inputs: without them its parameters would mean something else."""
    pandas = pytest.importorskip("pandas")
    there = synthetic_ensemble(feature_names=("mass", "width"), dtype="float32")
    earlier = tfbnn.BayesianMLP.from_ensemble(there)
    model = tfbnn.BayesianMLP([2, 5, 1], prior=priors.Normal(0.3))
    frame = pandas.DataFrame({"width": X[:, 1], "mass": X[:, 0]})
    run = fake_fit(model, frame, pretraining="auto", num_chains=3, initial_state=earlier)
    posterior = model.posterior
    assert posterior.x_pipeline == there.x_pipeline and posterior.y_pipeline == there.y_pipeline
    assert posterior.feature_names == ("mass", "width")
    x = engine.data.x[:, : len(X)].numpy().T
    np.testing.assert_allclose(x, there.x_pipeline.forward(X), 1e-5)
    (chosen,) = [choice for choice in run.choices if choice.what == "y_transform"]
    assert "standardize" in chosen.chosen and "start from" in chosen.why
    assert run.pretraining == "the last draws of another model"


def test_a_new_model_with_open_layers_takes_the_network_of_its_starts(engine):
    there = synthetic_ensemble((2, 20, 20, 1), parameterization="ntk")
    earlier, model = tfbnn.BayesianMLP.from_ensemble(there), tfbnn.BayesianMLP()
    fake_fit(model, pretraining="auto", initial_state=earlier)
    assert model.spec.layer_sizes == (2, 20, 20, 1)
    with pytest.raises(ValueError, match="initial_state must be a model whose parameterization is"):
        standard = tfbnn.BayesianMLP(parameterization="standard", prior=priors.Normal())
        fake_fit(standard, pretraining="auto", initial_state=earlier)
    with pytest.raises(ValueError, match="networks that this model may have, received 2-20-20-1"):
        three = np.column_stack([X, X[:, 0]])
        fake_fit(tfbnn.BayesianMLP(), three, pretraining="auto", initial_state=earlier)


def test_a_model_hands_on_its_classes(engine):
    settings = dict(likelihood=tfbnn.likelihoods.Categorical(), y_transform=None)
    there = synthetic_ensemble((2, 4, 3), classes=("cat", "dog", "emu"), **settings)
    earlier = tfbnn.BayesianMLP.from_ensemble(there)
    model = tfbnn.BayesianMLP([2, 4, 3], prior=priors.Normal(), dtype="float64", **settings)
    labels = np.array(["cat", "emu"] * 6)
    fake_fit(model, X, labels, pretraining="auto", initial_state=earlier)
    assert model.posterior.classes == ("cat", "dog", "emu")
    with pytest.raises(ValueError, match="labels.*received 'fox'"):
        labels[3] = "fox"
        fake_fit(model, X, labels, pretraining="auto", initial_state=earlier)


@pytest.mark.parametrize(
    "settings",
    [
        {"layer_sizes": [2, 6, 1]},
        {"activation": "relu"},
        {"parameterization": "ntk"},
        {"x_transform": None},
        {"y_transform": None},
        {"likelihood": tfbnn.likelihoods.StudentT(4.0)},
        {"likelihood": tfbnn.likelihoods.Gaussian(0.1)},
    ],
    ids=str,
)
def test_a_model_of_something_else_is_refused(settings, fitted, engine):
    model = tfbnn.BayesianMLP(**{"layer_sizes": [2, 5, 1], "prior": priors.Normal()} | settings)
    (word,) = settings
    with pytest.raises(ValueError, match=f"initial_state must be a model whose {word}s? is"):
        fake_fit(model, pretraining="auto", initial_state=fitted)
    assert engine.calls == []


@pytest.mark.parametrize(
    "make, error, match",
    [
        (lambda: tfbnn.BayesianMLP([2, 5, 1], prior=priors.Normal()), tfbnn.NotFittedError, None),
        (
            lambda: tfbnn.BayesianMLP.from_ensemble(linearised_ensemble()),
            ValueError,
            "initial_state needs draws that are networks",
        ),
    ],
    ids=["not fitted", "tangents"],
)
def test_a_model_without_networks_is_refused(make, error, match, engine):
    model = make()
    with pytest.raises(error, match=match):
        fake_fit(model, pretraining="auto", initial_state=model)
    assert engine.calls == []
