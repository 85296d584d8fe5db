"""Predicts with every golden file in the environment of a light install, `pip install .`, alone."""

import json
import sys
from importlib.metadata import distributions
from pathlib import Path

import numpy as np

import tfbnn
from tfbnn.data.table import Table

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
# pip and setuptools came with the environment.
LIGHT = {"tfbnn", "numpy", "h5py", "pip", "setuptools"}

installed = {entry.metadata["Name"].lower() for entry in distributions()}
if installed - LIGHT:
    sys.exit(f"A light install has {sorted(LIGHT)}, found {sorted(installed - LIGHT)} too.")
for path in sorted(GOLDEN.glob("*.h5")):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    x = expected["x"]
    if isinstance(x, dict):  # columns, some of them of text
        words = frozenset(name for name, column in x.items() if not isinstance(column[0], float))
        x = Table(tuple(x), np.array(list(x.values()), object).T, words=words)
    model = tfbnn.load(path)
    prediction = model.predict(x)
    np.testing.assert_allclose(prediction.mean, expected["mean"], rtol=1e-5)
    np.testing.assert_allclose(prediction.stddev, expected["stddev"], rtol=1e-5)
    if model.spec.has_additive_noise and not model.posterior.row_noise:
        d = model.predict_distribution(x)
        np.testing.assert_allclose(d.cdf(d.quantile(0.3)), 0.3, atol=1e-6)
    print(f"{path.name}: as it was, Python {sys.version.split()[0]}, NumPy {np.__version__}")
