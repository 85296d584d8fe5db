"""The bars that benchmarks/default.py is to clear, and whether its rows do. Nothing is asserted.

A bar over fits of this package of which one failed, or was not done in time, is not met.
"""

import numpy as np
from default_compare import (
    DEFAULT,
    best_rival,
    by_split,
    difference,
    done,
    label,
    left_out,
    methods,
    of_table,
)
from default_tables import NOISE_FREE, TABLES

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
# On the demo's own test rows, fb: the best known, of `tfbnn demo` while it was tuned by hand.
DEMO_ERROR = 2.9
USABLE = "usable for error bars"
GREEN_SECONDS, MAX_SECONDS, SHORT_MARGIN = 300.0, 420.0, 0.05
NOT_GREEN = ("kin8nm", "neutralino raw", "neutralino invariant", "bikes", "grid")
COVERED = ("concrete", "kin8nm", "wine", "airfoil", "bikes", "demo")
NOISE_OF_STARTS = (
    "no start whose noise is below half of what held-out rows show",
    "not measured here (a test holds it: tests/unit/engine/starts/test_holdout.py)",
)
NOMINAL, COVERAGE_MARGIN = (0.6827, 0.9545), (0.08, 0.03)


def bars(rows):
    """Lines (bar, what was found, "yes", "no" or "not measured") from all rows, failed ones too."""
    lines = []
    for judge in (_level, _noise_free, _tuned, _airfoil, _ridge, _green, _short, _time, _demo):
        lines += judge(rows)
    return [*lines, *_coverage(rows), _line(*NOISE_OF_STARTS, None)]


def _line(bar, found, met):
    """One line; `met` is None where there is nothing to judge by."""
    return [bar, found, {None: "not measured", True: "yes", False: "no"}[met]]


def _defaults(rows, table, name=DEFAULT):
    return methods(of_table(rows, table)).get(name, [])


def _failures(rows):
    """What a line says of fits that did not end, or have no number for a density; else ""."""
    count = len(rows) - len(done(rows)) + sum(np.isnan(row.get("lpd", 0.0)) for row in rows)
    return f"{count} of {len(rows)} fits failed" if count else ""


def _level(rows):
    """Level with the best rival of the same noise model, and never far behind."""
    behind, lines = {}, []
    for table, about in TABLES.items():
        chosen, ours = of_table(rows, table), _defaults(rows, table)
        if about.kind == NOISE_FREE or not ours:
            continue
        if text := _failures(ours):
            behind[table] = np.inf
        else:
            text = "no rival"
            if best := best_rival(chosen):
                found = difference(ours, best[1])
                behind[table] = -found.mean - 2.0 * np.nan_to_num(found.error)
                text = f"{found.mean:+.3f} +- {found.error:.3f} against {best[0]}"
            text += left_out(chosen)
        met = behind[table] <= LEVEL if table in behind else None
        lines.append(_line(f"{table}: LPD level within {LEVEL} + 2 se", text, met))
    bar = f"level on {SHARE_LEVEL:.0%} of the tables"
    if not behind:
        return [*lines, _line(bar, "", None)]
    num_level = sum(value <= LEVEL for value in behind.values())
    text = f"of the tables measured: {num_level} of {len(behind)}"
    lines.append(_line(bar, text, num_level >= SHARE_LEVEL * len(behind)))
    worst = max(behind, key=behind.get)
    text = f"{max(behind[worst], 0.0):.3f} beyond 2 se, on {worst}"
    lines.append(
        _line(f"never more than {NEVER_BEHIND} + 2 se behind", text, behind[worst] <= NEVER_BEHIND)
    )
    return lines


def _noise_free(rows):
    """By the error between the points of the grid: the median of three seeds, against each rival."""
    for table, about in TABLES.items():
        if about.kind == NOISE_FREE:
            chosen, ours = of_table(rows, table), _defaults(rows, table)
            failed, errors = _failures(ours), [row["rmse"] for row in done(ours)]
            best = best_rival(chosen, "rmse", largest=False)
            spline = methods(done(chosen)).get("spline")
            for name, rival in (("the best rival", best), ("spline", ("spline", spline))):
                bar = f"{table}: RMSE at most that of {name}"
                if failed or not errors or not rival or not rival[1]:
                    yield _line(bar, failed, False if failed else None)
                    continue
                theirs = float(np.mean([row["rmse"] for row in rival[1]]))
                text = f"median {np.median(errors):.4g}, worst {max(errors):.4g}; {rival[0]} {theirs:.4g}"
                text += left_out(chosen, "rmse") if rival is best else ""
                yield _line(bar, text, float(np.median(errors)) <= theirs)


