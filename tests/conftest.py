"""Fixtures that many rooms use; the tiers are in `support/tiers.py`."""

import os
import signal
import warnings
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    # Read when NumPy is imported. A second thread of BLAS waits for its share of small products
    # without rest, which takes the core from the other worker.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from tests.support import builders  # noqa: E402
from tests.support.shapes import hold_densities  # noqa: E402

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Processes that tests start find the package and tests.support wherever they work.
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
if "PYTEST_XDIST_WORKER" in os.environ:
    # Threads of TensorFlow that wait for tiny operations take from the other worker: with one, a short
    # fit without XLA makes the same draws in 60 % of the processor time (1.0 for 1.7 s).
    os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1")
pytest_plugins = ["tests.support.tiers"]
# Shells let what they run in the background ignore it, and the code under test respects that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart():
    hold_densities()


@pytest.fixture(scope="session")
def tiny_data():
    """120 rows (x [N, 2], y [N, 1])."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(120, 2))
    y = np.sin(x[:, :1]) + 0.3 * x[:, 1:] + 0.1 * generator.normal(size=(120, 1))
    return x, y


@pytest.fixture(scope="session")
def tiny_fit():
    """Settings of the fit of `tiny_model`, for whoever shares its programs."""
    import tfbnn

    return dict(
        kernel=tfbnn.kernels.HMC(num_leapfrog_steps=8),
        num_chains=2,
        num_results=40,
        num_burnin_steps=40,
        pretraining=tfbnn.Pretraining(epochs=50, batch_size=None, newton_iterations=10),
        jit_compile=False,
    )


@pytest.fixture(scope="session")
def tiny_model(tiny_data, tiny_fit):
    """A model [2, 8, 1] that was really sampled, too briefly to have converged."""
    import tfbnn

    model = tfbnn.BayesianMLP([2, 8, 1], prior=tfbnn.priors.Normal(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfbnn.ConvergenceWarning)
        model.fit_posterior(*tiny_data, **tiny_fit, verbose=0)
    return model


@pytest.fixture(scope="session")
def synthetic_ensemble():
    """The function that builds an Ensemble of random networks, for any model."""
    return builders.synthetic_ensemble


@pytest.fixture
def groups(monkeypatch):
    """A list that gets the chain groups of every run."""
    from tfbnn.engine.running import driver

    found = []

    class Spy(driver.ChainGroup):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            found.append(self)

    monkeypatch.setattr(driver, "ChainGroup", Spy)
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
        with allow_list.opened_datasets(file, max_bytes) as (version, datasets):
            return contents.to_arrays(contents.from_arrays(datasets, version))

    monkeypatch.setattr("tfbnn.storage.model.file.read_foreign", read_here)

    def run(command, *more):
        monkeypatch.chdir(folder)
        code = main([*command.split(), *map(str, more)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
