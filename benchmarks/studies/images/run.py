"""A stand-in for the face images of Dinh et al. 2024: leapfrog HMC with 1024 inputs and 167 rows.

    python -m benchmarks images [--quick --output FOLDER]

scikit-learn's digits, enlarged to 32 x 32 pixels, in place of UTKFace; the target is the digit over ten, as the paper's
is the age over a hundred. Travel time, step sizes, rows and draws are the paper's (section 4.2, appendix A.6). It does
not say how wide the network is, where chains start or what the noise is: 50 units, the end of ADAM and .1 here. Rows
are kept as they finish; the table is benchmarks/results/images.md.

Reference: arXiv:2410.22065.
"""

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

import tfbnn
from benchmarks.lib.chains import quiet
from benchmarks.lib.common import (
    add_common_options,
    commits_of,
    keep,
    markdown,
    output_folder,
    revision,
)
from benchmarks.lib.problems import adam
from benchmarks.lib.store import Store
from tfbnn.kernels import HMC
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal

TRAVEL_TIME, STEP_SIZES = 0.01, tuple(5e-5 * number for number in range(1, 9))
NUM_TRAIN, NUM_TEST, NUM_CHAINS = 167, 100, 3
NUM_BURNIN, NUM_RESULTS = 50, 300
# Average acceptance, average MSE and MSE at the best acceptance (Table 1), acceptance of the best efficiency (Fig 2b).
PUBLISHED = {
    "sigmoid": (0.5451, 0.0552, 0.0539, 0.813),
    "relu": (0.2239, 0.1153, 0.0533, 0.797),
    "leaky_relu": (0.1757, 0.1151, 0.0538, 0.627),
}


def images():
    """(x, y) of training rows and of test rows, x [N, 1024] in [0, 1], y [N, 1]."""
    digits = load_digits()
    chosen = np.random.default_rng(0).permutation(len(digits.target))[: NUM_TRAIN + NUM_TEST]
    enlarged = np.kron(digits.images[chosen] / 16.0, np.ones((1, 4, 4)))
    x, y = enlarged.reshape(len(chosen), -1), digits.target[chosen, None] / 10.0
    return (x[:NUM_TRAIN], y[:NUM_TRAIN]), (x[NUM_TRAIN:], y[NUM_TRAIN:])


def measure(activation, step, quick):
    """Acceptance and test MSE of chains with this step size, as JSON values."""
    (x, y), (x_test, y_test) = images()
    model = tfbnn.BayesianMLP(
        [x.shape[1], 5 if quick else 50, 1],
        activation=activation,
        prior=Normal(1.0),
        likelihood=Gaussian(0.1),
        x_transform=None,
        y_transform=None,
    )
    number = round(TRAVEL_TIME / step)
    kernel = HMC(
        num_leapfrog_steps=3 if quick else number,
        step_size=step,
        trajectory_jitter=0.0,
        preconditioner="identity",
    )
    began = time.perf_counter()
    with quiet():
        run = model.fit_posterior(
            x,
            y,
            kernel=kernel,
            pretraining=adam(5 if quick else 500),
            num_chains=NUM_CHAINS,
            num_burnin_steps=10 if quick else NUM_BURNIN,
            num_results=10 if quick else NUM_RESULTS,
            calibrate=False,
            until=None,
            verbose=0,
        )
        mean = model.predict(x_test).mean.reshape(-1, 1)
    return {
        "activation": activation,
        "step_size": step,
        "acceptance": [float(rate) for rate in run.acceptance_rate],
        "mse": float(np.mean((mean - y_test) ** 2)),
        "seconds": time.perf_counter() - began,
        "commit": revision(),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("images", options.fresh, folder)
    steps = STEP_SIZES[-2:] if options.quick else STEP_SIZES
    for activation in PUBLISHED:
        for step in steps:
            key = f"{activation}, eps {step:g}"
            if key not in store:
                store.add(key, measure(activation, step, options.quick))
    keep("images.md", report(store.rows.values()), folder)


def report(rows):
    """The whole text."""
    (_, y), (_, y_test) = images()
    of_constant = np.mean((y_test - y.mean()) ** 2)
    lines, curves = [], []
    for activation, published in PUBLISHED.items():
        of_activation = [row for row in rows if row["activation"] == activation]
        accepted = np.array([np.mean(row["acceptance"]) for row in of_activation])
        errors = np.array([row["mse"] for row in of_activation])
        efficiency = np.array([row["step_size"] for row in of_activation]) * accepted
        found = (
            accepted.mean(),
            errors.mean(),
            errors[np.argmax(accepted)],
            accepted[np.argmax(efficiency)],
        )
        lines.append([activation, *(f"{o:.4g} ({p:g})" for o, p in zip(found, published))])
        curves += [
            [activation, f"{row['step_size']:g}", f"{np.mean(row['acceptance']):.3f}"]
            + [f"{row['mse']:.4f}", f"{row['seconds']:.0f}"]
            for row in of_activation
        ]
    header = ["activation", "average acceptance", "average MSE", "MSE at the best acceptance"]
    header.append("acceptance of the best efficiency")
    return "\n\n".join(
        [
            "# Leapfrog HMC on images",
            f"Networks 1024-50-1 are sampled on {NUM_TRAIN} of scikit-learn's digits, enlarged to 32 x 32 pixels. The "
            f"target is the digit divided by ten; {NUM_TEST} other digits are the test. {NUM_CHAINS} chains start where "
            f"ADAM ends; the travel time of a transition is {TRAVEL_TIME:g}. Averages are over the step sizes eps, and "
            "the efficiency is the step size times the acceptance.",
            "In brackets are the values for UTKFace (arXiv:2410.22065, Table 1 and Fig 2b). Its images and target are "
            "others, and the paper states neither starts nor noise, so only the order of the acceptances compares. "
            f"The mean of the training targets has an MSE of {of_constant:.3f} here, which no network reaches: errors "
            "do not compare. Other work shared the machine, so seconds are upper limits.",
            markdown(header, lines),
            markdown(["activation", "eps", "acceptance", "MSE", "s"], curves),
            f"Rows were made at {commits_of(rows)}.",
        ]
    )


if __name__ == "__main__":
    main()
