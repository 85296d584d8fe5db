"""Methods of this package in benchmarks/studies/default/run.py: the fit without an argument, and the baselines.

Each is a function (model, x, y, seed) -> what there is to tell besides scores, as JSON values.
"""

import os
import time
from pathlib import Path

import numpy as np

__all__ = ["FEW_DRAWS", "OUR_HETEROSCEDASTIC", "OURS", "QUICK", "fit_ours"]

# Scores of a default that has to stop are to be within .05 of the final ones.
SHORT_SECONDS = 120.0
# For trying the script: a handful of draws.
FEW_DRAWS = {"num_chains": 2, "num_results": 20, "num_burnin_steps": 20, "effort": 0.1}
# Noise that depends on the inputs, as some rivals have it: the same line, another likelihood.
OUR_HETEROSCEDASTIC = "heteroscedastic"
QUICK = {"default": FEW_DRAWS, OUR_HETEROSCEDASTIC: FEW_DRAWS}


def default(model, x, y, seed, output=None, **quick):
    """The line that a user types; of a run that is in its folder already, scored again.

    That has the seconds which the run says of itself, those of reading and scoring not among them.
    """
    again = output is not None and os.path.exists(output)
    run = model.fit_posterior(x, y, seed=seed, output=output, resume=again, **quick)
    seconds = {"wall": round(sum(run.seconds.values()), 2), "scored_again": True}
    return _told(run) | (seconds if again else {})


def short(model, x, y, seed, max_seconds=SHORT_SECONDS):
    """The same within two minutes."""
    return _told(model.fit_posterior(x, y, seed=seed, max_seconds=max_seconds))


def map_estimate(model, x, y, seed):
    model.fit_map(x, y, seed=seed)
    return {}


def ensemble(model, x, y, seed):
    model.fit_ensemble(x, y, seed=seed)
    return {}


def laplace(model, x, y, seed):
    model.fit_laplace(x, y, seed=seed)
    return {}


OURS = {
    "default": default,
    OUR_HETEROSCEDASTIC: default,
    "short": short,
    "map": map_estimate,
    "ensemble": ensemble,
    "laplace": laplace,
}


def fit_ours(method, hidden, rows, seed, **quick):
    """Fits one network and scores it; a dict of JSON values.

    Args:
        method: Key of OURS.
        hidden: Sizes of the hidden layers; none where the rows choose them, and the noise.
        rows: Dict with x, y, x_test, y_test and kind.
        seed: Seed.
        **quick: Further arguments of the fit, to try the script.
    """
    import warnings

    import tfbnn
    from tfbnn.likelihoods import Bernoulli, Categorical, HeteroscedasticGaussian

    is_classes = str(rows["kind"]) == "classes"
    num_outputs, settings = 1, {}
    if is_classes:
        # The one thing that integers cannot say of themselves.
        num_classes = len(np.unique(rows["y"]))
        is_binary = num_classes == 2
        num_outputs = 1 if is_binary else num_classes
        settings["likelihood"] = Bernoulli() if is_binary else Categorical()
    elif method == OUR_HETEROSCEDASTIC:
        num_outputs, settings["likelihood"] = 2, HeteroscedasticGaussian()
    layers = [rows["x"].shape[1], *hidden, num_outputs] if hidden else "auto"
    model = tfbnn.BayesianMLP(layers, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfbnn.ConvergenceWarning)  # the row has the verdict
        began = time.perf_counter()
        told = OURS[method](model, rows["x"], rows["y"], seed, **quick)
        told["call"] = round(time.perf_counter() - began, 2)
        if not all(told.get("draws", [1])):  # a limit below the time to compile
            return told
        scores = _class_scores if is_classes else _scores
        told["num_rows"], told["network"] = len(rows["x"]), model.spec.architecture_text
        told["likelihood"] = model.spec.likelihood_name
        return {**scores(model, rows["x_test"], rows["y_test"]), **told}


def _told(run):
    """Verdict, convergence and seconds of a run."""
    diagnosis = run.diagnosis
    report = run.report(details=True, width=100)
    if run.folder is not None:
        # Where runs lie on one machine is nobody's business in a table.
        report = report.replace(run.folder, Path(run.folder).name)
    told = {
        "verdict": run.verdict,
        "seconds": dict(run.seconds),
        "draws": [int(run.num_chains), int(run.num_results)],
        "report": report,
    }
    if diagnosis is not None:
        rhat, ess = np.asarray(diagnosis.rhat_function), np.asarray(diagnosis.ess_function)
        told["rhat_q95"] = float(np.quantile(rhat, 0.95, method="higher"))
        told["ess"] = float(np.nanmedian(ess))
    return told


def _scores(model, x, y):
    found = model.evaluate(x, y)
    scores = {
        "rmse": found["rmse"],
        "lpd": found["log_predictive_density"],
        "crps": found["crps"],
        "coverage": [found["coverage"][k] for k in (1, 2)],
        "lpd_groups": _groups(model, x, y),
        "pit": _pit_counts(model, x, y),
        "log": "log10" in model.posterior.y_pipeline.names,
    }
    if model.calibration is not None:
        plain = model.evaluate(x, y, calibrated=False)
        scores["uncalibrated"] = {
            "lpd": plain["log_predictive_density"],
            "coverage": [plain["coverage"][k] for k in (1, 2)],
        }
    return scores | {name: found[name] for name in ("rmse_log10",) if name in found}


def _pit_counts(model, x, y):
    """Count the rows whose predictive probability of a smaller target is in each hundredth."""
    levels = np.arange(1, 100) / 100
    quantiles = np.asarray(model.predict(x, include_noise=True, quantiles=levels).quantiles)
    indices = (quantiles.reshape(99, -1) < np.ravel(y)).sum(axis=0)
    return np.bincount(indices, minlength=100).tolist()


def _class_scores(model, x, y):
    found = model.evaluate(x, y)
    names = ("accuracy", "brier", "ece")
    return {name: found[name] for name in names} | {
        "lpd": found["log_predictive_density"],
        "lpd_groups": _groups(model, x, y),
    }


def _groups(model, x, y):
    """Mean log predictive density of each group of test rows, as `default_scores.group_means`."""
    from benchmarks.lib.default_scores import NUM_GROUPS

    groups = range(min(NUM_GROUPS, len(y)))
    parts = (slice(start, None, NUM_GROUPS) for start in groups)
    return [round(model.evaluate(x[part], y[part])["log_predictive_density"], 6) for part in parts]
