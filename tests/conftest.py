"""Shared models and data; skips the tests whose markers ask for what is not there."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.support.builders import make_rows
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import fit_pipeline
from tfbnn.likelihoods import Gaussian
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.priors import Normal
from tfbnn.spec.model_spec import make_spec

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Processes that tests start find the package and tests.support wherever they work.
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])


def pytest_runtest_setup(item):
    if item.get_closest_marker("slow") and "slow" not in item.config.option.markexpr:
        pytest.skip("slow: select it with -m slow")
    if item.get_closest_marker("realdata") and not os.environ.get("TFBNN_DATA"):
        pytest.skip("needs the folder of data that TFBNN_DATA names")
    if item.get_closest_marker("gpu") and not _tensorflow_sees_a_gpu():
        pytest.skip("needs a GPU that TensorFlow sees")


def _tensorflow_sees_a_gpu():
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


@pytest.fixture(scope="session")
def tiny_data():
    """120 rows (x [N, 2], y [N, 1])."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(120, 2))
    y = np.sin(x[:, :1]) + 0.3 * x[:, 1:] + 0.1 * generator.normal(size=(120, 1))
    return x, y


@pytest.fixture(scope="session")
def tiny_model(tiny_data):
    """A model [2, 8, 1] that was really sampled, too briefly to have converged."""
    import tfbnn

    model = tfbnn.BayesianMLP([2, 8, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfbnn.ConvergenceWarning)
        model.fit_posterior(
            *tiny_data,
            kernel=tfbnn.kernels.HMC(num_leapfrog_steps=8),
            num_chains=2,
            num_results=40,
            num_burnin_steps=40,
            pretraining=tfbnn.Pretraining(epochs=50, batch_size=None),
            verbose=0,
        )
    return model


@pytest.fixture(scope="session")
def synthetic_ensemble():
    """A function that builds an Ensemble of random networks, for any model, without TensorFlow."""
    return _synthetic_ensemble


def _synthetic_ensemble(
    layer_sizes=(2, 5, 1),
    *,
    activation="tanh",
    prior=Normal(0.8),
    likelihood=Gaussian("learned"),
    parameterization="standard",
    x_transform="standardize",
    y_transform="auto",
    dtype="float64",
    num_chains=2,
    num_results=15,
    chain_weights=None,
    feature_names=None,
    row_noise=False,
    classes=None,
    provenance=None,
    seed=0,
):
    spec = make_spec(
        list(layer_sizes),
        activation=activation,
        prior=prior,
        likelihood=likelihood,
        parameterization=parameterization,
        x_transform=x_transform,
        y_transform=y_transform,
        dtype=dtype,
    )
    x, y = make_rows(50, spec.num_inputs, spec.num_targets, seed)
    generator = np.random.default_rng([seed, 1])
    shape = (num_chains, num_results)
    layout = spec.layout
    draws = generator.normal(size=(*shape, layout.num_parameters))
    draws[..., layout.num_weights :] *= 0.3
    # Learned noise around 0.3 standard deviations of the targets.
    draws[..., layout.log_noise_scale] -= 1.2
    stats = {
        "lp": generator.normal(-100.0, 2.0, size=shape),
        "acceptance_rate": generator.uniform(0.6, 1.0, size=shape).astype(np.float32),
        "step_size": np.full(shape, 0.1, np.float32),
        "n_steps": np.full(shape, 8, np.int32),
        "diverging": generator.uniform(size=shape) < 0.1,
        "energy": generator.normal(size=shape),
    }
    if classes is None and spec.has_classes:
        classes = tuple(range(spec.num_classes))
    weights = np.full(num_chains, 1.0 / num_chains) if chain_weights is None else chain_weights
    x_pipeline = fit_pipeline(spec.x_transform, x, "x")
    return Ensemble(
        spec=spec,
        x_pipeline=x_pipeline,
        y_pipeline=fit_pipeline(spec.y_transform, y, "y"),
        draws=draws.astype(dtype),
        sample_stats=stats,
        chain_weights=np.array(weights, dtype=np.float64),
        x_reference=x[:10].copy(),
        training_inputs=summarise_inputs(x_pipeline.forward(x)),
        feature_names=feature_names,
        row_noise=row_noise,
        classes=classes,
        provenance=dict(provenance or {}),
    )


@pytest.fixture
def lanes(monkeypatch):
    """A list that gets the lanes of every run."""
    from tfbnn.engine.running import driver

    found = []

    class Spy(driver.Lane):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            found.append(self)

    monkeypatch.setattr(driver, "Lane", Spy)
    return found


@pytest.fixture
def run(capsys, monkeypatch, folder):
    """Runs a command in the module's fixture `folder`: (exit code, standard output, error lines).

    Model files are read in this process: children take 0.2 s each, and have tests of their own.
    """
    from tfbnn.cli import main
    from tfbnn.storage.format import allow_list
    from tfbnn.storage.model import contents

    def read_here(file, max_bytes):
        with allow_list.opened_datasets(file, max_bytes) as datasets:
            return contents.to_arrays(contents.from_arrays(datasets))

    monkeypatch.setattr("tfbnn.storage.model.file.read_foreign", read_here)

    def run(command, *more):
        monkeypatch.chdir(folder)
        code = main([*command.split(), *map(str, more)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
