"""The bars that benchmarks/default.py is to clear, and whether its rows do. Nothing is asserted."""

import numpy as np
from default_compare import (
    DEFAULT,
    best_rival,
    by_split,
    difference,
    label,
    methods,
    of_table,
)
from default_tables import CLASSES, NOISE_FREE, TABLES

__all__ = ["bars"]

LEVEL, NEVER_BEHIND, SHARE_LEVEL = 0.02, 0.15, 0.75
# Rows that were tuned by hand: (table, network, score) -> value and where it is kept.
TUNED_DENSITY = {
    ("yacht", "default 50", "lpd"): 0.120,  # results/repriorisation.md
    ("neutralino raw", "default 20-20", "lpd_standardised"): 3.23,  # results/neutralino.md
    ("neutralino invariant", "default 20-20", "lpd_standardised"): 4.77,
}
TUNED_ERROR = {("neutralino raw", "default 20-20"): 0.0145}
TUNED_ERROR |= {("neutralino invariant", "default 20-20"): 0.0037}
DENSITY_MARGIN, ERROR_FACTOR = 0.1, 1.1
TUNED_AIRFOIL, AIRFOIL_MARGIN = 0.8835, 0.3  # results/airfoil.md, standardised target
DEMO_ERROR = 2.9  # of `tfbnn demo` on its own test rows, fb
USABLE = "usable for error bars"
GREEN_SECONDS, MAX_SECONDS, SHORT_MARGIN = 300.0, 420.0, 0.05
NOT_GREEN = ("kin8nm", "neutralino raw", "neutralino invariant", "bikes", "grid")
COVERED = ("concrete", "kin8nm", "wine", "airfoil", "bikes", "demo")
NOMINAL, COVERAGE_MARGIN = (0.6827, 0.9545), (0.08, 0.03)


def bars(rows):
    """Lines (bar, what was found, "yes", "no" or "not measured") from finished rows."""
    lines = []
    for judge in (_level, _noise_free, _tuned, _airfoil, _ridge, _green, _short, _time, _demo):
        lines += judge(rows)
    return [*lines, *_coverage(rows)]


def _line(bar, found, met):
    """One line; `met` is None where there is nothing to judge by."""
    return [bar, found, {None: "not measured", True: "yes", False: "no"}[met]]


def _defaults(rows, table, name=DEFAULT):
    return methods(of_table(rows, table)).get(name, [])


def _level(rows):
    """Level with the best rival of the same noise model, and never far behind."""
    behind, lines, num_level = {}, [], 0
    for table, about in TABLES.items():
        if about.kind != NOISE_FREE and (best := best_rival(of_table(rows, table))):
            found = difference(_defaults(rows, table), best[1])
            behind[table] = -found.mean - 2.0 * np.nan_to_num(found.error)
            is_level = behind[table] <= LEVEL
            num_level += is_level
            text = f"{found.mean:+.3f} +- {found.error:.3f} against {best[0]}"
            lines.append(_line(f"{table}: LPD level within {LEVEL} + 2 se", text, bool(is_level)))
    bar = f"level on {SHARE_LEVEL:.0%} of the tables"
    if not behind:
        return [_line(bar, "", None)]
    lines.append(
        _line(bar, f"{num_level} of {len(behind)}", num_level >= SHARE_LEVEL * len(behind))
    )
    worst = max(behind, key=behind.get)
    text = f"{max(behind[worst], 0.0):.3f} beyond 2 se, on {worst}"
    lines.append(
        _line(f"never more than {NEVER_BEHIND} + 2 se behind", text, behind[worst] <= NEVER_BEHIND)
    )
    return lines


def _noise_free(rows):
    """By the error between the points of the grid: of the worst seed, against each rival."""
    for table, about in TABLES.items():
        if about.kind == NOISE_FREE:
            chosen = of_table(rows, table)
            errors = [row["rmse"] for row in _defaults(rows, table)]
            best = best_rival(chosen, "rmse", largest=False)
            spline = methods(chosen).get("spline")
            for bar, rival in (("the best rival", best), ("spline", ("spline", spline))):
                if not errors or not rival or not rival[1]:
                    yield _line(f"{table}: RMSE at most that of {bar}", "", None)
                    continue
                theirs = float(np.mean([row["rmse"] for row in rival[1]]))
                text = f"median {np.median(errors):.4g}, worst {max(errors):.4g}; {rival[0]} {theirs:.4g}"
                met = float(np.median(errors)) <= theirs
                yield _line(f"{table}: RMSE at most that of {bar}", text, met)


