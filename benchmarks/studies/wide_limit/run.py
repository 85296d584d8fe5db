"""Measure what width does to a posterior in repriorised coordinates: direct draws, slices and step sizes.

    python -m benchmarks wide_limit [--quick --output FOLDER] [--fresh]

Networks of ReLU units in the ntk parameterisation, whose limit of infinite width is a Gaussian process
with a kernel in closed form. Draws of the prior in repriorised coordinates, which are posterior draws
in that limit, against regression by that process; chains of three hidden layers against it; slices of the log
posterior in both coordinates; the step size of HMC by width and rows. Tables and figure are
benchmarks/results/wide_limit.*. Finished rows are kept, so that a killed script goes on where it was.

References: Hron et al. 2022, arXiv:2206.07673 (Theorem 2.1, Figs 3 and 5, appendix D); the kernel:
Cho and Saul 2009.
"""

import argparse
import dataclasses
import functools

import numpy as np
import tensorflow as tf

from benchmarks.lib.blocks import make_group
from benchmarks.lib.common import add_common_options, keep, output_folder, revision
from benchmarks.lib.store import Store
from benchmarks.studies.repriorisation.chains import BLOCK, NOISE_SCALE, Watch, kernel, ntk_spec
from benchmarks.studies.wide_limit.report import ACCEPTANCE, REACH, STEP_SIZES, figure, report
from tfbnn.diagnostics.statistics import geyer_ess, split_rhat
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.reparametrisation import RepriorisedPotential
from tfbnn.engine.density.value_and_gradient import compiled_value_and_gradient
from tfbnn.spec.limit_kernels import covariance

__all__ = ["Case", "direct_draws", "limit", "nngp_kernel", "step_at"]

NUM_INPUTS, NUM_TEST = 4, 100
LEAPFROG_STEPS, NUM_GRID = 8, 41
# Direct draws that are in memory at a time, of each a matrix of width times width; above which width a tenth
# of the draws is made, and three tenths of the transitions of chains.
BATCH, NARROW = 20, 256
NUM_CHAINS = 4


