"""The headline case: NLO cross sections of pp -> chi10 chi10 as a sampled network.

    TFBNN_DATA=folder python -m benchmarks neutralino [--only ROW ...] [--seeds 0 1 2] [--fresh]

Rows are fitted one after the other on the given split and scored on its test rows, with equal chain
weights and with weights stacked on the validation rows. They are kept as they finish; tables and
figures are benchmarks/results/neutralino*.
"""

import argparse
import dataclasses
import time

import numpy as np

import tfbnn
from benchmarks.lib.chains import fit
from benchmarks.lib.common import RESULTS, keep, revision
from benchmarks.lib.problems import LOG_TARGET, NTK, adam, neutralino
from benchmarks.lib.store import Store
from benchmarks.studies.neutralino.report import report
from tfbnn.kernels import HMC, NUTS
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.plots import plot_pulls
from tfbnn.priors import Normal

# The thesis: prior precision 1e-3, noise scale 1 on log10 of the target.
THESIS = {
    "prior": Normal(1e-3**-0.5),
    "likelihood": Gaussian(1.0),
    "y_transform": ["log10"],
}
DIAGONAL = HMC(preconditioner="diagonal")
WHITENED = HMC(num_leapfrog_steps=32, preconditioner="gauss_newton", target_accept_prob=0.8)


@dataclasses.dataclass(frozen=True)
class Row:
    """One setting of the table."""

    about: str
    kernel: object
    pretraining: tfbnn.Pretraining
    model: dict = dataclasses.field(default_factory=lambda: NTK)
    layers: tuple = (5, 20, 20, 1)
    inputs: str = "raw"
    target: str = "nlo_alphas_up_fb"
    num_chains: int = 4
    num_burnin_steps: int = 200
    num_results: int = 100
    seeds: tuple = (0,)
    figure: bool = False

    @property
    def setting(self):
        """The setting as text."""
        return (
            f"{'-'.join(map(str, self.layers))}, {self.inputs} inputs, {self.about}, "
            f"{self.num_chains} x ({self.num_burnin_steps} + {self.num_results})"
        )


BEST = Row(
    "ADAM 1000, Levenberg-Marquardt 150, whitened HMC 32",
    WHITENED,
    adam(1000, newton_iterations=150),
    layers=(6, 20, 20, 1),
    inputs="invariant",
    num_burnin_steps=300,
    seeds=(0, 1, 2),
    figure=True,
)

ROWS = {
    "basic": Row("ADAM 2000, HMC 64, standard", DIAGONAL, adam(2000), {"y_transform": LOG_TARGET}),
    "ntk": Row("ADAM 2000, HMC 64", DIAGONAL, adam(2000)),
    "long_adam": Row("ADAM 30000, HMC 64", DIAGONAL, adam(30_000)),
    "deep": Row("ADAM 20000, HMC 64", DIAGONAL, adam(20_000), layers=(5, 20, 20, 20, 1)),
    "nuts": Row(
        "ADAM 10000, NUTS depth 7",
        NUTS(max_tree_depth=7, preconditioner="diagonal"),
        adam(10_000),
    ),
    "newton": Row(
        "ADAM 1000, Levenberg-Marquardt 200, whitened HMC 32, prior scales 1",
        WHITENED,
        adam(1000, newton_iterations=200),
        NTK | {"prior": Normal(1.0)},
        num_burnin_steps=300,
        seeds=(0, 1, 2),
        figure=True,
    ),
    "best": BEST,
    "student_t": dataclasses.replace(
        BEST,
        about=f"Student-t noise (4), {BEST.about}",
        seeds=(0,),
        figure=False,
        model=NTK | {"likelihood": StudentT()},
    ),
    "heteroscedastic": dataclasses.replace(
        BEST,
        about=f"heteroscedastic noise, {BEST.about}",
        seeds=(0,),
        figure=False,
        model=NTK | {"likelihood": HeteroscedasticGaussian()},
        layers=(6, 20, 20, 2),
    ),
    "larger": dataclasses.replace(
        BEST,
        about="ADAM 1000, Levenberg-Marquardt 100, whitened HMC 32",
        pretraining=adam(1000, newton_iterations=100),
        layers=(6, 30, 30, 1),
        seeds=(0, 1),
        figure=False,
    ),
    "thesis": Row(
        "thesis setting, PDF uncertainty as target, HMC 512, one chain, 300 transitions",
        HMC(num_leapfrog_steps=512, preconditioner="identity"),
        tfbnn.Pretraining(epochs=2500, batch_size=32, newton_iterations=0),
        THESIS,
        target="nlo_pdf_unc_fb",
        num_chains=1,
    ),
}


