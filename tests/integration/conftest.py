"""What tests of the benchmark scripts share."""

import importlib
import json

import pytest

from tests.support.benchmarks import FOLDER


@pytest.fixture
def run_quickly(monkeypatch, tmp_path):
    """Function (script, *options) -> (table, rows kept); results go to a temporary folder."""
    monkeypatch.syspath_prepend(FOLDER)

    def run(script, *options):
        importlib.import_module(script).main(["--quick", "--output", str(tmp_path), *options])
        kept = tmp_path / f"{script}.jsonl"
        lines = kept.read_text().splitlines() if kept.exists() else []
        return (tmp_path / f"{script}.md").read_text(), list(map(json.loads, lines))

    return run
