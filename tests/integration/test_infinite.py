"""The life of a model of infinite width: fit, file, prediction without TensorFlow, refusals."""

import json
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import tfbnn
from tests.support.infinite import SCALES, ensemble, model, rows
from tests.support.linear import linear_model
from tests.support.marks import statistics_but
from tfbnn.fit.choices.infinite import options_of_infinite
from tfbnn.kernels import HMC
from tfbnn.likelihoods import Gaussian, StudentT
from tfbnn.posterior.conditioned import GivenRows
from tfbnn.priors import FromPosterior, Laplace, Normal
from tfbnn.run.options import FitOptions

RUN = dict(num_results=40, num_burnin_steps=40, verbose=0, seed=1)


@pytest.fixture(scope="module", params=statistics_but([], ["fitted"]))
def fitted():
    x, y = rows(60)
    network = model(activation="tanh", x_transform="standardize", y_transform="standardize")
    return network, network.fit_posterior(x, y[:, 0], calibrate=True, **RUN)


def test_a_fit_says_what_it_is(fitted):
    network, run = fitted
    report = " ".join(run.report().split())
    assert "maximum of the evidence" in run.report(details=True)
    assert "An erf of the same slope stands for tanh" in report
    assert "NUTS" in report
    assert run.pretraining.startswith("draws around the maximum of the evidence")
    assert "integrated out" in network._table and "BayesianMLP 2-inf-1" in network._table
    assert "Gaussian" in repr(network)


def test_a_file_has_draws_and_rows_and_predicts_the_same(tmp_path):
    network = tfbnn.BayesianMLP.from_ensemble(ensemble(num_draws=40, num_rows=60))
    network.save(tmp_path / "infinite.h5")
    loaded = tfbnn.load(tmp_path / "infinite.h5")
    x, _ = rows(30, seed=3)
    for settings in ({}, {"include_noise": True, "quantiles": [0.1, 0.9]}):
        for found, expected in zip(loaded.predict(x, **settings), network.predict(x, **settings)):
            np.testing.assert_array_equal(found, expected)
    assert loaded.posterior.given.x.shape == (60, 2)
    copy = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(copy.predict(x).mean, loaded.predict(x).mean)
    assert (tmp_path / "infinite.h5").stat().st_size < 200_000


def test_what_holds_of_networks_holds(fitted):
    network, run = fitted
    x, y = rows(30, seed=3)
    scores = network.evaluate(x, y[:, 0])
    assert scores["r2"] > 0.8 and 0.5 < scores["pull_width"] < 2.0
    draws = network.predict_draws(x)
    assert draws.shape == (160, 30)
    spread = network.predict(x).stddev
    assert np.median(draws.std(axis=0) / spread) == pytest.approx(1.0, abs=0.2)
    assert network.predict_gradient(x).mean.shape == (30, 2)
    assert network.relevance().median.shape == (2,)
    assert "4 chains in 1 basin" in repr(run.basins())
    with pytest.warns(UserWarning, match="calibration is no longer valid"):
        small = network.compress(20)
    assert small.predict(x).mean == pytest.approx(network.predict(x).mean, abs=0.1)
    assert json.loads(json.dumps(network.get_config()))["layer_sizes"] == [2, "inf", 1]
    again = tfbnn.BayesianMLP.from_config(network.get_config())
    assert again.spec.architecture_text == "2-inf-1, tanh"
    variables = network.posterior.to_arviz().posterior
    assert variables["dense_1_kernel_scale"].shape == (4, 40, 2)
    x, y = rows(60)
    terms = network.log_prob(network.posterior.draws[0, :3], x, y[:, 0])
    np.testing.assert_allclose(terms, network.posterior.sample_stats["lp"][0, :3], rtol=1e-9)


@pytest.mark.parametrize("wanted", ["to_onnx", "to_savedmodel"])
def test_exports_are_refused_in_words(tmp_path, wanted):
    network = tfbnn.BayesianMLP.from_ensemble(ensemble())
    with pytest.raises(ValueError, match=f"{wanted} needs networks with weights.*predict"):
        getattr(network, wanted)(tmp_path / "export")


