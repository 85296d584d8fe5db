"""Two made-up processes, in a folder."""

import shutil

import pytest

from tests.support.cross_sections import made_up_processes
from tfbnn.hep import CrossSectionPredictor, write_processes


@pytest.fixture(scope="module")
def processes():
    return made_up_processes()


@pytest.fixture(scope="module")
def written(tmp_path_factory, processes):
    """The original of `folder`, which no test may change."""
    folder = tmp_path_factory.mktemp("written") / "gauginos"
    write_processes(folder, processes)
    return folder


@pytest.fixture
def folder(tmp_path, written):
    return shutil.copytree(written, tmp_path / "gauginos")


@pytest.fixture
def predictor(written):
    return CrossSectionPredictor(written)
