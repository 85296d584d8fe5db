"""Tables of benchmarks/studies/repriorisation/run.py."""

import itertools

import numpy as np

from benchmarks.lib.common import markdown
from benchmarks.studies.repriorisation.chains import LEAPFROG_STEPS, METHODS

__all__ = ["KINDS", "effective_cell", "per_step", "ratio_cell", "report"]

# Fewer effective draws than this are no estimate, only a bound.
FEWEST = 10.0
KINDS = ("weights", "outputs")
TITLES = {
    "widths": "Width",
    "rows": "Number of rows",
    "yacht": "Yacht",
}

# RMSE and test log likelihood of one hidden layer of 50, means over the 20 splits.
PUBLISHED = {
    "PBP": (1.02, -1.63),
    "MC dropout (2018 grid)": (0.666, -1.250),
    "deep ensemble": (1.58, -1.18),
}

LEGEND = f"""\
"kin8nm, 3 x 16, N = 256" means three hidden layers of 16 units and 256 rows of kin8nm. Networks have GELU,
the ntk parameterisation, N(0, 1) priors, and Gaussian noise of standard deviation 0.1 on standardised
targets. Standard chains sample the weights. Repriorised chains sample coordinates in which the posterior of a
wide network looks like its prior. Collapsed chains do not sample the readout, which is drawn exactly.

Each row is one chain of HMC with {LEAPFROG_STEPS} leapfrog steps and no preconditioner. Dual averaging tunes
the step size for each method to the acceptance 0.8; in short runs the acceptance is higher. All methods start
at the same point: a draw of the prior with its readout drawn given the data, after a warm-up of the
repriorised chain. Steps are leapfrog steps, which cost one gradient each. ESS is that of Geyer's initial
monotone sequence, per 1000 leapfrog steps. Its minimum, mean and maximum are over 100 random projections of
theta (all weights), and over the outputs at 100 test inputs. An ESS below ten is replaced by ten and marked
"<". Ratios to such an ESS are lower bounds (">"), and are marked "about" if the numerator is below ten, too.
R-hat squared is the split R-hat of the outputs: median and 95 % quantile. The paper has 3 million steps of
unadjusted Langevin per chain, tuned to an acceptance above 98 %. Here the length of a chain is given by its
processor time, with one thread. Standard chains run longer, because their bound is ten divided by the number
of steps.

A collapsed chain draws the readout exactly. Its ESS of the outputs exceeds that of a repriorised chain by as
much as the readout contributes to their spread: a good part on yacht, and little on kin8nm, where the earlier
layers decide most of it."""

SPEED_LEGEND = """\
Times are milliseconds per leapfrog step, in blocks in which the methods take turns: the median and, in
brackets, the shortest. The overhead is the median ratio to the time of standard chains. The bound is the
arithmetic of one gradient at the rates of products of 1024 x 1024 matrices, measured in the same turns. It
counts 6 N P operations and, for the Gram matrix, its Cholesky factor, the inverse and its product with the
features, 2 n^2 m + n^3 / 3 + 2 n^3 in float64 and 2 n^2 m in float32, where N is the number of rows, P that
of parameters, and n the smaller and m the larger of the numbers of features and rows. ESS per second is the
ESS per step of the tables above divided by the time of a step, for the three methods."""

ROWS = """\
The rows standard and repriorised of 3 x 1024 were measured at 95dad19, while other programs used the machine;
their seconds mean little. The standard chain of 3 x 256 with 256 rows is longer, and was measured at 8f84a60b on
an Intel machine. All others were measured on an AMD EPYC with tfbnn 0.1.0 at d839262 or before, before rows were
summed in blocks."""


def report(rows, plan):
    """The whole text, of the rows by key and the studies' Cases by name."""
    parts = ["# Repriorisation and the collapsed readout"]
    for name, cases in plan.items():
        found = chains_table(rows, cases)
        if found:
            parts.append(f"## {TITLES[name]}: ESS per 1000 leapfrog steps\n\n{found}")
    parts.append(LEGEND)
    cases = dict.fromkeys(itertools.chain(*plan.values()))
    timed = [case for case in cases if f"{case.key}, speed" in rows]
    if timed:
        parts += ["## Time\n\n" + speed_table(rows, timed), SPEED_LEGEND]
    splits = [row for row in rows.values() if row.get("study") == "splits"]
    if splits:
        parts.append(splits_part(splits))
    parts.append(ROWS)
    return "\n\n".join(parts)


def per_step(row, kind):
    """ESS per leapfrog step of a chain's row: (minimum, mean, maximum), and whether bounds.

    Args:
        row: As `repriorisation_chains.sample` returned it.
        kind: "weights" or "outputs".
    """
    sizes = np.array(row[kind]["ess"])
    raised = np.maximum(sizes, FEWEST)
    bounds = [bool(size < FEWEST) for size in (sizes.min(), sizes.min(), sizes.max())]
    return np.array([raised.min(), raised.mean(), raised.max()]) / row["num_gradients"], bounds


