"""Crank-Nicolson proposals in repriorised coordinates, against width and beside HMC.

    TFBNN_DATA=FOLDER python -m benchmarks pcn [--seconds S] [--quick --output FOLDER]

The acceptance at a fixed step, and effective draws of outputs per second of processor time, of networks
with three hidden layers on 64 rows. Rows are kept as they finish; the table is benchmarks/results/pcn.md.

Reference: arXiv:2408.14325.
"""

import argparse
import time

import numpy as np
import tensorflow as tf
from scipy import stats

from benchmarks.lib.blocks import make_group
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.repriorisation.chains import LEAPFROG_STEPS, Case, Watch, effective, start
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.reparametrisation import RepriorisedPotential as InOwnCoordinates
from tfbnn.engine.starts.check import draw_prior
from tfbnn.kernels import HMC, PCN, PCNL, Repriorised

# Transitions of a random walk for each draw that is kept: about as much work as one of HMC.
STRIDE = LEAPFROG_STEPS
KERNELS = {
    "pCN": (PCN(preconditioner="prior"), STRIDE),
    "pCNL": (PCNL(preconditioner="prior"), STRIDE),
    "HMC": (HMC(num_leapfrog_steps=LEAPFROG_STEPS, preconditioner="identity"), 1),
}
FIXED = {
    "pCN": (PCN(step_size=0.03, preconditioner="prior"), STRIDE),
    "pCNL": (PCNL(step_size=0.1, preconditioner="prior"), STRIDE),
}
# Of transitions: in a warm-up that tunes the step, for HMC a STRIDE-th; and at a fixed step.
NUM_WARMUP, NUM_FIXED, MOST_BLOCKS = 480, 768, 1_000_000
# Chains at a fixed step, by which an acceptance has an error.
NUM_CHAINS = 4
NUM_PRIOR_DRAWS = 3
# From this width on chains have so many times the seconds of the others.
WIDE, LONGER = 1024, 4


