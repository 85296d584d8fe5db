"""Chains of wide networks in three coordinates, and the effective draws per gradient they give."""

import dataclasses
import functools
import time

import numpy as np
import tensorflow as tf

import tfbnn
from benchmarks.lib.blocks import make_group
from benchmarks.lib.problems import uci
from benchmarks.lib.random_directions import random_directions
from tfbnn.diagnostics.statistics import geyer_ess, split_rhat
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.reparametrisation import RepriorisedPotential
from tfbnn.engine.starts.check import draw_prior
from tfbnn.kernels import HMC, Repriorised

__all__ = [
    "LEAPFROG_STEPS",
    "METHODS",
    "NOISE_SCALE",
    "NUM_PROJECTIONS",
    "Case",
    "Watch",
    "effective",
    "kernel",
    "ntk_spec",
    "sample",
    "start",
]

METHODS = ("standard", "repriorised", "collapsed")
NOISE_SCALE, NUM_PROJECTIONS, NUM_TEST = 0.1, 100, 100
# Of a trajectory, for all methods, and the acceptance their step sizes are tuned to.
LEAPFROG_STEPS, ACCEPTANCE = 8, 0.8
# Transitions between two looks at the clock, and how many such blocks nobody will wait for.
BLOCK, MOST_BLOCKS = 4, 1_000_000


def ntk_spec(layers, **settings):
    """NetworkSpec in ntk with N(0, 1) priors; noise of standard deviation 0.1 on targets as they are."""
    model = tfbnn.BayesianMLP(
        layers,
        parameterization="ntk",
        prior=tfbnn.priors.Normal(1.0),
        likelihood=tfbnn.likelihoods.Gaussian(NOISE_SCALE),
        x_transform=None,
        y_transform=None,
        **settings,
    )
    return model.spec


@dataclasses.dataclass(frozen=True)
class Case:
    """A network of equal hidden layers (GELU, ntk, N(0, 1) priors) and the rows it learns from.

    Attributes:
        data: "kin8nm" or "yacht".
        width: Units of a hidden layer.
        depth: Hidden layers.
        num_rows: N, the first rows of the first customary split.
    """

    data: str
    width: int
    depth: int
    num_rows: int

    @property
    def key(self):
        return f"{self.data}, {self.depth} x {self.width}, N = {self.num_rows}"

    @property
    def spec(self):
        """ModelSpec of the network."""
        x, _, _ = self.rows
        return ntk_spec([x.shape[1], *[self.width] * self.depth, 1], activation="gelu")

    @property
    def rows(self):
        """(x [N, D], y [N, 1], test inputs [100 or fewer, D]), standardised by all training rows."""
        problem = uci(self.data)
        x, y = problem.train
        y = ((y - y.mean()) / y.std())[: self.num_rows, None]
        centre, spread = x.mean(axis=0), x.std(axis=0)
        test = problem.test[0][:NUM_TEST]
        return (x[: self.num_rows] - centre) / spread, y, (test - centre) / spread


def kernel(method, step_size=None):
    """HMC without a preconditioner, in the coordinates of the method."""
    inner = HMC(
        step_size=step_size,
        num_leapfrog_steps=LEAPFROG_STEPS,
        target_accept_prob=ACCEPTANCE,
        preconditioner="identity",
    )
    if method == "standard":
        return inner
    return Repriorised(inner, collapse_readout=method == "collapsed")


class Watch:
    """A sink that keeps a function of every draw: theta of a wide network would fill the memory.

    Attributes:
        kept: List of arrays [n, C, ..], a block each.
    """

    def __init__(self, function):
        """
        Args:
            function: theta [n, C, P] -> what is kept of it.
        """
        self._function, self.kept = function, []

    def append(self, draws, statistics):
        """Takes the draws of a block [n, C, P]."""
        self.kept.append(self._function(draws))

    def after_block(self, group, phase_ended):
        """Nothing is to be done."""


@functools.lru_cache(maxsize=1)
def start(case, num_burnin_steps):
    """Theta [1, P] where the chains of all methods start.

    A draw of the prior, whose readout is drawn given the data, after a warm-up of the repriorised
    chain: near the posterior, so that no method is judged by its way there.
    """
    spec, (x, y, _) = case.spec, case.rows
    prior = tf.constant(draw_prior(spec, 0, 1))
    theta, _ = RepriorisedPotential(spec).complete(prior, None, make_data(x, y, None, spec.dtype))
    settings, sink = kernel("repriorised"), Watch(lambda draws: draws)
    group, _ = make_group(
        spec,
        settings,
        x,
        y,
        theta.numpy(),
        1,
        1,
        num_burnin_steps=num_burnin_steps,
        seed=1,
        sink=sink,
    )
    while group.stage is not None:
        group.advance()
    return sink.kept[-1][-1]


def sample(case, method, seconds, num_burnin_steps, settings=None, theta=None):
    """Samples one chain for some processor time; returns what tables and figure need, as JSON values.

    Args:
        case: Case.
        method: One of METHODS, or a name for `settings`.
        seconds: Processor time of sampling, after the warm-up; other processes do not count.
        num_burnin_steps: Transitions of warm-up.
        settings: The kernel, by default that of the method.
        theta: Where the chain starts [1, P], by default `start`.
    """
    spec, (x, y, test) = case.spec, case.rows
    theta = start(case, num_burnin_steps // 2) if theta is None else theta
    settings = kernel(method) if settings is None else settings
    began, sink = time.process_time(), Watch(watcher(spec, test))
    group, _ = make_group(
        spec,
        settings,
        x,
        y,
        theta,
        BLOCK,
        MOST_BLOCKS,
        num_burnin_steps=num_burnin_steps,
        sink=sink,
    )
    while group.stage.phase == "warmup":
        group.advance()
    warm = time.process_time()
    while time.process_time() < warm + seconds or group.num_kept < 4 * BLOCK:
        group.advance()
    draws = np.concatenate(sink.kept).swapaxes(0, 1)
    return {
        **dataclasses.asdict(case),
        "method": method,
        "parameters": spec.layout.num_parameters,
        "num_leapfrog_steps": LEAPFROG_STEPS,
        "step_size": float(group.counters.step_size[0]),
        "acceptance": float(group.counters.acceptance_sum["sampling"][0]) / group.num_kept,
        "num_draws": group.num_kept,
        "num_gradients": int(group.counters.num_gradients["sampling"][0]),
        "warmup_seconds": round(warm - began, 1),
        "seconds": round(time.process_time() - warm, 1),
        "weights": effective(draws[..., :NUM_PROJECTIONS]),
        "outputs": effective(draws[..., NUM_PROJECTIONS:]),
    }


def watcher(spec, test):
    """Function theta [n, C, P] -> [n, C, 100 random projections, then outputs at test inputs]."""
    size, inputs = spec.layout.num_parameters, tf.constant(test.T, spec.dtype)
    directions = random_directions(size, NUM_PROJECTIONS)

    def watch(theta):
        flat = theta.reshape(-1, size)
        outputs = network_outputs(spec, tf.constant(flat), inputs).numpy()
        seen = np.concatenate([flat @ directions, outputs[:, 0]], axis=1)
        return seen.reshape(*theta.shape[:2], -1)

    return watch


def effective(draws):
    """ESS of every quantity, and quantiles of R-hat squared, of draws [1, S, Q]."""
    squared = split_rhat(draws) ** 2
    return {
        "ess": [float(f"{size:.4g}") for size in geyer_ess(draws)],
        "rhat2": [float(value) for value in np.quantile(squared, [0.05, 0.5, 0.95])],
    }
