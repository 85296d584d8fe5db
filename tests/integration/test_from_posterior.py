"""`priors.FromPosterior`: fits one after the other, from arguments to files."""

from types import SimpleNamespace

import numpy as np
import pytest

import tfbnn
from tests.support import keras_models
from tests.support.linear import linear_model
from tests.support.marks import statistics_but
from tfbnn import likelihoods, priors
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.engine.sampling import program
from tfbnn.fit import handing_on
from tfbnn.fit.assemble import _training_inputs

SHORT = {
    "num_chains": 2,
    "num_burnin_steps": 30,
    "num_results": 20,
    "until": None,
    "jit_compile": False,
    "verbose": 0,
}
KERNEL = tfbnn.kernels.HMC(num_leapfrog_steps=2)
SEARCH = tfbnn.Pretraining(epochs=20, newton_iterations=3, validation_split=0.2)
NOISE = 0.3


def rows(seed, count=30):
    generator = np.random.default_rng(seed)
    x = generator.uniform(1, 3, size=(count, 2))
    return x, np.exp(x[:, 0] - x[:, 1] + NOISE * generator.normal(size=count))


def build(prior, **settings):
    return tfbnn.BayesianMLP([2, 3, 1], prior=prior, **settings)


@pytest.fixture(scope="module")
def first():
    model = tfbnn.BayesianMLP([2, 3, 1], y_transform="log10")
    model.fit_posterior(*rows(1), kernel=KERNEL, pretraining=None, **SHORT)
    return model


@pytest.fixture(scope="module", params=statistics_but([], ["second"]))
def second(first):
    model = build(priors.FromPosterior(first))
    run = model.fit_posterior(*rows(2), kernel=KERNEL, pretraining=SEARCH, **SHORT)
    return model, run


def test_the_second_fit_has_the_network_and_the_transforms_of_the_first(first, second):
    model, run = second
    assert model.spec.parameterization == first.spec.parameterization
    assert model.spec.priors == first.spec.priors and model.spec.y_transform == ("log10",)
    assert model.posterior.x_pipeline == first.posterior.x_pipeline
    assert run.pretraining.startswith("ADAM, 20 epochs, validation log likelihood")
    assert model.spec.earlier.num_rows == 30
    assert priors.FromPosterior(model)._prior.num_rows == 60


def test_a_transform_that_settings_chose_gives_way_to_that_of_the_first():
    """With fixed noise "auto" means "standardize" before there are rows."""
    fixed = dict(likelihood=tfbnn.likelihoods.Gaussian(NOISE))
    one = tfbnn.BayesianMLP([2, 3, 1], y_transform=None, **fixed)
    one.fit_posterior(*rows(1), kernel=KERNEL, pretraining=None, **SHORT)
    two, three = build(priors.FromPosterior(one)), tfbnn.BayesianMLP([2, 3, 1], **fixed)
    for model, given in ((two, {}), (three, {"initial_state": one})):
        model.fit_posterior(*rows(2), kernel=KERNEL, pretraining=None, **SHORT, **given)
        assert model.spec.y_transform == model.posterior.y_pipeline.names == ()


def test_it_knows_where_the_rows_of_both_batches_are_and_them_again(second):
    model, _ = second
    batches = [rows(seed) for seed in (1, 2)]
    both = np.concatenate([x for x, _ in batches])
    found = model.posterior.training_inputs
    expected = summarise_inputs(model.posterior.x_pipeline.forward(both))
    for name, value in vars(expected).items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, err_msg=name)
    seen = {tuple(np.round(x, 9)) for x in model.posterior.x_reference}
    assert seen == {tuple(np.round(x, 9)) for x in both}
    for batch in batches:
        with pytest.raises(ValueError, match="received 30 of which 30 are rows"):
            model.calibrate(*batch)


def test_rows_of_an_earlier_fit_count_alike_whatever_its_power():
    x, new = np.random.default_rng(0).normal(size=(2, 30, 2))
    expected = summarise_inputs(np.concatenate([x, new]))
    for power in (1.0, 0.01):
        weights, rows = (SimpleNamespace(values=each) for each in (np.full(30, power), x))
        earlier = SimpleNamespace(weights=weights, x=rows, num_rows=30)
        train, spec = SimpleNamespace(x=new), SimpleNamespace(earlier=earlier)
        config = SimpleNamespace(transformed=SimpleNamespace(train=train), spec=spec)
        for name, value in vars(expected).items():
            np.testing.assert_allclose(getattr(_training_inputs(config), name), value, rtol=1e-9)


def test_its_density_is_that_of_the_layers_and_of_both_batches(first, second):
    model, _ = second
    theta = model.posterior.draws[0, :4]
    terms = model.log_prob(theta, *rows(2))
    alone = first.log_prob(theta, *rows(2))
    from tfbnn.engine.basis.libraries import tf
    from tfbnn.engine.density.potential import Potential

    added = Potential(model.spec).earlier_log_prob(tf.constant(theta)).numpy()
    np.testing.assert_allclose(terms - alone, added, rtol=1e-4, atol=1e-3)


def test_it_is_saved_and_loaded_with_its_prior(first, second, tmp_path):
    model, _ = second
    model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    assert loaded.spec == model.spec
    x, y = rows(3, 5)
    assert np.array_equal(loaded.predict(x).mean, model.predict(x).mean)
    with pytest.raises(ValueError, match="needs the training rows"):
        priors.FromPosterior(loaded)
    assert priors.FromPosterior(loaded, *rows(2))._prior == priors.FromPosterior(model)._prior
    # Fitted again, it keeps transforms and prior. Without a search chains start from the last draws.
    run = loaded.fit_posterior(x, y, kernel=KERNEL, pretraining=None, **SHORT)
    assert run.pretraining == "networks of the earlier posterior"
    assert np.array_equal(loaded.spec.earlier.networks.values, first.posterior.draws[:, -1])
    assert loaded.spec.earlier == model.spec.earlier
    assert loaded.posterior.x_pipeline == model.posterior.x_pipeline


