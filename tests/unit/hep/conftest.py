"""Two made-up processes, in a folder."""

import pytest

from tests.support.cross_sections import made_up_processes
from tfbnn.hep import CrossSectionPredictor, write_processes


@pytest.fixture(scope="module")
def processes():
    return made_up_processes()


@pytest.fixture
def folder(tmp_path, processes):
    write_processes(tmp_path / "gauginos", processes)
    return tmp_path / "gauginos"


@pytest.fixture
def predictor(folder):
    return CrossSectionPredictor(folder)
