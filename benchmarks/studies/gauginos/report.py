"""Tables of run.py."""

import numpy as np

from benchmarks.lib.common import keep, markdown

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
    header = ["pair", "rows", "failed", *SCORES, "verdict", "s"]
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
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    made = f" They were made at {commits}" + (
        f", calibrated at {', '.join(again)}." if again else "."
    )
    return [
        "## A default fit of each pair",
        "`BayesianMLP().fit_posterior(x, y, max_seconds=150)` on 85 % of the rows with all masses and a cross "
        "section, inputs as `datasets.cross_sections.symmetries` proposes them; scores on the other 15 %. "
        "Failed are points without a cross section (-1, NaN).",
        markdown(header, lines),
        f"Median relative error at most 1 %: {exact} of {len(rows)}. Coverage .66 to .71 and .94 to .97: "
        f"{len(held)} of {len(rows)}{others and f'; not {others}'}; on average {means}. All fits together took "
        f"{sum(row['seconds'] for row in rows) / 60:.0f} minutes.{made}",
    ]


def _pdf(rows):
    header = ["pair", "rows", *SCORES, "s"]
    lines = [[_name(row), row["num_train"], *_scores(row), f"{row['seconds']:.0f}"] for row in rows]
    return [
        "## The relative error of the parton densities",
        "A network of its own for each pair, 60 s each; errors are relative to that error.",
        markdown(header, lines),
    ]


def _rows(rows):
    header = ["pair", "rows", *SCORES, "verdict"]
    lines = [[_name(row), row["num_train"], *_scores(row), row["verdict"]] for row in rows]
    return [
        "## With fewer rows",
        "60 s each; the test rows are those of above.",
        markdown(header, lines),
    ]


def _next(rows):
    header = ["pair", "seed", "rows", "RMSE of log10", "median", "95 %", "99 %", "within 1, 2 sigma"]  # fmt: skip
    lines = [
        [_name(row), row["seed"], text, *_scores(row[name])[:5]]
        for row in rows
        for name, text in (
            ("first", "300"),
            ("chosen", "300 and 300 of largest error"),
            ("random", "300 and 300 at random"),
        )
    ]
    return [
        "## Which rows next",
        "300 rows, and 300 more of the pool: those with the widest predicted interval (of the logarithm) inside "
        "the training inputs, or some at random. 60 s each.",
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
        "Rows with the first mass from 200 to 300 GeV are no part of the fit; inside and outside are test rows in "
        "that window and elsewhere.",
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
