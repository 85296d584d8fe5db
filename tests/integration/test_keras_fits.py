"""Fits of Keras models: reproducible to the bit, resumable, saved and loaded, with any kernel."""

from functools import cache

import keras
import numpy as np
import pytest
from keras import layers

import tfbnn
from tests.support.builders import make_ensemble, random_statistics
from tests.support.keras_models import KINDS, RUN
from tests.support.small_runs import assert_same_draws
from tfbnn.fit.keras_model import BayesianModel
from tfbnn.fit.model import BayesianMLP
from tfbnn.kernels import HMC, Repriorised
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal

pytestmark = pytest.mark.filterwarnings("ignore::tfbnn.exceptions.VerdictWarning")


FITTED = ["subclassed", "recurrent"]


def fitted(name, **options):
    kind = KINDS[name]
    model = kind.model()
    return model, model.fit_posterior(*kind.rows(), **(RUN | options))


@cache
def short(name):
    """(model, run) of a fit that tests only read."""
    return fitted(name)


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.statistics) for name in FITTED),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("dense", "batch norm", "residual convolutional", "attention")
        ),
    ],
)
def test_a_fit_goes_on_with_the_same_bits_and_is_kept(name, tmp_path):
    whole, run = short(name)
    assert np.isfinite(whole.posterior.draws).all() and np.ptp(whole.posterior.draws, axis=1).any()
    folder = str(tmp_path / "run")
    # As many transitions as need the program of the whole run.
    fitted(name, output=folder, num_results=6)
    assert tfbnn.load(folder).posterior.num_results == 6
    model, _ = tfbnn.resume(folder, num_results=10, verbose=0)
    assert_same_draws(model, whole)
    # Files.
    x, y = KINDS[name].rows()
    path = tmp_path / "model.h5"
    whole.save(path)
    loaded = tfbnn.load(path)
    assert type(loaded) is (BayesianMLP if name == "dense" else BayesianModel)
    assert loaded.spec == whole.spec
    expected = whole.predict(x)
    np.testing.assert_array_equal(loaded.predict(x).mean, expected.mean)
    flat = x.reshape(len(x), -1)
    np.testing.assert_array_equal(loaded.predict(flat).stddev, expected.stddev)
    assert loaded.evaluate(x, y)["num_rows"] == len(x)
    assert len(whole.predict_draws(x)) == 20
    assert name != "subclassed" or "Residual" in run.report()
    if name != "dense":
        assert any("keep their values" in note or "are sampled" in note for note in run.notes)


@pytest.fixture(scope="module")
def small():
    """A model of random networks, which tests may weigh and calibrate."""
    kind, generator = KINDS["subclassed"], np.random.default_rng(0)
    spec, (x, y) = kind.model(y_transform="standardize").spec, kind.rows()
    draws = generator.normal(size=(2, 10, spec.num_parameters)).astype(spec.dtype)
    fields = dict(statistics=random_statistics((2, 10), generator), vector_target=True)
    return BayesianModel.from_ensemble(make_ensemble(spec, draws, x, y[:, None], **fields))


class TestUse:
    def test_a_draw_is_a_keras_model_of_its_own(self, small):
        model, x = small, KINDS["subclassed"].rows()[0]
        ensemble = model.posterior
        network = model.to_keras(7)
        given = network(ensemble.x_pipeline.forward(x).astype("float32")).numpy()[:, 0]
        drawn = model.predict_draws(x, space="transformed")[7]
        np.testing.assert_allclose(given, drawn, rtol=1e-6, atol=1e-6)
        with pytest.raises(ValueError, match="draw must be below 20"):
            model.to_keras(20)

    def test_scores_and_records_are_those_of_any_model(self, small, tmp_path):
        model = small
        x, y = KINDS["subclassed"].rows()
        model.stack_chains(x, y)
        model.calibrate(*KINDS["subclassed"].rows(400))
        assert model.calibration.num_rows > 300
        with pytest.warns(UserWarning, match="calibration is no longer valid"):
            small_one = model.compress(10, "stride")
        assert len(small_one.predict(x).mean) == len(x)
        data = small_one.posterior.to_arviz(x)
        kernels = [name for name in data.posterior if name.endswith("kernel")]
        assert data.posterior[kernels[0]].shape == (1, 10, 3, 4) and len(kernels) == 3
        slope = model.predict_gradient(x[:2]).mean
        ahead, behind = (model.predict(x[:2] + step * np.eye(3)[0]).mean for step in (1e-2, -1e-2))
        np.testing.assert_allclose(slope[:, 0], (ahead - behind) / 2e-2, rtol=2e-2, atol=2e-3)
        assert len(model.sample_prior(x, num_results=3).f) == 3
        assert "Residual" in repr(model)

    def test_what_needs_layers_says_so(self, small, tmp_path):
        model = small
        x, y = KINDS["subclassed"].rows()
        for what, call in {
            "to_onnx": lambda: model.to_onnx(tmp_path / "m.onnx"),
            "to_savedmodel": lambda: model.to_savedmodel(tmp_path / "m"),
            "fit_laplace": lambda: model.fit_laplace(x, y),
        }.items():
            with pytest.raises(ValueError, match=f"{what} needs"):
                call()

    def test_a_model_of_a_class_that_nobody_brings_is_refused(self, small, tmp_path, monkeypatch):
        from tfbnn.engine.keras import keras_network
        from tfbnn.spec import own_classes

        path = tmp_path / "model.h5"
        small.save(path)
        monkeypatch.setattr(own_classes, "_known", {})
        keras_network.built.cache_clear()
        with pytest.raises(tfbnn.ModelFileError, match="Residual.*custom="):
            tfbnn.load(path)
        from tests.support.keras_models import Residual

        x = KINDS["subclassed"].rows()[0]
        loaded = tfbnn.load(path, custom=[Residual])
        np.testing.assert_array_equal(loaded.predict(x).mean, small.predict(x).mean)

    def test_a_file_of_a_stranger_gets_no_class_that_is_known(self, small, tmp_path, monkeypatch):
        from tfbnn.engine.keras import keras_network
        from tfbnn.storage.model import file
        from tfbnn.storage.model.contents import to_arrays

        path = tmp_path / "model.h5"
        small.save(path)
        assert tfbnn.load(path).posterior.num_draws == 20

        def build(*arguments):
            raise AssertionError("it is built")

        keras_network.built.cache_clear()
        monkeypatch.setattr(keras_network, "build", build)
        with pytest.raises(tfbnn.ModelFileError, match="Files hold no code: import or define"):
            tfbnn.load(path, untrusted=True)
        # Nor where the process that parses the file is in the hands of its author.
        arrays = to_arrays(small.posterior)
        monkeypatch.setattr(file, "read_foreign", lambda *_: arrays)
        with pytest.raises(tfbnn.ModelFileError, match="Residual, which untrusted=True"):
            tfbnn.load(path, untrusted=True)


