"""The tables of benchmarks/studies/default/run.py, from the rows that it has kept."""

from collections import Counter

import numpy as np

from benchmarks.lib.common import markdown
from benchmarks.lib.default_ours import OUR_HETEROSCEDASTIC, OURS
from benchmarks.lib.default_rivals import HETEROSCEDASTIC
from benchmarks.lib.default_tables import CLASSES, TABLES
from benchmarks.studies.default.bars import bars
from benchmarks.studies.default.compare import (
    DEFAULT,
    best_rival,
    by_split,
    difference,
    done,
    methods,
    of_table,
)

__all__ = ["report"]

LEGEND = """\
Means over splits, with the standard error of the mean where there are several; "default auto" is
`BayesianMLP().fit_posterior(x, y, seed=seed)` and nothing else (of classes also the likelihood,
which integers cannot say of themselves). "default 50", "default 50-50" and "default 20-20" are
networks that were given, with one noise scale, and "heteroscedastic 50" is
`likelihood=HeteroscedasticGaussian()` with two outputs: of the commits named below, where a fit went
on for up to five minutes until chains agree; "short" are those stopped after two minutes. Splits
counts splits, and fits in brackets where they are more: other seeds on the first split. RMSE, LPD
(mean log predictive density per row) and CRPS are in the units of the file; coverage is the share of
test rows within 1 and 2 standard deviations, noise included. Brier is summed over classes, ECE has
15 bins. Wall and processor seconds are those of a process from raw rows to scores, imports and
compilation included.

Rivals get standardised inputs and target. Where all targets are positive and span more than two
decades, every method gets log10 of the target, and its density is carried back by the Jacobian; on
yacht and bikes rivals are also tried on the plain target, and the better of the two counts. Who
predicts points only has the noise of its errors on rows out of fold (ridge, boosting: five folds;
forest: out of bag; MLP: see `default_rivals.mlp`). Gaussian processes: a length scale per input, RBF
or Matern 5/2 by marginal likelihood, hyper-parameters on at most 2000 distinct rows (copies, which
repeat inputs and target, make noise look like zero: 240 of the 1599 rows of wine), then conditioned
on all rows, copies included. Their optimiser was settled on split 0 of yacht, concrete and wine with
test rows in view. Boosting: the better of two settings out of fold. Rows with a star model noise that
depends on the inputs, as the default does where it pays. A spline has no error bar.

A bar over fits of which one failed, or was not done in time, is not met. The best rival is the one
with the best score on these very test rows, on the splits that it shares with the default; bde has
the first ones alone. From five splits on the standard error is that of the splits, below that of 20
groups of test rows. Load is the mean load average of the machine when rows began: where it is above
1, other processes ran beside, and wall seconds mean little."""

SCORES = {"RMSE": "rmse", "LPD": "lpd", "CRPS": "crps"}
CLASS_SCORES = {"accuracy": "accuracy", "LPD": "lpd", "Brier": "brier", "ECE": "ece"}
# Methods with noise that depends on the inputs.
BY_INPUT = (OUR_HETEROSCEDASTIC, *HETEROSCEDASTIC)
COST = ["wall s", "processor s", "load", "verdict"]


def report(rows):
    """Markdown of all rows, finished and failed ones."""
    parts = [
        "# By default: one line against what a user would pick instead",
        _section("Regression", rows, False, SCORES),
        _section("Classes", rows, True, CLASS_SCORES),
        _differences(rows),
        _first_split(rows),
        f"## Bars\n\n{markdown(['bar', 'found', 'met'], bars(rows))}",
        LEGEND,
        _processes_on_wine(rows),
        _versions(rows),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title, rows, of_classes, scores):
    lines = []
    for table, about in TABLES.items():
        if (about.kind == CLASSES) == of_classes:
            for name, group in methods(of_table(rows, table)).items():
                lines.append([table, *_line(name, group, scores)])
    coverage = [] if of_classes else ["coverage 1, 2 sigma"]
    header = ["table", "method", "splits", *scores, *coverage, *COST]
    return f"## {title}\n\n{markdown(header, lines)}" if lines else ""


