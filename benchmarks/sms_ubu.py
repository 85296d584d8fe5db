"""Mini-batch sampling beside full-batch HMC, and its bias beside `bias_tolerance`.

    python benchmarks/sms_ubu.py [--report] [--quick --output FOLDER]

Predictions of a small network on 40 000 rows of the leading-order cross section with 20 % noise, by both
kernels from the same two networks; and variances of a linear model, whose posterior is known. Rows are kept as
they finish; the table is benchmarks/results/sms_ubu.md.

Reference: arXiv:2410.19780.
"""

import argparse

import numpy as np
from common import add_common_options, keep, markdown, output_folder
from sms_ubu_noise import noise_row
from store import Store

import tfbnn
from tfbnn.datasets import neutralino_pairs
from tfbnn.diagnostics.statistics import geyer_ess
from tfbnn.kernels import HMC, SMSUBU
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal
from tfbnn.run.cost import gradients_of_starts

NOISE, NUM_ROWS, NUM_TESTED = 0.2, 40_000, 500
LEAPFROG_STEPS = 32
NETWORK, LINE = (5, 8, 1), 10
# Draws at which the noise of batches is measured.
NUM_NOISY = 10
# Draws of HMC per chain; of sweeps as many as cost a tenth of its gradients.
NUM_DRAWS, NUM_WARMUP, NUM_CHAINS = 1200, 200, 2
NUM_SWEEPS = NUM_DRAWS * LEAPFROG_STEPS // (10 * SMSUBU.gradients_per_transition)
SWEEPS = {
    "sms_ubu": SMSUBU(),
    "sms_ubu, bias 0.05": SMSUBU(bias_tolerance=0.05),
    "sms_ubu, bias 0.2": SMSUBU(bias_tolerance=0.2),
    "sms_ubu, 16 batches": SMSUBU(num_batches=16),
    "sms_ubu, 64 batches": SMSUBU(num_batches=64),
    "sms_ubu, first derivatives": SMSUBU(control_variates="gradient"),
    "sms_ubu, no control variates": SMSUBU(control_variates="none"),
}
# Tolerances and control variates of the linear model.
LINES = [(0.02, "hessian"), (0.1, "hessian"), (0.3, "hessian"), (0.1, "gradient"), (0.1, "none")]


def cross_sections(num_rows):
    """(x, y, x of rows to predict): logarithms of cross sections, noise of 20 % of each."""
    table = neutralino_pairs(num_rows + NUM_TESTED)
    noise = NOISE * np.random.default_rng(1).normal(size=len(table))
    y = np.log(table.y) + noise
    return table.x[:num_rows], y[:num_rows], table.x[num_rows:]


def network():
    """The model; its targets are standardised as rows have them, and so is the noise."""
    return tfbnn.BayesianMLP(NETWORK, prior=Normal(1.0), likelihood=Gaussian("learned"))


def fitted(model, x, y, kernel, start, num_results, num_warmup):
    """The run from `start` [C, P], or from pretraining."""
    return model.fit_posterior(
        x,
        y,
        kernel=kernel,
        initial_state=start,
        pretraining=tfbnn.Pretraining(epochs=20, batch_size=500, newton_iterations=30)
        if start is None
        else None,
        num_chains=NUM_CHAINS,
        num_results=num_results,
        num_burnin_steps=num_warmup,
        seed=2,
        verbose=0,
    )


def start_row(x, y, share):
    """Where all chains start: two networks after some transitions of HMC from one optimum."""
    model = network()
    fitted(model, x, y, HMC(num_leapfrog_steps=8), None, 2, int(share * 60))
    best = int(np.argmax(model.posterior.sample_stats["lp"][:, -1]))
    theta = model.posterior.draws[best, -1].astype(float)
    return {"theta": [[float(value) for value in theta]] * NUM_CHAINS}


