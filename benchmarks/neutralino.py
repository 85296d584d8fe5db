"""The headline case: NLO cross sections of pp -> chi10 chi10 as a sampled network.

    TFBNN_DATA=folder python benchmarks/neutralino.py [--only ROW ...] [--seed 0]

Rows are fitted one after the other on the given split and scored on its test rows; the table, with
what every column means, is kept in benchmarks/results/neutralino.md.
"""

import argparse
import dataclasses
import time
import warnings

import numpy as np
from common import data_folder, keep, markdown
from problems import LOG_TARGET, NTK, adam

import tfbnn
from tfbnn.kernels import HMC, NUTS
from tfbnn.likelihoods import Gaussian, StudentT
from tfbnn.priors import Normal

# The thesis: prior precision 1e-3, noise scale 1 on log10 of the target.
THESIS = {
    "prior": Normal(1e-3**-0.5),
    "likelihood": Gaussian(1.0),
    "y_transform": ["log10"],
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One setting of the table."""

    about: str
    model: dict
    kernel: object
    pretraining: tfbnn.Pretraining
    layers: tuple = (5, 20, 20, 1)
    target: str = "nlo_alphas_up_fb"
    num_chains: int = 4
    num_burnin_steps: int = 200
    num_results: int = 100


ROWS = {
    "basic": Row("ADAM 2000, HMC 64, standard", {"y_transform": LOG_TARGET}, HMC(), adam(2000)),
    "ntk": Row("ADAM 2000, HMC 64, ntk", NTK, HMC(), adam(2000)),
    "long_adam": Row("ADAM 30000, HMC 64, ntk", NTK, HMC(), adam(30_000)),
    "deep": Row("ADAM 20000, HMC 64, ntk", NTK, HMC(), adam(20_000), layers=(5, 20, 20, 20, 1)),
    "newton": Row(
        "ADAM 1000, Levenberg-Marquardt 200, HMC 32 whitened by Gauss-Newton, ntk",
        NTK,
        HMC(num_leapfrog_steps=32, preconditioner="gauss_newton", target_accept_prob=0.8),
        adam(1000, newton_iterations=200),
        num_chains=2,
        num_burnin_steps=300,
        num_results=200,
    ),
    "nuts": Row("ADAM 10000, NUTS depth 7, ntk", NTK, NUTS(max_tree_depth=7), adam(10_000)),
    "student_t": Row(
        "ADAM 10000, HMC 64, ntk, Student-t (4)",
        NTK | {"likelihood": StudentT()},
        HMC(),
        adam(10_000),
    ),
    "thesis": Row(
        "thesis setting, PDF uncertainty as target, HMC 512, one chain, 300 transitions",
        THESIS,
        HMC(num_leapfrog_steps=512),
        tfbnn.Pretraining(epochs=2500, batch_size=32),
        target="nlo_pdf_unc_fb",
        num_chains=1,
    ),
}

LEGEND = """\
RMSE and R2 of log10(cross section) are of the posterior mean of log10; R2 in fb and the median
relative error of the posterior mean in fb. LPD is the mean log predictive density of the mixture of
all draws, in units of the standardised (thesis row: plain) log10 target. Coverage is the share of
test rows within k standard deviations, noise included (nominal .683 .954 .997), the next column
that of central predictive intervals. Pull width is the standard deviation of the standardised
residuals, with the interquartile range over 1.349 and the kurtosis (3 for a normal) beside it.
R-hat and ESS are of the predictions at 200 validation rows. Wall is everything from raw rows to
scores, compilation included; ms per gradient is wall time of warm-up and sampling over the
gradients of all chains.

Why coverage at 1 and 2 sigma is not nominal: the residuals are no Gaussian noise but the error of
the fit, small almost everywhere and large near N11, N12 = 0, where the cross section cancels. Their
kurtosis says so, and their interquartile range is a fraction of their standard deviation. One
Gaussian scale has to cover the large ones and is too wide for most rows. Student-t noise fits the
bulk better (its log predictive density is higher) and pays with a larger RMSE, because it gives the
cancellation region up as outliers."""

HEADER = [
    "row",
    "setting",
    "test RMSE(log10)",
    "R2(log10)",
    "R2(fb)",
    "LPD",
    "coverage 1, 2, 3 sigma",
    "68.3 %, 95.4 % intervals",
    "pull width (IQR), kurtosis",
    "median relative error",
    "noise scale",
    "R-hat median, 95 %",
    "ESS median",
    "acceptance",
    "ms/gradient",
    "wall s",
]


def fit_row(name, row, folder, seed):
    """Fits and scores one setting; returns a line of the table."""
    table = tfbnn.datasets.read_cross_sections(
        folder / "nlo_neutralino" / "chi10chi10.csv", target=row.target
    )
    began = time.perf_counter()
    model = tfbnn.BayesianMLP(row.layers, **row.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfbnn.ConvergenceWarning)  # the table says it in numbers
        run = model.fit_posterior(
            *table.train,
            kernel=row.kernel,
            num_chains=row.num_chains,
            num_burnin_steps=row.num_burnin_steps,
            num_results=row.num_results,
            pretraining=row.pretraining,
            validation_data=table.validation,
            seed=seed,
        )
    scores = model.evaluate(*table.test)
    wall = time.perf_counter() - began
    print(run.report(), "\n", flush=True)
    return _line(name, row, model, run, scores, table.test, wall)


def _line(name, row, model, run, scores, test, wall):
    from tfbnn.metrics import pulls

    x, y = test
    relative = np.abs(model.predict(x).mean[:, 0] / y - 1.0)
    pull = pulls(model.posterior, x, y[:, None])
    quartiles, kurtosis = np.quantile(pull, [0.25, 0.75]), np.mean(pull**4) / np.mean(pull**2) ** 2
    noise = np.exp(model.posterior.log_noise_scale) if model.spec.layout.num_noise else [1.0]
    rhat, ess = run.diagnosis.rhat_function, run.diagnosis.ess_function
    coverage = ", ".join(f"{scores['coverage'][k]:.3f}" for k in (1, 2, 3))
    return [
        name,
        f"{'-'.join(map(str, row.layers))}, {row.about}, {row.num_chains} x "
        f"({row.num_burnin_steps} + {row.num_results})",
        f"{scores['rmse_log10']:.4f}",
        f"{scores['r2_log10']:.5f}",
        f"{scores['r2']:.4f}",
        f"{scores['log_predictive_density_transformed']:.3f}",
        coverage,
        ", ".join(f"{scores['central_coverage'][p]:.3f}" for p in (0.683, 0.954)),
        f"{scores['pull_width']:.2f} ({np.diff(quartiles)[0] / 1.349:.2f}), {kurtosis:.0f}",
        f"{np.median(relative):.2%}",
        f"{np.median(noise):.4f}",
        f"{np.median(rhat):.2f}, {np.quantile(rhat, 0.95):.2f}",
        f"{np.median(ess):.0f}",
        f"{run.acceptance_rate.mean():.2f}",
        f"{run.milliseconds_per_gradient:.3f}",
        f"{wall:.0f}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder, lines = data_folder(), []
    for name in options.only:
        lines.append(fit_row(name, ROWS[name], folder, options.seed))
        table = markdown(HEADER, lines)
        keep("neutralino.md", f"# Neutralino pair production\n\n{table}\n\n{LEGEND}")


if __name__ == "__main__":
    main()
