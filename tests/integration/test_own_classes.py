"""Priors and noise of a user's own: what is sampled, saved and predicted, and what is refused."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbnn
from tests.support import own_classes
from tests.support.builders import synthetic_ensemble
from tests.support.linear import linear_model
from tests.support.own_classes import AsymmetricLaplace, Logistic, StudentTPrior, Triangle
from tests.support.registries import FAMILIES
from tfbnn.cli import main
from tfbnn.diagnostics.statistics import geyer_ess
from tfbnn.engine.density.densities import noise_information
from tfbnn.engine.density.fisher import prior_curvature
from tfbnn.hep import Process
from tfbnn.spec import likelihoods, priors
from tfbnn.spec.own_densities import integrals

X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.sin(X[:, 0]) + 0.2 * np.random.default_rng(1).laplace(size=30)
CLASSES = [StudentTPrior, AsymmetricLaplace]
RUN = dict(
    kernel=tfbnn.kernels.HMC(num_leapfrog_steps=3, preconditioner="gauss_newton"),
    num_chains=2,
    num_results=20,
    num_burnin_steps=20,
    pretraining=None,
    jit_compile=False,
    verbose=0,
)


def own_model(**settings):
    settings = {"prior": StudentTPrior(3.0, 0.7), "likelihood": AsymmetricLaplace()} | settings
    return tfbnn.BayesianMLP([2, 3, 1], **({"y_transform": "standardize"} | settings))


def test_a_process_refuses_a_model_whose_folder_could_not_be_read(model):
    settings = dict(unit="fb", energy=13000, inputs={"m": "MASS 1", "n": "NMIX 1 1"})
    with pytest.raises(ValueError, match="StudentTPrior, because its folder holds no code"):
        Process((1, 2), model, **settings)
    other = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble())
    with pytest.raises(ValueError, match="StudentTPrior, because its folder holds no code"):
        Process((1, 2), other, errors={"pdf": model}, **settings)


def skewed(skew):
    """SciPy's noise of mean 0 and standard deviation 1."""
    mean, variance = stats.laplace_asymmetric.stats(skew)
    stddev = np.sqrt(variance)
    return stats.laplace_asymmetric(skew, loc=-mean / stddev, scale=1.0 / stddev)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def model(folder):
    """A fitted model, saved in `folder` as model.h5, with its run beside it."""
    model = own_model()
    model.fit_posterior(X, Y, output=folder / "run", **RUN)
    model.save(folder / "model.h5")
    return model


def test_the_density_is_that_of_scipy():
    noise = AsymmetricLaplace(1.5, noise_scale=0.4)
    model = own_model(likelihood=noise, x_transform=None, y_transform=None, dtype="float64")
    theta = np.random.default_rng(2).normal(size=model.spec.num_parameters)
    terms = model.log_prob(theta, X, Y, return_terms=True)
    assert terms["log_prior"] == pytest.approx(stats.t.logpdf(theta, 3.0, scale=0.7).sum())
    residual = Y - np.tanh(X @ theta[:6].reshape(2, 3) + theta[6:9]) @ theta[9:12] - theta[12]
    density = skewed(1.5).logpdf(residual / 0.4) - np.log(0.4)
    assert terms["log_likelihood"] == pytest.approx(density.sum())
    np.testing.assert_allclose(noise.log_noise_density(residual, 0.4), density)
    levels = np.array([0.01, 0.3, 0.9])
    np.testing.assert_allclose(noise.noise_quantile(levels), skewed(1.5).ppf(levels), rtol=1e-7)
    of_rows = model.log_prob(theta, X, Y, noise_scale=np.full(30, 0.2), return_terms=True)
    density = skewed(1.5).logpdf(residual / 0.2) - np.log(0.2)
    assert of_rows["log_likelihood"] == pytest.approx(density.sum())


