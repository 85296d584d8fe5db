"""Tables and figure of benchmarks/studies/wide_limit/run.py."""

import numpy as np

from benchmarks.lib.common import markdown
from tfbnn.plots.canvas import BLUE, ORANGE, styled_figure

__all__ = ["figure", "report"]

LOOKS = {"standard": (ORANGE, "--", "o"), "repriorised": (BLUE, "-", "s")}
# Everything lower in a slice has one colour.
DEEPEST = -30.0
ACCEPTANCE = 0.8
STEP_SIZES = np.geomspace(0.003, 1.0, 18)
# Half the side of a slice, in units of the coordinates, along two random directions of length one.
REACH = 3.0

SETUP = """\
Networks are 4-n-1 or 4-n-n-n-1 with ReLU, the ntk parameterisation and N(0, 1) priors, in float64. The 64
rows are sin(x0) + x1 x2 / 2 with noise of standard deviation 0.1, which the likelihood knows. The reference
is Hron et al. 2022 (arXiv:2206.07673). The figures of the paper are of CIFAR-10, and our copy of it has no
numbers."""

LIMIT = """\
## Draws of the limit (Theorem 2.1, Fig 3)

Direct draws are standard normal numbers in repriorised coordinates, mapped to weights; there is no chain.
Their predictions at 100 test inputs are compared with regression by the Gaussian process of infinite width
(arc-cosine kernel), in units of its standard deviations:

- means: root mean square difference of the means;
- standard deviations: mean ratio of the standard deviations;
- covariance: relative Frobenius distance of the covariances. All three have the error of {count} draws, and
  of a tenth of them from width 1024 on;
- KL: divergence of the prior from the posterior in these coordinates, estimated by the same draws, in nats.
  It vanishes in the limit;
- gradient: mean squared length of the difference between the gradients of the log posterior and of the log
  prior. It also vanishes in the limit (Proposition 3.1);
- log evidence: that of the network by importance sampling, minus that of the process, in nats;
- effective share: share of effective draws under importance weights. Near one, weighted draws are draws of
  the posterior. Near 1 / {count}, KL and log evidence are only lower bounds.

"""

CHAINS = """\
## Chains of three hidden layers

Four chains with the kernel `Repriorised` (HMC with 8 leapfrog steps) start at direct draws. Warm-up has half
as many transitions as the table says. Their predictions are compared with the process as above. R-hat is the
largest, and ESS the median, of the predictions at the test inputs.

"""

STEPS = """\
## Step sizes (appendix D)

HMC with 8 leapfrog steps and an identity mass matrix makes one trajectory from each of 64 posterior draws,
which are direct draws after some transitions in repriorised coordinates. The table has the step size at which
the mean acceptance is {rate:.0%}, in standard and in repriorised coordinates, with the same prior and rows.
According to the paper, the step size of a standard chain is (noise^2 / N)^(1/2) for N rows, whatever the
width, and that of a repriorised chain does not depend on N. The figure has the log posterior (Fig 5) around
one of the draws, on planes of two random directions of length one, which have the same numbers in both
coordinates, and the acceptances.

"""

FINDINGS = """\
## Results

Direct draws approach the process and the posterior as the network gets wider, and three hidden layers need
more width than one. With one layer, KL is 10 nats with 256 units, 2.0 with 1024 and .70 with 4096, and the
mean squared difference of the gradients is 366, 66 and 15. Both vanish, as Theorem 2.1 and Proposition 3.1 say. Up
to 256 units, direct draws can start chains, but are not draws of the posterior. Chains of three layers
approach the process, too. They have an ESS of 15 to 30: with so few draws a distance of the means of about
.26 is expected; it is .35 with 1024 units. The step size of a standard chain goes as N^(-1/2) and does not
depend on the width, as the paper says for linear models. That of a repriorised chain grows with the width. It
falls with N, too. On the planes, the log posterior of the wide
network is nearly that of a standard normal distribution in repriorised coordinates, and a narrow ridge in
standard ones."""


def report(limits, chains, steps, size):
    """The whole text, of a Size."""
    header = [
        "hidden layers",
        "width",
        "means",
        "standard deviations",
        "covariance",
        "KL",
        "gradient",
        "log evidence",
        "effective share",
    ]
    lines = [
        [
            row["depth"],
            row["width"],
            *_distances(row),
            f"{row['divergence']:.2f}",
            f"{row['gradient']:.1f}",
            f"{row['evidence']:+.2f}",
            f"{row['effective']:.1%}",
        ]
        for row in limits
    ]
    first = LIMIT.format(count=size.num_draws) + markdown(header, lines)
    columns = ["means", "standard deviations", "covariance"]
    header = ["width", "transitions", *columns, "step size", "R-hat", "ESS"]
    lines = [
        [
            row["width"],
            row["transitions"],
            *_distances(row),
            f"{row['step']:.3g}",
            f"{row['rhat']:.3f}",
            f"{row['ess']:.0f}",
        ]
        for row in chains
    ]
    between = CHAINS + markdown(header, lines)
    header = ["width", "rows", "standard", "repriorised", "repriorised / standard"]
    second = STEPS.format(rate=ACCEPTANCE) + markdown(header, [_line(row) for row in steps])
    return "\n\n".join(
        ["# Width and repriorised coordinates", SETUP, first, between, second, FINDINGS]
    )


def _distances(row):
    return [f"{row[name]:.3f}" for name in ("mean", "stddev", "covariance")]


def _line(row):
    found = [row[method]["step"] for method in LOOKS]
    ratio = "" if None in found else f"{found[1] / found[0]:.1f}"
    shown = ["not in the range" if step is None else f"{step:.3g}" for step in found]
    return [row["width"], row["num_rows"], *shown, ratio]


def figure(planes, steps, path):
    """Slices of the log posterior in both coordinates by width, and acceptance by step size."""
    with styled_figure(2, 3, (3.9, 3.5)) as (canvas, panels):
        for axes, (width, values) in zip(panels.T, planes.items()):
            for panel, (method, heights) in zip(axes, zip(LOOKS, values)):
                extent = (-REACH, REACH, -REACH, REACH)
                image = panel.imshow(
                    heights.T, origin="lower", extent=extent, cmap="viridis", vmin=DEEPEST, vmax=0.0
                )
                panel.contour(
                    heights.T,
                    np.arange(DEEPEST, 0.0, 5.0),
                    extent=extent,
                    colors="white",
                    linestyles="solid",
                    linewidths=0.6,
                )
                panel.set(
                    title=f"{method}, width {width}",
                    xlabel="along one direction",
                    ylabel="along another",
                )
        bar = canvas.colorbar(image, ax=panels[:, :2], shrink=0.6, extend="min")
        bar.set_label("log posterior less its largest in the panel")
        for panel, method in zip(panels[:, 2], LOOKS):
            _acceptance(panel, [row for row in steps if row["num_rows"] == 64], method, STEP_SIZES)
        canvas.savefig(path, dpi=120)


def _acceptance(panel, rows, method, step_sizes):
    looks = zip(("#9ecae1", "#4292c6", "#08519c", "#08306b"), ("-", "--", "-.", ":"))
    for row, (colour, dashes) in zip(rows, looks):
        panel.plot(step_sizes, row[method]["acceptance"], dashes, color=colour, label=row["width"])
    panel.set(
        xscale="log",
        xlabel="step size",
        ylabel="acceptance",
        title=f"{method}, by width",
        ylim=(0, 1.02),
    )
    panel.legend(title="width", fontsize="small")
