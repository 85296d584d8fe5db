"""Do chains that find their own starts sample what a chain samples that begins inside the posterior?

    python -m benchmarks thermalisation [--seconds 900] [--teachers 1] [--minutes 8]

A teacher is drawn from the prior, and makes the targets with noise of the stated size. So the teacher
is an exact draw of the posterior of these rows: a chain that starts there has nothing to find. Three
more chains start where the library's default search ends. Where both agree, in log density and in
predictions, the library samples the posterior; else its chains are elsewhere, however well they
predict (Piccioli, Troiani and Zdeborova 2023, arXiv:2306.02729). The model is exactly specified: one
hidden layer of tanh in the ntk parameterisation, N(0, 1) priors but scale 2 in the first kernel, known
noise, no transforms.

Both fits have the kernel and the number of transitions that the library chooses, as many as an
estimate by sizes, not a clock, says that `--seconds` of one core afford for all four chains. Warm-up
of the teacher's chain changes step size and preconditioner; apart from this adaptation the kernel
leaves the posterior as it is, so that the chain stays a draw of it.

Rows are kept as they finish, so that the script goes on where it was killed; `--minutes` begins no
further one after that time. Table and figure are benchmarks/results/thermalisation.*.
"""

import argparse
import dataclasses
import itertools
import math
import time

import numpy as np

import tfbnn
from benchmarks.lib.chains import convergence, quiet
from benchmarks.lib.common import add_common_options, output_folder, revision
from benchmarks.lib.store import Store
from benchmarks.studies.thermalisation.report import publish
from tfbnn.diagnostics.statistics import mcse_mean
from tfbnn.priors import Normal