def test_ntk_takes_the_scale_out_of_the_weights():
    settings = dict(dtype="float64", likelihood=Logistic(), x_transform=None, y_transform=None)
    standard = own_model(**settings)
    ntk = own_model(**settings, parameterization="ntk")
    theta = np.random.default_rng(3).normal(size=standard.spec.num_parameters)
    terms = ntk.log_prob(theta, X, Y, return_terms=True)
    weights = np.concatenate([0.7 * theta[:13], theta[13:]])
    found = standard.log_prob(weights, X, Y, return_terms=True)["log_prior"]
    assert terms["log_prior"] == pytest.approx(found + 13 * np.log(0.7))
    with pytest.raises(ValueError, match="Triangle.*no scale that the ntk parameterisation"):
        own_model(prior=Triangle(), parameterization="ntk")


def test_moments_and_information_are_those_of_the_law():
    assert Logistic().moments == pytest.approx((0.0, np.pi / np.sqrt(3.0)), abs=1e-9)
    mean, variance = stats.laplace_asymmetric.stats(1.5)
    assert AsymmetricLaplace(1.5).moments == pytest.approx((mean, np.sqrt(variance)))
    assert noise_information(Logistic()) == pytest.approx((np.pi**2 / 9.0, (3.0 + np.pi**2) / 9.0))
    location, log_scale = noise_information(AsymmetricLaplace(1.5))
    # The score is constant on either side, of which one has the share 1.5^2 / (1 + 1.5^2).
    assert location == pytest.approx(variance)
    values = skewed(1.5).rvs(200_000, random_state=np.random.default_rng(4))
    z = values * np.sqrt(variance) + mean
    score = np.where(z > 0, -1.5, 1.0 / 1.5)
    assert log_scale == pytest.approx(np.mean(((z - mean) * score + 1.0) ** 2), rel=0.02)


def test_coordinates_are_whitened_by_the_width_of_the_bulk():
    spec = own_model(prior={"kernel": StudentTPrior(3.0, 0.7), "bias": Triangle(2.0)}).spec
    of_kernel = 0.7 * stats.t(3.0).ppf(0.841345)
    of_bias = stats.triang(0.5, -2.0, 4.0).ppf(0.841345)
    found = prior_curvature(spec, np.zeros(spec.num_parameters)).numpy()[[0, 6]]
    np.testing.assert_allclose(found, [of_kernel**-2.0, of_bias**-2.0], rtol=0.03)


@pytest.mark.parametrize(
    ("law", "edges"),
    [(stats.uniform(-1.0, 3.0), [-0.5, 1.0]), (stats.t(2.5), [0.0]), (stats.laplace(7.0), [])],
    ids=["jumps", "tails", "kink"],
)
def test_integrals_are_exact(law, edges):
    low, median, high = law.ppf([0.25, 0.5, 0.75])
    found = integrals(lambda z: law.pdf(z)[None], median, 0.5 * (high - low), edges)[:, 0]
    expected = np.diff([0.0, *law.cdf(edges), 1.0])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_it_is_fitted_saved_and_loaded(model, folder):
    loaded = tfbnn.load(folder / "model.h5", custom=[*CLASSES, Logistic])  # one more does no harm
    assert loaded.spec == model.spec
    for name, values in model.evaluate(X, Y).items():
        np.testing.assert_array_equal(loaded.evaluate(X, Y)[name], values)
    expected = model.predict(X, include_noise=True, quantiles=[0.1, 0.9])
    again = loaded.predict(X, include_noise=True, quantiles=[0.1, 0.9])
    np.testing.assert_array_equal(again.quantiles, expected.quantiles)
    assert np.all(model.posterior.draws.std(axis=1) > 0)
    draws = model.sample_prior(X, num_results=5)
    assert np.isfinite(draws.y).all()


def test_a_run_does_not_go_on_with_another_density(model, folder):
    def narrower(self, weights):
        return StudentTPrior.log_prob(self, 1.1 * weights)

    edited = dataclass(frozen=True)(_class_like(StudentTPrior, log_prob=narrower))
    copy = shutil.copytree(folder / "run", folder / "copy")
    words = "log_prob is not the one.*Pass the same .*:StudentTPrior and .*:AsymmetricLaplace"
    with pytest.raises(tfbnn.RunFolderError, match=words):
        tfbnn.resume(copy, custom=[edited, AsymmetricLaplace], num_results=40, verbose=0)