@pytest.mark.statistics
def test_the_readout_is_collapsed():
    """Under Gaussian noise: regression on one-hot labels for classes."""
    kind = KINDS["residual convolutional"]
    x, labels = kind.rows()
    model = kind.model(likelihood=Gaussian("learned"), prior=Normal(1.0), parameterization="ntk")
    for collapse in (True, False):
        kernel = Repriorised(HMC(num_leapfrog_steps=2), collapse_readout=collapse)
        model.fit_posterior(x, np.eye(3)[labels], **(RUN | {"kernel": kernel}))
        assert np.isfinite(model.predict(x).mean).all()


@pytest.mark.statistics
def test_an_earlier_posterior_is_a_prior(small, tmp_path):
    kind = KINDS["subclassed"]
    earlier = tfbnn.BayesianModel.from_ensemble(small.posterior.with_chain_weights([0.5, 0.5]))
    prior = tfbnn.priors.FromPosterior(earlier, *kind.rows())
    model = tfbnn.BayesianModel(kind.make(), prior=prior)
    model.fit_posterior(*kind.rows(30), **(RUN | {"pretraining": None}))
    assert model.spec.earlier is not None
    model.save(tmp_path / "model.h5")
    assert tfbnn.load(tmp_path / "model.h5").spec == model.spec


@pytest.mark.statistics
def test_levenberg_marquardt_and_whitening_work_where_there_are_derivatives():
    pretraining = tfbnn.Pretraining(epochs=3, batch_size=None, newton_iterations=5)
    kernel = HMC(num_leapfrog_steps=2, preconditioner="gauss_newton")
    _, run = fitted("batch norm", pretraining=pretraining, kernel=kernel)
    assert "Levenberg-Marquardt" in run.pretraining and "gauss_newton" in run.geometry
    _, run = fitted("recurrent", pretraining=pretraining, kernel=kernel)
    assert "recurrent" in run.geometry and run.geometry.startswith("diagonal")


@pytest.mark.statistics
def test_a_known_posterior_is_found_with_xla():
    """A linear model that nobody recognises as one: half of the outputs of a frozen layer."""
    frozen = keras.Sequential(
        [keras.Input((2,)), layers.Dense(2, name="fixed"), layers.Dense(1, name="free")]
    )
    frozen.get_layer("fixed").set_weights([np.array([[1.0, 0.0], [0.0, 2.0]]), np.zeros(2)])
    frozen.get_layer("fixed").trainable = False
    settings = dict(prior=Normal(1.5), likelihood=Gaussian(0.5), x_transform=None)
    model = tfbnn.BayesianModel(frozen, y_transform=None, **settings)
    generator = np.random.default_rng(11)
    x = generator.normal(size=(30, 2))
    design = np.column_stack([x * [1.0, 2.0], np.ones(30)])
    y = design @ [0.7, -0.4, 0.3] + 0.5 * generator.normal(size=30)
    model.fit_posterior(
        x, y, kernel="nuts", num_chains=2, num_results=2000, num_burnin_steps=500, seed=3, verbose=0
    )
    covariance = np.linalg.inv(design.T @ design / 0.25 + np.eye(3) / 1.5**2)
    mean = covariance @ design.T @ y / 0.25
    draws = model.posterior.draws.reshape(-1, 3)
    # 4000 draws of NUTS are worth 1000 or more: four standard errors.
    error = np.sqrt(np.diag(covariance) / 1000)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4.0 * error)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.2 * np.abs(covariance).max())
