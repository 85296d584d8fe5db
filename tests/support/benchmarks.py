"""The folder of the benchmark scripts."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"
