"""Solutions of gradient descent on XOR: the symmetries of a 2-2-1 network, after Papamarkou et al. 2019.

    python -m benchmarks xor_descent [--quick --output FOLDER]

A thousand solutions from starts of each of two distributions, all starts in one array: parallel
coordinates of some, the density of a weight over all, and what is left of their spread when the
symmetries of the network are taken off. Table and figure are benchmarks/results/xor_descent.*. Reference:
arXiv:1910.06539, section 6.1.3 and Fig 1; the text that we have does not say how many epochs, nor
which variances and bounds.
"""

import argparse

import numpy as np
from scipy.special import expit
from scipy.stats import gaussian_kde

from benchmarks.lib.class_problems import XOR
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from tfbnn.plots.canvas import BLUE, ORANGE, styled_figure

__all__ = ["canonical", "descend", "gradient", "loss", "outputs"]

NUM_SOLUTIONS, EPOCHS, LEARNING_RATE = 1000, 3000, 1.0
# As many as are asked for at a time, until there are enough of them that are right.
STARTS = {
    "N(0, I)": lambda generator, count: generator.standard_normal((count, 9)),
    "U(-10, 10)": lambda generator, count: generator.uniform(-10.0, 10.0, (count, 9)),
}
NAMES = [
    *(f"w1[{i},{j}]" for i in (0, 1) for j in (0, 1)),
    "b1[0]",
    "b1[1]",
    "w2[0]",
    "w2[1]",
    "b2",
]
NUM_LINES = 100
# The weight whose density is drawn, a kernel's.
SHOWN = 0


def forward(theta):
    """(hidden units [n, 4, 2], probabilities of the label 1 [n, 4]) of theta [n, 9], as tfbnn lays it out."""
    kernel = theta[:, :4].reshape(-1, 2, 2)
    hidden = expit(XOR[0] @ kernel + theta[:, None, 4:6])
    return hidden, expit(np.einsum("nru,nu->nr", hidden, theta[:, 6:8]) + theta[:, 8:9])


def outputs(theta):
    """Probabilities of the label 1 at the four rows of XOR [n, 4]."""
    return forward(theta)[1]


def loss(theta):
    """Mean binary cross entropy over the four rows [n]."""
    given = np.where(XOR[1], outputs(theta), 1.0 - outputs(theta))
    return -np.log(np.maximum(given, np.finfo(float).tiny)).mean(axis=1)


def gradient(theta):
    """Return the gradient of the loss [n, 9]."""
    hidden, given = forward(theta)
    residual = (given - XOR[1]) / len(XOR[1])
    behind = residual[..., None] * theta[:, None, 6:8] * hidden * (1.0 - hidden)
    kernel = np.einsum("ri,nru->niu", XOR[0], behind).reshape(-1, 4)
    readout = np.einsum("nr,nru->nu", residual, hidden)
    return np.concatenate(
        [kernel, behind.sum(axis=1), readout, residual.sum(axis=1)[:, None]], axis=1
    )


def descend(theta, epochs):
    """Plain gradient descent of every start at once, at the learning rate of the paper, one."""
    for _ in range(epochs):
        theta = theta - LEARNING_RATE * gradient(theta)
    return theta


def canonical(theta):
    """The copy of theta [n, 9] whose readout is positive and in order; its function is the same.

    A sigmoid unit may be flipped, as s(-z) = 1 - s(z): the signs of all its weights change, and its
    readout goes into the last bias. With the exchange of two units that makes eight copies.
    """
    kernel, bias = theta[:, :4].reshape(-1, 2, 2), theta[:, 4:6]
    readout, last = theta[:, 6:8], theta[:, 8:9]
    sign = np.where(readout < 0.0, -1.0, 1.0)
    last = last + np.minimum(readout, 0.0).sum(axis=1, keepdims=True)
    order = np.argsort(np.abs(readout), axis=1)
    kernel = np.take_along_axis(kernel * sign[:, None], order[:, None], axis=2)
    bias, readout = (np.take_along_axis(part * sign, order, axis=1) for part in (bias, readout))
    return np.concatenate([kernel.reshape(-1, 4), bias, readout, last], axis=1)


def copy_of(theta):
    """Which of the eight copies theta is: [n], 0 to 7."""
    readout = theta[:, 6:8]
    first, second = (readout < 0.0).T.astype(int)
    return first + 2 * second + 4 * (np.abs(readout[:, 0]) > np.abs(readout[:, 1]))