@pytest.mark.statistics
def test_a_run_is_loaded_and_goes_on(model, folder):
    with pytest.raises(tfbnn.RunFolderError, match=r"custom=\[StudentTPrior\]"):
        tfbnn.load(folder / "run")
    with pytest.raises(tfbnn.RunFolderError, match="custom class StudentTPrior"):
        tfbnn.resume(folder / "run", verbose=0)
    there = tfbnn.load(folder / "run", custom=CLASSES)
    np.testing.assert_array_equal(there.posterior.draws, model.posterior.draws)
    longer, _ = tfbnn.resume(folder / "run", custom=CLASSES, num_results=30, verbose=0)
    np.testing.assert_array_equal(longer.posterior.draws[:, :20], model.posterior.draws)
    assert longer.posterior.num_results == 30
    again = own_model()
    again.fit_posterior(X, Y, output=folder / "run", resume=True, **(RUN | {"num_results": 30}))
    np.testing.assert_array_equal(again.posterior.draws, longer.posterior.draws)


@pytest.mark.parametrize("untrusted", [False, True])
def test_a_file_without_the_class_is_refused_by_name(model, folder, untrusted):
    words = r"model.h5'.*StudentTPrior.*custom=\[StudentTPrior\].*tfbnn.load"
    with pytest.raises(tfbnn.ModelFileError, match=words):
        tfbnn.load(folder / "model.h5", untrusted=untrusted)
    with pytest.raises(tfbnn.ModelFileError, match=r"custom class Asymmetric.*custom=\[Asym"):
        tfbnn.load(folder / "model.h5", custom=[StudentTPrior])


@pytest.mark.parametrize(("command", "name"), [("info", "model.h5"), ("resume", "run")])
def test_the_command_says_that_it_takes_python(model, folder, capsys, command, name):
    assert main([command, str(folder / name)]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) <= 3 and "In Python" in said and "StudentTPrior" in said


@pytest.mark.parametrize(
    ("custom", "options", "error", "words"),
    [
        (CLASSES, {"untrusted": True}, ValueError, "custom must be left out with untrusted=True"),
        (StudentTPrior, {}, TypeError, "custom must be a list of classes"),
        ([StudentTPrior()], {}, TypeError, "CustomPrior or tfbnn.likelihoods.CustomNoise"),
        ([priors.Normal], {}, TypeError, "inherit from tfbnn.priors.CustomPrior"),
        ([own_classes.NoDataclass], {}, TypeError, "NoDataclass must be a frozen dataclass"),
        ([own_classes.Uniform], {}, ValueError, "Uniform is the name of a class of tfbnn"),
    ],
)
def test_what_is_no_class_of_ones_own_is_refused(folder, model, custom, options, error, words):
    with pytest.raises(error, match=words):
        tfbnn.load(folder / "model.h5", custom=custom, **options)


@pytest.mark.statistics
def test_exports_do_not_need_the_classes(model, folder):
    onnxruntime = pytest.importorskip("onnxruntime")
    model.to_onnx(folder / "model.onnx")
    model.to_savedmodel(folder / "saved")
    expected = np.stack([*model.predict(X).columns])
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    found = session.run(["mean", "stddev"], {"x": X})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    saved = tf.saved_model.load(str(folder / "saved"))(tf.constant(X))
    np.testing.assert_allclose([saved["mean"], saved["stddev"]], expected, rtol=1e-4, atol=1e-6)


def test_a_copy_of_the_model_takes_the_classes(model):
    config = own_model().get_config()
    assert tfbnn.BayesianMLP.from_config(config, custom=CLASSES).get_config() == config
    with pytest.raises(ValueError, match="StudentTPrior"):
        tfbnn.BayesianMLP.from_config(config)