def network_row(rows, kernel, start, num_results, num_warmup):
    """Mean, standard deviation and ESS of predictions, and what they cost, as JSON values."""
    x, y, tested = rows
    model = network()
    run = fitted(model, x, y, kernel, np.asarray(start), num_results, num_warmup)
    draws = predictions(model, tested)
    return {
        "mean": short(draws.mean(axis=(0, 1))),
        "sd": short(draws.std(axis=(0, 1), ddof=1)),
        "ess": short(geyer_ess(draws)),
        "gradients": {phase: int(np.sum(n)) for phase, n in run.num_gradients.items()},
        "seconds": {phase: float(spent) for phase, spent in run.seconds.items()},
        "step_size": short(run.step_size),
        "acceptance": short(run.acceptance_rate),
    }


def predictions(model, x):
    """Outputs of every draw [C, M, Q], on the scale of the targets."""
    return model.predict_draws(x).reshape(NUM_CHAINS, -1, len(x))


def short(values):
    return [float(f"{value:.6g}") for value in np.ravel(values)]


def line_row(bias, control_variates, num_results):
    """The error of variances of a linear model of eleven weights by their closed form."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(4000, LINE))
    y = x @ generator.normal(size=LINE) + generator.normal(size=len(x))
    model = tfbnn.BayesianMLP(
        [LINE, 1], prior=Normal(1.0), likelihood=Gaussian(1.0), x_transform=None, y_transform=None
    )
    kernel = SMSUBU(bias_tolerance=bias, control_variates=control_variates)
    run = fitted(model, x, y, kernel, None, num_results, 500)
    design = np.column_stack([x, np.ones(len(x))])
    precision = design.T @ design + np.eye(LINE + 1)
    mean = np.linalg.solve(precision, design.T @ y)
    # Principal directions: those in which the posterior is N(0, I).
    z = (model.posterior.draws.astype(float) - mean) @ np.linalg.cholesky(precision)
    errors = (z**2).mean(axis=(0, 1)) - 1.0
    chance = (2.0 / geyer_ess(z**2)) ** 0.5
    return {
        "bias": bias,
        "control_variates": control_variates,
        "errors": short(errors),
        "mcse": short(chance),
        "step_size": short(run.step_size),
    }


def agreement(row, reference):
    """(95 % quantiles of |difference of means| / sd and of |ratio of sds - 1|, mean of the ratios)."""
    mean, sd, mean0, sd0 = (np.array(r[name]) for r in (row, reference) for name in ("mean", "sd"))
    shift, ratio = np.abs(mean - mean0) / sd0, sd / sd0
    return np.quantile(shift, 0.95), np.quantile(np.abs(ratio - 1.0), 0.95), ratio.mean()


def compared(kernel):
    """Passes over the rows, of all chains, by which a kernel compares batches in the network's warm-up."""
    spec = network().spec
    settings, _ = kernel.resolve(spec, NUM_ROWS)
    return NUM_CHAINS * gradients_of_starts(spec, settings, NUM_WARMUP)