def solutions(name, wanted, epochs):
    """(solutions [wanted, 9] that give all four rows the right label, starts that it took)."""
    generator, found, tried = np.random.default_rng(0), [], 0
    while sum(map(len, found)) < wanted:
        theta = descend(STARTS[name](generator, wanted), epochs)
        right = ((outputs(theta) > 0.5) == XOR[1]).all(axis=1)
        found.append(theta[right])
        tried += wanted
    return np.concatenate(found)[:wanted], tried, sum(map(len, found))


def line(name, theta, tried, right):
    """One line of the table."""
    spread, left = theta.std(axis=0), canonical(theta).std(axis=0)
    shares = np.bincount(copy_of(theta), minlength=8) / len(theta)
    return [
        name,
        tried,
        f"{right / tried:.1%}",
        f"{np.median(loss(theta)):.2g}, {loss(theta).max():.2g}",
        f"{shares.min():.1%} to {shares.max():.1%}",
        f"{np.mean(np.abs(theta[:, SHOWN]) < 1.0):.1%}",
        ", ".join(f"{value:.1f}" for value in spread),
        ", ".join(f"{value:.1f}" for value in left),
    ]


HEADER = [
    "starts",
    "number of starts",
    "starts that lead to a solution",
    "loss: median, largest",
    "solutions in each of the eight copies",
    "solutions with the first weight within 1 of zero",
    "standard deviations of the nine weights",
    "the same of the copy with positive readouts in order",
]
LEGEND = """\
A network 2-2-1 with sigmoid hidden units is trained on the four rows of XOR. The loss is the mean binary
cross entropy. Gradient descent makes {epochs} full-batch epochs with learning rate 1, as in Papamarkou et al.
2019 (arXiv:1910.06539), section 6.1.3. Solutions give all four rows the right label; there are {count} for
each kind of start, and the first columns have the number of starts and the share that leads to a solution.
The number of epochs, and the variance and the bounds of the starts, are our choice, because our copy of the
paper lacks them. Weights are the kernel by rows, its two biases, the readout and its bias.

If the hidden units are exchanged, or the sign of a sigmoid unit is flipped (its readout then goes into the
last bias), the function is the same. Each solution therefore has eight copies. The last column has the copy
with positive readouts in order. The spread of the readouts is then small, but not that of the kernel, because
XOR has symmetries of its own: both inputs may be flipped together. The figure has {lines} solutions from N(0,
I) in parallel coordinates. They are symmetric about zero and avoid it, as the paper says of its Fig 1a. On
the right is the density of the first weight over all solutions, for Fig 1b."""


def figure(found, path):
    """Parallel coordinates of solutions, and the density of one weight by start."""
    with styled_figure(1, 2, (6.2, 4.0), width_ratios=[3, 2]) as (canvas, panels):
        lines, density = panels[0]
        shown = found["N(0, I)"][:NUM_LINES]
        colours = np.where(shown[:, SHOWN] > 0.0, ORANGE, BLUE)
        for theta, colour in zip(shown, colours):
            lines.plot(range(9), theta, color=colour, linewidth=0.7, alpha=0.5)
        lines.axhline(0.0, color="black", linewidth=0.8)
        lines.set_xticks(range(9), NAMES, rotation=45)
        lines.set(
            ylabel="weight",
            title=f"{len(shown)} solutions from N(0, I), by the sign of {NAMES[SHOWN]}",
        )
        grid = np.linspace(-20.0, 20.0, 400)
        for (name, theta), colour, dashes in zip(found.items(), (BLUE, ORANGE), ("-", "--")):
            height = gaussian_kde(theta[:, SHOWN])(grid)
            density.plot(grid, height, dashes, color=colour, label=f"starts {name}")
        density.set(xlabel=NAMES[SHOWN], ylabel="density of solutions", ylim=(0.0, None))
        density.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        canvas.savefig(path, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    wanted, epochs = (60, 1000) if options.quick else (NUM_SOLUTIONS, EPOCHS)
    found, lines = {}, []
    for name in STARTS:
        found[name], tried, right = solutions(name, wanted, epochs)
        lines.append(line(name, found[name], tried, right))
        print(lines[-1], flush=True)
    legend = LEGEND.format(epochs=epochs, count=wanted, lines=min(NUM_LINES, wanted))
    table = markdown(HEADER, lines)
    keep("xor_descent.md", f"# Gradient descent on XOR\n\n{table}\n\n{legend}", folder)
    figure(found, folder / "xor_descent.png")


if __name__ == "__main__":
    main()
