"""The tables of benchmarks/studies/neutralino/run.py."""

import numpy as np

from benchmarks.lib.common import markdown

__all__ = ["report"]

LEGEND = """\
Rows are named by setting and seed. RMSE and R2 of log10(cross section) are of the posterior mean of
log10; R2 in fb and relative errors are of the posterior mean in fb. LPD is the mean log predictive
density of the mixture of all draws, in units of the standardised (thesis row: plain) log10 target.
Coverage is the share of test rows within k standard deviations, noise included (nominal .683 .954
.997), the next column that of central predictive intervals. Pull width is the standard deviation of
the standardised residuals, with the interquartile range over 1.349 and the kurtosis (3 for a
normal) beside it. R-hat and ESS are of the predictions at 200 validation rows. Wall is everything
from raw rows to scores, compilation included; ms per gradient is wall time of warm-up and sampling
over the gradients of all chains. Raw inputs are mass and N11 to N14; invariant inputs carry the
symmetries of the cross section (`invariant_inputs` in benchmarks/lib/problems.py). Stacked rows weigh
the chains by their score on the 535 validation rows."""

FINDINGS = """\
What made the difference: Levenberg-Marquardt (RMSE(log10) .047 to about .015), and then the
symmetries of the inputs (.015 to about .004 at the same size of network). A larger network gains
nothing more here.

Calibration: with the invariant inputs coverage at two sigma is within .03 of nominal; at one sigma
it is not in any row. The residuals are no Gaussian noise but the error of the fit,
small almost everywhere and large near N11, N12 = 0, where the cross section cancels: their kurtosis
says so, and their interquartile range is about half of what it should be. And the chains sit in
modes of their own, whose spread is that of a single network, while the mean over the modes errs
less than each. Heteroscedastic noise is calibrated best in bulk and tails (pull kurtosis 6, .794
and .962, and the best LPD); Student-t noise has the best median error and pays with outliers: it
gives the cancellation up. Stacking moves coverage at one sigma towards nominal, because it drops
modes, and changes RMSE and LPD little."""

ACCURACY = [
    "row",
    "setting",
    "test RMSE(log10)",
    "R2(log10)",
    "R2(fb)",
    "LPD",
    "relative error: median",
    "90 %",
    "99 %",
    "better than 1 %",
    "5 %",
    "10 %",
    "wall s",
]
CALIBRATION = [
    "row",
    "coverage 1, 2, 3 sigma",
    "68.3 %, 95.4 % intervals",
    "pull width (IQR), kurtosis",
    "noise scale",
    "R-hat median, 95 %",
    "ESS median",
    "acceptance",
    "ms/gradient",
    "seconds pretraining, warm-up, sampling",
]
STACKING = [
    "row",
    "weights",
    "RMSE(log10) equal, stacked",
    "LPD equal, stacked",
    "median relative error equal, stacked",
    "coverage 1, 2 sigma equal",
    "stacked",
]


def report(rows):
    """Markdown of all finished rows: {key: what `neutralino.measure` found}."""
    tables = [
        ("Accuracy", ACCURACY, [*map(_accuracy, rows.values()), *_medians(rows)]),
        ("Calibration and sampling", CALIBRATION, map(_calibration, rows.values())),
        (
            "What stacking of the chains changes",
            STACKING,
            [_stacking(row) for row in rows.values() if len(row["weights"]) > 1],
        ),
    ]
    parts = [f"## {title}\n\n{markdown(header, lines)}" for title, header, lines in tables]
    return "\n\n".join(["# Neutralino pair production", *parts, LEGEND, FINDINGS]).strip()


def _accuracy(row):
    scores = row["equal"]
    return [row["key"], row["setting"], *_numbers(scores), f"{row['wall']:.0f}"]


def _numbers(scores):
    return [
        f"{scores['rmse_log10']:.4f}",
        f"{scores['r2_log10']:.5f}",
        f"{scores['r2']:.4f}",
        f"{scores['log_predictive_density_transformed']:.3f}",
        *(f"{value:.2%}" for value in scores["relative"]),
        *(f"{value:.1%}" for value in scores["better_than"]),
    ]


def _medians(rows):
    """A line with the median over seeds for every setting that has several."""
    names = dict.fromkeys(key.split()[0] for key in rows)
    for name in names:
        same = [row for key, row in rows.items() if key.split()[0] == name]
        if len(same) > 1:
            scores = {
                field: np.median([row["equal"][field] for row in same], axis=0)
                for field in same[0]["equal"]
            }
            wall = max(row["wall"] for row in same)
            yield [name, f"median of {len(same)} seeds", *_numbers(scores), f"at most {wall:.0f}"]


def _calibration(row):
    scores = row["equal"]
    seconds = [row["seconds"][phase] for phase in ("pretraining", "warmup", "sampling")]
    return [
        row["key"],
        _list(scores["coverage"]),
        _list(scores["central_coverage"]),
        f"{scores['pull_width']:.2f} ({scores['pull_iqr']:.2f}), {scores['kurtosis']:.0f}",
        f"{row['noise_scale']:.4f}",
        f"{row['rhat'][0]:.2f}, {row['rhat'][1]:.2f}",
        f"{row['ess']:.0f}",
        f"{row['acceptance']:.2f}",
        f"{row['ms_per_gradient']:.3f}",
        ", ".join(f"{value:.0f}" for value in seconds),
    ]


def _stacking(row):
    equal, stacked = row["equal"], row["stacked"]

    def both(name, pattern):
        return f"{equal[name]:{pattern}}, {stacked[name]:{pattern}}"

    return [
        row["key"],
        _list(row["weights"], 2),
        both("rmse_log10", ".4f"),
        both("log_predictive_density_transformed", ".3f"),
        f"{equal['relative'][0]:.2%}, {stacked['relative'][0]:.2%}",
        _list(equal["coverage"][:2]),
        _list(stacked["coverage"][:2]),
    ]


def _list(values, digits=3):
    return ", ".join(f"{value:.{digits}f}" for value in values)
