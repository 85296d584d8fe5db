"""Do error bars hold: of the posterior, and calibrated by rows of the fit or by held-out rows?

    TFBNN_DATA=folder python -m benchmarks calibration --runs FOLDER [--tables wine ...] [--seeds 0]

The draws of the default fit, on one split, without the calibration that it ends with. "loo" is calibrated by the rows of the fit and
judged by all held-out rows. "split" is calibrated by some held-out rows, as many as the table has
validation rows, else half, and judged by the others, averaged over 50 such partitions; nothing is
fitted again. Runs are kept in a folder, so that a killed script goes on where it was; finished rows
are kept beside the table, benchmarks/results/calibration.md.
"""

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.lib.common import add_common_options, output_folder, revision
from benchmarks.lib.default_tables import TABLES
from benchmarks.lib.store import Store
from benchmarks.studies.calibration.report import report

NUM_PARTITIONS = 50
LEVELS = (1, 2, 3)
HIDDEN = {"neutralino raw": (20, 20), "neutralino invariant": (20, 20)}
# Settings by hand: rows of benchmarks/studies/neutralino/run.py, on raw inputs and on those with symmetries.
BY_HAND = {f"neutralino {name}, by hand": name for name in ("newton", "best")}
SEEDS_BY_HAND = (0, 1, 2)
QUICK = {"num_chains": 2, "num_results": 200, "num_burnin_steps": 200}


def wave(split):
    """A smooth function of one input without noise at 40 points; tested at 400."""
    from benchmarks.lib.problems import Problem

    del split
    train, test = (np.linspace(-3.0, 3.0, count)[:, None] for count in (40, 400))
    train, test = ((x, np.sin(2 * x[:, 0]) + 0.3 * x[:, 0]) for x in (train, test))
    return Problem(train, None, test)


NAMES = {
    **{name: TABLES[name].load for name in ("concrete", "wine", "airfoil", "kin8nm", "bikes")},
    **{name: TABLES[name].load for name in ("demo", "neutralino raw", "neutralino invariant")},
    "wave": wave,
    "grid": TABLES["grid"].load,
}
ALL = [*NAMES, *BY_HAND]


