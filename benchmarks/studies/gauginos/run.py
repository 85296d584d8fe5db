"""Cross sections of thirty gaugino pairs at next-to-leading order: a default fit of each, and how wrong it is.

    TFBNN_DATA=folder python -m benchmarks gauginos --work FOLDER [--parts pairs pdf rows next cut]

pairs: `tfbnn.BayesianMLP().fit_posterior(x, y, max_seconds=150)` of every pair on 85 % of its rows, inputs
as `tfbnn.datasets.cross_sections.symmetries` proposes them; scores on the rest. pdf: the same of the relative
error of the parton densities, 60 s each, as are the next two. rows: learning curves of three pairs. next: 300 rows, and 300 more
that are chosen by the largest predicted error or at random. cut: no rows in a window of one mass. Models are kept in --work, rows as they finish,
so that a killed script goes on where it was; the table is benchmarks/results/gauginos.md. --calibrate-again calibrates
finished pairs by the present code, without another fit, and scores them anew.
"""

import argparse
import dataclasses
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.lib.common import add_common_options, output_folder, revision
from benchmarks.lib.store import Store
from benchmarks.studies.gauginos.pairs import pairs, rows_of
from benchmarks.studies.gauginos.report import report

SHARE = 0.85
SECONDS, BRIEF = 150, 60
# A pair of each kind, of learning curves.
EXAMPLES = ((1000022, 1000023), (1000022, 1000024), (1000024, -1000037))
NUM_ROWS, NUM_FIRST, NUM_MORE = (300, 1000, 3000), 300, 300
SEEDS = (0, 1, 2)
# In GeV, of the first mass of the pair of the part "cut".
WINDOW = (200.0, 300.0)
QUICK = {"num_chains": 2, "num_results": 20, "num_burnin_steps": 20, "pretraining": None}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--work", type=Path, required=True, help="folder of the models")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=[*PARTS])
    parser.add_argument("--calibrate-again", action="store_true")
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    options.work.mkdir(parents=True, exist_ok=True)
    store = Store("gauginos", options.fresh, folder)
    if options.calibrate_again:
        for key, row in store.rows.items():
            if row["part"] == "pairs":
                store.rows[key] = row | calibrated_again(row["pair"], path_of(options.work, key))
        report(store.rows, folder)
        store.rewrite()
        return
    for part in options.parts:
        for key, measure in PARTS[part]():
            path = path_of(options.work, key)
            if key not in store:
                store.add(key, {"part": part, "commit": revision()} | measure(path, options.quick))
                report(store.rows, folder)


def path_of(work, key):
    """Return the path at which the model of a row is kept."""
    return work / f"{key.replace(' ', '_')}.h5"


def all_pairs():
    for pair in pairs():
        yield f"pairs {name_of(pair)}", lambda path, quick, pair=pair: of_pair(pair, path, quick)


def all_pdf():
    for pair in pairs():
        yield f"pdf {name_of(pair)}", lambda path, quick, pair=pair: of_pdf(pair, path, quick)


def all_rows():
    for pair in EXAMPLES:
        for count in NUM_ROWS:
            yield (
                f"rows {name_of(pair)} {count}",
                lambda path, quick, pair=pair, count=count: of_rows(pair, count, path, quick),
            )


def all_next():
    for pair in EXAMPLES:
        for seed in SEEDS:
            yield (
                f"next {name_of(pair)} {seed}",
                lambda path, quick, pair=pair, seed=seed: of_next(pair, seed, quick),
            )


def all_cut():
    for pair in EXAMPLES:
        yield f"cut {name_of(pair)}", lambda path, quick, pair=pair: of_cut(pair, path, quick)


PARTS = {"pairs": all_pairs, "pdf": all_pdf, "rows": all_rows, "next": all_next, "cut": all_cut}


def name_of(pair):
    return f"{pair[0]}_{pair[1]}"


def halves(rows):
    """Training and test rows of a pair: slices."""
    count = round(SHARE * len(rows.y))
    return slice(0, count), slice(count, None)


def of_pair(pair, path, quick):
    """Fits a pair on all of its training rows."""
    rows = rows_of(pair)
    train, test = halves(rows)
    found = fitted(rows, rows.y, train, test, SECONDS, quick, path)[1]
    return found | {"pair": pair, "num_failed": rows.num_failed}


