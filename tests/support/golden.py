"""Model files that have to load for ever: what is in each, and how those of a release are made.

    python -m tests.support.golden tests/golden

writes the files of the format that is about to be released, once; after that they are never written
again, only read. Every case brings in something that only its file holds.
"""

import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np

import tfbnn
from tests.support.coded import rows_of
from tfbnn.data.table import Table
from tfbnn.storage.format import schema

NUM_POINTS = 4


def held_by(model, x):
    """Return what a golden file is held to, as JSON: settings, sums of arrays, predictions at x.

    Args:
        model: A fitted model.
        x: Inputs that it predicts: [N, D], or a dict of the columns of a frame.
    """
    ensemble = model.posterior
    names = [name for name in schema.METADATA_KINDS if name not in ("x_pipeline", "y_pipeline")]
    found = {name: _plain(getattr(ensemble, name)) for name in names}
    found["sums"] = {name: float(np.sum(a, dtype=np.float64)) for name, a in _arrays(ensemble)}
    found["sums"]["chain_weights"] = ensemble.chain_weights.tolist()
    p = model.predict(_inputs(x))
    return found | {"x": x, "mean": np.asarray(p.mean).tolist(), "stddev": p.stddev.tolist()}


def with_noise(model, x):
    """Predictions with noise at x, calibrated where the model is: dict name -> lists."""
    p = model.predict(_inputs(x), include_noise=True, quantiles=[0.16, 0.5, 0.84])
    return {"stddev": p.stddev.tolist(), "quantiles": p.quantiles.tolist()}


def _inputs(x):
    if isinstance(x, list):
        return np.array(x)
    words = frozenset(name for name, column in x.items() if not isinstance(column[0], float))
    return Table(tuple(x), np.array(list(x.values()), object).T, words=words)


def _plain(value):
    value = value.to_json() if hasattr(value, "to_json") else value
    return list(value) if isinstance(value, tuple) else value


def _arrays(ensemble):
    yield "theta", ensemble.draws
    yield "x_reference", ensemble.x_reference
    yield from ensemble.sample_stats.items()
    for name in schema.TRAINING_INPUTS:
        yield name, getattr(ensemble.training_inputs, name)
    for name in schema.READOUTS:
        if getattr(ensemble.readouts, name, None) is not None:
            yield f"readout_{name}", getattr(ensemble.readouts, name)
    if ensemble.mode is not None:
        yield "mode", ensemble.mode
    for name in schema.GIVEN:
        if ensemble.given is not None:
            yield f"given_{name}", getattr(ensemble.given, name)
    if len(ensemble.row_digests):
        yield "row_digests", ensemble.row_digests
    if ensemble.calibration is not None:
        yield "scores", ensemble.calibration.scores
        for name in schema.MISFIT:
            if ensemble.calibration.misfit is not None:
                yield name, getattr(ensemble.calibration.misfit, name)
    if ensemble.basins is not None:
        yield "rhat_within", ensemble.basins.rhat_within