def main(arguments=None):
    """Measures all rows and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--tables", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--seeds", nargs="+", type=int, help="default 0, by hand 0 1 2")
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs")
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    options.runs.mkdir(parents=True, exist_ok=True)
    store = Store("calibration", options.fresh, folder)
    for name in options.tables:
        for seed in options.seeds or (SEEDS_BY_HAND if name in BY_HAND else (0,)):
            key = f"{name}, seed {seed}"
            if key not in store:
                store.add(key, row_of(name, seed, options.runs, options.quick))
                told = store.rows[key]
                print(key, told["plain"]["coverage"], told["split"]["coverage"], flush=True)
    report(list(store.rows.values()), folder)


def row_of(name, seed, runs, quick):
    """Fits one table, or takes the run that is there, and measures it; a dict of JSON values."""
    problem, model, settings = by_hand(BY_HAND[name]) if name in BY_HAND else by_default(name)
    run_folder = runs / f"{name.replace(' ', '_').replace(',', '')}-{seed}"
    settings |= {"seed": seed, "output": run_folder, "resume": run_folder.exists()}
    run = model.fit_posterior(
        *problem.train, calibrate=False, **settings | (QUICK if quick else {})
    )
    rest = [part for part in (problem.validation, problem.test) if part is not None]
    held_out = HeldOut.of(model, *(np.concatenate(parts) for parts in zip(*rest)))
    count = len(problem.validation[0]) if problem.validation else len(held_out.x) // 2
    return {
        "table": name,
        "seed": seed,
        "commit": revision(),
        "verdict": run.diagnosis.headline,
        "rmse_log10": model.evaluate(*problem.test).get("rmse_log10"),
        "num_rows": len(problem.train[0]),
        "num_held_out": len(held_out.x),
        "num_calibrating": count,
        "plain": of_scores(held_out, held_out.plain),
        "loo": of_loo(model, held_out, None),
        "loo by stddev": of_loo(model, held_out, "stddev"),
        "split": of_partitions(model, held_out, count, None),
        "split by stddev": of_partitions(model, held_out, count, "stddev"),
        "time_ratio": time_ratio(model, held_out),
    }


def by_default(name):
    """(Problem, model, settings of the fit) of a table, with nothing given."""
    import tfbnn

    problem = NAMES[name](0)
    sizes = [problem.train[0].shape[1], *HIDDEN.get(name, (50,)), 1]
    return problem, tfbnn.BayesianMLP(sizes), {}


def by_hand(name):
    """The same of a row of benchmarks/studies/neutralino/run.py."""
    import tfbnn
    from benchmarks.lib.problems import neutralino
    from benchmarks.studies.neutralino.run import ROWS

    row = ROWS[name]
    names = ("kernel", "num_chains", "num_burnin_steps", "num_results", "pretraining")
    settings = {name: getattr(row, name) for name in names}
    return neutralino(row.inputs, row.target), tfbnn.BayesianMLP(row.layers, **row.model), settings


class HeldOut(NamedTuple):
    """Rows that no fit has seen, and what the predictive distribution says of them.

    Attributes:
        x, y: In original units, y [n, 1].
        rows: The same on the scale the network sees.
        trust: Trust levels [n].
        slope: Log of the derivative of the transform of the target [n].
        plain: RowScores without a calibration.
    """

    x: np.ndarray
    y: np.ndarray
    rows: tuple
    trust: np.ndarray
    slope: np.ndarray
    plain: tuple

    @classmethod
    def of(cls, model, x, y):
        from tfbnn.posterior.checks import checked_rows
        from tfbnn.posterior.metrics import row_scores
        from tfbnn.trust import trust_levels

        ensemble = model.posterior
        rows, transformed = checked_rows(ensemble, x, y, None, "calibration")
        slope = np.log(np.abs(ensemble.y_pipeline.derivative(rows.y))).sum(axis=1)
        trust = trust_levels(ensemble.training_inputs, transformed.x)
        plain = row_scores(ensemble, rows.y, transformed, calibrated=False)
        return cls(rows.x, rows.y, transformed, trust, slope, plain)

    def taken(self, indices):
        """Some of the rows."""
        x, y, rows, trust, slope, plain = self
        rows = rows._replace(x=rows.x[indices], y=rows.y[indices])
        plain = plain._make(values[indices] for values in plain)
        return HeldOut(x[indices], y[indices], rows, trust[indices], slope[indices], plain)

    def calibrated(self, ensemble, calibration):
        """`plain` with pulls, deviations and log densities under a calibration.

        The predictions of the networks are taken from there: 50 partitions share them.
        """
        from tfbnn.posterior.calibration.misfit_features import scale_factors
        from tfbnn.posterior.metrics import LEAST_LEVEL, central_levels, normal_quantile

        plain, target = self.plain, self.rows.y
        factors = scale_factors(replace(ensemble, calibration=calibration), self.rows.x)
        one = calibration.of(plain.centre, plain.stddev, self.trust, factors)
        pit = np.clip(one.cdf(target), LEAST_LEVEL, 1.0 - LEAST_LEVEL)
        low, high = one.quantiles(central_levels(1))
        density = one.log_density(target).sum(axis=1)
        return plain._replace(
            pull=np.where(one.is_left, plain.pull, normal_quantile(pit)),
            stddev=np.where(one.is_left, plain.stddev, 0.5 * (high - low)),
            log_density=np.where(one.is_left.any(axis=1), plain.log_density, density),
        )


def of_scores(held_out, scores):
    """Coverage, density and length of bars, of all rows and of thirds by predicted deviation."""
    pull, stddev = np.abs(scores.pull[:, 0]), held_out.plain.stddev[:, 0]
    thirds = np.array_split(np.argsort(stddev, kind="stable"), 3)
    return {
        "coverage": [float(np.mean(pull < k)) for k in LEVELS],
        "thirds": [float(np.mean(pull[third] < 1)) for third in thirds],
        "lpd": float(np.mean(scores.log_density + held_out.slope)),
        "lpd_standard": float(np.mean(scores.log_density)),
        "bars": float(np.median(scores.stddev[:, 0] / stddev)),
    }


def of_loo(model, held_out, by):
    """The same, calibrated by the rows of the fit; why not, where that cannot be."""
    try:
        record = model.calibrate(method="loo", by=by)
    except ValueError as error:
        return {"refused": str(error)}
    scores = held_out.calibrated(model.posterior, record)
    return of_scores(held_out, scores) | {"num_rows": record.num_rows}


def of_partitions(model, held_out, count, by):
    """The same, averaged over partitions into rows that calibrate and rows that judge."""
    from tfbnn.posterior.calibration.calibrating import calibration_of_moments

    ensemble, found = model.posterior, []
    for number in range(NUM_PARTITIONS):
        order = np.random.default_rng(number).permutation(len(held_out.x))
        known, judged = (held_out.taken(np.sort(part)) for part in np.split(order, [count]))
        moments = known.plain.centre, known.plain.stddev
        try:
            record = calibration_of_moments(ensemble, known.rows, *moments, by, "split")
        except ValueError as error:
            return {"refused": str(error)}
        found.append(of_scores(judged, judged.calibrated(ensemble, record)))
    return {name: np.mean([one[name] for one in found], axis=0).tolist() for name in found[0]}


def time_ratio(model, held_out, repeats=5):
    """Time of calibrated over that of other predictions with noise and three quantiles, median."""
    if model.calibration is None:
        with warnings.catch_warnings():
            # The wave is fitted and judged at both of its ends.
            warnings.simplefilter("ignore", UserWarning)
            model.calibrate(held_out.x, held_out.y)
    ratios = []
    for _ in range(repeats):
        seconds = []
        for calibrated in (False, True):
            begin = time.perf_counter()
            model.predict(
                held_out.x[:1000],
                include_noise=True,
                quantiles=[0.16, 0.5, 0.84],
                calibrated=calibrated,
            )
            seconds.append(time.perf_counter() - begin)
        ratios.append(seconds[1] / seconds[0])
    return float(np.median(ratios))


if __name__ == "__main__":
    main()
