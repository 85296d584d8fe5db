"""Tables and figure of benchmarks/studies/xor_iris/run.py."""

import numpy as np

from benchmarks.lib.common import markdown
from tfbnn.plots.canvas import styled_figure

__all__ = ["distance", "figure", "report"]

NAMES = {"xor": "2-2-1 on XOR", "iris": "4-3-3 on iris"}

# Panels side by side in the figure.
PER_LINE = 3

LEGEND = """\
Sigmoid hidden units, raw inputs, all rows train. Chains start at draws of the prior; step sizes are
adapted during warm-up to the acceptance that theory recommends for each kernel, without a
preconditioner. R-hat: split, and folded split of ranks, the largest over weights or over
predicted probabilities; the multivariate PSRF is of all of them together (Brooks and Gelman 1998). ESS: Geyer's initial monotone sequence, per chain, averaged over chains;
minimum, median and maximum over weights or probabilities. ESS per second: the median, all chains
together, over the wall clock of warm-up and sampling. Probabilities are those of the four rows of
XOR, and of ten rows of iris. Distance: Frobenius norm of the difference of the covariance to the
reference's over the norm of the reference's; the reference is NUTS under the same prior. The figure clips covariances at -1 and 1.

Weights mean little by themselves: hidden units may be permuted, and flipped in sign, without a
change of the function, so chains that have found different ones of these equal modes have a large
R-hat of the weights and a small one of the predictions.

A narrow prior with a mean, N(2, 0.25 I), is the warning of the paper's section 6.1.2, whose own numbers
are not in the text that we have: R-hat is 1.000 and the smallest effective sample size of MALA 27 811, more
than the 20 479 under N(0, I), while the network gives all four rows of XOR a probability of 0.98 or more of
the label 1, which two of them do not have. No diagnostic of chains sees a prior that forbids the answer.
Under U(-10, 10) truncated MALA and NUTS agree within the error of NUTS, which treats the walls of the box
as places of no density and has the fewest effective draws there.

What is seen. On XOR all samplers agree, in weights (0.05, SMMALA 0.11 or less) and in predictions
(0.02 or less), under all three priors N(0, v I). The wider the prior, the slower the mixing: under N(0, 100 I)
gradients earn MALA nothing, and the metric slows SMMALA, while power posteriors of MALA, whose hot
rungs cross between the modes, have by far the most draws per second. On iris only NUTS converges in
the predictions. The weights of the others do not mix (R-hat from 1.4 to 3.6), as in the paper; their
predictions under N(0, I) come within 0.1 of those of NUTS for random walk and MALA, which had ten
times as many transitions, and not for SMMALA. Power posteriors of SMMALA have the least R-hat of
predictions after NUTS there, with 0.4 effective draws a second against 190 of MALA, and 2 against
96 under N(0, 10 I), a row of commit 4542800 and two cores of an Intel Xeon."""


def report(rows):
    """The whole text, of the rows that `xor_iris.measure` returned."""
    parts = ["# Samplers on XOR and iris"]
    for name, title in NAMES.items():
        chosen = [row for row in rows if row["network"] == name]
        if chosen:
            table = markdown(HEADER, [line(row, reference(row, chosen)) for row in chosen])
            size, chains = chosen[0]["parameters"], chosen[0]["num_chains"]
            parts.append(f"## {title}: {size} weights, {chains} chains\n\n{table}")
    return "\n\n".join([*parts, LEGEND])


HEADER = [
    "prior",
    "sampler",
    "draws per chain, every",
    "acceptance",
    "weights: R-hat split, folded, PSRF",
    "ESS min, median, max",
    "ESS / s",
    "distance",
    "predictions: R-hat split, folded, PSRF",
    "ESS min, median, max",
    "ESS / s",
    "distance",
    "seconds",
]


def line(row, compared):
    """One line of the table."""
    cells = []
    for kind, matrix in (
        ("weights", "weight_covariance"),
        ("predictions", "prediction_covariance"),
    ):
        found = row[kind]
        away = "" if compared is None else f"{distance(row[matrix], compared[matrix]):.2f}"
        cells += [
            f"{found['split_rhat']:.3f}, {found['folded_split_rhat']:.3f}, {found['psrf']:.3f}",
            ", ".join(f"{value:.0f}" for value in found["ess"]),
            f"{found['ess_per_second']:.0f}",
            away,
        ]
    return [
        row["prior"],
        row["sampler"],
        f"{row['num_results']}, {row['stride']}",
        f"{row['acceptance']:.2f}",
        *cells,
        f"{row['seconds']:.1f}",
    ]


def reference(row, rows):
    """The NUTS row under the same prior, or None where there is none or it is this one."""
    for other in rows:
        if other["sampler"] == "NUTS" and other["prior"] == row["prior"]:
            return None if other is row else other
    return None


def distance(covariance, reference):
    """Relative Frobenius distance of two matrices."""
    covariance, reference = np.array(covariance), np.array(reference)
    return np.linalg.norm(covariance - reference) / np.linalg.norm(reference)


def figure(rows, path):
    """Covariance of the weights, network by network and sampler by sampler, at prior scale 1."""
    rows = [row for row in rows if row["prior"] == "N(0, 1 I)"]
    samplers = list(dict.fromkeys(row["sampler"] for row in rows))
    networks = list(dict.fromkeys(row["network"] for row in rows))
    # A network in one line of panels for each PER_LINE samplers, so that titles can be read.
    lines = -(-len(samplers) // PER_LINE)
    shape = lines * len(networks), min(PER_LINE, len(samplers))
    with styled_figure(*shape, (2.9, 3.1)) as (canvas, panels):
        for axes in panels.ravel():
            axes.set_axis_off()
        for row in rows:
            line, column = divmod(samplers.index(row["sampler"]), PER_LINE)
            axes = panels[lines * networks.index(row["network"]) + line, column]
            image = axes.imshow(row["weight_covariance"], cmap="RdBu_r", vmin=-1.0, vmax=1.0)
            sampler = row["sampler"].replace(" of ", "\nof ")
            axes.set_title(f"{NAMES[row['network']]}\n{sampler}", fontsize="large")
        bar = canvas.colorbar(image, ax=panels, shrink=0.5)
        bar.set_label("posterior covariance of weights, N(0, I) prior", fontsize="large")
        canvas.savefig(path, dpi=100)
