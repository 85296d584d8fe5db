"""Other tables than those of the study default: noise, pits, waves, steps, few rows, many inputs.

    python benchmarks/studies/other_tables/tables.py TABLE ROWS.npz

Needs scikit-learn. A quarter of the rows, eight at least, are test rows.
"""

import sys
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

from benchmarks.lib.default_tables import CLASSES, REGRESSION

TEST_SHARE, FEWEST_TEST_ROWS = 0.25, 8


class Rows(NamedTuple):
    """Inputs, targets, and whether these are classes."""

    x: np.ndarray
    y: np.ndarray
    kind: str = REGRESSION


def _normal(seed, num_rows, num_inputs):
    generator = np.random.default_rng(seed)
    return generator, generator.normal(size=(num_rows, num_inputs))


def few_rows():
    generator = np.random.default_rng(0)
    x = generator.uniform(-3.0, 3.0, (60, 1))
    return Rows(x, np.sin(x[:, 0]) + 0.1 * generator.normal(size=60))


def pure_noise():
    generator, x = _normal(4, 250, 6)
    return Rows(x, generator.normal(size=250))


def outliers():
    """Noise of Student's t with two degrees of freedom."""
    generator, x = _normal(1, 600, 4)
    return Rows(x, 2.0 * x[:, 0] + np.sin(2.0 * x[:, 1]) + 0.3 * generator.standard_t(2, size=600))


def messy_columns():
    """A constant, a copy, a switch, a count, and columns in units of 10^6 and 10^-8."""
    generator, x = _normal(3, 500, 8)
    x[:, 1], x[:, 2] = 7.0, x[:, 0]
    x[:, 3], x[:, 4] = x[:, 3] > 0, generator.integers(0, 5, 500)
    x[:, 5], x[:, 6] = 1e6 * x[:, 5], 1e-8 * x[:, 6] + 1.0
    mean = x[:, 0] + x[:, 3] * x[:, 4] + np.tanh(x[:, 5] / 1e6)
    return Rows(x, mean + 0.2 * generator.normal(size=500))


def step():
    generator = np.random.default_rng(5)
    x = generator.uniform(-1.0, 1.0, (600, 2))
    return Rows(x, 3.0 * (x[:, 0] > 0.2) + (x[:, 1] > x[:, 0]) + 0.05 * generator.normal(size=600))


def sine():
    """Eight periods."""
    generator = np.random.default_rng(6)
    x = generator.uniform(-1.0, 1.0, (500, 1))
    return Rows(x, np.sin(25.0 * x[:, 0]) + 0.1 * generator.normal(size=500))


def waves():
    """Waves in two inputs."""
    generator = np.random.default_rng(7)
    x = generator.uniform(-1.0, 1.0, (1000, 2))
    mean = np.sin(5.0 * x[:, 0]) * np.cos(5.0 * x[:, 1])
    return Rows(x, mean + 0.1 * generator.normal(size=1000))


def counts():
    generator, x = _normal(10, 700, 4)
    rate = np.exp(0.5 + 0.7 * x[:, 0] + 0.3 * x[:, 1] * x[:, 2])
    return Rows(x, generator.poisson(rate).astype(float))


def large_offset():
    """Targets of 10^6 that differ by 10^-3."""
    generator, x = _normal(11, 400, 3)
    return Rows(x, 1e6 + 1e-3 * (np.sin(x[:, 0]) * x[:, 1] + 0.1 * generator.normal(size=400)))


def rare_classes():
    generator, x = _normal(16, 600, 6)
    score = x[:, 0] + x[:, 1] ** 2 - 1.0 + 0.5 * generator.normal(size=600)
    return Rows(x, np.digitize(score, [-1.0, 1.0, 3.5]), CLASSES)


def _of_scikit_learn(name, kind, **settings):
    def load():
        from sklearn import datasets

        if name.startswith("load"):
            table = getattr(datasets, name)()
            return Rows(table.data, table.target, kind)
        return Rows(*getattr(datasets, name)(random_state=0, **settings), kind)

    return load


TABLES = {
    "few rows": few_rows,
    "pure noise": pure_noise,
    "outliers": outliers,
    "messy columns": messy_columns,
    "large offset": large_offset,
    "counts": counts,
    "steps": step,
    "sine": sine,
    "waves": waves,
    "diabetes": _of_scikit_learn("load_diabetes", REGRESSION),
    "Friedman 1": _of_scikit_learn("make_friedman1", REGRESSION, n_samples=400, noise=1.0),
    "Friedman 2, no noise": _of_scikit_learn("make_friedman2", REGRESSION, n_samples=600),
    "Friedman 3": _of_scikit_learn("make_friedman3", REGRESSION, n_samples=600, noise=0.1),
    "more inputs than rows": _of_scikit_learn(
        "make_regression", REGRESSION, n_samples=80, n_features=200, noise=5.0
    ),
    "moons": _of_scikit_learn("make_moons", CLASSES, n_samples=400, noise=0.25),
    "circles": _of_scikit_learn("make_circles", CLASSES, n_samples=500, noise=0.15, factor=0.5),
    "rare classes": rare_classes,
}


def write_rows(name, path):
    """Writes x, y, x_test, y_test and the kind of a table to an NPZ file, as lib/default_work.py reads it."""
    x, y, kind = TABLES[name]()
    order = np.random.default_rng(1000).permutation(len(y))
    count = max(round(TEST_SHARE * len(y)), FEWEST_TEST_ROWS)
    test, train = order[:count], order[count:]
    np.savez(path, x=x[train], y=y[train], x_test=x[test], y_test=y[test], kind=kind)


if __name__ == "__main__":
    write_rows(*sys.argv[1:3])
