"""Measure what `model.compress` changes, from 1000 draws to 50, 100 and 200 by every method.

    TFBNN_DATA=folder python -m benchmarks compress     # neutralino cross sections
    python -m benchmarks compress --quick               # a toy problem, prints only

The change is that of the predictions at the test rows, in original units, noise-free; none of them
played a role in the choice. The same fit is compressed in every line.
"""

import argparse
import time

import numpy as np

from benchmarks.lib.chains import fit, quiet
from benchmarks.lib.common import keep, markdown
from benchmarks.lib.problems import NTK, Problem, adam, load
from tfbnn.kernels import HMC
from tfbnn.posterior.compression import measure_change
from tfbnn.priors import Normal

KERNEL = HMC(num_leapfrog_steps=32, preconditioner="gauss_newton", target_accept_prob=0.8)
COUNTS = (50, 100, 200)
HEADER = [
    "draws",
    "method",
    "distinct draws",
    "change of the mean stddev",
    "change of a row's stddev: mean, largest",
    "change of a row's mean, in stddev",
    "change of a row's quantiles, in stddev",
    "change of the log predictive density",
    "time, s",
]


def neutralino_fit():
    """(model, Problem, settings as text): the 5-20-20-1 network of benchmarks/studies/neutralino/run.py."""
    problem, settings = load("raw")
    model, run = fit(
        [5, 20, 20, 1],
        settings | {"prior": Normal(1.0)},
        problem,
        kernel=KERNEL,
        num_burnin_steps=200,
        num_results=250,
        pretraining=adam(1000, newton_iterations=100),
    )
    rhat = np.median(run.diagnosis.rhat_function)
    return (
        model,
        problem,
        (
            "The fit is a network 5-20-20-1 on neutralino cross sections with prior scales 1, 1000 epochs of ADAM, "
            "100 iterations of Levenberg-Marquardt and whitened HMC with 32 leapfrog steps. Four chains have 200 "
            f"transitions of warm-up and 250 draws each. It took {sum(run.seconds.values()):.0f} s. The median R-hat of "
            f"predictions is {rhat:.2f}: each chain is in a mode of its own."
        ),
    )


def toy_fit():
    """The same for a network that takes seconds."""
    generator = np.random.default_rng(0)
    x = generator.uniform(0.5, 1.5, size=(120, 2))
    y = x[:, 0] ** 2 + 0.3 * x[:, 1] + 0.05 * generator.normal(size=120)
    problem = Problem((x[:60], y[:60]), (x[60:90], y[60:90]), (x[90:], y[90:]))
    model, _ = fit(
        [2, 4, 1],
        NTK,
        problem,
        kernel=HMC(num_leapfrog_steps=4),
        num_burnin_steps=50,
        num_results=250,
        pretraining=adam(20),
        verbose=0,
    )
    return (
        model,
        problem,
        "The fit is a network 2-4-1 on a toy function, with four chains of 50 + 250 transitions.",
    )


def methods(problem):
    """Dict of a method's label in the table -> its arguments of `compress`."""
    x, _ = problem.train
    many = x[np.unique(np.linspace(0, len(x) - 1, 1000).astype(int))]
    return {
        "stride": {"method": "stride"},
        "kernel thinning, {} saved inputs": {"method": "kernel_thinning"},
        "kernel thinning, {} training inputs": {"method": "kernel_thinning", "x_reference": many},
    }


def line(model, problem, count, label, options, density):
    """One line of the table."""
    began = time.perf_counter()
    small = model.compress(count, **options)
    seconds = time.perf_counter() - began
    x = model.posterior.x_pipeline.forward(problem.test[0])
    change = measure_change(model.posterior, small.posterior, x)
    found = small.evaluate(*problem.test, calibrated=False)["log_predictive_density"]
    return [
        count,
        label.format(small.compression.num_inputs),
        small.compression.num_distinct,
        f"{100 * change['mean_stddev']:+.2f} %",
        f"{100 * change['stddev']['average']:.2f} %, {100 * change['stddev']['largest']:.1f} %",
        f"{100 * change['mean']['average']:.2f} %",
        f"{100 * change['quantiles']['average']:.2f} %",
        f"{found - density:+.4f}",
        f"{seconds:.1f}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a toy problem, nothing is kept")
    quick = parser.parse_args().quick
    model, problem, about = toy_fit() if quick else neutralino_fit()
    with quiet():
        density = model.evaluate(*problem.test, calibrated=False)["log_predictive_density"]
        lines = [
            line(model, problem, count, label, options, density)
            for count in COUNTS
            for label, options in methods(problem).items()
        ]
    text = (
        f"# Compression of {model.posterior.num_draws} draws\n\n{about}\n\n"
        f"{markdown(HEADER, lines)}\n\n"
        f"The columns have the changes of predictions at {len(problem.test[0])} test rows, in original units, "
        "without noise and without calibration, which compression drops. A stddev is the predictive standard "
        "deviation of a row with all draws. The mean stddev is averaged over rows. Changes of means and of the 16 and "
        "84 % quantiles are averages over rows. The log predictive density per row, noise included, is "
        f"{density:.4f} with all draws. Times are those of `compress`, which also computes such changes. Stride keeps "
        "every n-th draw. Kernel thinning compares predictions at the inputs named."
    )
    if quick:
        print(text)
    else:
        keep("compression.md", text)


if __name__ == "__main__":
    main()