@pytest.mark.filterwarnings("ignore:The run was stopped")
def test_a_run_folder_goes_on_to_the_bit(first, second, tmp_path):
    def stop(event):
        return event["phase"] == "sampling"

    options = SHORT | {"kernel": KERNEL, "pretraining": SEARCH, "callbacks": [stop]}
    options["output"] = tmp_path / "run"
    build(priors.FromPosterior(first)).fit_posterior(*rows(2), **options)
    model, _ = tfbnn.resume(tmp_path / "run", verbose=0)
    assert np.array_equal(model.posterior.draws, second[0].posterior.draws)


def test_it_shows_what_it_stands_on(second):
    lines = []
    second[0].summary(lines.append)
    assert "what 30 earlier rows say, by 30 of them" in lines[0]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"activation": "relu"}, "prior must be a model whose activations is"),
        ({"parameterization": "standard"}, "prior must be a model whose parameterization is"),
        ({"likelihood": likelihoods.StudentT(4.0)}, "prior must be a model whose likelihood is"),
        ({"y_transform": None}, "prior must be a model whose y_transform is"),
    ],
)
def test_another_network_is_refused(first, change, message):
    with pytest.raises(ValueError, match=message):
        build(priors.FromPosterior(first), **change)


def test_what_is_no_fitted_model_is_refused(first):
    with pytest.raises(TypeError, match="FromPosterior needs a fitted model, received 3"):
        priors.FromPosterior(3)
    with pytest.raises(tfbnn.exceptions.NotFittedError):
        priors.FromPosterior(tfbnn.BayesianMLP([2, 3, 1]))
    with pytest.raises(ValueError, match="FromPosterior needs the 30 rows of the fit, received 29"):
        priors.FromPosterior(first, *rows(1, 29))
    with pytest.raises(ValueError, match="x and y together, received y=None"):
        priors.FromPosterior(first, rows(1)[0])


def test_networks_without_curvature_or_with_too_much_of_it_are_refused():
    recurrent = keras_models.KINDS["recurrent"].model().spec
    with pytest.raises(
        ValueError, match="FromPosterior needs the derivatives of every row's outputs"
    ):
        handing_on._require_curvature(recurrent)
    wide = tfbnn.BayesianMLP([10, 500, 1]).spec
    with pytest.raises(ValueError, match="at most 4000 parameters, this model has 6"):
        handing_on._require_curvature(wide)


def test_what_needs_priors_of_layers_says_so(first, second):
    model, _ = second
    with pytest.raises(ValueError, match="sample_prior needs priors of layers"):
        model.sample_prior(rows(1)[0])
    with pytest.raises(ValueError, match="get_config cannot describe this model"):
        model.get_config()
    collapsed = tfbnn.kernels.Repriorised(collapse_readout=True)
    with pytest.raises(ValueError, match="collapse_readout=True needs .* earlier rows"):
        model.fit_posterior(*rows(2), kernel=collapsed, **SHORT)


def test_starts_of_another_model_need_its_transforms(first, second):
    other = tfbnn.BayesianMLP([2, 3, 1], y_transform="log10")
    other.fit_posterior(*rows(5), kernel=KERNEL, pretraining=None, **SHORT)
    model = build(priors.FromPosterior(first))
    with pytest.raises(ValueError, match="same transforms as the model given to FromPosterior"):
        model.fit_posterior(*rows(2), initial_state=other, kernel=KERNEL, **SHORT)
    run = model.fit_posterior(*rows(2), initial_state=second[0], kernel=KERNEL, **SHORT)
    assert run.pretraining == "the last draws of another model"


@pytest.mark.statistics
def test_three_batches_of_a_conjugate_model_are_as_all_rows(monkeypatch):
    """With 4000 draws and more of each fit, errors of means are below 0.08 standard deviations."""
    # One program for all chains, which takes an eighth of the time.
    monkeypatch.setattr(program, "chain_groups", lambda count, **_: [list(range(count))])
    generator, num_rows, prior = np.random.default_rng(0), 40, priors.Normal(1.0)
    x = generator.normal(size=(3 * num_rows, 3))
    y = x @ [1, -2, 0.5] + 0.3 + NOISE * generator.normal(size=len(x))
    four_steps = tfbnn.kernels.HMC(num_leapfrog_steps=4)
    for start in range(0, len(x), num_rows):
        known = dict(
            prior=prior, likelihood=likelihoods.Gaussian(NOISE), parameterization="standard"
        )
        model = linear_model(layers=(3, 1), **known)
        batch = slice(start, start + num_rows)
        model.fit_posterior(
            x[batch], y[batch], kernel=four_steps, num_chains=8, num_results=500, num_burnin_steps=300,
            until=None, calibrate=False, verbose=0, seed=1, pretraining=None, jit_compile=False,
        )  # fmt: skip
        prior = priors.FromPosterior(model)
    design = np.c_[x, np.ones(len(x))]
    precision = design.T @ design / NOISE**2 + np.eye(4)
    mean, spread = (
        np.linalg.solve(precision, design.T @ y / NOISE**2),
        np.sqrt(np.diag(np.linalg.inv(precision))),
    )
    draws = model.posterior.draws.reshape(-1, 4)
    assert np.abs((draws.mean(axis=0) - mean) / spread).max() < 0.08
    assert np.abs(draws.std(axis=0) / spread - 1).max() < 0.08
