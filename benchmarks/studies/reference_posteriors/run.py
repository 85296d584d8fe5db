"""Every kernel on posteriors whose means and variances are known: is it right, where it says it is sure?

    python -m benchmarks reference_posteriors [--only POSTERIOR ...] [--quick --output FOLDER]

Four log densities (`densities.py`) are sampled by `tfbnn.sample` with all kernels that need no
network, and two small networks (`networks.py`) by `fit_posterior` with those that do. Eight
chains in float64, 1000 transitions of warm-up, default settings but where a name says otherwise; all of
these kernels accept or reject, the unadjusted forms, which are biased, are left out. z is (mean of the
draws - reference) / MCSE, of every coordinate and of its squared deviation from the exact mean, that is of
means and variances (of a network: of f at three inputs); the table has the largest magnitude. ESS is
the smaller of bulk and tail. Asked are |z| < 4.3, which chance exceeds once in 60 000 times, ESS >= 1000 and
R-hat < 1.01, of every moment. Rows are kept as they finish; the table is
benchmarks/results/reference_posteriors.md.
"""

import argparse
import dataclasses
import time
import warnings

import numpy as np

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.reference_posteriors.densities import DENSITIES
from benchmarks.studies.reference_posteriors.networks import NETWORKS, X
from tfbnn.diagnostics.statistics import bulk_ess, mcse_mean, rhat, tail_ess
from tfbnn.kernels import NUTS, SMMALA, PowerPosterior, Repriorised

INTRODUCTION = """\
Four log densities (`densities.py`) are sampled by `tfbnn.sample` with the kernels that do not need a network,
except pCN and pCNL, and two small networks (`networks.py`) by `fit_posterior` with the kernels that do. Each
row has eight chains in float64, with 1000 transitions of warm-up and default settings unless the name says
otherwise. Unadjusted kernels are left out, because they are biased. Moments are the mean and the variance of
each coordinate (of the network with hidden units: of its output at three inputs). z is (mean of the draws -
exact value) / MCSE, with the Monte Carlo standard error (MCSE). The table has the largest |z|, the smallest ESS
(bulk or tail) and the largest R-hat of all moments. Goals are |z| < 4.3, which chance exceeds once in 60 000
times, ESS >= 1000 and R-hat < 1.01 for every moment."""
NUM_CHAINS, LARGEST_Z, LEAST_ESS, LARGEST_RHAT = 8, 4.3, 1000, 1.01


@dataclasses.dataclass(frozen=True)
class Setting:
    """A kernel, the draws per chain, and the transitions for each of them: short ones are thinned."""

    kernel: object
    num_results: int = 4000
    stride: int = 1


OF_DENSITIES = {
    "NUTS": Setting("nuts", 8000),
    "NUTS, target acceptance 0.95": Setting(NUTS(target_accept_prob=0.95), 8000),
    "HMC": Setting("hmc", 8000),
    "ChEES-HMC": Setting("chees_hmc", 8000),
    "microcanonical": Setting("microcanonical", 8000),
    "MALA": Setting("mala", stride=100),
    "underdamped Langevin": Setting("underdamped_langevin", stride=100),
    "random walk": Setting("random_walk_metropolis", stride=100),
    "SMMALA, SoftAbs": Setting("smmala", stride=25),
    "power posterior, 8 rungs of MALA": Setting(PowerPosterior(num_temperatures=8), stride=5),
}
OF_NETWORKS = {
    "network 1-1-1": {
        "repriorised HMC": Setting(Repriorised(), 8000),
        "repriorised, readout collapsed": Setting(Repriorised(collapse_readout=True), 8000),
        "SMMALA, Gauss-Newton": Setting(SMMALA(metric="gauss_newton"), stride=25),
    },
    "line in a box": {"truncated MALA": Setting("truncated_mala", stride=5)},
}


def of_density(density, kernel, lengths):
    """(values [C, S, Q], number of gradients, estimate of the log evidence or None)."""
    samples = tfbnn.sample(
        (density.log_prior, density.log_likelihood),
        np.random.default_rng(1).normal(size=(NUM_CHAINS, len(density.names))),
        kernel,
        verbose=0,
        **lengths,
    )
    evidence = samples.log_evidence
    stones = None if evidence is None else evidence.stepping_stone
    return samples.draws, int(samples.num_gradients["sampling"].sum()), stones