NOISES, WIDTHS, NUM_ROWS = (0.1, 0.03, 0.01, 0.003), (8, 32, 128), (100, 1000)
NUM_INPUTS, NUM_REFERENCE, NUM_CHAINS = 4, 300, 4
# Of all transitions, and draws that are kept of the others at most.
WARMUP_SHARE, MOST_DRAWS = 1 / 3, 500
# Wide enough in the first kernel for functions that bend.
PRIOR = [{"kernel": Normal(2.0), "bias": Normal(1.0)}, Normal(1.0)]
QUICK_PRETRAINING = tfbnn.Pretraining(epochs=200, newton_iterations=0)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One teacher and its rows.

    Attributes:
        noise: Standard deviation of the noise.
        width: Units of the hidden layer.
        num_rows: N.
        teacher: Seed of the teacher, the inputs and the noise: with the same seed and sizes, cells
            differ in the size of the noise alone.
    """

    noise: float
    width: int
    num_rows: int
    teacher: int

    @property
    def key(self):
        sizes = f"noise {self.noise:g}, width {self.width}, {self.num_rows} rows"
        return f"{sizes}, teacher {self.teacher}"

    def model(self):
        return tfbnn.BayesianMLP(
            [NUM_INPUTS, self.width, 1],
            prior=PRIOR,
            likelihood=tfbnn.likelihoods.Gaussian(self.noise),
            parameterization="ntk",
            x_transform=None,
            y_transform=None,
        )

    def problem(self):
        """(Teacher [P], x [N, D], y [N], reference inputs [300, D], the teacher's outputs there)."""
        from tfbnn.spec.network_spec import draw_parameters

        spec = self.model().spec
        theta = draw_parameters(spec, np.random.default_rng([self.teacher, self.width]))
        generator = np.random.default_rng([self.teacher, self.num_rows, 1])
        x = generator.standard_normal((self.num_rows, NUM_INPUTS))
        noise = generator.standard_normal(self.num_rows)
        reference = generator.standard_normal((NUM_REFERENCE, NUM_INPUTS))
        y = outputs(spec, theta, x) + self.noise * noise
        return theta, x, y, reference, outputs(spec, theta, reference)


def outputs(spec, theta, x):
    """Outputs [N] of the network theta [P] at inputs [N, D]."""
    import tensorflow as tf

    from tfbnn.engine.density.network import network_outputs

    return network_outputs(spec, tf.constant(theta[None]), tf.constant(x.T)).numpy()[0, 0]


def main(arguments=None):
    """Measures the cells that are missing, and keeps table and figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--seconds", type=float, default=900.0, help="of one core, for each cell")
    parser.add_argument("--teachers", type=int, default=1, help="repeats of every cell")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no row after these")
    options = parser.parse_args(arguments)
    folder, began = output_folder(options), time.monotonic()
    store = Store("thermalisation", options.fresh, folder)
    for cell in cells(options.teachers, options.quick):
        if time.monotonic() - began > 60.0 * options.minutes:
            break
        if cell.key not in store:
            store.add(cell.key, measure(cell, options.seconds, options.quick))
            print(cell.key, f"R-hat {store.rows[cell.key]['all']['rhat_q95']:.3f}", flush=True)
    missing = [cell.key for cell in cells(options.teachers, options.quick) if cell.key not in store]
    publish(list(store.rows.values()), missing, folder)


def cells(num_teachers, quick=False):
    """All cells, one teacher after the other."""
    if quick:
        return [Cell(noise, 8, 100, 0) for noise in NOISES[:2]]
    sizes = itertools.product(range(num_teachers), NUM_ROWS, WIDTHS, NOISES)
    return [Cell(noise, width, num_rows, teacher) for teacher, num_rows, width, noise in sizes]


def measure(cell, seconds, quick=False):
    """Samples one cell from both sides; a dict of JSON values."""
    theta, x, y, reference, truth = cell.problem()
    began = time.perf_counter()
    settings = plan(cell, x, y, seconds)
    numbers = settings | {"seed": cell.teacher, "until": None, "verbose": 0}
    taught, own = cell.model(), cell.model()
    search = {"pretraining": QUICK_PRETRAINING} if quick else {}
    with quiet():
        of_teacher = taught.fit_posterior(x, y, num_chains=1, initial_state=theta[None], **numbers)
        of_library = own.fit_posterior(x, y, num_chains=NUM_CHAINS - 1, **search, **numbers)
        predicted = [_by_chain(model, reference) for model in (taught, own)]
        lp = [model.posterior.sample_stats["lp"] for model in (taught, own)]
    runs = (of_teacher, of_library)
    return {
        **dataclasses.asdict(cell),
        "seconds": seconds,
        "commit": revision(),
        "num_parameters": len(theta),
        "kernel": of_teacher.kernel,
        "num_leapfrog_steps": settings["kernel"].num_leapfrog_steps,
        "num_burnin_steps": of_teacher.num_burnin_steps,
        "num_results": of_teacher.num_results,
        "stride": of_teacher.num_steps_between_results + 1,
        "gradients": sum(int(counts[0]) for counts in of_teacher.num_gradients.values()),
        "acceptance": [float(run.acceptance_rate.mean()) for run in runs],
        "divergent": [int(run.num_divergent.sum()) for run in runs],
        "wall": time.perf_counter() - began,
        "all": convergence(np.concatenate(predicted)),
        "library": convergence(predicted[1]),
        "taught": convergence(predicted[0]),
        "rmse": [_rmse(draws.mean(axis=(0, 1)), truth) for draws in predicted],
        "log_prob": compared(*lp, float(taught.log_prob(theta, x, y))),
    }


def plan(cell, x, y, seconds):
    """Kernel and numbers of transitions of both fits, as arguments of `fit_posterior`."""
    from tfbnn.engine.kernels.registry import resolve_kernel
    from tfbnn.fit.choices.choose import choose
    from tfbnn.run.cost import estimated_seconds
    from tfbnn.run.options import FitOptions
    from tfbnn.spec.rows import prepare_rows

    spec = cell.model().spec
    chosen = choose(spec, FitOptions(), prepare_rows(spec, x, y, None), None).options.kernel
    settings, _ = resolve_kernel(chosen).resolve(spec, len(x))
    transitions = seconds / NUM_CHAINS / estimated_seconds(spec, settings, len(x), 1)
    sampling = max(int((1 - WARMUP_SHARE) * transitions), 20)
    stride = math.ceil(sampling / MOST_DRAWS)
    return {
        "kernel": chosen,
        "num_burnin_steps": max(int(WARMUP_SHARE * transitions), 20),
        "num_results": sampling // stride,
        "num_steps_between_results": stride - 1,
    }


def compared(taught, own, at_teacher):
    """Log densities of the teacher's chain and of the library's, [1, S] and [C, S], in nats.

    `rank` is the share of the library's draws that are below the teacher, which is itself a draw of
    the posterior: over many teachers it is uniform where the library samples that.
    """
    stderr = float(np.hypot(mcse_mean(taught), mcse_mean(own)))
    difference = float(own.mean() - taught.mean())
    return {
        "difference": difference,
        "stderr": stderr,
        "z": difference / stderr,
        "means": [float(mean) for mean in (*taught.mean(axis=1), *own.mean(axis=1))],
        "stddev": float(taught.std()),
        "at_teacher": at_teacher,
        "rank": float(np.mean(own < at_teacher)),
    }


def _by_chain(model, x):
    """Function draws [C, S, R]."""
    draws = model.predict_draws(x)
    return draws.reshape(model.posterior.num_chains, -1, len(x))


def _rmse(mean, truth):
    return float(np.sqrt(np.mean((mean - truth) ** 2)))


if __name__ == "__main__":
    main()
