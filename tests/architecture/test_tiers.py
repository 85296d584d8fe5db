"""The tiers: fast tests start no TensorFlow, and CI runs all tiers but the slow one."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.processes
def test_fast_tests_need_no_tensorflow():
    """Once more, in processes that refuse to import it; `nox -s fast` has all cases of each test."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "fast", "-p", "no:cacheprovider"]
    command += ["--few-cases", "-n", "2", "--dist", "loadfile"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 1000


def test_ci_runs_what_the_default_run_leaves_out():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    (left_out,) = (option for option in options["addopts"] if option.startswith("-m="))
    tiers = set(re.findall(r"\w+", left_out.removeprefix("-m=not"))) - {"or"}
    assert tiers == {"processes", "cluster", "statistics", "benchmarks", "browser", "slow"}
    commands = re.findall(r"pytest .*-m '(.+)'", (ROOT / ".ci" / "run").read_text())
    asked = [re.sub(r"not (\(.*?\)|\w+)", "", command) for command in commands]
    assert set(re.findall(r"\w+", " ".join(asked))) - {"or", "and"} == tiers - {"slow"}
