"""Tables of run.py, beside what the thesis has."""

import numpy as np

from benchmarks.lib.common import commits_of, keep, markdown
from benchmarks.studies.thesis.figures import draw
from benchmarks.studies.thesis.published import COVERAGE, PUBLISHED

__all__ = ["publish"]

COMMON = """\
The target is log10 of the PDF uncertainty, which the thesis takes for the cross section. There are 11 746
training and 1566 test rows (2203 in the thesis; the mass of the others is lost). ADAM in batches of 32 is
followed by one chain, with a noise scale of 1 and the prior N(0, 1000). The chain is HMC with 512 leapfrog
steps or NUTS; every eleventh transition is kept. R2 is the coefficient of determination of the mean prediction;
"R2" is that of the targets themselves, and "the same without the worst row" leaves out the row with the largest
error of 10^mean. The rms of the weights is that of the last draw. Published values are in brackets, digitised
from figures. Coverage is the share of test targets within 1, 2 and 3 standard deviations of the predictions,
without noise. The spread is the median of these standard deviations. R-hat compares the halves of the chain:
median and 95 % quantile over predictions. Hours are wall-clock hours on one core. Cells are empty if a number
was not computed. A row takes several processes, in turn; the commits at the end are those of the last one of
each row.

"""
LEGENDS = {
    "raw": """\
Inputs are in GeV. ADAM starts at N(0, 1), its loss has the full log prior in every batch, and it takes batches
in the order of the file, as the author's program does (`timing_nuts.py`). The target acceptance is .75. Runs
have 100 draws (1000 in the thesis), except in the table "Draws". NUTS of models 1 to 5 has at most 255 leapfrog
steps and 1000 transitions of warm-up (4095 and 2500 in the thesis). R2 of the targets is that of the mean of
10^f; the author's study of widths has that of 10^mean, so that its values are in that column. In the rows of
HMC with seed 0 of the warm-up table and 128 transitions and more, one test row decides both: its target is 7.1
fb, and chains predict 21 to 70 fb. Other work shared the cores and runs were stopped at times, so hours are
upper limits.
""",
    "standardised": """\
The setting is not that of the thesis: inputs are standardised, and ADAM starts from the prior, whose weights
saturate most hidden units. Step sizes of 5-20-20-1 are 44 to 80 times as large as with inputs in GeV, and weights leave
the neighbourhood of the network that ADAM found. Chains have 1000 draws with HMC in the warm-up table, and
100 otherwise. Runs in the table "Start" begin at the result of an ADAM whose loss has the full log prior in
every batch. "ADAM" among the surrogates is one network, with either loss. R2 of the targets depends on a few
rows, for which some draws are very large. After 32 epochs of pretraining all draws have equal predictions, so
the spread is 0 and R-hat is not defined.
""",
}
TITLES = {
    "raw": ("thesis.md", "The experiments of the thesis"),
    "standardised": (
        "thesis_standardised.md",
        "The experiments of the thesis on standardised inputs",
    ),
}
LABELS = {
    "warm-up": "transitions of warm-up",
    "pretraining": "epochs",
    "width": "hidden units",
    "models": "hidden layers of 50",
    "draws": "draws",
    "start": "hidden layers",
    "surrogates": "",
}


def publish(rows, inputs, folder):
    """Writes the table of rows with these inputs, and figures of those in the author's setting."""
    rows = {key: row for key, row in rows.items() if row.get("inputs", "standardised") == inputs}
    name, title = TITLES[inputs]
    parts = [
        *(_sweep(rows, study, label) for study, label in LABELS.items()),
        *map(_losses, _of(rows, "surrogates")),
        _coverage(rows),
        f"Rows were made at {commits_of(rows.values(), 'at')}.",
    ]
    keep(name, "\n\n".join([f"# {title}", COMMON + LEGENDS[inputs], *filter(None, parts)]), folder)
    if inputs == "raw":
        draw(rows.values(), folder)


def _of(rows, study):
    return [row for row in rows.values() if row["study"] == study]


