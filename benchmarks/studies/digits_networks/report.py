"""Tables of benchmarks/studies/digits_networks/run.py."""

from benchmarks.lib.common import markdown
from benchmarks.studies.digits_networks.chains import NUM_CHAINS, NUM_ROWS, NUM_WATCHED
from benchmarks.studies.repriorisation.chains import LEAPFROG_STEPS, METHODS
from benchmarks.studies.repriorisation.report import KINDS, effective_cell, ratio_cell

__all__ = ["report"]

LEGEND = f"""\
{NUM_ROWS} of scikit-learn's 1797 digits, pixels standardised together; Gaussian noise of standard
deviation 0.1 on one-hot labels minus 0.1. Fully connected: three hidden layers. Flattened: a
residual network on 4 x 4 pixels, a stem and one block, all channels of all pixels to the readout
(`benchmarks/lib/paper_networks.py`). GELU, ntk; prior scales 1.5 for kernels, 1 for that of the readout, 0.1 for biases.
Features are those of the readout, with the bias.

{NUM_CHAINS} chains of HMC, {LEAPFROG_STEPS} leapfrog steps, no preconditioner, step size tuned by dual
averaging to the acceptance 0.8. The chains of all methods start at the same two points, draws of the
prior with a readout that is drawn given the data. Gradients are those of one chain, after the warm-up,
which makes as many transitions with each method. ESS: Geyer's initial monotone sequence, per chain,
mean of the two; of 100 random projections of theta, and of the ten outputs at {NUM_WATCHED} test
images; minimum, mean and maximum, per 1000 gradients. Where there are fewer than ten effective draws
of a quantity, ten are put in their place and "<" says that the number is an upper bound; "> standard"
are then lower bounds of the ratio, and "about" says that what is divided is below ten, too. R-hat
squared: split, of those outputs over both chains, median and 95 %. Its way there is in the figure, as
in figures 8 and 9 of the paper, whose networks are larger and whose chains have 3 million steps.
Scores are of the 1541 other digits.

These chains are short. Means over the outputs are resolved with the collapsed readout, whose exact
draws are a part of them; the slowest outputs, and nearly all of theta, make fewer than ten effective
draws with any method, so that their ratios say nothing. R-hat shows that the
two standard chains still are apart, so that their scores are those of two places, not of a posterior.
No larger table of images comes with a package that is used here."""

SCORES_LEGEND = """\
All on the same rows. A network's probabilities of the ten classes are those of the ten codes
under its Gaussian noise; they are averaged over draws or members. The forest's are raised to
1 / 5000."""


def report(rows, cases):
    """The whole text, of the rows by key and the Cases."""
    parts = [
        "# Wide networks on digits: standard, repriorised, collapsed",
        chains_table(rows, cases),
        LEGEND,
        "![R-hat](digits_networks.png)",
    ]
    if "rivals" in rows:
        parts += ["## Others", scores_table(rows["rivals"]["scores"]), SCORES_LEGEND]
    return "\n\n".join(parts)


def chains_table(rows, cases):
    """One line per network and method."""
    lines = []
    for case in sorted(cases, key=lambda case: (case.kind, case.width)):
        found = {m: rows[f"{case.key}, {m}"] for m in METHODS if f"{case.key}, {m}" in rows}
        for method, row in found.items():
            _, median, high = row["rhat2"][-1]
            lines.append(
                [
                    case.key,
                    f"{row['parameters']}, {row['features']}",
                    method,
                    f"{row['step_size']:.4f}, {row['acceptance']:.2f}",
                    row["num_gradients"],
                    *(effective_cell(row, kind) for kind in KINDS),
                    *(ratio_cell(row, found.get("standard"), kind) for kind in KINDS),
                    f"{median:.2f}, {high:.2f}",
                    f"{row['accuracy']:.3f}, {row['log_predictive_density']:.3f}",
                ]
            )
    header = [
        "network",
        "parameters, features",
        "method",
        "step size, acceptance",
        "gradients",
        "theta: min, mean, max",
        "outputs: min, mean, max",
        "theta: over standard, min, mean",
        "outputs: over standard, min, mean",
        "R-hat squared",
        "accuracy, log predictive density",
    ]
    return markdown(header, lines)


def scores_table(scores):
    """One line per rival."""
    lines = [
        [name, f"{found['accuracy']:.3f}", f"{found['log_predictive_density']:.3f}"]
        for name, found in scores.items()
    ]
    return markdown(["method", "accuracy", "log predictive density"], lines)