def of_network(network, kernel, lengths):
    """The same of a network, whose ladders are left out."""
    model = network.model()
    run = model.fit_posterior(
        X[:, None],
        network.y,
        kernel=kernel,
        num_chains=NUM_CHAINS,
        verbose=0,
        **lengths,
    )
    return network.quantities(model), int(run.num_gradients["sampling"].sum()), None


def measure(posterior, setting, share):
    """One run against what is known, as JSON values."""
    sampled, problem = (
        (of_density, DENSITIES[posterior])
        if posterior in DENSITIES
        else (of_network, NETWORKS[posterior])
    )
    exact = problem.moments()
    num_results = max(int(share * setting.num_results), 100)
    lengths = dict(
        num_results=num_results,
        num_burnin_steps=max(int(share * 1000), 100),
        num_steps_between_results=setting.stride - 1,
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfbnn.ConvergenceWarning)  # the row says so
        values, num_gradients, stones = sampled(problem, setting.kernel, lengths)
    seconds = time.perf_counter() - began
    both = np.concatenate([values, (values - exact.mean) ** 2], axis=-1)
    found = both.mean(axis=(0, 1))
    z = (found - np.concatenate([exact.mean, exact.variance])) / mcse_mean(both)
    return {
        "z": z.tolist(),
        "ess": float(np.min(np.fmin(bulk_ess(both), tail_ess(both)))),
        "rhat": float(np.max(rhat(both))),
        "evidence_z": stones and (stones.value - exact.log_evidence) / stones.stderr,
        "draws": NUM_CHAINS * num_results,
        "transitions": NUM_CHAINS * num_results * setting.stride,
        "gradients": num_gradients,
        "seconds": seconds,
    }


def is_met(row):
    """Return whether all requirements are met, that on the evidence too where there is one."""
    right = max(map(abs, [*row["z"], row["evidence_z"] or 0.0])) < LARGEST_Z
    return right and row["ess"] >= LEAST_ESS and row["rhat"] < LARGEST_RHAT


def report(rows):
    """The table."""
    lines = []
    for row in rows:
        evidence = "" if row["evidence_z"] is None else f"{row['evidence_z']:.1f}"
        lines.append(
            [
                row["posterior"],
                row["kernel"],
                len(row["z"]),
                f"{max(map(abs, row['z'])):.1f}",
                f"{row['ess']:.0f}",
                f"{row['rhat']:.4f}",
                evidence,
                *(f"{row[name]:,}" for name in ("draws", "transitions", "gradients")),
                f"{row['seconds']:.1f}",
                "yes" if is_met(row) else "no",
            ]
        )
    header = ["posterior", "kernel", "moments", "largest abs(z)", "smallest ESS", "largest R-hat"]
    header += [
        "z of log evidence",
        "draws",
        "transitions",
        "gradients",
        "time with compilation, s",
        "goals met",
    ]
    everything = np.concatenate([row["z"] for row in rows])
    return "\n\n".join(
        [
            "# Known posteriors",
            INTRODUCTION,
            markdown(header, lines),
            "The posterior called parabola is concentrated along a parabola. At its steep ends, the step size for its middle "
            "is too long. NUTS and MALA stay there for many transitions, and have a small ESS. A higher target acceptance, "
            "and thus a shorter step, helps. Other processes shared the machine, so times are upper bounds.",
            f"All {len(everything)} z have a root mean square of {np.sqrt(np.mean(everything**2)):.2f} "
            f"(1 is right), and {np.mean(np.abs(everything) > 2.0):.1%} are beyond 2 (4.6 % are right); "
            "the z of a row are correlated.",
        ]
    )


def main(arguments=None):
    """Measures what is missing and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    posteriors = [*DENSITIES, *NETWORKS]
    parser.add_argument("--only", nargs="*", choices=posteriors, default=posteriors)
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("reference_posteriors", fresh=options.fresh, folder=folder)
    keys = []
    for posterior in options.only:
        settings = OF_NETWORKS.get(posterior, OF_DENSITIES)
        for kernel in list(settings)[: 1 if options.quick else None]:
            key = f"{posterior}, {kernel}"
            keys.append(key)
            if key not in store:
                row = measure(posterior, settings[kernel], 0.1 if options.quick else 1.0)
                store.add(key, {"posterior": posterior, "kernel": kernel, **row})
                print(key, store.rows[key], flush=True)
    keep("reference_posteriors.md", report([store.rows[key] for key in keys]), folder)


if __name__ == "__main__":
    main()
