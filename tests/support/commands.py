"""Helpers that tests of the command line share."""

import numpy as np

from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.tables import write_csv
from tfbnn.fit.model import BayesianMLP

QUICK = "--prior normal --layers 3 --num-chains 2 --num-results 12 --num-burnin-steps 12 --verbose 0".split()


def check_refusal(result, *words):
    """Exit code 2, nothing on standard output, at most three lines that hold the words."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    assert 0 < len(err.splitlines()) <= 3, err
    for word in words:
        assert word in err


def write_tables_and_models(folder):
    """A table with text and noise columns, and models saved with and without column names."""
    x, y = make_rows(60, 2, 1)
    write_csv(folder / "points.csv", ["b", "a"], x[:, ::-1])
    write_csv(folder / "rows.csv", ["a", "b", "y"], np.column_stack([x, y]))
    values = np.column_stack([x, y, np.full(60, 0.3)]).tolist()
    rows = (f"row {number},{','.join(map(repr, row))}" for number, row in enumerate(values))
    lines = ["name,a,b,y,sd", *rows]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    named = {"feature_names": ("a", "b"), "provenance": {"target_names": ["y"]}}
    for name, settings in {
        "named": named,
        "unnamed": {},
        "two": {"layer_sizes": (2, 4, 2)},
        "noisy": named | {"row_noise": True},
    }.items():
        BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / f"{name}.h5")