def report(rows):
    """Both tables."""
    header = [
        "kernel",
        "step size",
        "passes over the rows: comparing batches, warm-up, sampling",
        "of HMC's: sampling, all",
        "seconds: warm-up, sampling",
        "ESS of predictions: 5 %, median",
        "passes per effective draw",
        "means off, 95 %, sd",
        "sd off, 95 %",
        "mean ratio of sd",
    ]
    reference, lines = rows["hmc"], []
    all_of_hmc = sum(reference["gradients"].values())
    for name in [name for name in ("hmc", *SWEEPS) if name in rows]:
        row = rows[name]
        ess = np.quantile(row["ess"], [0.05, 0.5])
        warmup, cost = row["gradients"]["warmup"], row["gradients"]["sampling"]
        before = compared(SWEEPS[name]) if name in SWEEPS else 0
        off = ["", "", ""]
        if name != "hmc":
            off = [f"{value:.3f}" for value in agreement(row, reference)]
        lines.append(
            [
                name,
                f"{np.mean(row['step_size']):.3g}",
                f"{before:.0f}, {warmup}, {cost}",
                f"{cost / reference['gradients']['sampling']:.3f}, "
                f"{(before + warmup + cost) / all_of_hmc:.3f}",
                f"{row['seconds']['warmup']:.0f}, {row['seconds']['sampling']:.0f}",
                f"{ess[0]:.0f}, {ess[1]:.0f}",
                f"{cost / ess[1]:.1f}",
                *off,
            ]
        )
    columns = [
        "bias_tolerance",
        "control variates",
        "step size",
        "error of variances, root mean square",
        "of these by chance",
        "mean error",
    ]
    known = [
        [
            row["bias"],
            row["control_variates"],
            f"{np.mean(row['step_size']):.3g}",
            f"{np.mean(np.square(row['errors'])) ** 0.5:.3f}",
            f"{np.mean(np.square(row['mcse'])) ** 0.5:.3f}",
            f"{np.mean(row['errors']):+.3f}",
        ]
        for row in rows.values()
        if "bias" in row
    ]
    return f"""# Mini-batches: SMS-UBU

## Beside full-batch HMC

{markdown(header, lines)}

{"-".join(map(str, NETWORK))} on 40 000 rows of log(cross section) with noise of {NOISE}, {NUM_CHAINS} chains from one
network, {LEAPFROG_STEPS} leapfrog steps of HMC, {SMSUBU.num_batches} batches unless said otherwise, second derivatives as control
variates by default. A pass takes all rows once; a sweep counts as {SMSUBU.gradients_per_transition}. Those of second derivatives, once at the
start and at the end of each window of warm-up, take about 2 P + 1 passes each. Means and standard deviations
are those of the network's outputs at {NUM_TESTED} other rows, compared with HMC's, whose own Monte Carlo errors are in
the differences. The default friction and number of batches were chosen with these rows.

## Noise of the gradients of batches

{markdown(list(rows["noise"])[1:], [list(rows["noise"].values())[1:]])}

Root mean square per whitened coordinate at {NUM_NOISY} draws of that posterior, by control variates (none, first
derivatives, first and second), {SMSUBU.num_batches} batches, compared at the start of the chains; beside the gradient
of all rows.

## Beside the tolerance

{markdown(columns, known)}

{SMSUBU.num_batches} batches. A linear model of {LINE + 1} weights on 4000 rows, whose posterior is normal and known, in its principal directions."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="only the table, of finished rows")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("sms_ubu", fresh=options.fresh, folder=folder)
    if not options.report:
        measure(store, options.quick)
    keep("sms_ubu.md", report(store.rows), folder)


def measure(store, quick):
    """Adds all rows that are not there yet."""
    share, num_rows = (0.03, 600) if quick else (1.0, NUM_ROWS)
    rows = cross_sections(num_rows)
    if "start" not in store:
        store.add("start", start_row(*rows[:2], share))
    start = store.rows["start"]["theta"]
    if "noise" not in store:
        model = network()
        few = HMC(num_leapfrog_steps=LEAPFROG_STEPS)
        fitted(model, *rows[:2], few, np.asarray(start), NUM_NOISY, int(share * NUM_WARMUP))
        store.add("noise", noise_row(model, *rows[:2], start[0], model.posterior.draws[0]))
    kernels = {"hmc": (HMC(num_leapfrog_steps=LEAPFROG_STEPS), NUM_DRAWS)}
    kernels |= {name: (kernel, NUM_SWEEPS) for name, kernel in SWEEPS.items()}
    for name, (kernel, num_draws) in kernels.items():
        if name not in store:
            num_results, warmup = max(int(share * num_draws), 8), int(share * NUM_WARMUP)
            store.add(name, network_row(rows, kernel, start, num_results, warmup))
            print(name, flush=True)
    for setting in LINES[: 1 if quick else None]:
        if (key := f"line {setting}") not in store:
            store.add(key, line_row(*setting, max(int(share * 2000), 100)))


if __name__ == "__main__":
    main()
