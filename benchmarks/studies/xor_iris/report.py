"""Tables and figure of benchmarks/studies/xor_iris/run.py."""

import numpy as np

from benchmarks.lib.common import markdown
from tfbnn.plots.canvas import styled_figure

__all__ = ["distance", "figure", "report"]

NAMES = {"xor": "2-2-1 on XOR", "iris": "4-3-3 on iris"}

# Panels side by side in the figure.
PER_LINE = 3

LEGEND = """\
Networks have sigmoid hidden units and raw inputs, and all rows are training rows. Chains start at draws of
the prior. Step sizes adapt during warm-up to the acceptance that theory recommends for each kernel, without a
preconditioner. "10000, 10" means 10000 draws per chain, one of 10 transitions each. R-hat is split, and
folded split of ranks, the largest over weights or over predicted probabilities. The multivariate PSRF (Brooks
and Gelman 1998) is of all weights or probabilities together. ESS is that of Geyer's initial monotone
sequence, per chain, averaged over chains: minimum, median and maximum over weights or probabilities. ESS per
second is the median of all chains together, divided by the wall-clock time of warm-up and sampling.
Probabilities are those of the four rows of XOR, or of ten rows of iris. The distance is the Frobenius norm of
the difference between the covariance and that of NUTS under the same prior, divided by the norm of the
latter. The figure clips covariances at -1 and 1.

Weights have little meaning by themselves. Hidden units may be exchanged, or flipped in sign, without a change
of the function. Chains in different ones of these equal modes have a large R-hat of the weights and a small
one of the predictions.

The narrow prior N(2, 0.25 I) is an example of the warning in section 6.1.2 of the paper, whose numbers our copy
lacks. R-hat is 1.000, and the smallest ESS of MALA is 27 811, more than the 20 479 under N(0, I). Yet the
network gives all four rows of XOR a probability of the label 1 of at least 0.98, although two of them do not
have this label. Diagnostics of chains do not detect a prior that forbids the answer. Under U(-10, 10),
truncated MALA and NUTS agree within the error of NUTS (distance .08 in weights, .02 in predictions). Under this
prior NUTS, whose density is zero outside the box, has the smaller ESS.

Results for XOR: all samplers agree in weights (distance .04 or less, SMMALA .12 or less) and in predictions
(.02 or less) under all three priors N(0, v I). Wider priors mix more slowly. Under N(0, 100 I), gradients
gain nothing for MALA, and the metric slows SMMALA. There, power posteriors of MALA, whose hot rungs cross
between the modes, have the largest ESS per second of the weights, NUTS the next one. Under the two narrower
priors NUTS has the largest, and MALA that of the predictions. The PSRF is at most 1.03, and 1.12 for SMMALA
under N(0, 100 I).

Results for iris: only NUTS converges in the predictions under both priors. The weights do not mix: their R-hat is
1.10 and 1.11 for NUTS, and from 1.2 to 3.4 for the others, as in the paper; their PSRF is 1.3 for NUTS, and
from 3.2 to 125 for the others. Under N(0, I), the predictions of the others are within a distance of .11 from those of
NUTS. Power posteriors of SMMALA have the smallest R-hat of weights after NUTS, but an ESS of predictions of 1 per
second under N(0, I), compared with 177 for MALA."""


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
    "draws per chain, transitions per draw",
    "acceptance",
    "weights: R-hat (split, folded, PSRF)",
    "weights: ESS (min, median, max)",
    "weights: ESS per second",
    "weights: distance",
    "predictions: R-hat (split, folded, PSRF)",
    "predictions: ESS (min, median, max)",
    "predictions: ESS per second",
    "predictions: distance",
    "time, s",
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
