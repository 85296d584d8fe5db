"""A run of a made-up sampler, without TensorFlow, on a store that it can be killed on.

Each transition takes its random numbers from its absolute index, as those of real kernels do. After
every one to three blocks, by the chance of the moment, it commits: a resumed run has other segments.
"""

import os

import h5py
import numpy as np

from tests.support.builders import make_ensemble, plain_spec
from tests.support.run_folders import created_run
from tfbnn.exceptions import RunFolderError
from tfbnn.likelihoods import Gaussian
from tfbnn.storage import read_model, write_model
from tfbnn.storage.run.folder import RunFolder

SPEC = plain_spec([2, 4, 1], likelihood=Gaussian(noise_scale=0.1), dtype="float32")
NUM_CHAINS, BLOCK, NUM_DRAWS = 2, 5, 80
NUM_PARAMETERS = SPEC.layout.num_parameters
FILES = {"lease", "run.h5", "lane-000", "checkpoint-a.h5", "checkpoint-b.h5", "model.h5"}


def transition(state, index):
    """The next state [C, P] of an autoregressive process."""
    generator = np.random.Generator(np.random.Philox(key=7, counter=index))
    return 0.9 * state + generator.normal(size=state.shape)


def block(state, done, count):
    """(State, draws [count, C, P], log density [count, C]) after more transitions."""
    draws = np.empty((count, *state.shape), np.float32)
    for row in range(count):
        state = transition(state, done + row)
        draws[row] = state
    return state, draws, -0.5 * np.sum(draws.astype(float) ** 2, axis=2)


def uninterrupted(num_draws=NUM_DRAWS):
    """(draws, log density) of the whole run, without any file."""
    return block(np.zeros((NUM_CHAINS, NUM_PARAMETERS)), 0, num_draws)[1:]


def advance(store, report, num_draws=NUM_DRAWS):
    """Goes on with a run until it is finished.

    Args:
        store: One of the stores below, open.
        report: Function of the number of draws, called after each commit.
        num_draws: Length of the run.
    """
    state, done = store.start()
    while done < num_draws:
        for _ in range(1 + os.urandom(1)[0] % 3):
            count = min(BLOCK, num_draws - done)
            state, draws, log_density = block(state, done, count)
            store.append(draws, log_density)
            done += count
        store.commit(state, done)
        report(done)


class Segments:
    """The store of the library: a run folder, and the model file that is made of it at the end."""

    def __init__(self, path):
        self._path = path

    def run(self, report, num_draws=NUM_DRAWS):
        """Goes on with the run, which is made where there is none."""
        try:
            folder = RunFolder.open(self._path)
        except (FileNotFoundError, RunFolderError):
            folder = created_run(self._path, {"seed": 7}, {"x": np.zeros((3, 2))}, 1)
        with folder.writer(0) as self._writer:
            advance(self, report, num_draws)
        found = folder.read(0)
        model = os.path.join(self._path, "model.h5")
        write_model(ensemble(found.draws, found.statistics["lp"]), model)

    def start(self):
        checkpoint = self._writer.checkpoint
        if checkpoint is None:
            return np.zeros((NUM_CHAINS, NUM_PARAMETERS)), 0
        return checkpoint.arrays["state"], checkpoint.counters["done"]

    def append(self, draws, log_density):
        self._writer.append(draws, {"lp": log_density})

    def commit(self, state, done):
        self._writer.commit({"state": state}, {"done": done})

    def committed(self):
        """(draws, log density, number of draws that the state belongs to)."""
        if not os.path.exists(os.path.join(self._path, "run.h5")):
            return *(array[:0] for array in uninterrupted()), 0
        found = RunFolder.open(self._path).read(0)
        if found.counters is None:
            return *(array[:0] for array in uninterrupted()), 0
        return found.draws, found.statistics["lp"], found.counters["done"]

    def unfinished_files(self):
        """Names of files that belong to no finished write."""
        names = [name for _, folders, files in os.walk(self._path) for name in folders + files]
        return [name for name in names if name not in FILES and not name.startswith("segment-")]

    def final_model(self):
        """The draws of the model file [C, S, P], None where there is none."""
        path = os.path.join(self._path, "model.h5")
        return read_model(path).draws if os.path.exists(path) else None


class InPlace:
    """A run that the harness has to find fault with: one file, which grows draw by draw."""

    def __init__(self, path):
        os.makedirs(path, exist_ok=True)
        self._path = os.path.join(path, "chain.h5")
        self._waiting = []

    def run(self, report):
        advance(self, report)

    def start(self):
        with h5py.File(self._path, "a") as file:
            if "theta" not in file:
                shape = NUM_CHAINS, NUM_PARAMETERS
                file.create_dataset(
                    "theta", (0, *shape), "f4", maxshape=(None, *shape), chunks=(10, *shape)
                )
                file.create_dataset(
                    "lp", (0, NUM_CHAINS), "f8", maxshape=(None, NUM_CHAINS), chunks=(10, 2)
                )
                file["state"] = np.zeros(shape)
                file.attrs["done"] = 0
            return file["state"][()], int(file.attrs["done"])

    def append(self, draws, log_density):
        self._waiting.append((draws, log_density))

    def commit(self, state, done):
        with h5py.File(self._path, "a") as file:
            for draws, log_density in self._waiting:
                for row in zip(draws, log_density):
                    for name, new in zip(("theta", "lp"), row):
                        file[name].resize(len(file[name]) + 1, axis=0)
                        file[name][-1] = new
                    file.flush()
            file["state"][:] = state
            file.attrs["done"] = done
        self._waiting = []

    def committed(self):
        if not os.path.exists(self._path):
            return *(array[:0] for array in uninterrupted()), 0
        with h5py.File(self._path, "r") as file:
            return file["theta"][()], file["lp"][()], int(file.attrs["done"])

    def unfinished_files(self):
        return []

    def final_model(self):
        return None


def ensemble(draws, log_density):
    """The draws as a model that can be saved."""
    shape = NUM_CHAINS, len(draws)
    statistics = {
        "lp": log_density.T,
        "acceptance_rate": np.ones(shape, np.float32),
        "step_size": np.ones(shape, np.float32),
        "n_steps": np.ones(shape, np.int32),
        "diverging": np.zeros(shape, bool),
        "energy": np.zeros(shape),
    }
    x = np.linspace(-1.0, 1.0, 12).reshape(6, 2)
    return make_ensemble(SPEC, np.moveaxis(draws, 0, 1), x, x[:, :1], statistics)
