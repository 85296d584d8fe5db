"""What tests of the benchmark scripts share."""

import importlib
import json

import pytest

from tests.support.benchmarks import FOLDER


@pytest.fixture
def run_quickly(tmp_path):
    """Function (study, *options) -> (table, rows kept); results go to a temporary folder."""

    def run(name, *options):
        study_of(name).main(["--quick", "--output", str(tmp_path), *options])
        kept = tmp_path / f"{name}.jsonl"
        lines = kept.read_text().splitlines() if kept.exists() else []
        return (tmp_path / f"{name}.md").read_text(), list(map(json.loads, lines))

    return run


def study_of(name):
    """The module of a study."""
    place = "archive" if (FOLDER / "archive" / name).is_dir() else "studies"
    return importlib.import_module(f"benchmarks.{place}.{name}.run")
