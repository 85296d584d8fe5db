"""The log evidence of linear models, whose exact value is known, and whether its errors are honest.

    python -m benchmarks evidence [--only CASE ...] [--seeds 10] [--quick --output FOLDER]

Fits of power posteriors with the default lengths and the default kernel within the rungs to
informative rows; every seed has its own rows, hence its own exact value. z is (estimate - exact) /
stderr. Rows are kept as they finish, so that the script goes on where it was killed; the table is
benchmarks/results/evidence.md.
"""

import argparse
import dataclasses
import time

import numpy as np
from scipy import integrate, stats

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.store import Store
from tfbnn.kernels import PowerPosterior
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal

DEFAULT_RUNGS = PowerPosterior().num_temperatures
# ADAM alone finds the mode of a model without hidden layer.
START = tfbnn.Pretraining(epochs=200, batch_size=None, learning_rate=0.05, newton_iterations=0)


@dataclasses.dataclass(frozen=True)
class Case:
    """A linear model with its rows.

    Attributes:
        num_rows, num_inputs: N and D.
        noise: Standard deviation of the targets around the line.
        prior: Standard deviation of the weights.
        learned: Whether the model knows the noise, or has it learned with its default prior.
        num_temperatures: Rungs.
    """

    num_rows: int = 200
    num_inputs: int = 5
    noise: float = 0.1
    prior: float = 1.0
    learned: bool = True
    num_temperatures: int = DEFAULT_RUNGS

    @property
    def key(self):
        noise = "learned" if self.learned else "known"
        return (
            f"N {self.num_rows}, D {self.num_inputs}, noise {noise}, prior {self.prior:g}, "
            f"{self.num_temperatures} rungs"
        )

    def rows(self, seed):
        """(x [N, D], y [N])."""
        generator = np.random.default_rng([self.num_rows, seed])
        x = generator.normal(size=(self.num_rows, self.num_inputs))
        weights = generator.normal(size=self.num_inputs)
        return x, x @ weights + 0.5 + self.noise * generator.normal(size=self.num_rows)


FIXED, WIDE, MANY = Case(learned=False), Case(prior=10.0), Case(1000, 3, 0.05)
# The first five are those in which the forward stones alone had errors that were too small.
CASES = [
    *(dataclasses.replace(case, num_temperatures=10) for case in (FIXED, Case())),
    Case(num_temperatures=30),
    dataclasses.replace(WIDE, num_temperatures=10),
    dataclasses.replace(MANY, num_temperatures=20),
    *(FIXED, Case(), WIDE, MANY),
]


def exact(case, x, y):
    """log p(y), by quadrature over the noise scale where it is learned."""
    if not case.learned:
        return float(conjugate(case.prior, case.noise, x, y))

    def log_integrand(log_scale):
        scale = np.exp(log_scale)
        return conjugate(case.prior, scale, x, y) + stats.halfnorm.logpdf(scale) + log_scale

    # Around the mode the integrand is a smooth peak, for which the rule converges exponentially.
    grid = np.log(case.noise) + np.linspace(-2.0, 2.0, 2001)
    logs = log_integrand(grid)
    return float(logs.max() + np.log(integrate.trapezoid(np.exp(logs - logs.max()), grid)))


def conjugate(prior, noise, x, y):
    """log p(y) [...] of a linear model with these noise scales [...]."""
    design = np.column_stack([x, np.ones(len(x))])
    left, singular, _ = np.linalg.svd(design, full_matrices=False)
    along = left.T @ y
    across = np.sum(y**2) - np.sum(along**2)
    variance = np.square(noise)[..., None]
    spread = variance + (prior * singular) ** 2  # of y along the columns of `left`
    log_density = -0.5 * np.sum(along**2 / spread + np.log(spread), axis=-1)
    rest = len(y) - len(along)
    log_density -= 0.5 * (across / variance + rest * np.log(variance))[..., 0]
    return log_density - 0.5 * len(y) * np.log(2 * np.pi)


def measure(case, seed, **lengths):
    """One fit and what it says of the evidence, as JSON values."""
    began = time.perf_counter()
    x, y = case.rows(seed)
    model = tfbnn.BayesianMLP(
        [case.num_inputs, 1],
        prior=Normal(case.prior),
        likelihood=Gaussian("learned" if case.learned else case.noise),
        x_transform=None,
        y_transform=None,
    )
    kernel = PowerPosterior(num_temperatures=case.num_temperatures)
    run = model.fit_posterior(
        x, y, kernel=kernel, pretraining=START, seed=seed, verbose=0, **lengths
    )
    return {
        "case": case.key,
        "seed": seed,
        "exact": exact(case, x, y),
        "evidence": run.log_evidence.to_dict(),
        "swaps": float(run.ladder.swap_acceptance.min()),
        "seconds": time.perf_counter() - began,
    }


def report(rows):
    """The table."""
    lines = []
    for key in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == key]
        line = [key, len(mine), f"{min(row['swaps'] for row in mine):.2g}"]
        for name in ("stepping_stone", "thermodynamic"):
            line += judged(mine, name)
        lines.append([*line, f"{np.mean([row['seconds'] for row in mine]):.0f}"])
    estimate = ["largest error", "largest stderr", "rms z", "largest z"]
    stones = [f"stones: {word}" for word in estimate]
    integral = [f"integral: {word}" for word in estimate]
    header = [
        "model",
        "seeds",
        "smallest share of accepted swaps",
        *stones,
        *integral,
        "time per fit, s",
    ]
    return "\n\n".join(
        [
            "# Log evidence of linear models against its exact value",
            "Each fit has four chains with 1000 transitions of warm-up and 1000 draws. A model has N rows, D inputs and "
            f"normal priors of standard deviation 1 or 10; the default ladder has {DEFAULT_RUNGS} rungs. Stones are "
            "stepping stones, and integral is thermodynamic integration. Errors and standard errors (stderr) are in "
            "nats, and z is (estimate - exact) / stderr. Thermodynamic integration has no value if the noise scale is "
            "learned, because then the log likelihood has no mean under the prior.",
            markdown(header, lines),
        ]
    )


def judged(rows, name):
    """Largest error, largest stderr, root mean square of z and largest z of an estimate."""
    found = [(row["evidence"][name], row["exact"]) for row in rows]
    if all(estimate["value"] is None for estimate, _ in found):
        return ["none"] * 4
    error = np.array([estimate["value"] - exact for estimate, exact in found])
    stderr = np.array([estimate["stderr"] for estimate, _ in found])
    z = error / stderr
    worst = (np.abs(error).max(), stderr.max(), np.sqrt(np.mean(z**2)), np.abs(z).max())
    return [f"{value:.2g}" for value in worst]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    keys = [case.key for case in CASES]
    parser.add_argument("--only", nargs="*", choices=keys, default=keys)
    parser.add_argument("--seeds", type=int, default=10)
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("evidence", fresh=options.fresh, folder=folder)
    lengths = dict(num_chains=2, num_results=50, num_burnin_steps=50) if options.quick else {}
    cases = [case for case in CASES if case.key in options.only]
    for case in cases[:2] if options.quick else cases:
        for seed in range(2 if options.quick else options.seeds):
            key = f"{case.key}, seed {seed}"
            if key not in store:
                store.add(key, measure(case, seed, **lengths))
                print(key, store.rows[key], flush=True)
    kept = [f"{case.key}, seed {seed}" for case in CASES for seed in range(options.seeds)]
    keep("evidence.md", report([store.rows[key] for key in kept if key in store]), folder)


if __name__ == "__main__":
    main()
