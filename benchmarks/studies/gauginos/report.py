"""Tables of run.py."""

import numpy as np

from benchmarks.lib.common import commits_of, keep, markdown

__all__ = ["report"]

NAMES = {
    1000022: "chi10",
    1000023: "chi20",
    1000025: "chi30",
    1000035: "chi40",
    1000024: "chi1+",
    -1000024: "chi1-",
    1000037: "chi2+",
    -1000037: "chi2-",
}
SCORES = [
    "RMSE of log10",
    "relative error: median",
    "95 %",
    "99 %",
    "within 1, 2 sigma",
    "PIT-KS",
    "trust 1, 0, -1",
]
BANDS = ((0.66, 0.71), (0.94, 0.97))


def report(rows, folder):
    """Prints and keeps the tables of the rows so far."""
    parts = ["# Thirty gaugino pairs at next-to-leading order"]
    writers = {"pairs": _pairs, "pdf": _pdf, "rows": _rows, "next": _next, "cut": _cut}
    for part, write in writers.items():
        found = [row for row in rows.values() if row["part"] == part]
        if found:
            parts += write(found)
    keep("gauginos.md", "\n\n".join(parts), folder)


def _pairs(rows):
    header = ["pair", "rows", "failed", *SCORES, "verdict", "time, s"]
    lines = [
        [_name(row), row["num_train"], row["num_failed"], *_scores(row), row["verdict"], f"{row['seconds']:.0f}"]
        for row in rows
    ]  # fmt: skip
    exact = sum(row["errors"][0] <= 0.01 for row in rows)
    held = [
        row
        for row in rows
        if all(low <= share <= high for share, (low, high) in zip(row["coverage"], BANDS))
    ]
    others = ", ".join(_name(row) for row in rows if row not in held)
    means = ", ".join(f"{share:.3f}" for share in np.mean([r["coverage"] for r in rows], axis=0))
    again = {row["calibrated"] for row in rows if "calibrated" in row}
    made = f" They were made at {commits_of(rows)}" + (
        f" and calibrated at {', '.join(again)}." if again else "."
    )
    return [
        "## A default fit of each pair",
        "Each fit is `BayesianMLP().fit_posterior(x, y, max_seconds=150)` on 85 % of the points with all masses and a "
        "cross section, with the inputs that `datasets.cross_sections.symmetries` proposes. Scores are of the other "
        "15 %. Failed: points without a cross section (-1, NaN), which are left out. Relative errors are those of the "
        "cross section: median, 95 % and 99 % quantile. Within 1, 2 sigma: share of test points within 1 and 2 "
        "predicted standard deviations. PIT-KS is the Kolmogorov-Smirnov distance of the PITs from a uniform distribution. "
        "Trust: shares of test points inside (1), at the edge of (0) and outside (-1) the training inputs.",
        markdown(header, lines),
        f"The median relative error is at most 1 % for {exact} of {len(rows)} pairs. The shares within 1 and 2 sigma are "
        f".66 to .71 and .94 to .97 for {len(held)} of {len(rows)}{others and f' (not {others})'}, and {means} on average. "
        "All fits together took "
        f"{sum(row['seconds'] for row in rows) / 60:.0f} minutes.{made}",
    ]


def _pdf(rows):
    header = ["pair", "rows", *SCORES, "time, s"]
    lines = [[_name(row), row["num_train"], *_scores(row), f"{row['seconds']:.0f}"] for row in rows]
    return [
        "## The relative error of the parton densities",
        "Each pair has a second network for the relative error of the parton densities, fitted with `max_seconds=60`. "
        "Relative errors here are those of this quantity. RMSE of log10 is empty if the fit does not take the logarithm of "
        "the targets.",
        markdown(header, lines),
    ]


def _rows(rows):
    header = ["pair", "rows", *SCORES, "verdict"]
    lines = [[_name(row), row["num_train"], *_scores(row), row["verdict"]] for row in rows]
    return [
        "## With fewer rows",
        "Fits have `max_seconds=60`. The test rows are those of the first table.",
        markdown(header, lines),
    ]


def _next(rows):
    header = ["pair", "seed", "rows", *SCORES[:5]]
    lines = [
        [_name(row), row["seed"], text, *_scores(row[name])[:5]]
        for row in rows
        for name, text in (
            ("first", "300"),
            ("chosen", "300 and 300 of largest predicted error"),
            ("random", "300 and 300 at random"),
        )
    ]
    return [
        "## Selected and random rows",
        "A fit to 300 rows is repeated with 300 more, from the rest of the training rows: those with the widest "
        "predicted interval (of the logarithm) inside the training inputs, or random ones. Fits have `max_seconds=60`.",
        markdown(header, lines),
    ]


def _cut(rows):
    header = ["pair", "test rows", "number", *SCORES]
    lines = [
        [_name(row), where, row[where]["num_test"], *_scores(row[where])]
        for row in rows
        for where in ("inside", "outside")
    ]
    return [
        "## A region without rows",
        "The fits do not have rows whose first mass is between 200 and 300 GeV. Test rows are inside or outside this window.",
        markdown(header, lines),
    ]


def _name(row):
    return " ".join(NAMES[code] for code in row["pair"])


def _scores(row):
    return [
        "" if row["rmse_log10"] is None else f"{row['rmse_log10']:.4f}",
        *(f"{100 * error:.2f} %" for error in row["errors"]),
        ", ".join(f"{share:.3f}" for share in row["coverage"]),
        f"{row['pit_ks']:.3f}",
        ", ".join(f"{share:.3f}" for share in row["trust"]),
    ]