def _tuned(rows):
    """Medians over seeds (means over the splits of yacht) against the rows tuned by hand."""
    for (table, name, score), value in TUNED_DENSITY.items():
        found = [row[score] for row in _defaults(rows, table, name)]
        if table == "yacht" and found:
            found = [np.mean(list(by_split(_defaults(rows, table), score).values()))]
        bar = f"{table}, {name}: {score} at least {value} - {DENSITY_MARGIN}"
        yield _judged(bar, found, lambda median, value=value: median >= value - DENSITY_MARGIN)
    for (table, name), value in TUNED_ERROR.items():
        found = [row["rmse_log10"] for row in _defaults(rows, table, name) if "rmse_log10" in row]
        bar = f"{table}, {name}: RMSE(log10) at most {value} + 10 %"
        yield _judged(bar, found, lambda median, value=value: median <= ERROR_FACTOR * value)


def _judged(bar, values, judge):
    if not values:
        return _line(bar, "", None)
    median = float(np.median(values))
    return _line(bar, f"{median:.4g}", judge(median))


def _airfoil(rows):
    found = [
        row["lpd_standardised"]
        for row in _defaults(rows, "airfoil", "default 50-50")
        if row["split"] == 0
    ]
    bar = f"airfoil, default 50-50: LPD (standardised) at least {TUNED_AIRFOIL} - {AIRFOIL_MARGIN}"
    yield _judged(bar, found, lambda median: median >= TUNED_AIRFOIL - AIRFOIL_MARGIN)


def _ridge(rows):
    """No default fit, of any network and seed, below ridge regression on the same split."""
    worst, count = [], 0
    for table in TABLES:
        chosen = of_table(rows, table)
        floor = by_split(methods(chosen).get("ridge", []), "lpd")
        for row in chosen:
            if row["method"] == "default" and row["split"] in floor:
                worst.append((row["lpd"] - floor[row["split"]], row["key"]))
                count += worst[-1][0] < 0
    bar = "no default fit below ridge regression in LPD"
    if not worst:
        yield _line(bar, "", None)
        return
    margin, key = min(worst)
    yield _line(
        bar, f"{count} of {len(worst)} below; least margin {margin:+.3f} ({key})", not count
    )


def _green(rows):
    """Usable for error bars within five minutes: every seed and split that was fitted."""
    for table in TABLES:
        if table in NOT_GREEN:
            continue
        chosen = _defaults(rows, table)
        good = [row["verdict"] == USABLE and row["wall"] <= GREEN_SECONDS for row in chosen]
        text = ""
        if chosen:
            longest = max(row["wall"] for row in chosen)
            text = f"{sum(good)} of {len(good)} fits, at most {longest:.0f} s"
        yield _line(f"{table}: {USABLE} in 5 minutes", text, all(good) if chosen else None)


def _short(rows):
    for table in TABLES:
        short, full = _defaults(rows, table, "short 50"), _defaults(rows, table)
        found = difference(short, full) if short and full else None
        if found or table not in NOT_GREEN:
            text = f"{found.mean:+.3f}" if found else ""
            met = abs(found.mean) <= SHORT_MARGIN if found else None
            yield _line(f"{table}: LPD after 2 minutes within {SHORT_MARGIN}", text, met)


def _time(rows):
    """All these tables have N P below 5 x 10^7."""
    longest = max(
        (r for r in rows if r["method"] == "default"), key=lambda r: r["wall"], default=None
    )
    bar = f"at most {MAX_SECONDS / 60:.0f} minutes"
    if longest is None:
        yield _line(bar, "", None)
        return
    text = f"{longest['wall']:.0f} s: {longest['table']}, {label(longest)}"
    yield _line(bar, text, longest["wall"] <= MAX_SECONDS)


def _demo(rows):
    found = [row["rmse"] for row in _defaults(rows, "demo", "default 20-20")]
    bar = f"demo, default 20-20: RMSE at most {DEMO_ERROR} fb + 10 %, that of the demo itself"
    yield _judged(bar, found, lambda median: median <= ERROR_FACTOR * DEMO_ERROR)


def _coverage(rows):
    """Means over tables of the means over splits."""
    found = {
        table: np.mean([row["coverage"] for row in chosen], axis=0)
        for table in COVERED
        if (chosen := _defaults(rows, table)) and TABLES[table].kind != CLASSES
    }
    for place, (nominal, margin) in enumerate(zip(NOMINAL, COVERAGE_MARGIN)):
        bar = f"mean coverage at {place + 1} sigma within {margin} of {nominal}"
        if not found:
            yield _line(bar, "", None)
            continue
        mean = np.mean([values[place] for values in found.values()])
        text = f"{mean:.3f} over {', '.join(found)}"
        yield _line(bar, text, abs(mean - nominal) <= margin)
