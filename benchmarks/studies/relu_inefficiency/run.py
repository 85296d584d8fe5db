"""Leapfrog HMC on smooth and on ReLU networks: the experiments of Dinh, Ho and Nguyen 2024.

    python -m benchmarks relu_inefficiency [--only STUDY ...] [--quick --output FOLDER]

One network on 100 rows, five chains per setting. Acceptance against step size and number of leapfrog
steps; efficiency at a fixed travel time; width and depth; the energy error of a single step. The
paper does not say where chains start: from the prior, the end of ADAM, or s N(0, 1), s being
chosen on one row of the paper's table, ReLU with L = 200 and eps = 0.001. Nor does it say the slope of
leaky ReLU: TensorFlow's 0.2, and PyTorch's 0.01 from s N(0, 1) alone. Where five chains leave
a standard error above 0.04 there are twenty more. Rows are kept as they finish, so that the script goes
on where it was killed; tables and figure are benchmarks/results/relu_inefficiency.*.

Reference: arXiv:2410.22065.
"""

import argparse
import dataclasses
import itertools
import time

import numpy as np

import tfbnn
from benchmarks.lib.chains import quiet
from benchmarks.lib.common import add_common_options, keep, output_folder
from benchmarks.lib.problems import adam
from benchmarks.lib.store import Store
from benchmarks.studies.relu_inefficiency.figure import figure
from benchmarks.studies.relu_inefficiency.local_error import local_error
from benchmarks.studies.relu_inefficiency.published import ACCEPTANCE, STEP_SIZES
from benchmarks.studies.relu_inefficiency.report import report, standard_error
from tfbnn.kernels import HMC

OTHER_SLOPE = "leaky_relu_0.01"
ACTIVATIONS = ("sigmoid", "relu", "leaky_relu", OTHER_SLOPE)
# Of chains: a draw of the prior, the end of full-batch ADAM, or draws of s N(0, 1).
STARTS = {"prior": None, "ADAM": adam(500)}
SCALES = (0.1, 0.2, 0.3, 0.5)
NOISE_SCALE, NUM_ROWS, NUM_DATA, NUM_CHAINS = 0.1, 100, 5, 5
WIDTH, TRAVEL_TIME = 50, 0.1
# What is uncertain gets as many chains again by so many other seeds.
UNCERTAIN, MORE_SEEDS = 0.04, (1, 2, 3, 4)
NUMBERS_OF_STEPS = (200, 400, 600, 800, 1000)
# Finer where networks with a kink have their optimum, most of all for these.
EFFICIENCY_STEPS = (0.0005, 0.00075, 0.001, 0.00125, 0.0015, 0.002, 0.0025, 0.003, 0.0035, 0.004)
STEPS_WITH_A_KINK = (0.0011, 0.0012)


@dataclasses.dataclass(frozen=True)
class Length:
    """Transitions of warm-up (nothing adapts) and draws kept, per chain."""

    num_burnin_steps: int = 100
    num_results: int = 2000


@dataclasses.dataclass(frozen=True)
class Case:
    """One setting: a network, the two numbers of leapfrog HMC, where chains start, which rows, the seed."""

    activation: str
    hidden: tuple
    num_leapfrog_steps: int
    step_size: float
    start: str | float = "prior"
    data: int = 0
    seed: int = 0

    @property
    def key(self):
        layers = "-".join(map(str, (1, *self.hidden, 1)))
        hmc = f"L {self.num_leapfrog_steps}, eps {self.step_size:g}"
        start = self.start if self.start in STARTS else f"{self.start:g} N(0, 1)"
        seed = f", seed {self.seed}" if self.seed else ""
        return f"{self.activation}, {layers}, {hmc}, {start}, data {self.data}{seed}"


def scale_cases(quick):
    """Dict s -> the Case that it is chosen on."""
    length = 50 if quick else 200
    return {scale: Case("relu", (WIDTH,), length, 0.001, scale) for scale in SCALES}


def chosen_scale(rows):
    """The s of the row [dict s -> row] whose acceptance, over all chains, is closest to the paper's."""
    published = ACCEPTANCE["relu"][200][STEP_SIZES.index(0.001)]
    return min(rows, key=lambda scale: abs(np.mean(rows[scale]["acceptance"]) - published))


def studies(quick, scale):
    """Dict of study -> list of Cases; a case may belong to several."""
    activations = ("sigmoid", "relu") if quick else ACTIVATIONS
    efficiency = [
        Case(activation, (WIDTH,), round(TRAVEL_TIME / step), step, start, data)
        for activation in activations
        for step in ([0.002] if quick else efficiency_steps(activation))
        for start in ([scale] if activation == OTHER_SLOPE else [*STARTS, scale])
        for data in range(1 if quick else NUM_DATA)
    ]
    networks = [(10,), (50,), (100,), (200,), (400,), *((20,) * depth for depth in (1, 2, 3, 4))]
    architecture = [
        Case(activation, hidden, 50 if quick else 200, 0.001, scale)
        for activation, hidden in itertools.product(activations, networks[: 1 if quick else None])
    ]
    lengths, steps = ((50,), (0.002,)) if quick else (NUMBERS_OF_STEPS, STEP_SIZES)
    acceptance = [
        Case(activation, (WIDTH,), number, step, scale)
        for activation, number, step in itertools.product(activations, lengths, steps)
    ]
    # What the paper's setting comes to where chains start as the prior has them.
    prior = [dataclasses.replace(case, start="prior") for case in acceptance]
    prior = [
        case
        for case in prior
        if case.activation != OTHER_SLOPE and case.num_leapfrog_steps in (50, 200, 400, 1000)
    ]
    return {
        "scale": list(scale_cases(quick).values()),
        "acceptance": acceptance,
        "efficiency": efficiency,
        "architecture": architecture,
        "prior": prior,
    }


