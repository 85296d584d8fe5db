"""Fits one method on the rows of one split in this process: called by benchmarks/studies/default/run.py.

    python benchmarks/lib/default_work.py METHOD ROWS.npz --seed 0 [--hidden 50] [--plain] [--quick]

Prints the result as JSON behind "RESULT ". It imports tfbnn for the methods of this package only, so
that rivals can have an interpreter of their own.
"""

import argparse
import json
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # the repository, of which this is a part

import numpy as np

from benchmarks.lib.default_class_rivals import CLASS_RIVALS
from benchmarks.lib.default_ours import OURS, QUICK, fit_ours
from benchmarks.lib.default_rivals import RIVALS
from benchmarks.lib.default_scores import TargetSpace, class_scores, mixture_scores
from benchmarks.lib.default_tables import CLASSES, needs_log

RESULT = "RESULT "
PACKAGES = (
    "scikit-learn",
    "ngboost",
    "catboost",
    "sklearn-contrib-bde",
    "scipy",
    "tensorflow",
    "numpy",
)


def fit_rival(method, rows, seed, plain):
    """Fits a rival on standardised inputs and scores it; a dict of JSON values."""
    x, x_test = _standardised(rows["x"], rows["x_test"])
    y, y_test = rows["y"], rows["y_test"]
    if rows["kind"] == CLASSES:
        return class_scores(CLASS_RIVALS[method](x, y, x_test, seed), y_test)
    space = TargetSpace.of(y, needs_log(y) and not plain)
    location, scale = RIVALS[method](x, space.forward(y), x_test, seed)
    scores = mixture_scores(space, location, scale, y_test)
    if not np.isfinite(scale).all():
        scores = {name: scores[name] for name in ("rmse", "rmse_log10") if name in scores}
    return {**scores, "log": space.log}


def _standardised(x, x_test):
    spread = x.std(axis=0)
    spread[spread == 0] = 1.0
    return (x - x.mean(axis=0)) / spread, (x_test - x.mean(axis=0)) / spread


def _standard_density(rows, scores):
    """Log density in units of the standardised target, or log10 of it by the rule of `needs_log`."""
    if rows["kind"] == CLASSES or "lpd" not in scores:
        return {}
    space = TargetSpace.of(rows["y"], needs_log(rows["y"]))
    return {"lpd_standardised": scores["lpd"] - float(space.log_slope(rows["y_test"]).mean())}


def _versions():
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, nargs="*", default=[50])
    parser.add_argument("--plain", action="store_true", help="no log10 of the target")
    parser.add_argument("--quick", action="store_true", help="a handful of draws")
    parser.add_argument("--output", help="run folder of the default fit")
    parser.add_argument("--max-seconds", type=float, help="limit of the method short")
    options = parser.parse_args()
    with np.load(options.rows) as file:
        rows = dict(file)
    if options.method in OURS:
        quick = QUICK.get(options.method, {}) if options.quick else {}
        given = {"output": options.output, "max_seconds": options.max_seconds}
        kept = {name: value for name, value in given.items() if value is not None}
        found = fit_ours(options.method, options.hidden, rows, options.seed, **quick, **kept)
    else:
        with warnings.catch_warnings():
            # Bounds of hyper-parameters and numbers of iterations are what they are.
            warnings.simplefilter("ignore")
            try:
                found = fit_rival(options.method, rows, options.seed, options.plain)
            except (ValueError, np.linalg.LinAlgError) as error:
                # Its numerics gave up, as NGBoost's do on few rows of three classes: that is a row.
                found = {"failed": str(error).splitlines()[0]}
    found |= _standard_density(rows, found) | {"versions": _versions()}
    print(RESULT + json.dumps(found, default=float), flush=True)


if __name__ == "__main__":
    main()
