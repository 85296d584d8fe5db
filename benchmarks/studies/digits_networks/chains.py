"""Chains of the networks of benchmarks/studies/digits_networks/run.py in three coordinates."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import tfbnn
from benchmarks.lib.blocks import make_group
from benchmarks.lib.paper_networks import fully_connected, residual_convolutional
from benchmarks.lib.random_directions import random_directions
from benchmarks.studies.repriorisation.chains import (
    LEAPFROG_STEPS,
    NOISE_SCALE,
    NUM_PROJECTIONS,
    Watch,
    effective,
    kernel,
)
from tfbnn.diagnostics.statistics import split_rhat
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.reparametrisation import RepriorisedPotential
from tfbnn.engine.starts.check import draw_prior
from tfbnn.priors import Normal

__all__ = [
    "NUM_CHAINS",
    "NUM_ROWS",
    "NUM_WATCHED",
    "Case",
    "Length",
    "digits",
    "sample",
    "targets",
]

NUM_ROWS, NUM_CLASSES, NUM_CHAINS = 256, 10, 2
# Test images whose outputs are judged, ten each.
NUM_WATCHED = 100
# Sigma_w and sigma_b. 1.5 is one over the root mean square of GELU of a standard normal number.
PRIOR = {"readout/kernel": Normal(1.0), "kernel": Normal(1.5), "bias": Normal(0.1)}
# Numbers of draws at which R-hat is looked at, as shares of all.
SHARES = np.geomspace(0.05, 1.0, 12)


@dataclasses.dataclass(frozen=True)
class Length:
    """Transitions of a chain: of warm-up, then kept; standard chains keep longer.

    A chain that makes few effective draws takes longer to show how few.
    """

    num_burnin_steps: int
    num_results: int
    standard_longer: int = 2


@dataclasses.dataclass(frozen=True)
class Case:
    """A network.

    Attributes:
        kind: "fully connected", three hidden layers of this width; or "flattened", a residual
            convolutional network with so many channels on 4 x 4 pixels, one block, whose readout has
            a feature for each channel and pixel.
        width: Units or channels.
        length: Of its chains.
    """

    kind: str
    width: int
    length: Length

    @property
    def key(self):
        return f"{self.kind}, {self.width}"

    @functools.cached_property
    def model(self):
        """BayesianModel; noise of standard deviation 0.1 on one-hot labels minus 0.1."""
        return tfbnn.BayesianModel(
            self.network(),
            prior=PRIOR,
            parameterization="ntk",
            likelihood=tfbnn.likelihoods.Gaussian(NOISE_SCALE),
            x_transform=None,
            y_transform=None,
        )

    def network(self):
        """The Keras model."""
        if self.kind == "fully connected":
            return fully_connected(64, NUM_CLASSES, width=self.width)
        return residual_convolutional(
            (8, 8, 1),
            NUM_CLASSES,
            channels=(self.width,),
            stem_strides=2,
            pooling="flatten",
        )

    def inputs(self, images):
        """Images [N, 64] as `fit_posterior` takes them."""
        return images if self.kind == "fully connected" else images.reshape(-1, 8, 8, 1)


@functools.cache
def digits():
    """(Images [N, 64], labels [N]) of training and of test, in an order that a seed has drawn.

    Pixels are standardised together, by the mean and the spread of all of the training images.
    """
    table = load_digits()
    order = np.random.default_rng(0).permutation(len(table.target))
    images, labels = table.data[order], table.target[order]
    centre, spread = images[:NUM_ROWS].mean(), images[:NUM_ROWS].std()
    images = (images - centre) / spread
    return (images[:NUM_ROWS], labels[:NUM_ROWS]), (images[NUM_ROWS:], labels[NUM_ROWS:])


def targets(labels):
    """One-hot labels [N, 10] minus 0.1, so that each row has the mean 0, that of the prior."""
    return np.eye(NUM_CLASSES)[labels] - 1.0 / NUM_CLASSES


@functools.lru_cache(maxsize=1)
def starts(case):
    """Theta [C, P] where the chains of all methods start: draws of the prior, each with a readout
    that is drawn given the data."""
    (images, labels), _ = digits()
    spec = case.model.spec
    prior = tf.constant(draw_prior(spec, 0, NUM_CHAINS))
    data = make_data(images, targets(labels), None, spec.dtype)
    theta, _ = RepriorisedPotential(spec).complete(prior, None, data)
    return theta.numpy()


def sample(case, method):
    """Samples the chains of a case.

    Returns:
        (Row of JSON values for tables and figures, outputs at all test images [C, S, n, 10].)
    """
    (images, labels), (test, _) = digits()
    spec, length, sink = case.model.spec, case.length, Watch(watcher(case.model.spec, test))
    count = length.num_results * (length.standard_longer if method == "standard" else 1)
    group, _ = make_group(
        spec,
        kernel(method),
        images,
        targets(labels),
        starts(case),
        1,
        count,
        num_burnin_steps=length.num_burnin_steps,
        sink=sink,
        jit_compile=False,
    )
    while group.stage is not None:
        group.advance()
    draws = np.concatenate(sink.kept).swapaxes(0, 1)
    outputs = draws[..., NUM_PROJECTIONS:]
    watched = outputs[..., : NUM_WATCHED * NUM_CLASSES]
    gradients = int(group.counters.num_gradients["sampling"][0])
    row = {
        "kind": case.kind,
        "width": case.width,
        "method": method,
        "parameters": spec.layout.num_parameters,
        "features": spec.readout.layer.kernel.shape[0] + 1,
        "num_leapfrog_steps": LEAPFROG_STEPS,
        "num_burnin_steps": length.num_burnin_steps,
        "step_size": float(group.counters.step_size[0]),
        "acceptance": float(np.mean(group.counters.acceptance_sum["sampling"]) / group.num_kept),
        "num_draws": group.num_kept,
        "num_gradients": gradients,
        "weights": effective(draws[..., :NUM_PROJECTIONS]),
        "outputs": effective(watched),
        "rhat2": over_time(watched, gradients),
    }
    return row, outputs.reshape(*outputs.shape[:2], -1, NUM_CLASSES)


def over_time(draws, num_gradients):
    """R-hat squared of the first draws [C, S, Q]: [gradients per chain, median, 95 %], a list."""
    found = []
    for count in np.unique(np.maximum(4, np.round(SHARES * draws.shape[1]).astype(int))):
        squared = split_rhat(draws[:, :count]) ** 2
        quantiles = map(float, np.quantile(squared, [0.5, 0.95]))
        found.append([num_gradients * int(count) // draws.shape[1], *quantiles])
    return found


def watcher(spec, test):
    """Function theta [n, C, P] -> [n, C, 100 random projections, then outputs, image by image]."""
    size, inputs = spec.layout.num_parameters, tf.constant(test.T, spec.dtype)
    directions = random_directions(size, NUM_PROJECTIONS)
    outputs = tf.function(lambda theta: network_outputs(spec, theta, inputs), autograph=False)

    def watch(theta):
        flat = theta.reshape(-1, size)
        found = outputs(tf.constant(flat)).numpy().swapaxes(1, 2).reshape(len(flat), -1)
        return np.concatenate([flat @ directions, found], axis=1).reshape(*theta.shape[:2], -1)

    return watch
