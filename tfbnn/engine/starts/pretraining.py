"""ADAM on the density that is sampled: one independent optimisation per chain, all at once."""

import time
from functools import partial
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.compile import chain_groups, compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.potential import Data, Potential
from tfbnn.engine.starts.adam import Batches, make_adam_steps, start_adam
from tfbnn.engine.starts.check import draw_prior, with_residual_noise
from tfbnn.run.counters import Seconds
from tfbnn.run.events import PretrainingEvent
from tfbnn.run.options import Sampling
from tfbnn.run.plan import affordable_steps
from tfbnn.run.progress import Notifier
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array
from tfbnn.system.aside import awaited, each_aside
from tfbnn.system.threads import num_cores

# Multiplications per step and chain from which chains gain more by a thread each than by sharing
# one program's overhead.
_LARGE_STEP = 1e6


class PretrainingResult(NamedTuple):
    """Starts of the chains and how they were reached.

    Attributes:
        theta: [C, P].
        epochs: Epochs whose result each chain kept [C].
        validation_log_likelihood: Mean per row and chain [C], or None without validation rows.
        seconds: Of compilation and pretraining.
        interrupted: Whether the user asked to stop meanwhile.
    """

    theta: Array
    epochs: Array
    validation_log_likelihood: Array | None
    seconds: Seconds
    interrupted: bool


def pretrain(
    spec: ModelSpec,
    data: Data,
    settings: Pretraining,
    sampling: Sampling,
    validation: Data | None,
    notify: Notifier,
) -> PretrainingResult:
    """Optimises one start per chain.

    Args:
        spec: ModelSpec.
        data: Training Data.
        settings: tfbnn.Pretraining.
        sampling: The seed, the number C of starts, and whether XLA compiles the steps.
        validation: Validation Data, or None.
        notify: Called with an Event now and then; true stops.

    Raises:
        KeyboardInterrupt: Before the first steps are made; later ones count.
    """
    began = time.perf_counter()
    seed, num_chains, jit_compile = sampling.seed, sampling.num_chains, sampling.jit_compile
    theta = with_residual_noise(spec, draw_prior(spec, seed, num_chains), data)
    num_rows = data.x.shape[-1]
    batch_size = min(settings.batch_size or num_rows, num_rows)
    # Early stopping looks at every epoch; otherwise a call takes about a second.
    flops = 6.0 * batch_size * theta.size
    calls = 1 if settings.early_stopping else affordable_steps(flops)
    batches = Batches(num_rows, batch_size, num_chains, settings.epochs, seed, calls)
    steps = make_adam_steps(spec, settings, num_rows, batch_size, batches.num_steps, jit_compile)
    groups = chain_groups(num_chains, apart=batch_size * theta.shape[1] >= _LARGE_STEP)
    states = [start_adam(theta[group]) for group in groups]
    nothing = tf.constant(0)
    awaited(steps, states[0], data, batches.padding(len(groups[0])), nothing, nothing)
    score = _make_score(spec, validation, jit_compile)
    compiled_in = time.perf_counter() - began

    began = time.perf_counter()
    best = _Best(theta, settings.early_stopping)
    epoch, interrupted = 0, False
    try:
        for first, count, indices, end in batches:
            start, length = tf.constant(first), tf.constant(count)
            calls = [
                partial(steps, state, data, tf.constant(indices[:, group]), start, length)
                for state, group in zip(states, groups)
            ]
            states = each_aside(lambda call: call(), calls, num_cores())
            theta, epoch = np.concatenate([state.theta.numpy() for state in states]), end
            if score is not None:
                best.update(theta, awaited(score, theta), epoch)
            stopped = notify(_event(batches, first + count, epoch, best, began))
            if stopped or best.stopped.all():
                break
    except KeyboardInterrupt:
        interrupted = True
        if not epoch:
            raise
    seconds = Seconds(compile=compiled_in, pretraining=time.perf_counter() - began)
    epochs = np.full(num_chains, epoch)
    if settings.early_stopping:
        theta, epochs = best.theta, best.epochs
    theta = with_residual_noise(spec, theta, data)
    last = best.last if score is not None else None
    return PretrainingResult(theta, epochs, last, seconds, interrupted)


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
        active = ~self.stopped
        better = active & (score > self.score)
        self.theta[better], self.score[better] = theta[better], score[better]
        self.epochs[better] = epoch
        self.waited[active] = epoch - self.epochs[active]

    @property
    def stopped(self):
        return self.waited >= (self.patience or np.inf)


def _make_score(spec, validation, jit_compile):
    if validation is None:
        return None
    log_likelihood = compiled(Potential(spec).log_likelihood, jit_compile=jit_compile)
    num_rows = validation.x.shape[-1]
    return lambda theta: log_likelihood(tf.constant(theta), validation).numpy() / num_rows


def _event(batches: Batches, step: int, epoch: int, best: _Best, began: float) -> PretrainingEvent:
    seconds = time.perf_counter() - began
    return PretrainingEvent(
        phase="pretraining",
        transition=step,
        num_transitions=batches.num_steps,
        num_chains=batches.num_chains,
        seconds=seconds,
        eta_seconds=seconds * (batches.num_steps - step) / step,
        epoch=epoch,
        validation_log_likelihood=float(np.mean(best.last)),
    )