def _line(name, group, scores):
    star = " *" if group[0]["method"] in BY_INPUT and "rmse" in scores.values() else ""
    finished = done(group)
    splits = len({row["split"] for row in finished})
    count = f"{splits} ({len(finished)})" if len(finished) > splits else f"{splits}"
    reasons = Counter(row["failed"] for row in group if "failed" in row)
    count += "".join(f", {number} {reason}" for reason, number in reasons.items())
    cells = [name + star, count, *(_mean(finished, score) for score in scores.values())]
    if "rmse" in scores.values():
        cells.append(_coverage(finished))
    return [*cells, *_cost(finished)]


def _mean(rows, score):
    """Over splits; over seeds where there is one split."""
    values = list(by_split(rows, score).values())
    if len(values) == 1:
        values = [row[score] for row in rows if score in row]
    if not values:
        return ""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
    return f"{np.mean(values):.4g}" + (f" +- {error:.2g}" if error is not None else "")


def _coverage(rows):
    values = [row["coverage"] for row in rows if "coverage" in row]
    return ", ".join(f"{share:.3f}" for share in np.mean(values, axis=0)) if values else ""


def _cost(rows):
    cells = []
    for name, pattern in (("wall", ".0f"), ("processor", ".0f"), ("load_before", ".1f")):
        values = [row[name] for row in rows]
        cells.append(f"{np.mean(values):{pattern}}" if values else "")
    verdicts = [row["verdict"] for row in rows if "verdict" in row]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    return [*cells, "; ".join(f"{count} x {verdict}" for verdict, count in counts.items())]


def _differences(rows):
    lines = []
    for table in TABLES:
        chosen = done(of_table(rows, table))
        ours = methods(chosen).get(DEFAULT, [])
        for title, score, largest in (("LPD", "lpd", True), ("RMSE", "rmse", False)):
            if best := best_rival(chosen, score, largest):
                found = difference(ours, best[1], score)
                error = f" +- {found.error:.2g}" if np.isfinite(found.error) else ""
                mean = f"{found.mean:+.3g}{error}"
                lines.append([table, title, best[0], mean, found.num_splits])
    header = ["table", "score", "best rival", "default less the rival", "splits"]
    return f"## Against the best rival\n\n{markdown(header, lines)}" if lines else ""


# Of rivals, in the order of the columns of the first split.
RIVALS = {
    "bde": "bde",
    "gp": "Gaussian process",
    "mlp": "networks",
    "boosting": "boosting",
    "catboost": "CatBoost",
    "ngboost": "NGBoost",
    "forest": "forest",
    "ridge": "ridge",
}


def _first_split(rows):
    """Log predictive density of all methods on the first split: the median over seeds, the better of both targets."""
    lines = []
    for table, about in TABLES.items():
        chosen = [row for row in done(of_table(rows, table)) if row["split"] == 0 and "lpd" in row]
        ours = [row["lpd"] for row in methods(chosen).get(DEFAULT, [])]
        if about.kind == CLASSES or not ours:
            continue
        each = [[row["lpd"] for row in chosen if row["method"] == rival] for rival in RIVALS]
        cells = [f"{max(scores):.2f}" if scores else "" for scores in each]
        lines.append([table, f"{np.median(ours):.2f}", *cells])
    header = ["table", DEFAULT, *RIVALS.values()]
    title = "## First split: log predictive density of all methods"
    return f"{title}\n\n{markdown(header, lines)}" if lines else ""


def _processes_on_wine(rows):
    commits = dict.fromkeys(
        row["commit"] for row in of_table(rows, "wine") if row["method"] == "gp"
    )
    if not commits:
        return ""
    return (
        f"Rows of gp on wine are of {', '.join(commits)}. Up to 80f6211 rows were copies where their "
        "inputs alone repeat; on wine the target repeats with them, so that the rows are the same."
    )


def _versions(rows):
    """The versions that the rivals and this package ran with, and the commits of the latter."""
    versions = dict.fromkeys(
        name for row in rows for name in row.get("versions", "").split(", ") if name
    )
    commits = dict.fromkeys(row["commit"] for row in rows if row["method"] in OURS)
    text = f"Rows were made with {', '.join(versions)}" if versions else ""
    return f"{text}; those of this package at {', '.join(commits)}." if commits else f"{text}."
