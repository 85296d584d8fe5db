"""Compare where searches for starts end: ADAM, Levenberg-Marquardt, cooled populations, and combinations.

    python -m benchmarks starts [--minutes 60] [--seeds 1] [--searches ADAM ...]

Cells are those of benchmarks/studies/thermalisation/run.py, whose teacher is a draw of the posterior. Starts are
judged by their log density above the teacher's: a draw of the posterior is about level with it, a
maximum some P / 2 above. Tables are those of benchmarks/studies/default/run.py (`TFBNN_DATA`) with the layers named;
starts are judged by their log density and by the error of their mean on test rows, in standard deviations
of the targets. Four starts each, everything with compilation, two cores. Rows are kept as they finish;
`--minutes` begins no further one after that time.
"""

import argparse
import math
import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

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
from benchmarks.lib.default_tables import TABLES
from benchmarks.lib.store import Store
from benchmarks.studies.thermalisation.run import NOISES, Cell, outputs

NUM_STARTS, NUM_PARTICLES, ITERATIONS = 4, 16, 100
# Rows and width of cells, those first that have rows enough for a population.
SIZES = ((100, 8), (1000, 8), (1000, 32), (100, 32), (1000, 128), (100, 128))
ON_TABLES = (
    ("neutralino raw", (20, 20)),
    ("neutralino invariant", (20, 20)),
    ("neutralino invariant", (3,)),
    ("airfoil", (50,)),
    ("yacht", (50,)),
    ("concrete", (50,)),
    ("kin8nm", (50,)),
)
HEADER = [
    "problem",
    "search",
    "seed",
    "parameters",
    "log density of the starts, for teachers minus that of the teacher, nats",
    "error of their mean, relative",
    "time, s",
]
LEGEND = """\
Each search finds four starts. "ADAM" is what a default fit does without populations, with Levenberg-Marquardt
(LM) where the fit uses it (100 iterations on data sets). "Prior, LM" makes 100 iterations of LM from draws of
the prior. "Cooled" draws two populations of 16 networks from the prior and cools them to the posterior; LM
follows only if it gains P nats (100 iterations on data sets), where P is the number of parameters. "Cooled to
.1, LM" stops the cooling at an additional noise of .1, and makes 100 iterations of LM from four of the
networks.

Where the problem is a teacher, this network has generated the rows, with one hidden layer of so many units
and noise of this standard deviation, so it is a draw of the posterior. Other problems are data sets with
their hidden layers. Log densities are in nats, for teachers minus that of the teacher. The error is the RMSE
of the mean of the four starts, from the teacher's function at 300 inputs or on test rows, in standard
deviations of the targets.

Results: with noise of .003 and at least two rows per weight, only cooled populations end with all four starts
near the level of the teacher, and their errors are a third of the others'. With more noise most starts of all
searches end near this level or above it, and the errors of the searches differ by a factor of at most 1.5,
with one exception (prior, LM; 100 rows, 8 units, noise .01). On the neutralinos with layers 20-20,
populations that are cooled to .1 and followed by LM have the start with the highest log density and the
smallest error, in 2.1 and 2.5 times the time of ADAM. With three units, fully cooled populations are best. On
yacht, airfoil and concrete the noise is learned, and a higher log density of the starts does not mean a
smaller error. The best start of ADAM, which held-out rows stop, is 570 and 130 nats below that of cooled
populations on yacht and airfoil. ADAM has the smallest error on yacht and concrete. A default fit therefore
uses populations if there is almost no noise, at most 1500 rows and at least two rows per weight, and ADAM otherwise. Populations on kin8nm
and with 128 units were not tried, because they take ten minutes and more."""


class Silent:
    """A Notifier of a search that nobody watches."""

    stopped, seconds_left = False, math.inf

    def __call__(self, event):
        return False

    def announce(self, phase):
        pass

    def within(self, seconds):
        return nullcontext()