def chains_table(rows, cases):
    """One line per chain, those of a case one below the other."""
    lines = []
    for case in sorted(cases, key=lambda case: (case.depth, case.num_rows, case.width)):
        found = {m: rows[f"{case.key}, {m}"] for m in METHODS if f"{case.key}, {m}" in rows}
        for method, row in found.items():
            squared = row["outputs"]["rhat2"]
            lines.append(
                [
                    case.key if method == METHODS[0] else "",
                    row["parameters"] if method == METHODS[0] else "",
                    method,
                    f"{row['step_size']:.4f}",
                    f"{row['acceptance']:.3f}",
                    f"{row['num_gradients']}, {row['seconds']:.0f}",
                    *(effective_cell(row, kind) for kind in KINDS),
                    f"{squared[1]:.2f}, {squared[2]:.2f}",
                    *(ratio_cell(row, found.get("standard"), kind) for kind in KINDS),
                    ratio_cell(row, found.get("repriorised"), "outputs")
                    if method == "collapsed"
                    else "",
                ]
            )
    header = [
        "network",
        "parameters",
        "method",
        "step size",
        "acceptance",
        "steps, processor seconds",
        "ESS of theta: min, mean, max",
        "ESS of outputs: min, mean, max",
        "R-hat squared: median, 95 %",
        "ESS of theta / standard: min, mean",
        "ESS of outputs / standard: min, mean",
        "ESS of outputs / repriorised: min, mean",
    ]
    return markdown(header, lines) if lines else ""


def effective_cell(row, kind):
    values, bounds = per_step(row, kind)
    return ", ".join(f"{'< ' if b else ''}{1000 * value:.2g}" for value, b in zip(values, bounds))


def ratio_cell(row, other, kind):
    """Ratios of minimum and mean; the divisor's bound makes them lower bounds."""
    if other is None or other is row:
        return ""
    _, bounds = per_step(row, kind)
    (smallest, mean, _), other_bounds = per_step(other, kind)
    sizes = np.array(row[kind]["ess"]) / row["num_gradients"]
    ratios = (sizes.min() / smallest, sizes.mean() / mean)
    marks = [("> " if o else "") + ("about " if b else "") for o, b in zip(other_bounds, bounds)]
    return ", ".join(f"{mark}{ratio:.2g}" for mark, ratio in zip(marks, ratios))


def speed_table(rows, cases):
    """One line per case."""
    lines = []
    for case in sorted(cases, key=lambda case: (case.data, case.depth, case.num_rows, case.width)):
        row = rows[f"{case.key}, speed"]
        times = [f"{row['milliseconds'][m]:.3g} ({row['quickest'][m]:.3g})" for m in METHODS]
        overheads = [f"{row['overhead'][m]:.2f}" for m in METHODS[1:]]
        over_bound = row["milliseconds"]["repriorised"] / row["bound"]["repriorised"]
        lines.append(
            [
                case.key,
                *times,
                ", ".join(overheads),
                f"{row['bound']['standard']:.2g}, {row['bound']['repriorised']:.2g}",
                f"{over_bound:.1f}",
                f"{row['rates']['float32'] / 1e9:.0f}, {row['rates']['float64'] / 1e9:.0f}",
                *(per_second(rows, case, row, index) for index in (0, 1)),
            ]
        )
    header = [
        "network",
        *(f"{method}, ms" for method in METHODS),
        "overhead: repriorised, collapsed",
        "bound: standard, repriorised, ms",
        "repriorised / its bound",
        "rates, GFLOP/s: float32, float64",
        "ESS of outputs per second: min",
        "ESS of outputs per second: mean",
    ]
    return markdown(header, lines)


def per_second(rows, case, speed, index):
    """ESS per second of the three methods: index 0 the minimum, 1 the mean."""
    cells = []
    for method in METHODS:
        if f"{case.key}, {method}" not in rows:
            return ""
        values, bounds = per_step(rows[f"{case.key}, {method}"], "outputs")
        value = 1e3 * values[index] / speed["milliseconds"][method]
        cells.append(f"{'< ' if bounds[index] else ''}{value:.2g}")
    return ", ".join(cells)


def splits_part(rows):
    """Scores on the splits of yacht, beside published ones."""

    def spread(name):
        values = np.array([row[name] for row in rows])
        if len(values) == 1:
            return f"{values[0]:.3f}"
        return f"{values.mean():.3f} +- {values.std(ddof=1) / len(values) ** 0.5:.3f}"

    lines = [
        ["collapsed HMC", spread("rmse"), spread("log_predictive_density")],
        *([name, *map(str, values)] for name, values in PUBLISHED.items()),
    ]
    seconds = np.median([row["seconds"] for row in rows])
    effective = np.median([row["n_effective"] for row in rows])
    return (
        f"## Yacht, {len(rows)} of 20 splits, 6-50-1\n\n"
        + markdown(["method", "RMSE", "log predictive density"], lines)
        + "\n\nScores are means over the splits, with their standard error; those without an error are published. "
        "Collapsed HMC has tanh, the ntk parameterisation, prior scales 1.5 (weights) and 1 (biases), and a learned noise "
        "scale. Two chains start from ADAM, with 300 transitions of warm-up and 200 draws. A split takes "
        f"{seconds:.0f} s with everything, and the ESS of the predictions is {effective:.0f} (medians). The priors were the "
        "best of four on the first two splits."
    )