def calibrated_again(pair, path):
    """Return the changed entries of a row after its model is calibrated by the present code."""
    import tfbnn
    from tfbnn.posterior.calibration.calibrating import calibrate_by_leaving_out
    from tfbnn.posterior.checks import checked_rows

    rows = rows_of(tuple(pair))
    train, test = halves(rows)
    model = tfbnn.load(path)
    fitted_rows = (rows.x[train], rows.y[train], None, "calibrate", "training ")
    _, transformed = checked_rows(model.posterior, *fitted_rows)
    calibration = calibrate_by_leaving_out(model.posterior, transformed, "auto")
    model = type(model).from_ensemble(dataclasses.replace(model.posterior, calibration=calibration))
    found = scores(model, table(rows, rows.x[test]), rows.y[test])
    return found | {"calibrated": revision()}


def of_pdf(pair, path, quick):
    """Fits the relative error of the parton densities."""
    rows = rows_of(pair)
    kept = np.isfinite(rows.pdf)
    rows = rows._replace(x=rows.x[kept], y=rows.y[kept], pdf=rows.pdf[kept])
    train, test = halves(rows)
    return fitted(rows, rows.pdf, train, test, BRIEF, quick, path)[1] | {"pair": pair}


def of_rows(pair, count, path, quick):
    """Fits a pair on its first training rows."""
    rows = rows_of(pair)
    found = fitted(rows, rows.y, slice(0, count), halves(rows)[1], BRIEF, quick, path)[1]
    return found | {"pair": pair}


def of_next(pair, seed, quick):
    """Fits some rows, then with more that are chosen by predicted error, or at random."""
    rows = rows_of(pair)
    train, test = halves(rows)
    order = np.random.default_rng(seed).permutation(train.stop)
    first, pool = np.split(order, [NUM_FIRST])
    model, begun = fitted(rows, rows.y, first, test, BRIEF, quick)
    prediction = model.predict(rows.x[pool], quantiles=[0.16, 0.84], return_trust=True)
    low, high = prediction.columns.quantiles[:, :, 0]
    width = np.where(prediction.trust >= 0, np.log(high / low), -np.inf)
    chosen = pool[np.argsort(-width, kind="stable")[:NUM_MORE]]
    more = {"chosen": chosen, "random": pool[:NUM_MORE]}
    found = {"pair": pair, "seed": seed, "first": begun}
    for name, extra in more.items():
        together = np.concatenate([first, extra])
        found[name] = fitted(rows, rows.y, together, test, BRIEF, quick)[1]
    return found


def of_cut(pair, path, quick):
    """Fits a pair without the rows in a window of its first mass; scores there and elsewhere."""
    rows = rows_of(pair)
    train, test = halves(rows)
    low, high = np.log(WINDOW)
    is_cut = (rows.x[:, 0] > low) & (rows.x[:, 0] < high)
    numbers = np.arange(len(rows.y))
    kept = numbers[train][~is_cut[train]]
    inside, outside = numbers[test][is_cut[test]], numbers[test][~is_cut[test]]
    model, found = fitted(rows, rows.y, kept, outside, SECONDS, quick, path)
    there = scores(model, table(rows, rows.x[inside]), rows.y[inside])
    return {"pair": pair, "outside": found, "inside": there}


def fitted(rows, y, train, test, seconds, quick, path=None):
    """A model with its scores on test rows, saved where a path is given."""
    import tfbnn

    began = time.perf_counter()
    model = tfbnn.BayesianMLP([rows.x.shape[1], 3, 1]) if quick else tfbnn.BayesianMLP()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the verdict is in the table
        settings = QUICK if quick else {"max_seconds": seconds}
        run = model.fit_posterior(table(rows, rows.x[train]), y[train], verbose=0, **settings)
    taken = time.perf_counter() - began
    if path is not None:
        model.save(path)
    return model, {
        "seconds": taken,
        "num_train": len(rows.x[train]),
        "verdict": run.verdict,
        **scores(model, table(rows, rows.x[test]), y[test]),
    }


def table(rows, x):
    """Inputs under their names."""
    from tfbnn.data.table import Table

    return Table(rows.names, x)


def scores(model, x, y):
    """Return the scores of a model on rows that it has not seen."""
    prediction = model.predict(x, return_trust=True)
    error = np.abs(np.ravel(prediction.mean) / y - 1.0)
    found = model.evaluate(x, y)
    levels = np.sort(np.ravel(model.predict_distribution(x).cdf(y)))
    steps = np.arange(len(levels) + 1) / len(levels)
    return {
        "num_test": len(y),
        "rmse_log10": found.get("rmse_log10"),
        "errors": np.quantile(error, [0.5, 0.95, 0.99]).tolist(),
        "coverage": [found["coverage"][k] for k in (1, 2)],
        "pit_ks": float(max(np.max(steps[1:] - levels), np.max(levels - steps[:-1]))),
        "trust": [float(np.mean(prediction.trust == level)) for level in (1, 0, -1)],
    }


if __name__ == "__main__":
    main()
