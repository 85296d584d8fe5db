"""The goals of benchmarks/studies/default/run.py, and whether its rows meet them. Nothing is asserted.

A goal for fits of this package of which one failed, or was not done in time, is not met.
"""

import numpy as np

from benchmarks.lib.default_tables import CLASSES, NOISE_FREE, REGRESSION, TABLES
from benchmarks.studies.default.compare import (
    DEFAULT,
    best_rival,
    by_split,
    difference,
    done,
    methods,
    of_table,
)

__all__ = ["bars"]

# Log densities: level with the best of all rivals on so many tables, and never far behind on any.
LEVEL, NUM_LEVEL, NEVER_BEHIND = 0.02, 11, 0.10
# RMSE: so much above the best rival's, on so many tables of numbers.
ERROR_FACTOR, NUM_ERRORS = 1.03, 8
# Medians over seeds, or means over splits.
LEAST_DENSITY = {
    "concrete": -2.62,
    "kin8nm": 1.41,
    "bikes": -4.45,
    "demo": 2.53,
    "neutralino raw": 5.2,
    "neutralino invariant": 6.3,
}
LARGEST_ERROR = {"airfoil": 0.95}
# Kolmogorov-Smirnov distance of probability integral transforms of n rows; targets of wine are whole numbers.
PIT_LEAST, PIT_SCALE, NUM_PIT = 0.03, 0.87, 8
# Seconds of a fit with up to so many rows, within a quarter, on so many tables.
SECONDS, SECONDS_FACTOR, NUM_IN_TIME = ((1500, 60.0), (np.inf, 150.0)), 1.25, 12
COVERED = ("concrete", "kin8nm", "wine", "airfoil", "bikes", "demo")
NOMINAL, COVERAGE_MARGIN = (0.6827, 0.9545), (0.08, 0.03)
# The network that was the default before, for calibration errors of classes.
BEFORE = "default 50"


def bars(rows):
    """Lines (bar, what was found, "yes", "no" or "not measured") from all rows, failed ones too."""
    judges = (_level, _errors, _numbers, _pit, _ece, _seconds, _noise_free, _ridge, _coverage)
    return [line for judge in judges for line in judge(rows)]


def _line(bar, found, met):
    """One line; `met` is None where there is nothing to judge by."""
    return [bar, found, {None: "not measured", True: "yes", False: "no"}[met]]


def _defaults(rows, table, name=DEFAULT):
    return methods(of_table(rows, table)).get(name, [])


def _failures(rows):
    """Return a note on the fits that did not end, or have no number for a density; "" if there are none."""
    count = len(rows) - len(done(rows)) + sum(np.isnan(row.get("lpd", 0.0)) for row in rows)
    return f"{count} of {len(rows)} fits failed" if count else ""


def _counted(bar, met, least):
    """A line on how many tables keep a bar, dict table -> whether."""
    others = sorted(name for name, holds in met.items() if not holds)
    text = f"{len(met) - len(others)} of {len(met)}{'; not ' if others else ''}{', '.join(others)}"
    return _line(bar, text, len(met) - len(others) >= least if met else None)


def _level(rows):
    """Level with the best rival, whatever its noise model, and never far behind."""
    behind = {}
    for table in TABLES:
        chosen, ours = of_table(rows, table), _defaults(rows, table)
        if not ours:
            continue
        if text := _failures(ours):
            behind[table] = np.inf
        elif best := best_rival(chosen):
            found = difference(ours, best[1])
            behind[table] = -found.mean - 2.0 * np.nan_to_num(found.error)
            text = f"{found.mean:+.3f} +- {found.error:.3f} against {best[0]}"
        met = behind[table] <= LEVEL if table in behind else None
        yield _line(
            f"{table}: LPD at most {LEVEL} + 2 se below the best rival", text or "no rival", met
        )
    level = {table: value <= LEVEL for table, value in behind.items()}
    yield _counted(f"the goals for LPD on at least {NUM_LEVEL} data sets", level, NUM_LEVEL)
    worst = max(behind, key=behind.get, default=None)
    text = "" if worst is None else f"{max(behind[worst], 0.0):.3f} + 2 se below, on {worst}"
    met = None if worst is None else behind[worst] <= NEVER_BEHIND
    yield _line(f"LPD never more than {NEVER_BEHIND} + 2 se below the best rival", text, met)


def _errors(rows):
    """RMSE on tables of numbers beside that of the best rival on the same splits."""
    met = {}
    for table, about in TABLES.items():
        chosen, ours = of_table(rows, table), _defaults(rows, table)
        best = best_rival(chosen, "rmse", largest=False)
        if about.kind != CLASSES and ours and best:
            here, there = by_split(ours, "rmse"), by_split(best[1], "rmse")
            ratio = np.mean([here[split] / there[split] for split in here if split in there])
            met[table] = not _failures(ours) and ratio <= ERROR_FACTOR
            bar = f"{table}: RMSE at most 3 % above the best rival"
            yield _line(bar, f"{ratio:.3f} times that of {best[0]}", met[table])
    yield _counted(f"the goals for RMSE on at least {NUM_ERRORS} data sets", met, NUM_ERRORS)


def _numbers(rows):
    for table, least in LEAST_DENSITY.items():
        yield _judged(rows, table, "lpd", f"at least {least}", lambda found, v=least: found >= v)
    for table, most in LARGEST_ERROR.items():
        yield _judged(rows, table, "rmse", f"at most {most}", lambda found, v=most: found <= v)


