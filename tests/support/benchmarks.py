"""Where the benchmark scripts are."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"
