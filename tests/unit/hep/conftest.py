"""Two made-up processes, in a folder."""

import pytest

from tests.support.cross_sections import CHARGINO, MASS, MIXING, NEUTRALINOS
from tfbnn import BayesianMLP
from tfbnn.hep import CrossSectionPredictor, Process, write_processes

LOG = ["log10", "standardize"]


@pytest.fixture(scope="module")
def processes(synthetic_ensemble):
    def model(**settings):
        return BayesianMLP.from_ensemble(synthetic_ensemble(y_transform=LOG, **settings))

    return [
        Process(
            pids=NEUTRALINOS[::-1],
            model=model(feature_names=("m", "n11"), vector_target=True),
            unit="fb",
            energy=13000,
            inputs={"n11": MIXING, "m": MASS},
            description="made up",
        ),
        Process(
            pids=CHARGINO,
            model=model(seed=1, row_noise=True),
            unit="pb",
            energy=8000,
            inputs={"m": MASS, "m_c": ("mass", 1000024)},
            include_noise=False,
        ),
    ]


@pytest.fixture
def folder(tmp_path, processes):
    write_processes(tmp_path / "gauginos", processes)
    return tmp_path / "gauginos"


@pytest.fixture
def predictor(folder):
    return CrossSectionPredictor(folder)
