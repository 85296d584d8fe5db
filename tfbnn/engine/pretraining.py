"""ADAM on the density that is sampled: one independent optimisation per chain, all at once."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfbnn.engine import seeds
from tfbnn.engine.compile import compiled
from tfbnn.engine.network import network_outputs
from tfbnn.engine.potential import Data, Potential
from tfbnn.engine.schedule import affordable_steps
from tfbnn.priors import HierarchicalNormal

__all__ = ["PretrainingResult", "draw_prior", "pretrain"]

# Kingma and Ba 2015, arXiv:1412.6980, algorithm 1.
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Parameters and moment estimates, [C, P] each."""

    theta: object
    mean: object
    square: object


@dataclass(frozen=True)
class PretrainingResult:
    """Starts of the chains and how they were reached.

    Attributes:
        theta: [C, P].
        epochs: Epochs whose result each chain kept [C].
        validation_log_likelihood: Mean per row and chain [C], or None without validation rows.
        seconds: Dict with compile, pretraining.
        stopped: Whether a callback ended it.
    """

    theta: np.ndarray
    epochs: np.ndarray
    validation_log_likelihood: np.ndarray | None
    seconds: dict
    stopped: bool


def draw_prior(spec, seed, num_chains):
    """One draw of the prior per chain, in the sampled coordinates: [C, P]."""
    return np.stack(
        [_draw(spec, seeds.generator(seed, "prior", chain)) for chain in range(num_chains)]
    ).astype(spec.dtype)


def pretrain(spec, data, settings, *, seed, num_chains, validation, jit_compile, notify):
    """Optimises one start per chain.

    Args:
        spec: ModelSpec.
        data: Training Data.
        settings: tfbnn.Pretraining.
        seed: The user's seed.
        num_chains: C.
        validation: Validation Data, or None.
        jit_compile: Whether XLA compiles the steps.
        notify: Called with an event dict now and then; true stops.

    Returns:
        PretrainingResult.
    """
    began = time.perf_counter()
    theta = _with_residual_noise(spec, draw_prior(spec, seed, num_chains), data)
    num_rows = data.x.shape[-1]
    batch_size = min(settings.batch_size or num_rows, num_rows)
    # Early stopping looks at every epoch; otherwise a call takes about a second.
    flops = 6.0 * batch_size * theta.size
    calls = 1 if settings.early_stopping else affordable_steps(flops)
    batches = _Batches(num_rows, batch_size, num_chains, settings.epochs, seed, calls)
    steps = make_adam_steps(spec, settings, num_rows, batch_size, batches.num_steps, jit_compile)
    state = AdamState(*map(tf.constant, (theta, np.zeros_like(theta), np.zeros_like(theta))))
    steps(state, data, batches.padding(), tf.constant(0), tf.constant(0))
    score = _make_score(spec, validation, jit_compile)
    seconds = {"compile": time.perf_counter() - began}

    began, stopped = time.perf_counter(), False
    best = _Best(theta, settings.early_stopping)
    for first, count, indices, epoch in batches:
        state = steps(state, data, indices, tf.constant(first), tf.constant(count))
        if score is not None:
            best.update(state.theta.numpy(), score(state.theta), epoch)
        stopped = bool(notify(_event(batches, first + count, epoch, best, began, num_chains)))
        if stopped or best.all_stopped:
            break
    final = best.theta if settings.early_stopping else state.theta.numpy()
    seconds["pretraining"] = time.perf_counter() - began
    return PretrainingResult(
        theta=_with_residual_noise(spec, final, data),
        epochs=best.epochs if settings.early_stopping else np.full(num_chains, settings.epochs),
        validation_log_likelihood=best.last if score is not None else None,
        seconds=seconds,
        stopped=stopped,
    )


@lru_cache(maxsize=32)
def make_adam_steps(spec, settings, num_rows, batch_size, total_steps, jit_compile):
    """The compiled loop (AdamState, Data, indices [steps, C, B], first, count) -> AdamState."""
    potential = Potential(spec)
    full_batch = batch_size == num_rows

    def loss_gradient(theta, data, rows):
        batch = data if full_batch else _take(data, rows)
        with tf.GradientTape() as tape:
            tape.watch(theta)
            loss = -potential.log_prob(theta, batch, num_rows / batch_size)
        return tape.gradient(loss, theta)

    def learning_rate(step):
        if settings.learning_rate_schedule == "constant":
            return tf.constant(settings.learning_rate, spec.dtype)
        progress = tf.cast(step, spec.dtype) / total_steps
        return 0.5 * settings.learning_rate * (1.0 + tf.cos(np.pi * progress))

    def steps(state, data, indices, first, count):
        def one(index, state):
            step = first + index
            rows = None if full_batch else indices[index]
            return index + 1, _adam(
                state, loss_gradient(state.theta, data, rows), step, learning_rate(step)
            )

        _, state = tf.while_loop(lambda index, _: index < count, one, (tf.constant(0), state))
        return state

    return compiled(steps, jit_compile=jit_compile)


def _adam(state, gradient, step, learning_rate):
    count = tf.cast(step + 1, gradient.dtype)
    mean = _BETA1 * state.mean + (1.0 - _BETA1) * gradient
    square = _BETA2 * state.square + (1.0 - _BETA2) * gradient**2
    unbiased_mean = mean / (1.0 - _BETA1**count)
    unbiased_square = square / (1.0 - _BETA2**count)
    change = learning_rate * unbiased_mean / (tf.sqrt(unbiased_square) + _EPSILON)
    return AdamState(state.theta - change, mean, square)