def measure(name, row, seed):
    """Fits and scores one setting; returns what the tables need, as JSON values."""
    problem = neutralino(row.inputs, row.target)
    began = time.perf_counter()
    model, run = fit(
        row.layers,
        row.model,
        problem,
        kernel=row.kernel,
        num_chains=row.num_chains,
        num_burnin_steps=row.num_burnin_steps,
        num_results=row.num_results,
        pretraining=row.pretraining,
        seed=seed,
    )
    found = {"setting": row.setting, "seed": seed, "equal": score(model, problem.test)}
    found["wall"] = time.perf_counter() - began
    print(run.report(), "\n", flush=True)
    if row.figure and seed == row.seeds[0]:
        plot_pulls(model, *problem.test).savefig(RESULTS / f"neutralino-pulls-{name}.png")
    noise = np.exp(model.posterior.log_noise_scale) if model.spec.layout.num_noise else [np.nan]
    rhat, ess = run.diagnosis.rhat_function, run.diagnosis.ess_function
    stacking = model.stack_chains(*problem.validation)
    return found | {
        "stacked": score(model, problem.test),
        "weights": stacking.weights.tolist(),
        "noise_scale": float(np.median(noise)),
        "rhat": [float(np.median(rhat)), float(np.quantile(rhat, 0.95))],
        "ess": float(np.median(ess)),
        "acceptance": float(run.acceptance_rate.mean()),
        "ms_per_gradient": run.milliseconds_per_gradient,
        "seconds": run.seconds,
    }


def score(model, test):
    """Scores on the test rows under the chain weights that the model has now."""
    from tfbnn.posterior.checks import checked_rows
    from tfbnn.posterior.metrics import row_scores

    x, y = test
    scores = model.evaluate(x, y)
    relative = np.abs(model.predict(x).mean / y - 1.0)
    rows, transformed = checked_rows(model.posterior, x, y, None, "pulls")
    pull = row_scores(model.posterior, rows.y, transformed).pull
    names = ("rmse_log10", "r2_log10", "r2", "log_predictive_density_transformed", "pull_width")
    return {name: scores[name] for name in names} | {
        "coverage": [scores["coverage"][k] for k in (1, 2, 3)],
        "central_coverage": [scores["central_coverage"][p] for p in (0.683, 0.954)],
        "pull_iqr": float(np.diff(np.quantile(pull, [0.25, 0.75]))[0] / 1.349),
        "kurtosis": float(np.mean(pull**4) / np.mean(pull**2) ** 2),
        "relative": np.quantile(relative, [0.5, 0.9, 0.99]).tolist(),
        "better_than": [float(np.mean(relative < limit)) for limit in (0.01, 0.05, 0.1)],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", nargs="*", type=int, help="default: those of the row")
    parser.add_argument("--fresh", action="store_true", help="forget the rows of an earlier run")
    options = parser.parse_args()
    store = Store("neutralino", options.fresh)
    for name in options.only:
        for seed in options.seeds or ROWS[name].seeds:
            if f"{name} {seed}" not in store:
                found = measure(name, ROWS[name], seed)
                store.add(f"{name} {seed}", found | {"commit": revision()})
            keep("neutralino.md", report(in_order(store.rows)))


def in_order(rows):
    """Finished rows in the order of ROWS, then by seed."""
    names = list(ROWS)
    return dict(sorted(rows.items(), key=lambda item: (names.index(item[0].split()[0]), item[0])))


if __name__ == "__main__":
    main()
