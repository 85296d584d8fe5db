"""Measure how far four chains converge: R-hat and ESS of predictions against gradients spent.

    TFBNN_DATA=folder python -m benchmarks convergence [--only ROW ...] [--minutes 5]

Every row has so many minutes of wall clock, from raw rows to the last draw, and row `long` has 20. Rows
are kept as they finish, so that the script goes on where it was killed; table and figure are
benchmarks/results/convergence.*.
"""

import argparse
import dataclasses
import functools
import time

import numpy as np

from benchmarks.lib.chains import (
    Deadline,
    convergence,
    fit,
    num_gradients,
    predictions,
    quiet,
    scores,
)
from benchmarks.lib.common import RESULTS, keep, revision
from benchmarks.lib.problems import adam, load
from benchmarks.lib.store import Store
from benchmarks.studies.convergence.report import figure, report
from tfbnn.kernels import HMC, NUTS
from tfbnn.priors import Normal

# Plans assume that the pilot run told the truth; so many times as many draws still find room.
MAX_DRAWS, HEADROOM = 2000, 4
PILOT_GRADIENTS = 512

WHITE = {"preconditioner": "gauss_newton", "target_accept_prob": 0.8}
WHITENED = HMC(num_leapfrog_steps=32, **WHITE)


@dataclasses.dataclass(frozen=True)
class Row:
    """One setting.

    Attributes:
        about: What is special about it.
        problem: Name for `problems.load`.
        layers, kernel: As for `BayesianMLP` and `fit_posterior`.
        epochs, newton_iterations: Of ADAM and Levenberg-Marquardt.
        num_starts: Starts of which the best four are kept, or None for four.
        warmup_share: Share of the time that warm-up is planned to take.
        minutes: Wall clock.
        model: What differs from the problem's arguments of `BayesianMLP`.
    """

    about: str
    problem: str = "invariant"
    layers: tuple = (6, 20, 20, 1)
    kernel: object = WHITENED
    epochs: int = 1000
    newton_iterations: int = 150
    num_starts: int | None = None
    warmup_share: float = 0.2
    minutes: float = 5.0
    model: dict = dataclasses.field(default_factory=dict)

    def pretraining(self, quick):
        start = adam(50, 3) if quick else adam(self.epochs, self.newton_iterations)
        if self.num_starts is None:
            return start
        return dataclasses.replace(start, num_starts=self.num_starts)


ROWS = {
    "base": Row("HMC 32"),
    "long_trajectories": Row("HMC 256", kernel=HMC(num_leapfrog_steps=256, **WHITE)),
    "nuts": Row("NUTS depth 8", kernel=NUTS(max_tree_depth=8, **WHITE)),
    "refresh": Row("HMC 32, half the time is warm-up", warmup_share=0.5),
    # All 16 are polished: as many iterations in total as in the rows with four starts.
    "best_of": Row("HMC 32, the best 4 of 16 starts", num_starts=16, newton_iterations=40),
    "tiny": Row("HMC 32", layers=(6, 3, 1)),
    "large": Row("HMC 32", layers=(6, 40, 40, 1), newton_iterations=15),
    # A wide prior on the weights that meet the inputs lets the chains move, and the gradient is
    # cheap, so this is the row for which more time may help.
    "long": Row(
        "HMC 256, not whitened, kernel prior scales 5, 5, 1",
        problem="airfoil",
        layers=(5, 32, 32, 1),
        kernel=HMC(num_leapfrog_steps=256, preconditioner="diagonal"),
        epochs=5000,
        newton_iterations=0,
        minutes=20.0,
        model={
            "prior": [{"kernel": Normal(scale), "bias": Normal(1.0)} for scale in (5.0, 5.0, 1.0)]
        },
    ),
}