def test_classes_of_ones_own_are_in_no_table():
    names = {cls.__name__ for registry in FAMILIES.values() for cls in registry.values()}
    names |= set(priors.REGISTRY) | set(likelihoods.REGISTRY) | set(likelihoods.OPTIONS)
    assert not names & {"CustomPrior", "CustomNoise", *(cls.__name__ for cls in CLASSES)}
    assert priors.REGISTRY["Uniform"] is priors.Uniform


def test_the_readout_has_no_closed_form():
    kernel = tfbnn.kernels.Repriorised(tfbnn.kernels.HMC(), collapse_readout=True)
    for settings in ({"prior": StudentTPrior()}, {"likelihood": Logistic()}):
        model = tfbnn.BayesianMLP([2, 3, 1], **({"prior": priors.Normal(1.0)} | settings))
        with pytest.raises(ValueError, match="collapse_readout"):
            model.fit_posterior(X, Y, **(RUN | {"kernel": kernel}))


@pytest.mark.parametrize("name", ["fit_map", "fit_posterior"])
def test_a_density_that_cannot_be_sampled_is_refused_before_anything_is_compiled(name):
    for prior, error, words in (
        (own_classes.Summed(), ValueError, r"Summed.log_prob must return.*received shape \[3\]"),
        (own_classes.GradientNotFinite(), ValueError, "GradientNotFinite.*finite"),
    ):
        with pytest.raises(error, match=words):
            getattr(own_model(prior=prior), name)(X, Y)
    noise = own_classes.NoStandardDeviation()
    with pytest.raises(ValueError, match="NoStandardDeviation must have a standard deviation"):
        getattr(own_model(likelihood=noise), name)(X, Y)


def test_tasks_on_a_cluster_get_no_code():
    with pytest.raises(ValueError, match="StudentTPrior, AsymmetricLaplace of your own. Use fit_"):
        tfbnn.cluster.fit(own_model(), X, Y, client=None, output="run")


def _class_like(cls, **attributes):
    """Another class of the same name."""
    return type(cls)(cls.__name__, (cls,), attributes)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prior": StudentTPrior([3.0])}, "finite numbers, texts"),
        ({"prior": StudentTPrior(float("nan"))}, "finite numbers, texts"),
        ({"prior": StudentTPrior(3.0, -1.0)}, "scale of StudentTPrior"),
        ({"prior": own_classes.Uniform()}, "Uniform is the name of a class of tfbnn"),
        ({"prior": own_classes.NoDataclass()}, "must be a frozen dataclass"),
    ],
)
def test_settings_that_no_file_could_hold_are_refused(settings, words):
    with pytest.raises((TypeError, ValueError), match=words):
        own_model(**settings)


@pytest.mark.statistics
def test_draws_are_of_the_posterior_that_quadrature_gives():
    """A line through twelve rows: means and mean squares within 4.3 standard errors, four at 2e-5 each."""
    generator = np.random.default_rng(0)
    x, noise_scale = generator.normal(size=(12, 1)), 0.8
    y = 1.2 * x[:, 0] + 0.3 + generator.logistic(size=12)
    known = dict(prior=StudentTPrior(3.0, 0.7), likelihood=Logistic(noise_scale=noise_scale))
    model = linear_model("float64", (1, 1), **known)
    long = dict(num_results=4000, num_burnin_steps=1000, pretraining=None, verbose=0)
    model.fit_posterior(x, y, kernel="nuts", calibrate=False, **long)
    grid = np.linspace(-4.0, 5.0, 600)
    slope, offset = np.meshgrid(grid, grid, indexing="ij")
    log_density = stats.t.logpdf([slope, offset], 3.0, scale=0.7).sum(axis=0)
    width = noise_scale * np.sqrt(3.0) / np.pi
    for at, target in zip(x[:, 0], y):
        log_density += stats.logistic.logpdf(target - slope * at - offset, scale=width)
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    draws = np.moveaxis(model.posterior.draws, -1, 0)
    for found, values in zip(draws, (slope, offset)):
        for power in (1, 2):
            expected = np.sum(mass * values**power)
            error = np.std(found**power) / np.sqrt(len(found) * geyer_ess(found**power))
            assert abs(np.mean(found**power) - expected) < 4.3 * error
