"""The peer of benchmarks/studies/airfoil/run.py: bde, whose interpreter need not have tfbnn."""

import importlib
import os
import time
from importlib.metadata import version

import numpy as np

__all__ = ["fit_bde", "sample_bde"]

# bde as its authors ran airfoil (paper/scripts/airfoil/architecture.txt), with 4 members, not 10.
BDE_MEMBERS = 4
BDE = {
    "n_members": BDE_MEMBERS,
    "hidden_layers": [16, 16, 16, 16],
    "epochs": 1000,
    "validation_split": 0.15,
    "patience": 20,
    "lr": 1e-3,
    "weight_decay": 1e-4,
    "warmup_steps": 50_000,
    "n_samples": 1000,
    "n_thinning": 10,
}


def fit_bde(rows, seed):
    """Fits bde on standardised rows and scores it; a dict of JSON values."""
    x, y, x_test, y_test = _standardised(rows)
    location, scale, seconds = sample_bde(x, y, x_test, seed)
    began = time.perf_counter()
    scores = _mixture_scores(y_test, location, scale)
    seconds["score"] += time.perf_counter() - began
    return {"scores": scores, "seconds": seconds, "about": _versions()}


def sample_bde(x, y, x_test, seed):
    """Fits bde on standardised rows; predictive normals of all draws and seconds of each phase.

    Args:
        x, y, x_test: [N, D], [N], [N_test, D].
        seed: Seed.

    Returns:
        location, scale [S, N_test], and a dict of seconds: import, fit, score.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # Members run on XLA "devices", which must be made before JAX is imported.
    devices = max(n for n in range(1, BDE_MEMBERS + 1) if BDE_MEMBERS % n == 0 and n <= cores)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    began = time.perf_counter()
    bde = importlib.import_module("bde")
    imported = time.perf_counter()
    model = bde.BdeRegressor(seed=seed, **BDE).fit(x, y)
    fitted = time.perf_counter()
    raw = np.asarray(model.predict(x_test, raw=True), np.float64).reshape(-1, len(x_test), 2)
    seconds = {"import": imported - began, "fit": fitted - imported}
    seconds["score"] = time.perf_counter() - fitted
    # The package adds the same 1e-6 to the scale in its likelihood.
    return raw[..., 0], np.logaddexp(0.0, raw[..., 1]) + 1e-6, seconds


def _versions():
    names = ("sklearn-contrib-bde", "jax", "blackjax")
    return ", ".join(f"{name} {version(name)}" for name in names)


def _standardised(rows):
    """x, y, x_test, y_test in units of mean and standard deviation of the training rows."""
    means = rows["x"].mean(axis=0), rows["y"].mean()
    spreads = rows["x"].std(axis=0), rows["y"].std()
    return [
        (rows[name] - means[i % 2]) / spreads[i % 2]
        for i, name in enumerate(("x", "y", "x_test", "y_test"))
    ]


def _mixture_scores(y, location, scale):
    """Scores of a mixture of normals, location and scale [S, N]; the same as `model.evaluate`."""
    mean = location.mean(axis=0)
    stddev = np.sqrt(location.var(axis=0) + np.square(scale).mean(axis=0))
    log_density = _normal(y, location, scale)
    lpd = np.logaddexp.reduce(log_density, axis=0) - np.log(len(log_density))
    pull = np.abs(y - mean) / stddev
    return {
        "rmse": np.sqrt(np.mean(np.square(y - mean))),
        "lpd": lpd.mean(),
        "moment_matched": _normal(y, mean, stddev).mean(),
        "coverage": [np.mean(pull < k) for k in (1, 2)],
    }


def _normal(y, location, scale):
    return -0.5 * ((y - location) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
