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
GELU, ntk, N(0, 1) priors, Gaussian noise of standard deviation 0.1 on standardised targets. One
chain of HMC per row, {LEAPFROG_STEPS} leapfrog steps, no preconditioner, step size tuned by dual
averaging to the acceptance 0.8 for each method (short runs end above it); all methods start at the
same point, a draw of the prior with its readout drawn given the data, after a warm-up of the
repriorised chain. ESS: Geyer's initial monotone sequence, of 100 random projections of theta and of
the outputs at 100 test inputs, minimum, mean and maximum, per 1000 leapfrog steps; a step is a
gradient. Where a chain makes fewer than ten effective draws of a quantity, ten are put in their
place and "<" says that the number is an upper bound; "> standard" are then lower bounds of the
ratio. R-hat squared: split, of the outputs, median and 95 %. The paper has 3 million steps of
unadjusted Langevin per point, tuned to an acceptance above 98 %; these chains have the processor
seconds of sampling that the table says, one thread each. Standard chains run longer, because their
bound is ten over the number of steps.

What the collapsed chain gains over the repriorised one in the outputs is what the readout, which it
draws anew, contributes to their spread. On yacht that is a good part of it; on kin8nm the earlier
layers decide most of it, and the two differ little."""

SPEED_LEGEND = """\
Milliseconds per leapfrog step in blocks in which the methods take turns, medians and quickest;
overhead is the median of the ratios. The bound is the arithmetic of one gradient (6 N P operations,
and for the Gram matrix, its Cholesky factor, the inverse and its product with the features
2 n^2 m + n^3 / 3 + 2 n^3 in float64 and 2 n^2 m in float32, n the smaller and m the larger of
features and rows) at the rates of products of 1024 x 1024 matrices, measured in the same turns.
ESS per second: the ESS per step above over these milliseconds."""

ROWS = """\
Rows standard and repriorised of 3 x 1024 were made at 95dad19, on a machine that other work shared: their
seconds are no measure. All others were made with tfbnn 0.1.0 at d839262 or before, before rows were summed in
blocks."""


def report(rows, plan):
    """The whole text, of the rows by key and the studies' Cases by name."""
    parts = ["# Repriorisation and the collapsed readout"]
    for name, cases in plan.items():
        found = chains_table(rows, cases)
        if found:
            parts.append(f"## {TITLES[name]}: effective draws per 1000 leapfrog steps\n\n{found}")
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
        "theta: min, mean, max",
        "outputs: min, mean, max",
        "R-hat squared",
        "theta: over standard, min, mean",
        "outputs: over standard, min, mean",
        "outputs: over repriorised",
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
        "overhead of the two",
        "bound: standard, repriorised, ms",
        "repriorised over its bound",
        "Gflop/s: float32, float64",
        "outputs, min ESS / s",
        "outputs, mean ESS / s",
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
        + "\n\nTanh, ntk, prior scales 1.5 (weights) and 1, learned noise scale, two chains of collapsed "
        f"HMC after ADAM, 300 transitions of warm-up and 200 draws; {seconds:.0f} s a split with "
        f"everything, {effective:.0f} effective draws of the predictions (medians). Mean +- standard "
        "error over the splits. The priors were the best of four on the first two splits."
    )
