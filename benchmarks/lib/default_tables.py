"""The tables of benchmarks/studies/default/run.py: their rows, splits, and what is fitted on each.

    python benchmarks/lib/default_tables.py TABLE SPLIT ROWS.npz

writes the raw rows of one split, so that every method reads the same ones, whatever its interpreter
has installed. Four tables of classes need scikit-learn.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[2]))  # the repository, of which this is a part

import numpy as np

__all__ = [
    "CLASSES",
    "GRID",
    "NOISE_FREE",
    "REGRESSION",
    "TABLES",
    "Table",
    "needs_log",
    "write_rows",
]

REGRESSION, NOISE_FREE, CLASSES = "regression", "noise-free", "classes"
# For the legends of tables.
GRID = "Grid is a function of two inputs on 13 x 13 points, without noise"
TEST_SHARE_OF_CLASSES = 0.25
# All targets positive over more than two decades: every method may have log10 of them.
LOG_RANGE = 100.0


class Table(NamedTuple):
    """One table of the comparison.

    Attributes:
        load: Function split -> `problems.Problem`.
        kind: REGRESSION, NOISE_FREE or CLASSES.
        num_splits: Splits into training and test rows.
        seeds: Seeds of the default on the first split; on the others it is fitted with seed 0.
        also: Hidden layers tried besides (50,): dict -> seeds, on the first split.
        plain: Whether rivals are also tried on the plain target where the rule says log10.
        data: Whether TFBNN_DATA is needed.
    """

    load: Callable
    kind: str = REGRESSION
    num_splits: int = 1
    seeds: tuple = (0, 1, 2)
    also: dict = {(50, 50): (0,)}
    plain: bool = False
    data: bool = True


def needs_log(y):
    """Return whether the targets [N] are to be fitted as log10."""
    return bool(y.min() > 0 and y.max() > LOG_RANGE * y.min())


# `problems` is imported by those who load rows: it needs tfbnn, which a rival's interpreter may not
# be able to import.


def _uci(name, split):
    from benchmarks.lib.problems import uci

    return uci(name, split)


def _airfoil(split):
    from benchmarks.lib.problems import airfoil

    return airfoil(split=split)


def _bikes(split):
    from benchmarks.lib.problems import bikes

    return bikes(split)


def _neutralino(inputs, split):
    from benchmarks.lib.problems import neutralino

    del split  # the file has one
    # Validation rows are left out, as in benchmarks/studies/neutralino/run.py.
    return neutralino(inputs)


def _demo(split):
    """The table of `tfbnn demo`: 2000 cross sections, smeared by 20 %."""
    from benchmarks.lib.problems import Problem
    from tfbnn.cli.demo import NUM_ROWS, smear
    from tfbnn.datasets import neutralino_pairs

    del split  # the demo has one
    data = smear(neutralino_pairs(NUM_ROWS))
    return Problem(data.train, data.validation, data.test)


def _peaks(split):
    """MATLAB's function of two inputs on 13 x 13 points; tested at 4 points inside each cell."""
    from benchmarks.lib.problems import Problem

    del split  # the grid is the grid
    nodes = np.linspace(-3.0, 3.0, 13)
    width = nodes[1] - nodes[0]
    between = np.sort(np.concatenate([nodes[:-1] + width / 3, nodes[:-1] + 2 * width / 3]))
    train, test = (
        np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
        for points in (nodes, between)
    )
    return Problem((train, peaks(train)), None, (test, peaks(test)))


def peaks(x):
    """Three translated and scaled Gaussians, [N, 2] -> [N]; between -6.6 and 8.1."""
    a, b = x.T
    return (
        3 * (1 - a) ** 2 * np.exp(-(a**2) - (b + 1) ** 2)
        - 10 * (a / 5 - a**3 - b**5) * np.exp(-(a**2) - b**2)
        - np.exp(-((a + 1) ** 2) - b**2) / 3
    )


def _banknotes(split):
    from benchmarks.lib.class_problems import banknotes

    return _split_classes(*banknotes(), split)


def _of_scikit_learn(name, split):
    from sklearn import datasets

    return _split_classes(*getattr(datasets, f"load_{name}")(return_X_y=True), split)


def _split_classes(x, y, split):
    from sklearn.model_selection import train_test_split

    from benchmarks.lib.problems import Problem

    x, x_test, y, y_test = train_test_split(
        x, y, test_size=TEST_SHARE_OF_CLASSES, random_state=split, stratify=y
    )
    return Problem((x, y), None, (x_test, y_test))


_NEUTRALINO = {"also": {(50, 50): (0,), (20, 20): (0, 1, 2)}}
_CLASSES = {"kind": CLASSES, "num_splits": 3}

TABLES = {
    "yacht": Table(partial(_uci, "yacht"), num_splits=20, plain=True),
    "concrete": Table(partial(_uci, "concrete"), num_splits=20),
    "wine": Table(partial(_uci, "wine-quality-red"), num_splits=20),
    "airfoil": Table(_airfoil, num_splits=5),
    "demo": Table(_demo, also={(20, 20): (0, 1, 2), (50, 50): (0,)}, data=False),
    "grid": Table(_peaks, NOISE_FREE, data=False),
    "banknotes": Table(_banknotes, **_CLASSES),
    "breast cancer": Table(partial(_of_scikit_learn, "breast_cancer"), data=False, **_CLASSES),
    "wine cultivars": Table(partial(_of_scikit_learn, "wine"), data=False, **_CLASSES),
    "digits": Table(partial(_of_scikit_learn, "digits"), data=False, **_CLASSES),
    "kin8nm": Table(partial(_uci, "kin8nm"), num_splits=2, seeds=(0,)),
    "neutralino raw": Table(partial(_neutralino, "raw"), **_NEUTRALINO),
    "neutralino invariant": Table(partial(_neutralino, "invariant"), **_NEUTRALINO),
    "bikes": Table(_bikes, num_splits=2, seeds=(0,), plain=True),
}


def write_rows(name, split, path):
    """Writes x, y, x_test, y_test of one split and the kind of the table to an NPZ file."""
    table = TABLES[name]
    problem = table.load(split)
    (x, y), (x_test, y_test) = problem.train, problem.test
    np.savez(path, x=x, y=y, x_test=x_test, y_test=y_test, kind=table.kind)


if __name__ == "__main__":
    write_rows(sys.argv[1], int(sys.argv[2]), sys.argv[3])