def main(arguments=None):
    """Measures what is missing, and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no row after these")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="problems whose name has this")
    parser.add_argument("--searches", nargs="*", choices=SEARCHES, default=list(SEARCHES))
    options = parser.parse_args(arguments)
    folder, began = output_folder(options), time.monotonic()
    store = Store("starts", options.fresh, folder)
    for key, problem in problems(options.quick):
        if options.only not in key:
            continue
        for search in options.searches:
            for seed in range(options.seeds):
                name = f"{key}, {search}, seed {seed}"
                late = time.monotonic() - began > 60.0 * options.minutes
                if late or name in store:
                    continue
                store.add(name, {"commit": revision()} | measure(key, problem, search, seed))
                print(name, store.rows[name]["log_prob"], flush=True)
    publish(store.rows.values(), folder)


def problems(quick):
    """(Name, Cell or (table, layers)) of all problems."""
    cells = [Cell(noise, width, rows, 0) for rows, width in SIZES for noise in NOISES[::-1]]
    if quick:
        return [("cell 100, 8, 0.1", Cell(0.1, 8, 100, 0))]
    named = [(f"cell {one.num_rows}, {one.width}, {one.noise:g}", one) for one in cells]
    tables = [
        (f"{name} {'-'.join(map(str, layers))}", (name, layers)) for name, layers in ON_TABLES
    ]
    return named + tables


def measure(key, problem, search, seed):
    """Starts of one search on one problem; a dict of JSON values."""
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.density.value_and_gradient import log_prob_terms

    if isinstance(problem, Cell):
        theta, x, y, reference, truth = problem.problem()
        spec, rows = settled(problem.model(), x, y)
        x_new, target = reference, truth
    else:
        name, layers = problem
        table, theta = TABLES[name].load(0), None
        x, y = table.train
        spec, rows = settled(tfbnn.BayesianMLP([x.shape[1], *layers, 1]), x, y)
        x_new = rows.x_pipeline.forward(table.test[0])
        target = rows.y_pipeline.forward(np.asarray(table.test[1])[:, None])[:, 0]
    data = make_data(*rows.train, spec.dtype)
    began = time.perf_counter()
    with quiet():
        found, text = SEARCHES[search](spec, rows, data, seed, theta is None)
    seconds = time.perf_counter() - began

    def log_prob(networks):
        terms = log_prob_terms(spec, networks.astype(spec.dtype), *rows.train)
        return sum(terms.values())

    above = 0.0 if theta is None else float(log_prob(theta[None])[0])
    mean = np.mean([outputs(spec, one.astype(np.float64), x_new) for one in found], axis=0)
    return {
        "problem": key,
        "search": search,
        "seed": seed,
        "num_parameters": spec.num_parameters,
        "log_prob": sorted((log_prob(found) - above).tolist(), reverse=True),
        "rmse": float(np.sqrt(np.mean((mean - target) ** 2))),
        "seconds": seconds,
        "text": text,
    }


def settled(model, x, y):
    """(Spec, TransformedRows) as a fit has them."""
    from tfbnn.fit.choices.choose import close_spec
    from tfbnn.spec.rows import learn_transforms, rows_to_fit

    spec = model.asked.for_rows(x, y, "refuse")
    rows, _ = rows_to_fit(spec, x, y, None, None)
    spec = close_spec(spec, rows, None)
    return spec, learn_transforms(spec, rows, None)


def found_by(spec, rows, data, seed, settings):
    from tfbnn.engine.starts.find import find_starts
    from tfbnn.run.options import Sampling

    sampling = Sampling(seed=seed, num_chains=NUM_STARTS)
    starts = find_starts(spec, rows, data, settings, sampling, Silent())
    return starts.theta, starts.text


def by_adam(spec, rows, data, seed, is_table):
    """The search of the rules, without particles."""
    from tfbnn.fit.choices import rules
    from tfbnn.fit.choices.choose import pilot_of

    sizes = rules.FitSizes(len(rows.train.x), spec.num_parameters, NUM_STARTS, can_cool=False)
    settings, _ = rules.pretraining(sizes, pilot_of(spec, rows.train))
    if is_table and settings.newton_iterations == "auto":
        settings = replace(settings, num_starts=None, newton_iterations=ITERATIONS)
    return found_by(spec, rows, data, seed, settings)


def by_newton(spec, rows, data, seed, is_table):
    """Levenberg-Marquardt from draws of the prior."""
    settings = tfbnn.Pretraining(epochs=0, newton_iterations=ITERATIONS)
    return found_by(spec, rows, data, seed, settings)


def by_cooling(spec, rows, data, seed, is_table):
    """A population, polished where that matters."""
    settings = tfbnn.Pretraining(
        num_particles=NUM_PARTICLES, newton_iterations=ITERATIONS if is_table else "auto"
    )
    return found_by(spec, rows, data, seed, settings)


def by_quenching(spec, rows, data, seed, is_table):
    """A population at additional noise of .1, then Levenberg-Marquardt."""
    from tfbnn.engine.starts import cooling
    from tfbnn.engine.starts.newton import polish
    from tfbnn.engine.starts.newton_plan import plan_newton
    from tfbnn.run.options import Sampling

    cooled, some = cooling.without_learned_noise(spec), cooling.some_rows(data, seed)
    population, count = cooling.hot(cooled, some, NUM_PARTICLES, seed), 0
    while population.temperature > 0.1:
        population = cooling.cooler(cooled, some, population, Sampling(seed=seed), count)
        count += 1
    theta = population.theta[:: 2 * NUM_PARTICLES // NUM_STARTS]
    theta = cooling.with_noise(spec, theta, data)
    method = plan_newton(spec, int(data.num_rows), tfbnn.Pretraining()).method
    ends = [list(polish(spec, one, data, ITERATIONS, method))[-1].theta for one in theta]
    return np.stack(ends), f"{count} temperatures"


SEARCHES = {
    "ADAM": by_adam,
    "prior, LM": by_newton,
    "cooled": by_cooling,
    "cooled to .1, LM": by_quenching,
}


def title_of(problem):
    """The name of a problem in the table: what the numbers of a cell are."""
    if not problem.startswith("cell "):
        return problem
    rows, width, noise = problem.removeprefix("cell ").split(", ")
    return f"teacher: {rows} rows, {width} units, noise {noise.removeprefix('0')}"


def publish(rows, folder):
    """Writes the table."""
    lines = [
        [
            title_of(row["problem"]),
            row["search"],
            row["seed"],
            row["num_parameters"],
            ", ".join(f"{value:.0f}" for value in row["log_prob"]),
            f"{row['rmse']:.4g}",
            f"{row['seconds']:.0f}",
        ]
        for row in rows
    ]
    commits = f"Commits: {commits_of(rows)}"
    parts = ["# Searches for starts", markdown(HEADER, lines), LEGEND, commits]
    keep("starts.md", "\n\n".join(parts), folder)


if __name__ == "__main__":
    main()
