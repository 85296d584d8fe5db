"""Between the standard and the repriorised coordinates: the regulariser, Langevin steps, and classes.

    TFBNN_DATA=folder python -m benchmarks interpolation [--seconds 80] [--quick --output FOLDER]

Hron et al. 2022: as its regulariser grows, the map of repriorisation becomes the identity (sections 3.2 and 4.2.1).
The paper's own sampler is unadjusted underdamped Langevin, with steps that would be accepted at 98 %. Appendix F has
classes. The networks are those of benchmarks/studies/repriorisation/run.py. Rows are kept as they finish; the table
is benchmarks/results/interpolation.md.

Reference: arXiv:2206.07673.
"""

import argparse
import dataclasses

import numpy as np
from sklearn.datasets import load_breast_cancer

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.repriorisation.chains import (
    ACCEPTANCE,
    LEAPFROG_STEPS,
    Case,
    kernel,
    sample,
)
from benchmarks.studies.repriorisation.report import effective_cell
from tfbnn.engine.starts.check import draw_prior
from tfbnn.kernels import Repriorised, UnderdampedLangevin
from tfbnn.likelihoods import Bernoulli

WIDTHS, NUM_ROWS, NUM_BURNIN = (64, 256, 1024), 256, 200
# On the scale of the targets' variance; the noise of these models has a variance of .01.
REGULARISERS = (0.1, 1.0, 10.0, 100.0, 1000.0)
# As Langevin has one gradient a transition, its warm-up has as many gradients.
LANGEVIN = {"adjusted": False, "target_accept_prob": 0.98, "preconditioner": "identity"}
CLASS_ROWS, CLASS_REGULARISER = 256, 1.0

LEGEND = f"""\
Networks have one hidden layer of GELU units, the ntk parameterization and N(0, 1) priors. They learn {NUM_ROWS}
rows of kin8nm with Gaussian noise of .1 (variance .01), or of breast cancer with Bernoulli labels. HMC has
{LEAPFROG_STEPS} leapfrog steps and the target acceptance {ACCEPTANCE:g}. Underdamped Langevin has one gradient
per transition and no Metropolis step; its step size is tuned so that such a step would accept .98. Chains start
near the posterior, as in repriorisation.md; those for labels start at a draw of the prior, and their
regulariser is 1. All have the same processor time. ESS is that of Geyer's initial monotone sequence per 1000
gradients: the minimum, mean and maximum over 100 random projections of theta, and over the outputs at 100 test
inputs. "<" marks an upper bound,
where a chain has fewer than ten effective draws."""
# What the committed table shows.
RESULTS = """\
The regulariser of the map leads from standard coordinates (1000 is near them) to repriorised ones (the variance of the
noise, .01). As it falls, step sizes grow by factors of 7, 12 and 14 with 64, 256 and 1024 units, and R-hat of the
outputs falls. With 1024 units, .1 is nearly as good as .01. Unadjusted Langevin in repriorised coordinates has about
the ESS per gradient of HMC there, and in standard coordinates too few effective draws to tell. On class labels the
posterior is wide, and standard coordinates are better for the outputs at all widths."""


@dataclasses.dataclass(frozen=True)
class ClassCase(Case):
    """The same network for the labels of breast cancer."""

    @property
    def spec(self):
        """ModelSpec of the network."""
        x, _, _ = self.rows
        model = tfbnn.BayesianMLP(
            [x.shape[1], self.width, 1],
            activation="gelu",
            parameterization="ntk",
            prior=tfbnn.priors.Normal(1.0),
            likelihood=Bernoulli(),
            x_transform=None,
        )
        return model.spec

    @property
    def rows(self):
        """(x [N, D], labels [N, 1], test inputs [100, D]), standardised."""
        x, y = load_breast_cancer(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(x))
        x = ((x - x.mean(axis=0)) / x.std(axis=0))[order]
        train, test = slice(self.num_rows), slice(self.num_rows, self.num_rows + 100)
        return x[train], y[order][train, None].astype(float), x[test]


def methods():
    """Dict name -> kernel on kin8nm."""
    hmc = kernel("standard")
    yield "standard", hmc
    for regulariser in reversed(REGULARISERS):
        yield f"regulariser {regulariser:g}", Repriorised(hmc, regulariser=regulariser)
    yield "repriorised (.01)", Repriorised(hmc)
    yield "Langevin, standard", UnderdampedLangevin(**LANGEVIN)
    yield "Langevin, repriorised", Repriorised(UnderdampedLangevin(**LANGEVIN))


def class_methods():
    """The same on labels, whose likelihood has no noise: the map needs a regulariser."""
    yield "classes, standard", kernel("standard")
    yield "classes, repriorised", Repriorised(kernel("standard"), regulariser=CLASS_REGULARISER)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=80.0, help="processor time of a chain")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("interpolation", options.fresh, folder)
    widths = (8,) if options.quick else WIDTHS
    seconds, burnin = (0.2, 20) if options.quick else (options.seconds, NUM_BURNIN)
    for width in widths:
        case = Case("kin8nm", width, 1, 32 if options.quick else NUM_ROWS)
        for name, settings in methods():
            key = f"{case.key}, {name}"
            if key not in store:
                length = burnin * (LEAPFROG_STEPS if "Langevin" in name else 1)
                store.add(key, sample(case, name, seconds, length, settings))
                print(key, flush=True)
        case = ClassCase("breast cancer", width, 1, 32 if options.quick else CLASS_ROWS)
        for name, settings in class_methods():
            key = f"{case.key}, {name}"
            if key not in store:
                theta = draw_prior(case.spec, 0, 1)
                store.add(key, sample(case, name, seconds, burnin, settings, theta))
                print(key, flush=True)
    keep("interpolation.md", report(store.rows), folder)


def report(rows):
    """The whole text."""
    header = ["data", "width", "method", "step size", "acceptance", "gradients"]
    header += ["ESS of weights", "of outputs", "R-hat squared of outputs, median, 95 %"]
    lines = [
        [
            row["data"],
            row["width"],
            row["method"],
            f"{row['step_size']:.4g}",
            f"{row['acceptance']:.3f}",
            row["num_gradients"],
            effective_cell(row, "weights"),
            effective_cell(row, "outputs"),
            ", ".join(f"{value:.2f}" for value in row["outputs"]["rhat2"][1:]),
        ]
        for row in rows.values()
    ]
    title = "# Between standard and repriorised coordinates"
    return f"{title}\n\n{LEGEND}\n\n{markdown(header, lines)}\n\n{RESULTS}"


if __name__ == "__main__":
    main()
