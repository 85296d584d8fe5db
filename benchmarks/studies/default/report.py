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
    label,
    methods,
    of_table,
)

__all__ = ["report"]

LEGEND = """\
**Scores.** Cells are means over splits, with the standard error of the mean if there are several. The column
splits has the number of splits and, in brackets, of fits if there are more: other seeds on the first split.
RMSE, LPD (mean log predictive density per row) and CRPS are in the units of the target. Coverage is the share
of test rows within 1 and 2 predicted standard deviations (sigma), noise included. The Brier score is summed
over classes. ECE, the expected calibration error, has 15 bins. Times are those of a process from raw rows to
scores, imports and compilation included. Load is the mean load average of the machine when the processes
began. Above 1 other programs ran at the same time, and wall-clock times mean little.

**Data sets.** Wine is red wine, a regression on its quality; wine cultivars are classes. Demo is the table of
`tfbnn demo`, cross sections with noise. Grid is a function of two inputs on 13 x 13 points, without noise.
Neutralino is the cross section of a pair of neutralinos, by raw inputs or by inputs that its symmetries do
not change.

**Methods of this package.** "default auto" is `BayesianMLP().fit_posterior(x, y, seed=seed)` without other
settings. For classes the likelihood is given, too, because integer targets may be counts. The other fits have
given hidden layers. "default 50", "default 50-50" and "default 20-20" have one noise scale, and
"heteroscedastic 50" has `HeteroscedasticGaussian()`. Most of them are of earlier commits (below), at which a
fit ran for up to five minutes until its chains agreed; "short 50" was stopped after two minutes. "map",
"ensemble" and "laplace" are `fit_map`, `fit_ensemble` and `fit_laplace`.

**Other methods** get standardised inputs and targets. If all targets are positive and span more than two
decades, every method gets log10 of the target, and its density is transformed back. On yacht and bikes the
other methods are also fitted to the target itself ("plain target"), and the better of the two counts. Methods
without a predictive distribution get normal noise, estimated from out-of-fold errors: five folds for ridge
and boosting, out-of-bag errors for forest; for mlp see `default_rivals.mlp`. "gp" is a Gaussian process with
a length scale per input and the kernel, RBF or Matern 5/2, of larger marginal likelihood. Its
hyper-parameters are fitted to at most 2000 distinct rows, because copies (rows with equal inputs and target:
240 of the 1599 of wine) look like zero noise. Then it is conditioned on all rows. Its optimiser was chosen by
test scores of split 0 of yacht, concrete and wine. Boosting is the better of two settings by out-of-fold
errors. Methods with a star model noise that depends on the inputs; the default fit does so if it scores
better. A spline has no predictive distribution. bde was fitted to the first split only.

**Goals.** The best rival is the other method with the best score on these test rows, on the splits that it
shares with the default fit. Goals are for "default auto", except the one on ridge regression, which is for
all default fits. "a +- b against X" is the LPD of the default fit minus that of X, with its standard error
(se): over splits if there are five or more, else over 20 groups of test rows. PIT-KS is the
Kolmogorov-Smirnov distance of the PITs of n test rows from a uniform distribution. A goal is not met if one
of its fits failed or took more than 15 minutes."""

SCORES = {"RMSE": "rmse", "LPD": "lpd", "CRPS": "crps"}
CLASS_SCORES = {"accuracy": "accuracy", "LPD": "lpd", "Brier": "brier", "ECE": "ece"}
# Methods with noise that depends on the inputs.
BY_INPUT = (OUR_HETEROSCEDASTIC, *HETEROSCEDASTIC)
COST = ["wall-clock time, s", "processor time, s", "load", "fits x verdict"]


def report(rows):
    """Markdown of all rows, finished and failed ones."""
    parts = [
        "# Default fits and other methods",
        _section("Regression", rows, False, SCORES),
        _section("Classification", rows, True, CLASS_SCORES),
        _differences(rows),
        _first_split(rows),
        f"## Goals\n\n{markdown(['goal', 'found', 'met'], bars(rows))}",
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
    coverage = [] if of_classes else ["coverage of 1, 2 sigma"]
    header = ["data set", "method", "splits", *scores, *coverage, *COST]
    return f"## {title}\n\n{markdown(header, lines)}" if lines else ""


def _line(name, group, scores):
    star = " *" if group[0]["method"] in BY_INPUT and "rmse" in scores.values() else ""
    finished = done(group)
    splits = len({row["split"] for row in finished})
    count = f"{splits} ({len(finished)})" if len(finished) > splits else f"{splits}"
    reasons = Counter(row["failed"] for row in group if "failed" in row)
    count += "".join(f"; {number} failed ({why.rstrip('.')})" for why, number in reasons.items())
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
    header = ["data set", "score", "best rival", "default minus rival", "splits"]
    return f"## Difference from the best rival\n\n{markdown(header, lines)}" if lines else ""


# Of rivals, in the order of the columns of the first split.
RIVALS = {
    "bde": "bde",
    "gp": "Gaussian process",
    "mlp": "MLPs",
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
    header = ["data set", DEFAULT, *RIVALS.values()]
    title = "## LPD of all methods on the first split"
    if not lines:
        return ""
    text = "Cells are medians over seeds for the default fit, and the better of both targets for others."
    return f"{title}\n\n{text}\n\n{markdown(header, lines)}"


def _processes_on_wine(rows):
    commits = dict.fromkeys(
        row["commit"] for row in of_table(rows, "wine") if row["method"] == "gp"
    )
    if not commits:
        return ""
    return (
        f"The fits of gp to wine are of the commits {', '.join(commits)}. Up to 80f6211, rows with equal inputs "
        "counted as copies, also if their targets differed. On wine this makes no difference, because there such "
        "rows have equal targets."
    )


def _versions(rows):
    """Lists of the versions with the fits made by them, and of the commits of this package's fits."""
    fits, commits = {}, {}
    for row in rows:
        if row.get("versions"):
            fits.setdefault(row["versions"], Counter())[row["method"]] += 1
        if row["method"] in OURS:
            commits.setdefault(label(row), {})[row["commit"]] = None
    parts = []
    if fits:
        lines = (
            f"- {versions}: {', '.join(f'{name} {count}' for name, count in counts.items())}"
            for versions, counts in fits.items()
        )
        parts.append("Versions, with the methods and their numbers of fits:\n\n" + "\n".join(lines))
    if commits:
        lines = (f"- {name}: {', '.join(found)}" for name, found in commits.items())
        parts.append("Commits of the fits of this package:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)