def efficiency_steps(activation):
    """Step sizes of the efficiency curve."""
    finer = () if activation == "sigmoid" else STEPS_WITH_A_KINK
    return sorted((*EFFICIENCY_STEPS, *finer))


def rows(data):
    """A data set: x [100, 1] uniform on (0, 4), y ~ N(cos 2x, 0.1^2)."""
    generator = np.random.default_rng(data)
    x = generator.uniform(0.0, 4.0, size=(NUM_ROWS, 1))
    return x, np.cos(2.0 * x) + NOISE_SCALE * generator.normal(size=x.shape)


def fit(case, length, dtype="float32"):
    """A sampled model and its Run; nothing adapts."""
    model = tfbnn.BayesianMLP(
        [1, *case.hidden, 1],
        activation=case.activation,
        prior=tfbnn.priors.Normal(1.0),
        likelihood=tfbnn.likelihoods.Gaussian(NOISE_SCALE),
        x_transform=None,
        y_transform=None,
        dtype=dtype,
    )
    kernel = HMC(
        step_size=case.step_size,
        num_leapfrog_steps=case.num_leapfrog_steps,
        trajectory_jitter=0.0,
        preconditioner="identity",
    )
    start = {"initial_state": case.start}
    if case.start in STARTS:
        start = {"pretraining": STARTS[case.start]}
    with quiet():
        run = model.fit_posterior(
            *rows(case.data),
            kernel=kernel,
            num_chains=NUM_CHAINS,
            seed=case.seed,
            verbose=0,
            **start,
            **dataclasses.asdict(length),
        )
    return model, run


def measure(case, length):
    """Runs one case; returns what tables and figure need, as JSON values."""
    began = time.perf_counter()
    model, run = fit(case, length)
    return {
        "activation": case.activation,
        "hidden": case.hidden,
        "parameters": model.spec.layout.num_parameters,
        "num_leapfrog_steps": case.num_leapfrog_steps,
        "step_size": case.step_size,
        "start": case.start,
        "data": case.data,
        "acceptance": run.acceptance_rate.tolist(),
        "seconds": time.perf_counter() - began,
    }


def measure_local_error(activation, quick):
    """Energy errors of single steps from draws of the posterior, as JSON values."""
    length = Length(50, 50) if quick else Length(500, 2000)
    case = Case(activation, (WIDTH,), 50 if quick else 200, 0.0005)
    model, _ = fit(case, length, dtype="float64")
    return {"activation": activation, **local_error(model, *rows(0), 400 if quick else 20_000)}


def main(arguments=None):
    names = [*studies(False, SCALES[0]), "local_error"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("relu_inefficiency", fresh=options.fresh, folder=folder)
    length = Length(50, 50) if options.quick else Length()
    scale = chosen_scale(
        {scale: kept(store, case, length) for scale, case in scale_cases(options.quick).items()}
    )
    plan = studies(options.quick, scale)
    activations = ("relu",) if options.quick else ACTIVATIONS
    errors = {f"{name}, local error": name for name in activations if name != OTHER_SLOPE}
    for key, activation in errors.items():
        if "local_error" in options.only and key not in store:
            store.add(key, measure_local_error(activation, options.quick))
    for case in cheap_first(
        itertools.chain(*(plan[study] for study in plan if study in options.only))
    ):
        kept(store, case, length)
    plan["more chains"] = [
        again
        for case in more_cases(store, plan["acceptance"])
        for again in (case, *(dataclasses.replace(case, seed=seed) for seed in MORE_SEEDS))
    ]
    for case in plan["more chains"]:
        kept(store, case, length)
    publish(store, plan, errors, folder)


def kept(store, case, length):
    """The row of a Case, measured where the store has none."""
    if case.key not in store:
        store.add(case.key, measure(case, length))
        print(case.key, store.rows[case.key]["acceptance"], flush=True)
    return store.rows[case.key]


def more_cases(store, cases):
    """Return the finished cases whose acceptance is uncertain."""
    finished = [case for case in cases if case.key in store]
    return [case for case in finished if standard_error(store.rows[case.key]) > UNCERTAIN]


def cheap_first(cases):
    """Cases by their cost; equal ones stay together, and share a compiled program."""
    return sorted(cases, key=lambda case: case.num_leapfrog_steps * sum(case.hidden))


def publish(store, plan, errors, folder):
    """Writes tables and figure of the rows there are."""
    found = {
        study: [store.rows[case.key] for case in cases if case.key in store]
        for study, cases in plan.items()
    }
    found["local_error"] = [store.rows[key] for key in errors if key in store]
    keep("relu_inefficiency.md", report(found), folder)
    figure(found, folder / "relu_inefficiency.png")


if __name__ == "__main__":
    main()