@functools.cache
def seconds_per_gradient(name, layers, kernel):
    """Wall seconds per gradient of four chains, from a few transitions at draws of the prior."""
    problem, settings = load(name)
    options = {
        "kernel": kernel,
        "num_burnin_steps": 0,
        "num_results": max(2, PILOT_GRADIENTS // gradients_per_transition(kernel)),
        "pretraining": None,
    }
    _, run = fit(layers, settings, problem, **options)
    return 1e-3 * run.milliseconds_per_gradient


def gradients_per_transition(kernel):
    """Gradients per transition and chain: the most that NUTS may take."""
    if isinstance(kernel, NUTS):
        return 2**kernel.max_tree_depth - 1
    return kernel.num_leapfrog_steps


def plan(row, seconds):
    """Numbers of transitions that fit into so many seconds, as arguments of `fit_posterior`.

    Warm-up has to be planned in transitions, hence the pilot run. Where NUTS builds smaller trees
    than the largest, warm-up is shorter than planned and more draws are kept.
    """
    cost = 4 * seconds_per_gradient(row.problem, row.layers, row.kernel)
    transitions = seconds / (cost * gradients_per_transition(row.kernel))
    sampling = (1.0 - row.warmup_share) * transitions
    return {
        "num_chains": 4,
        "num_burnin_steps": max(50, round(row.warmup_share * transitions)),
        "num_results": HEADROOM * MAX_DRAWS,
        "num_steps_between_results": int(sampling // MAX_DRAWS),
    }


def measure(row, minutes, quick, seed):
    """Runs one row; returns what the table and the figure need, as JSON values."""
    problem, settings = load(row.problem)
    settings = settings | row.model
    numbers = plan(row, 60.0 * minutes)
    began = time.perf_counter()
    model, run = fit(
        row.layers,
        settings,
        problem,
        kernel=row.kernel,
        pretraining=row.pretraining(quick),
        seed=seed,
        callbacks=[Deadline(60.0 * minutes)],
        **numbers,
    )
    found = {
        "about": row.about,
        "problem": row.problem,
        "layers": row.layers,
        "parameters": model.spec.layout.num_parameters,
        "newton_iterations": 3 if quick else row.newton_iterations,
        "starts": run.pretraining,
        "num_burnin_steps": run.num_burnin_steps,
        "stride": run.num_steps_between_results + 1,
        "seconds": run.seconds | {"wall": time.perf_counter() - began},
        "acceptance": float(run.acceptance_rate.mean()),
        "step_size": float(np.median(run.step_size)),
        "start_log_prob": run.start_log_prob.tolist(),
        "checkpoints": [],
    }
    if run.num_results:
        found["checkpoints"] = checkpoints(model, run, problem)
        test = scores(model, problem)
        found["rmse"] = test["rmse_transformed"]
        found["lpd"] = test["log_predictive_density_transformed"]
    return found


def checkpoints(model, run, problem):
    """Convergence of ever longer prefixes of the draws, each twice as long as the one before."""
    draws = predictions(model, problem)
    with quiet():
        posterior = model.posterior
    scale = np.exp(posterior.log_noise_scale).reshape(*draws.shape[:2], -1)[..., 0]
    log_prob = posterior.sample_stats["lp"]
    found = []
    for length in (run.num_results >> power for power in range(5, -1, -1)):
        if length < 8:
            continue
        sampling = num_gradients(run, "sampling") * length / run.num_results
        found.append(
            {
                "draws": length,
                "gradients": num_gradients(run, "warmup") + sampling,
                **convergence(draws[:, :length]),
                **disagreement(draws[:, :length], scale[:, :length]),
                # The last quarter: where the chain is now, not where it came from.
                "log_prob": log_prob[:, length - length // 4 : length].mean(axis=1).tolist(),
            }
        )
    return found


def disagreement(draws, noise_scale):
    """Standard deviation of chain means over that of the prediction, noise included, over rows."""
    between = draws.mean(axis=1).std(axis=0, ddof=1)
    total = np.sqrt(draws.var(axis=(0, 1)) + np.mean(noise_scale**2))
    median, q95 = np.quantile(between / total, [0.5, 0.95])
    return {"disagreement": float(median), "disagreement_q95": float(q95)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--minutes", type=float, help="for every row, instead of its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget all rows of earlier runs")
    parser.add_argument("--again", action="store_true", help="run the rows named even if kept")
    parser.add_argument("--quick", action="store_true", help="short pretraining, to try the script")
    options = parser.parse_args()
    store = Store("convergence", fresh=options.fresh)
    publish(store)  # with what was written into the report since
    for name in options.only:
        if name in store and not options.again:
            continue
        row = ROWS[name]
        minutes = options.minutes or row.minutes
        found = measure(row, minutes, options.quick, options.seed)
        store.add(name, found | {"commit": revision()})
        publish(store)


def publish(store):
    """Writes table and figure of the rows there are."""
    rows = {name: store.rows[name] for name in ROWS if name in store}
    if rows:
        keep("convergence.md", report(rows))
        figure(rows, RESULTS / "convergence.png")


if __name__ == "__main__":
    main()