def group_of(case, kernel, stride, share, *, num_burnin_steps=0, num_chains=1):
    """(ChainGroup in repriorised coordinates from near the posterior, Watch of outputs at test inputs)."""
    spec, (x, y, test) = case.spec, case.rows
    inputs = tf.constant(test.T, spec.dtype)

    def outputs(theta):
        flat = tf.constant(theta.reshape(-1, theta.shape[-1]))
        return network_outputs(spec, flat, inputs).numpy()[:, 0].reshape(*theta.shape[:2], -1)

    sink = Watch(outputs)
    group, _ = make_group(
        spec,
        Repriorised(kernel),
        x,
        y,
        np.repeat(start(case, int(share * NUM_WARMUP) // STRIDE // 2), num_chains, axis=0),
        2 * stride,
        MOST_BLOCKS,
        num_burnin_steps=num_burnin_steps,
        sink=sink,
        stride=stride,
    )
    return group, sink


def slopes(case, share):
    """Lengths of the gradient of what the likelihood adds to the coordinates' prior, as JSON values.

    That is what a proposal which leaves the prior alone is accepted by; it vanishes with infinite width.
    """
    spec, (x, y, _) = case.spec, case.rows
    potential, data = InOwnCoordinates(spec), make_data(x, y, None, spec.dtype)

    def slope(theta):
        coordinates = tf.constant(potential.coordinates(theta, data))
        _, gradient = potential.value_and_gradient(coordinates, data)
        return float(tf.norm(gradient + coordinates))

    draws = [tf.constant(draw_prior(spec, seed, 1)) for seed in range(NUM_PRIOR_DRAWS)]
    return {
        "network": case.key,
        "prior": [slope(potential.complete(draw, None, data)[0].numpy()) for draw in draws],
        "start": slope(start(case, int(share * NUM_WARMUP) // STRIDE // 2)),
    }


def at_fixed_step(case, name, share):
    """The acceptance of a kernel at its step in FIXED, as JSON values."""
    kernel, stride = FIXED[name]
    group, _ = group_of(case, kernel, stride, share, num_chains=NUM_CHAINS)
    while group.counters.transition < share * NUM_FIXED:
        group.advance()
    return row(case, name, group, stride)


def tuned(case, name, seconds, share):
    """Run a chain with a tuned step for some processor time after warm-up, and return a row of JSON values."""
    kernel, stride = KERNELS[name]
    num_burnin_steps = int(share * NUM_WARMUP) * stride // STRIDE
    group, sink = group_of(case, kernel, stride, share, num_burnin_steps=num_burnin_steps)
    while group.stage.phase == "warmup":
        group.advance()
    began = time.process_time()
    while time.process_time() < began + seconds or group.num_kept < 8:
        group.advance()
    spent = time.process_time() - began
    draws = np.concatenate(sink.kept).swapaxes(0, 1)
    return row(case, name, group, stride) | {"seconds": spent, "outputs": effective(draws)}


def row(case, name, group, stride):
    """Return the entries that both kinds of rows have."""
    transitions = group.num_kept * stride
    return {
        "network": case.key,
        "parameters": case.spec.num_parameters,
        "kernel": name,
        "step_size": float(group.counters.step_size[0]),
        "acceptance": (group.counters.acceptance_sum["sampling"] / transitions).tolist(),
        "transitions": transitions,
    }


def report(rows):
    """All three tables."""
    lengths = [
        [
            r["network"],
            f"{np.mean(r['prior']):.0f} +- {stats.sem(r['prior']):.0f}",
            f"{r['start']:.0f}",
        ]
        for r in rows
        if "prior" in r
    ]
    fixed = [
        [
            r["network"],
            r["parameters"],
            r["kernel"],
            f"{r['step_size']:.3g}",
            f"{np.mean(r['acceptance']):.3f} +- {stats.sem(r['acceptance']):.3f}",
        ]
        for r in rows
        if "acceptance" in r and "outputs" not in r
    ]
    lines = []
    for r in rows:
        if "outputs" in r:
            ess, rhat2 = r["outputs"]["ess"], r["outputs"]["rhat2"]
            rates = [np.min(ess) / r["seconds"], np.mean(ess) / r["seconds"]]
            lines.append(
                [
                    r["network"],
                    r["kernel"],
                    f"{r['step_size']:.3g}",
                    f"{np.mean(r['acceptance']):.2f}",
                    f"{r['transitions']}, {r['seconds']:.0f}",
                    ", ".join(f"{rate:.2g}" for rate in rates),
                    ", ".join(f"{value:.2f}" for value in rhat2[1:]),
                ]
            )
    header = ["network", "parameters", "kernel", "step size", "acceptance"]
    columns = [
        "network",
        "kernel",
        "step size",
        "acceptance",
        "transitions, processor seconds",
        "ESS of outputs per processor second: min, mean",
        "R-hat squared: median, 95 %",
    ]
    return f"""# Crank-Nicolson proposals in repriorised coordinates

## Acceptance at a fixed step

{markdown(header, fixed)}

## Gradient of the log likelihood

{markdown(["network", "length at draws of the prior", "length at the start of the chains"], lengths)}

## Effective sample sizes

{markdown(columns, lines)}

Networks have GELU, the ntk parameterisation, N(0, 1) priors, and Gaussian noise of standard deviation 0.1 on
standardised targets. "3 x 16, N = 64" means three hidden layers of 16 units and 64 rows. pCN is preconditioned
Crank-Nicolson, and pCNL adds the gradient. Chains start near the posterior.

In the first table, {NUM_CHAINS} chains make {NUM_FIXED} transitions each from one state; the acceptance has the
standard error of their mean. The second table has the length of the gradient of the log likelihood, in
coordinates in which the prior is N(0, I). The acceptance of a proposal depends on this length. At draws of the
prior (mean of {NUM_PRIOR_DRAWS}, with its standard error) it falls about as one over the root of the width.
Near the posterior it is smaller. From 16 to 256 units the second number falls, too, and the acceptance grows.
The acceptance of pCN can approach one only after the first number is as small as the second.

In the third table each row is one chain. A transition of HMC has {LEAPFROG_STEPS} leapfrog steps. Warm-up tunes
the steps, with the same number of evaluations of the density for each kernel. Outputs are those at 100 held-out
inputs. If R-hat squared
is far above one, the chain is too short, and its ESS is not reliable."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds",
        type=float,
        default=30.0,
        help="of sampling per chain, four times as many from width 1024 on",
    )
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("pcn", fresh=options.fresh, folder=folder)
    share, seconds, depth = (0.3, 0.2, 1) if options.quick else (1.0, options.seconds, 3)
    fixed, in_full = ((4, 16), (16,)) if options.quick else ((16, 64, 256, 1024), (64, 256, 1024))
    for width in fixed:
        case = Case("kin8nm", width, depth, 64)
        if (key := f"{case.key}, slopes") not in store:
            store.add(key, slopes(case, share))
        for name in FIXED:
            if (key := f"{case.key}, {name}, fixed") not in store:
                store.add(key, at_fixed_step(case, name, share))
        for name in KERNELS if width in in_full else ():
            if (key := f"{case.key}, {name}") not in store:
                longer = LONGER if width >= WIDE else 1
                store.add(key, tuned(case, name, longer * seconds, share))
        print(case.key, f"{time.process_time():.0f} s", flush=True)
    keep("pcn.md", report(list(store.rows.values())), folder)


if __name__ == "__main__":
    main()
