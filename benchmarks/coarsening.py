"""The coarsening curve: agreement of chains and scores against the power of the likelihood.

    TFBNN_DATA=folder python benchmarks/coarsening.py [--only PROBLEM ...] [--fresh]

One ladder of power posteriors for each problem, with the draws of all rungs kept: each is the
coarsened posterior that `fit_posterior(likelihood_power=)` samples with its power. R-hat is that of
the function at the reference inputs, scores are of test rows, before and after `model.calibrate` by
rows that took part in nothing else. Finished problems are kept; the table is
benchmarks/results/coarsening.md, the figure coarsening.png.
"""

import argparse
from typing import NamedTuple

import numpy as np
from chains import Deadline, fit
from coarsening_report import figure, report
from common import add_common_options, keep, output_folder
from problems import NTK, Problem, adam, airfoil, neutralino
from store import Store

import tfbnn
from tfbnn.kernels import HMC, PowerPosterior
from tfbnn.likelihoods import Gaussian
from tfbnn.spec.settings_json import describe_settings

LADDER = PowerPosterior(
    HMC(num_leapfrog_steps=32), num_temperatures=14, power=6, crowded_at=0, keep_rungs=True
)
# After so long a ladder ends with the draws it has.
SECONDS = 200
# What the scale of the neutralinos' misfit comes to at the power 1 where it is learned.
NOISE = 0.008


class Case(NamedTuple):
    """One ladder: its problem, network and length."""

    about: str
    problem: Problem
    layers: tuple
    model: dict
    num_chains: int = 4
    num_burnin_steps: int = 500
    num_results: int = 500

    def setting(self, num_kept):
        """The setting as text, with the draws per chain that were kept."""
        return (
            f"{self.about}, {len(self.problem.train[0])} training rows, "
            f"{'-'.join(map(str, self.layers))}, ADAM 2000, {describe_settings(LADDER)}, "
            f"{self.num_chains} x ({self.num_burnin_steps} + {num_kept})"
        )


def subset(problem, num_rows):
    """The problem with so many of its training rows, chosen at random."""
    x, y = problem.train
    chosen = np.random.default_rng(0).permutation(len(x))[:num_rows]
    return problem._replace(train=(x[chosen], y[chosen]))


def load(name):
    """The Case of this name."""
    if name == "airfoil":
        model = NTK | {"y_transform": "standardize"}
        return Case("airfoil", airfoil(0.2), (5, 20, 20, 1), model, num_results=1000)
    about, model = "neutralino, invariant inputs", NTK
    if name == "known noise":
        about = f"{about}, known noise {NOISE} transformed"
        model = NTK | {"likelihood": Gaussian(NOISE)}
    return Case(about, subset(neutralino("invariant"), 2000), (6, 20, 20, 1), model)


def measure(case):
    """The curve of one ladder, as JSON values."""
    # Validation rows calibrate, and nothing else sees them.
    model, run = fit(
        case.layers,
        case.model,
        case.problem._replace(validation=None),
        kernel=LADDER,
        num_chains=case.num_chains,
        num_burnin_steps=case.num_burnin_steps,
        num_results=case.num_results,
        until=None,
        pretraining=adam(2000),
        seed=0,
        verbose=1,
        callbacks=(Deadline(SECONDS),),
    )
    print(run.report(), "\n", flush=True)
    curve = run.coarsening(*case.problem.test)
    print(curve.summary(), flush=True)
    calibrated = [_calibrated(ensemble, case.problem) for ensemble in run.rungs.ensembles()]
    names = [name for name in curve.scores if name.startswith(("rmse", "log_predictive_density"))]
    return {
        "setting": case.setting(run.num_results),
        "powers": curve.powers.tolist(),
        "rhat_q95": np.nan_to_num(curve.rhat_q95, posinf=1e9).tolist(),
        "share_mixed": curve.share_mixed.tolist(),
        "largest_power": curve.largest_power,
        "scores": {name: curve.scores[name].tolist() for name in names},
        "calibrated": calibrated,
        "swap_acceptance": run.ladder.swap_acceptance.tolist(),
        "seconds": run.seconds,
    }


def _calibrated(ensemble, problem):
    """Coverage before, and density and coverage after calibration; the median noise scale."""
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    before = model.evaluate(*problem.test)
    model.calibrate(*problem.validation)
    after = model.evaluate(*problem.test)
    spread = model.predict(problem.test[0], space="transformed").stddev
    return {
        "lpd": after["log_predictive_density_transformed"],
        "coverage": [before["coverage"][1], after["coverage"][1]],
        "noise": _noise(ensemble),
        "spread": float(np.median(spread)),
    }


def _noise(ensemble):
    """The median of a learned noise scale, or the known one."""
    if not ensemble.spec.layout.num_noise:
        return ensemble.spec.likelihood.noise_scale
    return float(np.exp(np.median(ensemble.log_noise_scale)))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("coarsening", options.fresh, folder)
    for name in options.only:
        if name not in store:
            case = load(name)
            if options.quick:
                case = case._replace(
                    problem=subset(case.problem, 100), num_burnin_steps=20, num_results=20
                )
            store.add(name, measure(case))
    rows = {name: store.rows[name] for name in PROBLEMS if name in store}
    keep("coarsening.md", report(rows), folder)
    figure(rows, folder / "coarsening.png")


PROBLEMS = ("airfoil", "neutralino", "known noise")

if __name__ == "__main__":
    main()
