"""Tables and models for commands."""

import shutil

import pytest


@pytest.fixture(scope="module")
def folder(tables_and_models, tmp_path_factory):
    """Tables and models of each module's own."""
    folder = tmp_path_factory.mktemp("commands")
    return shutil.copytree(tables_and_models, folder, dirs_exist_ok=True)