def _tuned(rows):
    """Medians over seeds (means over the splits of yacht) against the rows tuned by hand."""
    for (table, name, score), value in TUNED_DENSITY.items():
        ours = _defaults(rows, table, name)
        bar = f"{table}, {name}: {score} at least {value} - {DENSITY_MARGIN}"
        over = np.mean if table == "yacht" else np.median
        yield _judged(bar, ours, score, lambda found, v=value: found >= v - DENSITY_MARGIN, over)
    for (table, name), value in TUNED_ERROR.items():
        ours = _defaults(rows, table, name)
        bar = f"{table}, {name}: RMSE(log10) at most {value} + 10 %"
        yield _judged(bar, ours, "rmse_log10", lambda found, v=value: found <= ERROR_FACTOR * v)


def _judged(bar, fits, score, judge, over=np.median):
    """A line on the median over fits of one split, or the mean over splits (`over`)."""
    if failed := _failures(fits):
        return _line(bar, failed, False)
    values = [row[score] for row in fits if score in row]
    if over is np.mean:
        values = list(by_split(fits, score).values())
    if not values:
        return _line(bar, "", None)
    found = float(over(values))
    return _line(bar, f"{found:.4g}", judge(found))


def _airfoil(rows):
    ours = [row for row in _defaults(rows, "airfoil", "default 50-50") if row["split"] == 0]
    bar = f"airfoil, default 50-50: LPD (standardised) at least {TUNED_AIRFOIL} - {AIRFOIL_MARGIN}"
    least = TUNED_AIRFOIL - AIRFOIL_MARGIN
    yield _judged(bar, ours, "lpd_standardised", lambda median: median >= least)


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
        finished = done(chosen)
        good = [row["verdict"] == USABLE and row["wall"] <= GREEN_SECONDS for row in finished]
        text = f"{sum(good)} of {len(chosen)} fits" if chosen else ""
        if finished:
            text += f", at most {max(row['wall'] for row in finished):.0f} s"
        met = sum(good) == len(chosen) if chosen else None
        yield _line(f"{table}: {USABLE} in 5 minutes", text, met)


def _short(rows):
    """Stopped after two minutes against the same seeds of the same splits in full."""
    for table in TABLES:
        short = _defaults(rows, table, "short 50")
        begun = {(row["split"], row["seed"]) for row in short}
        full = [row for row in _defaults(rows, table) if (row["split"], row["seed"]) in begun]
        failed = _failures([*short, *full]) if short else ""
        found = difference(short, full) if short and full else None
        if failed or found or table not in NOT_GREEN:
            text = failed or (f"{found.mean:+.3f}" if found else "")
            met = False if failed else abs(found.mean) <= SHORT_MARGIN if found else None
            yield _line(f"{table}: LPD after 2 minutes within {SHORT_MARGIN}", text, met)


def _time(rows):
    """All these tables have N P below 5 x 10^7."""
    ours = [row for row in rows if row["method"] == "default"]
    # Without the seconds of one that was not done there is none longer.
    longest = max(ours, key=lambda row: np.inf if "failed" in row else row["wall"], default=None)
    bar = f"at most {MAX_SECONDS / 60:.0f} minutes"
    if longest is None:
        yield _line(bar, "", None)
        return
    found = longest.get("failed") or f"{longest['wall']:.0f} s"
    met = "failed" not in longest and longest["wall"] <= MAX_SECONDS
    yield _line(bar, f"{found}: {longest['table']}, {label(longest)}", met)


def _demo(rows):
    """With the layers that were tuned by hand, and with those of the default."""
    for name in ("default 20-20", DEFAULT):
        bar = f"demo, {name}: RMSE at most {DEMO_ERROR} fb + 10 %, that of the demo tuned by hand"
        yield _judged(
            f"{bar} (5-20-20-1, at 33ed619)",
            _defaults(rows, "demo", name),
            "rmse",
            lambda median: median <= ERROR_FACTOR * DEMO_ERROR,
        )


def _coverage(rows):
    """Means over tables of the means over splits."""
    ours = {table: chosen for table in COVERED if (chosen := _defaults(rows, table))}
    failed = _failures([row for chosen in ours.values() for row in chosen])
    found = {
        table: np.mean([row["coverage"] for row in finished], axis=0)
        for table, chosen in ours.items()
        if (finished := done(chosen))
    }
    for place, (nominal, margin) in enumerate(zip(NOMINAL, COVERAGE_MARGIN)):
        bar = f"mean coverage at {place + 1} sigma within {margin} of {nominal}"
        if failed or not found:
            yield _line(bar, failed, False if failed else None)
            continue
        mean = np.mean([values[place] for values in found.values()])
        text = f"{mean:.3f} over {', '.join(found)}"
        yield _line(bar, text, abs(mean - nominal) <= margin)