@dataclasses.dataclass(frozen=True)
class Size:
    """Amount of everything that is run.

    Attributes:
        networks: (width, depth) of those whose direct draws are compared with the limit.
        num_draws: Direct draws of each; of wide ones a tenth.
        widths: Of which step sizes are found.
        num_transitions: Of the chains that lead to where steps begin.
        chains: (width, depth) of those whose posterior is sampled.
        num_sampled: Transitions of each of these chains, after a warm-up of half as many.
    """

    networks: tuple
    num_draws: int
    widths: tuple
    num_transitions: int
    chains: tuple
    num_sampled: int

    @property
    def cases(self):
        """(width, depth, rows) for step sizes: by width, then by rows at the middle width."""
        middle = self.widths[len(self.widths) // 2]
        by_width = [(width, 1, 64) for width in self.widths]
        return [*by_width, (middle, 1, 16), (middle, 1, 256)]


QUICK = Size(((8, 1), (64, 1)), 400, (8, 64), 3, ((8, 3),), 20)
FULL = Size(
    ((16, 1), (64, 1), (256, 1), (1024, 1), (4096, 1), (16, 3), (64, 3)),
    1000,
    (16, 64, 256),
    25,
    ((64, 3), (256, 3), (1024, 3)),
    200,
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A network of equal hidden layers and the rows it learns from; priors are N(0, 1)."""

    width: int
    depth: int = 1
    num_rows: int = 64

    @property
    def spec(self):
        layers = [NUM_INPUTS, *[self.width] * self.depth, 1]
        return ntk_spec(layers, activation="relu", dtype="float64")

    @property
    def rows(self):
        """(x [N, D], y [N, 1], test inputs [NUM_TEST, D]) of a smooth function with noise."""
        generator = np.random.default_rng(0)
        x = generator.standard_normal((1024 + NUM_TEST, NUM_INPUTS))
        y = np.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]
        y = y + NOISE_SCALE * generator.standard_normal(y.shape)
        return x[NUM_TEST:][: self.num_rows], y[NUM_TEST:][: self.num_rows], x[:NUM_TEST]

    @property
    def data(self):
        x, y, _ = self.rows
        return make_data(x, y, None, self.spec.dtype)

    def normals(self, seed, count):
        """Draws of the prior [count, P], which are those of the posterior's limit in its coordinates."""
        return np.random.default_rng(seed).standard_normal((count, self.spec.num_parameters))


def nngp_kernel(x, z, depth):
    """Covariance [n, m] of the outputs at inputs x [n, D] and z [m, D] in the limit of infinite width."""
    layers = [(1.0 / x.shape[1], 1.0), *[(1.0, 1.0)] * depth]
    return covariance(["relu"] * depth, layers, x, z).c


def limit(case):
    """(mean [n], covariance [n, n], log evidence) of regression by the process, at the test inputs."""
    x, y, test = case.rows
    noisy = nngp_kernel(x, x, case.depth) + NOISE_SCALE**2 * np.eye(len(x))
    root = np.linalg.cholesky(noisy)
    across = np.linalg.solve(root, nngp_kernel(x, test, case.depth))
    seen = np.linalg.solve(root, y[:, 0])
    left = nngp_kernel(test, test, case.depth) - across.T @ across
    evidence = -0.5 * (seen @ seen + len(x) * np.log(2.0 * np.pi)) - np.log(np.diag(root)).sum()
    return across.T @ seen, left, float(evidence)


def direct_draws(case, count):
    """(outputs [count, n], log marginal likelihoods given the hidden layers [count], gradient differences [count]).

    Outputs are at the test inputs; gradient differences squared lengths of the gradient of the log posterior less
    that of the prior, which is minus the coordinates.
    """
    potential, data = RepriorisedPotential(case.spec), case.data
    inputs = tf.constant(case.rows[2].T)
    found = []
    batch = BATCH if case.width <= NARROW else 2
    for number in range(count // batch):
        phi = case.normals((1, number), batch)
        theta, _ = potential.complete(tf.constant(phi), None, data)
        # All coordinates are N(0, 1) under the prior: what is left says how far the posterior is from it.
        of_prior = -0.5 * (phi**2).sum(axis=1) - 0.5 * phi.shape[1] * np.log(2.0 * np.pi)
        value, gradient = potential.value_and_gradient(tf.constant(phi), data)
        outputs = network_outputs(case.spec, theta, inputs).numpy()[:, 0]
        difference = np.square(gradient.numpy() + phi).sum(axis=1)
        found.append((outputs, value.numpy() - of_prior, difference))
    return tuple(map(np.concatenate, zip(*found)))


def distances(case, outputs):
    """Measure how far outputs [S, n] at the test inputs are from the process."""
    mean, spread, _ = limit(case)
    stddev = np.sqrt(np.diag(spread))
    return {
        "width": case.width,
        "depth": case.depth,
        "mean": float(np.sqrt(np.mean(((outputs.mean(axis=0) - mean) / stddev) ** 2))),
        "stddev": float(np.mean(outputs.std(axis=0) / stddev)),
        "covariance": float(np.linalg.norm(np.cov(outputs.T) - spread) / np.linalg.norm(spread)),
    }


def limit_row(case, count):
    """Measure how far direct draws are from the process, and from the posterior of the network."""
    evidence = limit(case)[2]
    count = count if case.width <= NARROW else count // 10
    outputs, marginals, differences = direct_draws(case, count)
    largest = marginals.max()
    weights = np.exp(marginals - largest)
    return {
        **distances(case, outputs),
        # KL(prior || posterior) in these coordinates; the evidence by the same draws.
        "divergence": float(largest + np.log(weights.mean()) - marginals.mean()),
        "gradient": float(differences.mean()),
        "evidence": float(largest + np.log(weights.mean()) - evidence),
        "effective": float(weights.sum() ** 2 / (weights**2).sum() / count),
    }


def posterior_row(case, num_sampled):
    """Measure how far the predictions of chains by the kernel Repriorised are from those of the process."""
    is_narrow = case.width <= NARROW
    num_sampled = num_sampled if is_narrow else 3 * num_sampled // 10
    spec, (x, y, test) = case.spec, case.rows
    normals = tf.constant(case.normals(5, NUM_CHAINS))
    theta, _ = RepriorisedPotential(spec).complete(normals, None, case.data)
    inputs = tf.constant(test.T)

    def outputs_of(draws):
        flat = tf.constant(draws.reshape(-1, draws.shape[-1]))
        return network_outputs(spec, flat, inputs).numpy()[:, 0].reshape(*draws.shape[:2], -1)

    sink = Watch(outputs_of)
    group, _ = make_group(
        spec,
        kernel("repriorised"),
        x,
        y,
        theta.numpy(),
        BLOCK,
        num_sampled // BLOCK,
        num_burnin_steps=num_sampled // 2,
        sink=sink,
        jit_compile=is_narrow,  # XLA factorises large matrices slowly
    )
    while group.stage is not None:
        group.advance()
    chains = np.concatenate(sink.kept).swapaxes(0, 1)
    return {
        **distances(case, chains.reshape(-1, chains.shape[-1])),
        "rhat": float(split_rhat(chains).max()),
        "ess": float(np.median(geyer_ess(chains))),
        "transitions": num_sampled,
        "step": float(group.counters.step_size[0]),
    }


@functools.lru_cache
def settled(case, num_transitions):
    """Coordinates [C, P] of posterior draws: direct ones, moved on by HMC whose steps find their size."""
    phi, move, step = case.normals(2, 64), mover(case, "repriorised"), 0.1
    generator = np.random.default_rng(3)
    for _ in range(num_transitions):
        moved, accepted = move(phi, step, generator)
        phi = np.where((generator.uniform(size=len(phi)) < accepted)[:, None], moved, phi)
        step *= 1.1 if accepted.mean() > ACCEPTANCE else 0.7
    return phi


@functools.lru_cache
def mover(case, method):
    """Function (coordinates [C, P], step size, generator) -> (proposals, their acceptance [C])."""
    potential = RepriorisedPotential(case.spec) if method == "repriorised" else Potential(case.spec)
    function, data = compiled_value_and_gradient(potential), case.data

    def at(coordinates):
        value, gradient = function(tf.constant(coordinates), data)
        return value.numpy(), gradient.numpy()

    def move(coordinates, step, generator):
        momentum = generator.standard_normal(coordinates.shape)
        value, gradient = at(coordinates)
        before = value - 0.5 * (momentum**2).sum(axis=1)
        for _ in range(LEAPFROG_STEPS):
            momentum = momentum + 0.5 * step * gradient
            coordinates = coordinates + step * momentum
            value, gradient = at(coordinates)
            momentum = momentum + 0.5 * step * gradient
        with np.errstate(over="ignore", invalid="ignore"):
            change = value - 0.5 * (momentum**2).sum(axis=1) - before
        return coordinates, np.exp(np.minimum(np.nan_to_num(change, nan=-np.inf), 0.0))

    return move


def acceptance_row(case, num_transitions):
    """Mean acceptance of HMC by step size in both coordinates, from the same posterior draws."""
    phi = settled(case, num_transitions)
    theta, _ = RepriorisedPotential(case.spec).complete(tf.constant(phi), None, case.data)
    found = {}
    for method, coordinates in (("standard", theta.numpy()), ("repriorised", phi)):
        move, generator = mover(case, method), np.random.default_rng(4)
        rates = [float(move(coordinates, step, generator)[1].mean()) for step in STEP_SIZES]
        found[method] = {"acceptance": rates, "step": step_at(ACCEPTANCE, rates)}
    return {"width": case.width, "num_rows": case.num_rows, **found}


def step_at(acceptance, rates):
    """The step size at which rates, by STEP_SIZES, first fall below an acceptance."""
    below = int(np.argmax(np.array(rates) < acceptance))
    if below == 0:
        return None
    pair = slice(below - 1, below + 1)
    log_steps = np.log(STEP_SIZES[pair])[::-1]
    return float(np.exp(np.interp(acceptance, np.array(rates)[pair][::-1], log_steps)))


def slices(case, num_transitions):
    """Log posterior [2 methods, g, g] around one posterior draw, less its largest value there."""
    phi = settled(case, num_transitions)[:1]
    theta, _ = RepriorisedPotential(case.spec).complete(tf.constant(phi), None, case.data)
    directions = np.random.default_rng(6).standard_normal((2, phi.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    grid = np.linspace(-REACH, REACH, NUM_GRID)
    steps = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2) @ directions
    found = []
    for potential, centre in (
        (Potential(case.spec), theta),
        (RepriorisedPotential(case.spec), phi),
    ):
        function = compiled_value_and_gradient(potential)
        values = [
            function(tf.constant(centre + part), case.data)[0].numpy()
            for part in steps.reshape(NUM_GRID, NUM_GRID, -1)
        ]
        found.append(np.stack(values) - np.max(values))
    return np.stack(found)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder, size = output_folder(options), QUICK if options.quick else FULL
    store = Store("wide_limit", options.fresh, folder)

    def rows(kind, function, cases, count):
        for case in cases:
            key = f"{kind}, {case.depth} x {case.width}, {case.num_rows} rows"
            if key not in store:
                store.add(key, function(case, count) | {"commit": revision()})
                print(key, store.rows[key], flush=True)
            yield store.rows[key]

    networks, wide = ([Case(*one) for one in some] for some in (size.networks, size.chains))
    steps = [Case(*one) for one in size.cases]
    steps = list(rows("steps", acceptance_row, steps, size.num_transitions))
    chains = list(rows("chains", posterior_row, wide, size.num_sampled))
    limits = list(rows("limit", limit_row, networks, size.num_draws))
    keep("wide_limit.md", report(limits, chains, steps, size), folder)
    planes = {w: slices(Case(w), size.num_transitions) for w in (size.widths[0], size.widths[-1])}
    figure(planes, steps, folder / "wide_limit.png")


if __name__ == "__main__":
    main()
