"""The tables of benchmarks/studies/neutralino/run.py."""

import numpy as np

from benchmarks.lib.common import commits_of, markdown

__all__ = ["report"]

LEGEND = """\
Rows are named by setting and seed. "4 x (200 + 100)" means four chains with 200 transitions of warm-up and 100
draws each. The numbers after ADAM, Levenberg-Marquardt and HMC are epochs, iterations and leapfrog steps. Raw
inputs are the mass and N11 to N14; invariant inputs do not change under the symmetries of the cross section
(`invariant_inputs` in benchmarks/lib/problems.py). The settings basic and thesis have the standard
parameterisation, others ntk.

RMSE and R2 of log10 are of the posterior mean of log10 of the cross section. R2(fb) and relative errors are
of the posterior mean in fb. LPD is the mean log predictive density per row of the mixture of all draws, for
standardised log10 targets (row thesis: for log10). Coverage is the share of test rows within 1, 2 and 3
predicted standard deviations (sigma), noise included; .683, .954 and .997 are right. The next column is that
of central predictive intervals. Pulls are residuals divided by the predicted standard deviation. Their width
is the standard deviation; in brackets is the interquartile range divided by 1.349, and then the kurtosis (3
for a normal distribution). The noise scale is in standard deviations of log10 of the target, and nan without
a learned noise scale for all rows. R-hat and ESS are of the predictions at 200 validation rows. Wall-clock
time is that from raw rows to scores, compilation included. Milliseconds per gradient are the time of warm-up
and sampling divided by the gradients of all chains. Stacking weights the chains by their score on the 535
validation rows; "equal" is without stacking."""

FINDINGS = """\
Accuracy: Levenberg-Marquardt makes the largest difference on raw inputs: RMSE(log10) is .047 after 2000 epochs
of ADAM, .029 after 30 000, and .014 to .017 with it. Invariant inputs give about .003 with a network of the
same size. A larger network gains nothing more.

Calibration: with invariant inputs, coverage at two sigma is within .01 of the right value; at one sigma it is
not in any row. The residuals are not Gaussian noise but errors of the fit, which are small almost everywhere
and large near N11, N12 = 0, where the cross section cancels. This shows in their kurtosis, and in an
interquartile range of about six tenths of the right value. R-hat of about 2 says that each chain is in a mode
of its own. Heteroscedastic noise has the best LPD and the best tails (pull kurtosis 7, coverage .809 and .960).
Student-t noise has the best median error of this network, but outliers near the cancellation. Stacking drops
modes: on raw inputs it moves coverage at one sigma towards the right value. It changes RMSE by -36 to +22 % and
LPD by at most .16."""

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
    "error below 1 %",
    "5 %",
    "10 %",
    "wall-clock time, s",
]
CALIBRATION = [
    "row",
    "coverage of 1, 2, 3 sigma",
    "coverage of 68.3 %, 95.4 % intervals",
    "pull width (IQR), kurtosis",
    "noise scale",
    "R-hat: median, 95 %",
    "ESS: median",
    "acceptance",
    "ms per gradient",
    "seconds: pretraining, warm-up, sampling",
]
STACKING = [
    "row",
    "weights of the chains",
    "RMSE(log10): equal, stacked",
    "LPD: equal, stacked",
    "median relative error: equal, stacked",
    "coverage of 1, 2 sigma: equal",
    "coverage of 1, 2 sigma: stacked",
]


def report(rows):
    """Markdown of all finished rows: {key: what `neutralino.measure` found}."""
    tables = [
        ("Accuracy", ACCURACY, [*map(_accuracy, rows.values()), *_medians(rows)]),
        ("Calibration and sampling", CALIBRATION, map(_calibration, rows.values())),
        (
            "Stacking of the chains",
            STACKING,
            [_stacking(row) for row in rows.values() if len(row["weights"]) > 1],
        ),
    ]
    parts = [f"## {title}\n\n{markdown(header, lines)}" for title, header, lines in tables]
    made = f"Rows were measured at {commits_of(rows.values())}."
    return "\n\n".join(["# Neutralino pair production", *parts, LEGEND, FINDINGS, made])


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
