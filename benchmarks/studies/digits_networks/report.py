"""Tables of benchmarks/studies/digits_networks/run.py."""

from benchmarks.lib.common import markdown
from benchmarks.studies.digits_networks.chains import NUM_CHAINS, NUM_ROWS, NUM_WATCHED
from benchmarks.studies.repriorisation.chains import LEAPFROG_STEPS, METHODS
from benchmarks.studies.repriorisation.report import KINDS, effective_cell, ratio_cell

__all__ = ["report"]

LEGEND = f"""\
The rows are {NUM_ROWS} of scikit-learn's 1797 digits, with pixels standardised together. Targets are one-hot
labels minus 0.1, with Gaussian noise of standard deviation 0.1. "Fully connected, n" has three hidden layers
of n units. "Flattened, n" is a residual network with n channels and one block, whose first convolution leaves
4 x 4 pixels; the readout sees all channels of all pixels (`benchmarks/lib/paper_networks.py`). Networks have
GELU and the ntk parameterisation. Prior scales are 1.5 for kernels, 1 for that of the readout, and 0.1 for
biases. Features are those of the readout, with the bias. Standard chains sample the weights. Repriorised
chains sample coordinates in which the posterior of a wide network looks like its prior. Collapsed chains do
not sample the readout, which is drawn exactly.

Each method has {NUM_CHAINS} chains of HMC with {LEAPFROG_STEPS} leapfrog steps and no preconditioner. Dual
averaging tunes the step size to the acceptance 0.8. The chains of all methods start at the same two points,
which are draws of the prior with a readout that is drawn given the data. Gradients are those of one chain
after warm-up, which has the same number of transitions with each method. The ESS is that of Geyer's initial
monotone sequence, the mean over the two chains, per 1000 gradients. Its minimum, mean and maximum are over
100 random projections of theta (all weights), and over the ten outputs at {NUM_WATCHED} test images. An ESS
below ten is replaced by ten and marked "<". Ratios to such an ESS are lower bounds (">"), and are marked
"about" if the numerator is below ten, too. R-hat squared is the split R-hat of these outputs over both
chains: median and 95 % quantile. The figure shows how it falls with the gradients, as figures 8 and 9 of the
paper do for larger networks and 3 million steps. Scores are of the 1541 other digits.

These chains are short. With the collapsed readout, which is drawn exactly, the mean ESS over the outputs can
be estimated. The slowest outputs have an ESS below ten with
any method, and so has nearly all of theta, except with the collapsed readout of three networks, so that
their ratios say nothing. R-hat shows that the two standard chains have not met, so that their scores describe
two regions, not the posterior. No package that is used here comes with a larger table of images."""

SCORES_LEGEND = """\
All methods have the same rows. The probabilities of a network are those of the ten codes of the classes under
its Gaussian noise, averaged over draws or members. Probabilities of the forest below 1 / 5000 are set to 1 /
5000."""


def report(rows, cases):
    """The whole text, of the rows by key and the Cases."""
    parts = [
        "# Wide networks on digits: standard, repriorised, collapsed",
        chains_table(rows, cases),
        LEGEND,
        "![R-hat](digits_networks.png)",
    ]
    if "rivals" in rows:
        parts += [
            "## Scores of other methods",
            scores_table(rows["rivals"]["scores"]),
            SCORES_LEGEND,
        ]
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
        "ESS of theta: min, mean, max",
        "ESS of outputs: min, mean, max",
        "ESS of theta / standard: min, mean",
        "ESS of outputs / standard: min, mean",
        "R-hat squared: median, 95 %",
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