def _take(data, rows):
    """Rows [C, B] of the data, with the chains in front: x becomes [C, D, B]."""

    def take(array):
        return None if array is None else tf.transpose(tf.gather(array, rows, axis=1), [1, 0, 2])

    return Data(*map(take, data))


class _Batches:
    """Iterates over calls of the compiled loop: (first step, count, row indices, epoch)."""

    def __init__(self, num_rows, batch_size, num_chains, epochs, seed, steps_per_call):
        self.num_rows, self.batch_size, self.num_chains = num_rows, batch_size, num_chains
        self.epochs = epochs
        self.steps_per_epoch = num_rows // batch_size
        self.num_steps = epochs * self.steps_per_epoch
        self.epochs_per_call = max(1, steps_per_call // self.steps_per_epoch)
        self.call_length = self.epochs_per_call * self.steps_per_epoch
        self.generators = [seeds.generator(seed, "batches", chain) for chain in range(num_chains)]

    def __iter__(self):
        for epoch in range(0, self.epochs, self.epochs_per_call):
            count = min(self.epochs_per_call, self.epochs - epoch)
            indices = self.padding() if self._full_batch else self._shuffled(count)
            first, steps = epoch * self.steps_per_epoch, count * self.steps_per_epoch
            yield first, steps, indices, epoch + count

    def padding(self):
        """Indices of the right shape when none are needed."""
        length = 0 if self._full_batch else self.call_length
        return tf.zeros([length, self.num_chains, self.batch_size], tf.int32)

    @property
    def _full_batch(self):
        return self.batch_size == self.num_rows

    def _shuffled(self, epochs):
        used = self.steps_per_epoch * self.batch_size
        indices = np.zeros((self.call_length, self.num_chains, self.batch_size), np.int32)
        for chain, generator in enumerate(self.generators):
            orders = [generator.permutation(self.num_rows)[:used] for _ in range(epochs)]
            rows = np.concatenate(orders).reshape(-1, self.batch_size)
            indices[: len(rows), chain] = rows
        return tf.constant(indices)


class _Best:
    """Keeps, per chain, the parameters with the best validation score so far."""

    def __init__(self, theta, patience):
        self.theta = theta.copy()
        self.patience = patience
        self.score = np.full(len(theta), -np.inf)
        self.last = np.full(len(theta), np.nan)
        self.epochs = np.zeros(len(theta), int)
        self.waited = np.zeros(len(theta), int)

    def update(self, theta, score, epoch):
        """Takes in the scores [C] that parameters [C, P] reached after `epoch` epochs."""
        self.last = score
        active = ~self._stopped
        better = active & (score > self.score)
        self.theta[better], self.score[better] = theta[better], score[better]
        self.epochs[better] = epoch
        self.waited[active] = epoch - self.epochs[active]

    @property
    def _stopped(self):
        return self.waited >= (self.patience or np.inf)

    @property
    def all_stopped(self):
        return bool(self._stopped.all())


def _make_score(spec, validation, jit_compile):
    if validation is None:
        return None
    log_likelihood = compiled(Potential(spec).log_likelihood, jit_compile=jit_compile)
    num_rows = validation.x.shape[-1]
    return lambda theta: log_likelihood(theta, validation).numpy() / num_rows


def _event(batches, step, epoch, best, began, num_chains):
    seconds = time.perf_counter() - began
    return {
        "phase": "pretraining",
        "transition": step,
        "num_transitions": batches.num_steps,
        "epoch": epoch,
        "num_chains": num_chains,
        "seconds": seconds,
        "eta_seconds": seconds * (batches.num_steps - step) / step,
        "validation_log_likelihood": float(np.mean(best.last)),
    }


def _draw(spec, generator):
    layout = spec.layout
    theta = np.zeros(layout.num_parameters)
    for slot, layer in zip(layout.layers, spec.priors):
        for prior, place, scale_place in (
            (layer.kernel, slot.kernel, slot.kernel_scale),
            (layer.bias, slot.bias, slot.bias_scale),
        ):
            theta[place] = _draw_weights(spec, prior, place, scale_place, theta, generator)
    if layout.num_noise:
        scales = spec.likelihood.scale_prior.sample(generator, layout.num_noise)
        theta[layout.log_noise_scale] = np.log(scales)
    return theta


def _draw_weights(spec, prior, place, scale_place, theta, generator):
    shape = place.stop - place.start
    if isinstance(prior, HierarchicalNormal):
        scale = prior.scale_prior.sample(generator, ())
        theta[scale_place] = np.log(scale)
        return prior.sample(generator, shape, 1.0 if spec.is_ntk else scale)
    weights = prior.sample(generator, shape)
    return weights / prior.scale if spec.is_ntk else weights


def _with_residual_noise(spec, theta, data):
    """Sets learned noise scales [C, K] to what the residuals ask for, known row noise taken off."""
    if not spec.layout.num_noise:
        return theta
    outputs = network_outputs(spec, tf.convert_to_tensor(theta), data.x)
    residual = (data.y - spec.likelihood.location(outputs)).numpy().astype(np.float64)
    variance = np.mean(residual**2, axis=-1)
    if data.row_noise is not None:
        known = np.mean(data.row_noise.numpy().astype(np.float64) ** 2, axis=-1)
        # At least a tenth of the residual scale stays, as a start from which it can move.
        variance = np.maximum(variance - known, 0.01 * variance)
    theta = theta.copy()
    tiny = np.finfo(theta.dtype).tiny
    theta[:, spec.layout.log_noise_scale] = 0.5 * np.log(np.maximum(variance, tiny))
    return theta
