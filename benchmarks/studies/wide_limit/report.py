"""Tables and figure of benchmarks/studies/wide_limit/run.py."""

import numpy as np

from benchmarks.lib.common import markdown
from tfbnn.plots.canvas import BLUE, ORANGE, styled_figure

__all__ = ["figure", "report"]

LOOKS = {"standard": (ORANGE, "--", "o"), "repriorised": (BLUE, "-", "s")}
# Of a slice: everything lower has one colour.
DEEPEST = -30.0

SETUP = """\
4-n-1 or 4-n-n-n-1, ReLU, ntk, N(0, 1) priors, float64, 64 rows of sin(x0) + x1 x2 / 2 with noise of standard
deviation 0.1, which the likelihood knows. References: Hron et al. 2022 (arXiv:2206.07673). The paper's own
figures are of CIFAR-10 and have no numbers in the text that we have."""

LIMIT = """\
## Draws of the limit (Theorem 2.1, Fig 3)

Standard normal numbers in repriorised coordinates, mapped to weights: no chain. Their predictions at 100
test inputs, against regression by the Gaussian process of infinite width (arc-cosine kernel), in units of
its standard deviations: RMS difference of the means, mean ratio of standard deviations, relative Frobenius
distance of the covariances, each with the error of {count} draws, of a tenth of them from width 1024 on. KL:
divergence of the prior from the posterior in these coordinates, estimated by the same draws; it vanishes in the
limit. Gradient: mean squared length of the gradient of the log posterior there less that of a standard normal
distribution, which vanishes too (Proposition 3.1). Log evidence: of the network, by
importance sampling, less the process' own. Effective share: of the draws as importance weights, so that at
a share near one weighting them makes them draws of the posterior itself, and at one near 1 / {count} KL and
log evidence are lower bounds alone.

"""

CHAINS = """\
## Chains of three hidden layers

Four chains by the kernel `Repriorised` (HMC of 8 leapfrog steps), from direct draws, after a
warm-up of half as many. Their predictions against the process, as above; largest R-hat and median effective
sample size of the predictions at the test inputs.

"""

STEPS = """\
## Step sizes (appendix D)

HMC of 8 leapfrog steps, identity mass, from 64 posterior draws (direct ones, and some transitions in
repriorised coordinates from there): the step size at which the mean acceptance of one trajectory is {rate:.0%}.
The same for standard coordinates, the same prior and rows. The paper has the step of the standard chain as
(noise^2 / N)^(1/2), whatever the width, and that of the repriorised one without N. The figure has log posteriors (Fig 5) on planes of
two random directions of length one, the same numbers in both coordinates, around one of the draws; beside
them the acceptance.

"""

FINDINGS = """\
## What is seen

Direct draws come nearer to the process and to the posterior as the network gets wider, and three hidden layers
need more width than one. With one layer KL is 10 nats at 256 units, 2.0 at 1024 and .70 at 4096, and the squared
difference of the gradients 366, 66 and 15: both vanish, as Theorem 2.1 and Proposition 3.1 have it. Up to 256 units
direct draws are starts of chains and not yet draws of the posterior. Chains of three layers come nearer to the
process, too. They have 15 to 30 effective draws: of the distance of the means at 1024 units, .35, some .26 is
expected of so few. The step of the standard chain goes as N^(-1/2) and not with the width,
as the paper has it for linear models. That of the repriorised chain grows with the width; it falls with N too,
at a width of no more than the rows. On the planes the repriorised log posterior of the wide network is
nearly that of a standard normal distribution, and the standard one a narrow ridge."""


def report(limits, chains, steps, size):
    """The whole text, of a Size."""
    from benchmarks.studies.wide_limit.run import ACCEPTANCE

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
    header = ["width", "transitions", *columns, "step", "R-hat", "ESS"]
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
    header = ["width", "rows", "standard", "repriorised", "ratio"]
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
    from benchmarks.studies.wide_limit.run import REACH, STEP_SIZES

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