REFUSED = {
    "mixed": ({"layer_sizes": [2, math.inf, 5, 1]}, "all finite or all infinite"),
    "infinite end": ({"layer_sizes": [2, "inf"]}, "all finite or all infinite"),
    "activation": ({"activation": "gelu"}, "closed forms for erf, tanh"),
    "likelihood": ({"likelihood": StudentT()}, r"needs likelihood=Gaussian\(\)"),
    "prior": ({"prior": Laplace()}, "needs normal priors"),
    "half precision": ({"dtype": "float16"}, "dtype must be"),
    "standard": ({"parameterization": "standard"}, "needs parameterization='ntk'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_limit_is_refused(case):
    settings, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        tfbnn.BayesianMLP(**{"layer_sizes": [2, math.inf, 1], **settings})


OPTIONS = {
    "pretraining": ({"pretraining": tfbnn.Pretraining()}, "no weights to train"),
    "power": ({"likelihood_power": 0.5}, "needs likelihood_power=1"),
    "curvature": ({"kernel": "smmala"}, "SMMALA needs networks with weights.*Use kernel='hmc'"),
    "box": ({"kernel": "truncated_mala"}, "TruncatedMALA needs networks with weights"),
    "readout": ({"kernel": "repriorised"}, "last layer.*or use another kernel"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_what_a_fit_cannot_do_is_refused(case):
    options, message = OPTIONS[case]
    with pytest.raises(ValueError, match=message):
        model().fit_posterior(*rows(), verbose=0, **options)


def test_more_rows_than_memory_is_for_are_refused():
    x = np.random.default_rng(0).normal(size=(4001, 2))
    with pytest.raises(ValueError, match="up to 4000 rows.*received 4001"):
        model().fit_posterior(x, x[:, :1], verbose=0)


def test_no_prior_is_made_of_it():
    fitted = tfbnn.BayesianMLP.from_ensemble(ensemble())
    with pytest.raises(
        ValueError, match="FromPosterior needs networks with weights, received infinite"
    ):
        FromPosterior(fitted)


def test_theta_is_sampled_on_400_rows_and_all_condition():
    spec = model().spec
    indices = spec.indices_of_chains(1000)
    assert len(np.unique(indices)) == 400 and np.array_equal(indices, spec.indices_of_chains(1000))
    assert spec.indices_of_chains(400) is None
    x, y = rows(450)
    few, theta = x[spec.indices_of_chains(450)], ensemble().draws
    expected = model().log_prob(theta, few, y[spec.indices_of_chains(450)])
    np.testing.assert_array_equal(model().log_prob(theta, x, y), expected)
    found = model().log_prob_function(x, y)(theta[0]).numpy()
    np.testing.assert_allclose(found, expected[0])


def test_a_rule_keeps_its_limits_without_the_change_of_scores():
    asked = FitOptions(until=tfbnn.Until(ess=2000, rhat=1.001, score_change=0.01))
    found = options_of_infinite(model().spec, asked, 100).until
    assert found == tfbnn.Until(ess=2000, rhat=1.001)


@pytest.mark.statistics
def test_wide_networks_have_the_covariance_of_the_limit():
    """Two layers of one activation; tests/unit/spec/test_limit_kernels.py has all activations."""
    name, depth = "relu", 2
    x = np.random.default_rng(1).normal(size=(4, 2))
    settings = dict(activation=name, prior=Normal(1.0), likelihood=Gaussian(0.1))
    wide = linear_model(layers=(2, *[128] * depth, 1), parameterization="ntk", **settings)
    drawn = wide.sample_prior(x, num_results=1000).f[..., 0]
    limit = model(hidden=depth, **settings)
    functions = limit.sample_prior(x, num_results=1000, seed=1).f[..., 0]
    largest = np.abs(np.cov(functions.T)).max()
    # Of 1000 draws each, and some hundredths of the finite width.
    assert np.abs(np.cov(drawn.T) - np.cov(functions.T)).max() < 0.2 * largest


@pytest.mark.statistics
def test_ranks_of_the_truth_among_draws_are_uniform():
    """Simulation-based calibration (Talts et al. 2018, arXiv:1804.06788) of all hyper-parameters.

    A false alarm in a thousand seeds. Draws of a parameter that lie a standard deviation off are found in 87 of 100
    seeds. (Of 101 tables, 40 at a time.) HMC takes less time than NUTS, which is the default.
    """
    num_tables, num_ranks = 40, 16
    settings = dict(prior=SCALES, activation="erf", likelihood=Gaussian())
    ranks = []
    for seed in range(num_tables):
        x = np.random.default_rng(seed).normal(size=(20, 2))
        # The truth, and where two chains start.
        drawn = model(**settings).sample_prior(x, num_results=3, seed=seed)
        network = model(**settings)
        network.fit_posterior(
            x, drawn.y[0], num_chains=2, num_results=30, num_burnin_steps=50, verbose=0, calibrate=False,
            seed=seed, initial_state=drawn.theta[1:], kernel=HMC(num_leapfrog_steps=4),
        )  # fmt: skip
        draws = network.posterior.draws.reshape(-1, network.posterior.draws.shape[-1])
        ranks.append((draws[:: len(draws) // (num_ranks - 1)] < drawn.theta[0]).sum(axis=0))
    for column in np.array(ranks).T:
        counts = np.bincount(column * 4 // num_ranks, minlength=4)
        assert stats.chisquare(counts).pvalue > 1e-3 / len(ranks[0])


@pytest.mark.statistics
def test_a_run_goes_on_where_it_was(tmp_path):
    settings = dict(num_chains=2, num_burnin_steps=10, calibrate=False, verbose=0)
    short, long = (model() for _ in range(2))
    short.fit_posterior(*rows(), num_results=5, output=tmp_path / "run", **settings)
    long.fit_posterior(*rows(), num_results=10, output=tmp_path / "run", resume=True, **settings)
    draws = long.posterior.draws
    assert draws.shape[1] == 10 and np.array_equal(draws[:, :5], short.posterior.draws)


def test_rows_are_read_only():
    given = GivenRows(*rows())
    with pytest.raises(ValueError, match="read-only"):
        given.x[0] = 0.0