def make(folder):
    """Writes the golden files of the newest format, and a description beside each."""
    for name, (model, x) in _cases().items():
        path = Path(folder) / f"v{schema.FORMAT_VERSION}_{name}.h5"
        if path.exists():
            raise FileExistsError(f"{path} was released, and what was released stays as it is.")
        model.save(path)
        model = tfbnn.load(path)  # which says when it was written
        expected = held_by(model, x)
        if not model.spec.has_classes:
            expected["with_noise"] = with_noise(model, x)
        text = json.dumps(expected, indent=1, ensure_ascii=False)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def _cases():
    """Dict name -> (fitted model, inputs as `held_by` takes them)."""
    from tfbnn import kernels, likelihoods, priors

    generator = np.random.default_rng(0)
    x = generator.normal(size=(200, 2))
    y = np.sin(x[:, :1]) + 0.3 * x[:, 1:] + 0.1 * generator.normal(size=(200, 1))
    pair = np.exp(np.hstack([y, -y]))
    brief = dict(num_chains=2, num_results=20, num_burnin_steps=60, verbose=0, jit_compile=False)
    hmc = kernels.HMC(num_leapfrog_steps=8)
    points = x[:NUM_POINTS].tolist()
    frame, targets = rows_of(200)

    # A column [N] of targets, columns of text, scales that the data choose, local misfit, basins.
    columns = tfbnn.BayesianMLP([7, 3, 1], prior="auto")
    run = columns.fit_posterior(frame, targets, kernel=hmc, **brief)
    run.basins()
    columns.calibrate(method="loo", scale="misfit")
    # Two positive targets in other units, heavy tails, a calibration in groups.
    regression = tfbnn.BayesianMLP(
        [2, 3, 2],
        activation="silu",
        likelihood=likelihoods.StudentT(df=3.5),
        y_transform=["log10", "standardize"],
        dtype="float64",
    )
    regression.fit_posterior(x, pair, kernel=hmc, calibrate=False, **brief)
    rows = generator.normal(size=(480, 2))
    means = np.exp(np.sin(rows[:, :1]) + 0.3 * rows[:, 1:])
    scatter = np.exp(0.1 * generator.normal(size=(480, 2)))
    regression.calibrate(rows, np.hstack([means, 1.0 / means]) * scatter, by="stddev")
    # Labels of text.
    classes = tfbnn.BayesianMLP(
        [2, 3, 3], likelihood=likelihoods.Categorical(), parameterization="ntk"
    )
    labels = np.array(["low", "middle", "naïve λ"])[np.digitize(y[:, 0], [-0.5, 0.5])]
    classes.fit_posterior(x, labels, kernel=hmc, **brief)
    # A readout that was integrated out, known noise of each row.
    collapsed = tfbnn.BayesianMLP(
        [2, 3, 1], prior=priors.Normal(1.0), likelihood=likelihoods.Gaussian(0.1), dtype="float64"
    )
    inner = kernels.HMC(num_leapfrog_steps=4, preconditioner="diagonal")
    kernel = kernels.Repriorised(inner, collapse_readout=True)
    collapsed.fit_posterior(x, y, kernel=kernel, **brief)
    # The Gaussian around one network, and networks that stand for many.
    laplace = tfbnn.BayesianMLP([2, 3, 1], prior=priors.Normal(1.0))
    laplace.fit_laplace(x, y, num_results=20, verbose=0)
    compressed = tfbnn.BayesianMLP([2, 3, 1], prior=priors.HierarchicalNormal())
    compressed.fit_posterior(x, y, kernel=hmc, calibrate=False, **brief)
    compressed.compress(10)
    # Functions of infinite width, which hold the rows of the fit.
    infinite = tfbnn.BayesianMLP([2, math.inf, 1])
    infinite.fit_posterior(x[:40], y[:40], kernel=hmc, **brief)
    # Counts, whose dispersion is learned.
    counts = tfbnn.BayesianMLP([2, 3, 1], likelihood=likelihoods.NegativeBinomial())
    counts.fit_posterior(x, generator.poisson(np.exp(2.0 + y)), kernel=hmc, **brief)
    # A column with gaps, which has an indicator.
    gaps = x.copy()
    gaps[::5, 1] = np.nan
    missing = tfbnn.BayesianMLP([3, 3, 1])
    missing.fit_posterior(gaps, y, kernel=hmc, missing="indicator", **brief)
    return {
        "columns": (columns, frame.iloc[:NUM_POINTS].astype(object).to_dict("list")),
        "regression": (regression, points),
        "classes": (classes, points),
        "collapsed": (collapsed, points),
        "laplace": (laplace, points),
        "compressed": (compressed, points),
        "infinite": (infinite, points),
        "counts": (counts, points),
        "missing": (missing, gaps[:NUM_POINTS].tolist()),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    make(sys.argv[1])