def _judged(rows, table, score, what, judge):
    """A line on the median over seeds of one split, or the mean over splits."""
    fits, bar = _defaults(rows, table), f"{table}: {score.upper()} {what}"
    if failed := _failures(fits):
        return _line(bar, failed, False)
    values = list(by_split(fits, score).values())
    if len(values) == 1:
        values = [np.median([row[score] for row in fits])]
    if not values:
        return _line(bar, "", None)
    found = float(np.mean(values))
    return _line(bar, f"{found:.4g}", judge(found))


def _pit(rows):
    """Pooled over splits, the mean over seeds of one; in bins of a hundredth."""
    met = {}
    for table, about in TABLES.items():
        counts = by_split(_defaults(rows, table), "pit")
        if about.kind != REGRESSION or table == "wine" or not counts:
            continue
        total = np.sum(list(counts.values()), axis=0)
        share = np.arange(1, len(total) + 1) / len(total)
        distance = float(np.abs(np.cumsum(total) / total.sum() - share).max())
        most = PIT_LEAST + PIT_SCALE / np.sqrt(total.sum())
        met[table] = distance <= most
        bar = f"{table}: PIT-KS at most {PIT_LEAST} + {PIT_SCALE} / sqrt(n)"
        yield _line(bar, f"{distance:.3f}, the limit is {most:.3f}", met[table])
    yield _counted(f"the goals for PIT-KS on at least {NUM_PIT} data sets", met, NUM_PIT)


def _ece(rows):
    for table, about in TABLES.items():
        if about.kind == CLASSES:
            here, there = (
                [row["ece"] for row in done(_defaults(rows, table, name)) if row["split"] == 0]
                for name in (DEFAULT, BEFORE)
            )
            text, met = "", None
            if here and there:
                text = f"{np.mean(here):.5f} against {np.mean(there):.5f}"
                met = bool(np.mean(here) <= np.mean(there))
            yield _line(f"{table}: ECE at most that of {BEFORE}, first split", text, met)


def _seconds(rows):
    """Judge the median wall seconds of processes."""
    met = {}
    for table in TABLES:
        alone = [row for row in done(_defaults(rows, table)) if "num_rows" in row]
        if alone:
            wanted = next(s for most, s in SECONDS if alone[0]["num_rows"] <= most)
            found = float(np.median([row["wall"] for row in alone]))
            met[table] = found <= SECONDS_FACTOR * wanted
            text = f"{found:.0f} s, load {np.mean([row['load_before'] for row in alone]):.1f}"
            goal = f"{table}: at most {SECONDS_FACTOR * wanted:g} s ({wanted:.0f} s and a quarter)"
            yield _line(goal, text, met[table])
    yield _counted(f"the goals for time on at least {NUM_IN_TIME} data sets", met, NUM_IN_TIME)


def _noise_free(rows):
    """By the error between the points of the grid: the median of three seeds, against the spline."""
    for table, about in TABLES.items():
        if about.kind == NOISE_FREE:
            ours = _defaults(rows, table)
            failed, errors = _failures(ours), [row["rmse"] for row in done(ours)]
            spline = [
                row["rmse"] for row in done(of_table(rows, table)) if row["method"] == "spline"
            ]
            bar = f"{table}: RMSE at most that of spline"
            if failed or not errors or not spline:
                yield _line(bar, failed, False if failed else None)
                continue
            text = (
                f"median {np.median(errors):.4g}, worst {max(errors):.4g}; spline {spline[0]:.4g}"
            )
            yield _line(bar, text, float(np.median(errors)) <= spline[0])


def _ridge(rows):
    """No default fit, of any network and seed, below ridge regression on the same split."""
    worst, count = [], 0
    for table in TABLES:
        chosen = of_table(rows, table)
        floor = by_split(methods(chosen).get("ridge", []), "lpd")
        for row in chosen:
            if row["method"] == "default" and row["split"] in floor:
                margin = row.get("lpd", np.nan) - floor[row["split"]]
                is_below = not (margin >= 0)  # nor is one that failed, or has no number
                worst.append((-np.inf if np.isnan(margin) else margin, row["key"]))
                count += is_below
    bar = "no default fit with an LPD below that of ridge regression"
    if not worst:
        return [_line(bar, "", None)]
    margin, key = min(worst)
    text = f"{count} of {len(worst)} below; smallest difference {margin:+.3f} ({key})"
    return [_line(bar, text, not count)]


def _coverage(rows):
    """Means over tables of the means over splits."""
    ours = {table: chosen for table in COVERED if (chosen := _defaults(rows, table))}
    failed = _failures([row for chosen in ours.values() for row in chosen])
    found = {
        table: np.mean([row["coverage"] for row in finished], axis=0)
        for table, chosen in ours.items()
        if (finished := done(chosen))
    }
    for index, (nominal, margin) in enumerate(zip(NOMINAL, COVERAGE_MARGIN)):
        bar = f"mean coverage at {index + 1} sigma within {margin} of {nominal}"
        if failed or not found:
            yield _line(bar, failed, False if failed else None)
            continue
        mean = np.mean([values[index] for values in found.values()])
        text = f"{mean:.3f} over {', '.join(found)}"
        yield _line(bar, text, abs(mean - nominal) <= margin)
