"""What tests of the benchmark scripts share."""

import importlib
import json
import subprocess
import sys

import pytest

from tests.support.benchmarks import FOLDER


@pytest.fixture
def run_quickly(monkeypatch, tmp_path):
    """Function (script, *options) -> (table, rows kept); results go to a temporary folder.

    A study with a folder runs in a process of its own: the files of all of them have the same names.
    """
    monkeypatch.syspath_prepend(FOLDER)

    def run(script, *options):
        options = ["--quick", "--output", str(tmp_path), *options]
        if (FOLDER / "studies" / script).is_dir():
            command = [sys.executable, "-m", "benchmarks", script, *options]
            subprocess.run(command, cwd=FOLDER.parent, check=True)
        else:
            importlib.import_module(script).main(options)
        kept = tmp_path / f"{script}.jsonl"
        lines = kept.read_text().splitlines() if kept.exists() else []
        return (tmp_path / f"{script}.md").read_text(), list(map(json.loads, lines))

    return run
