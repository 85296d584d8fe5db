"""Which scale of calibrated bars tells large errors from small ones: the misfit, and its rivals.

    TFBNN_DATA=folder python -m benchmarks pops --runs FOLDER [--tables wine ...] [--seeds 0]

Runs are those of benchmarks/studies/calibration/run.py, opened and not sampled again. Of each scale: the rank
correlation of absolute errors and bars, and coverage and density calibrated by the rows of the fit
("loo") and by held-out rows ("split", averaged over ten partitions), on held-out rows, transformed. Finished rows are kept beside the
table, benchmarks/results/pops.md.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.lib.common import add_common_options, output_folder, revision
from benchmarks.lib.store import Store
from benchmarks.studies.calibration.run import NAMES, QUICK, by_default
from benchmarks.studies.pops.report import report
from benchmarks.studies.pops.scales import held_out_of, own_and_new, scales_of

NUM_PARTITIONS = 10


def main(arguments=None):
    """Measures all rows and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--tables", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs")
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    options.runs.mkdir(parents=True, exist_ok=True)
    store = Store("pops", options.fresh, folder)
    for name in options.tables:
        for seed in options.seeds:
            key = f"{name}, seed {seed}"
            if key not in store:
                store.add(key, row_of(name, seed, options.runs, options.quick))
                print(key, flush=True)
    report(list(store.rows.values()), folder)


def row_of(name, seed, runs, quick):
    """Measures all scales on one table; a dict of JSON values."""
    problem, model, _ = by_default(name)
    x, y = problem.train
    folder = runs / f"{name.replace(' ', '_')}-{seed}"
    settings = QUICK if quick else {}
    model.fit_posterior(
        x, y, seed=seed, output=folder, resume=folder.exists(), calibrate=False, **settings
    )
    own, new = own_and_new(model, x, y, held_out_of(problem))
    count = len(problem.validation[0]) if problem.validation else len(new.score) // 2
    scales = scales_of(model, own, new)
    return {
        "table": name,
        "seed": seed,
        "commit": revision(),
        "scales": {label: of_scale(*pair, own, new, count) for label, pair in scales.items()},
    }


def of_scale(factors, new_factors, own, new, count):
    """Rank correlation, coverage and density of one scale, factors of the deviations."""
    from tfbnn.posterior.calibration.score_distribution import ScoreDistribution

    scores, bars = new.score / new_factors, new.stddev * new_factors
    known = own.judged
    loo = ScoreDistribution.of(own.score[known] / factors[known])
    partitions = []
    for number in range(NUM_PARTITIONS):
        order = np.random.default_rng(number).permutation(len(scores))
        some, others = np.split(order, [count])
        map_ = ScoreDistribution.of(scores[some])
        partitions.append(judged(map_, scores[others], bars[others]))
    return {
        "rank": rank_correlation(np.abs(new.score * new.stddev), bars),
        "loo": judged(loo, scores, bars),
        "split": {
            key: np.mean([one[key] for one in partitions], axis=0).tolist() for key in partitions[0]
        },
    }


def judged(distribution, scores, bars):
    """Coverage of one and two deviations, that of one by thirds of the bars, and the density."""
    from tfbnn.posterior.calibration.calibration import central_levels

    inside = []
    for k in (1, 2):
        low, high = distribution.quantile(np.array(central_levels(k)))
        inside.append((scores > low) & (scores < high))
    thirds = np.array_split(np.argsort(bars, kind="stable"), 3)
    return {
        "coverage": [float(one.mean()) for one in inside],
        "thirds": [float(inside[0][third].mean()) for third in thirds],
        "density": float(np.mean(distribution.log_density(scores) - np.log(bars))),
    }


def rank_correlation(errors, bars):
    """Spearman's."""
    ranks = [values.argsort(kind="stable").argsort(kind="stable") for values in (errors, bars)]
    return float(np.corrcoef(*ranks)[0, 1])


if __name__ == "__main__":
    main()