def _sweep(rows, study, label):
    """A table of one study, or None."""
    found = sorted(
        _of(rows, study), key=lambda row: (row["kernel"], row["value"], row.get("seed", 0))
    )
    if not found:
        return None
    header = [
        label,
        "method",
        "draws",
        "R2 of log10, training rows",
        "R2 of log10, test rows",
        "R2, test rows",
        "R2 of 10^mean",
        "the same without the worst row",
        "coverage of 1, 2, 3 sigma",
        "rms of the weights",
    ]
    header += ["spread of log10", "acceptance", "leapfrog steps", "R-hat: median, 95 %", "hours"]
    lines = []
    for row in found:
        value, kernel = row["value"], row["kernel"]
        log10, plain, of_mean, steps = (
            PUBLISHED.get((study, kernel, what), {}).get(value)
            for what in ("r2_log10", "r2", "r2_of_10^mean", "leapfrog_steps")
        )
        lines.append(
            [
                f"{value or ''}" + (f", seed {row['seed']}" if row.get("seed") else ""),
                kernel,
                row["num_results"] if "acceptance" in row else "",
                f"{row['r2_log10']['train']:.4f}",
                f"{row['r2_log10']['test']:.4f}" + _bracketed(log10, ".4f"),
                f"{row['r2']['test']:.3g}" + _bracketed(plain, ".3g"),
                _bracketed(row.get("r2_of_10^mean"), ".3g").strip(" ()")
                + _bracketed(of_mean, ".3g"),
                _bracketed(row.get("r2_without_worst"), ".3g").strip(" ()"),
                ", ".join(f"{share:.3f}" for share in row["coverage"]["test"][:3]),
                _bracketed(row.get("weights"), ".2f").strip(" ()"),
                f"{row['spread']:.3f}",
                *_of_chain(row, steps),
            ]
        )
    return "\n\n".join(
        [f"## {study.capitalize()}", markdown(header, lines), *_over_seeds(found, label)]
    )


def _over_seeds(found, label):
    """Yield a sentence for each value with rows of several seeds."""
    again = {(row["kernel"], row["value"]) for row in found if row.get("seed")}
    for kernel, value in sorted(again):
        rows = [row for row in found if (row["kernel"], row["value"]) == (kernel, value)]
        log10, plain = (
            np.array([row[what]["test"] for row in rows]) for what in ("r2_log10", "r2")
        )
        error = log10.std(ddof=1) / len(rows) ** 0.5
        yield (
            f"{len(rows)} seeds ({label} {value}, {kernel}): R2 of log10 has the mean {log10.mean():.4f} +- "
            f"{error:.4f}, R2 of the targets {plain.mean():.3g}."
        )


def _losses(row):
    """A sentence on whether variational inference was at its end, or None."""
    if "losses" not in row:
        return None
    half, end = row["losses"]
    return f"The loss of {row['kernel']} is {half:.1f} after about half of its steps, and {end:.1f} at the end."


def _bracketed(number, form):
    return "" if number is None else f" ({number:{form}})"


def _of_chain(row, steps):
    """Cells on the chain; hours alone of what is none."""
    if "acceptance" not in row:
        return ["", "", "", f"{row['seconds'] / 3600:.2f}"]
    rhat = ", ".join(f"{value:.2f}" for value in row["rhat"] if not np.isnan(value))
    hours = sum(row["run_seconds"].values()) / 3600
    counts = f"{row['leapfrog_steps']:.0f}" + _bracketed(steps, ".0f")
    return [f"{row['acceptance']:.2f}", counts, rhat, f"{hours:.2f}"]


def _coverage(rows):
    """The table of Fig 8.14, or None."""
    found = [row for study in ("models", "start") for row in _of(rows, study) if row["value"] == 3]
    if not found:
        return None
    lines = [
        [row["study"], part]
        + [f"{one:.3f} ({other:.3f})" for one, other in zip(shares, COVERAGE[part])]
        for row in found
        for part, shares in row["coverage"].items()
    ]
    return (
        "## Coverage of model 3\n\nCells have the share of targets within k standard deviations of the predictions. Model 3 has three hidden layers of 50.\n\n"
        + markdown(["table", "rows", *(f"k = {k}" for k in range(1, 6))], lines)
    )
