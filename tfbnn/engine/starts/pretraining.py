"""ADAM on the density that is sampled, with one independent optimisation per chain."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from tfbnn.diagnostics.wording import span
from tfbnn.engine.basis.compile import chain_groups
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import compiled_log_likelihoods
from tfbnn.engine.starts.adam import (
    AdamState,
    make_adam_steps,
    row_indices,
    start_adam,
)
from tfbnn.engine.starts.check import draw_prior, with_residual_noise
from tfbnn.run.config import Starts
from tfbnn.run.cost import affordable_steps
from tfbnn.run.counters import Seconds
from tfbnn.run.events import PretrainingEvent
from tfbnn.run.options import Sampling
from tfbnn.run.progress import Notifier
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited, each_in_background, num_cores

# Multiplications per step and chain above which a thread per chain is faster than one program for
# all chains with a shared overhead.
_LARGE_STEP = 1e6
# Most epochs that early stopping checks after one call, and most parameter values kept for them. On
# a small table an epoch takes microseconds, and thousands of calls, one per epoch, take seconds.
_MOST_LOOKS, _MOST_VALUES = 256, 2**22


def pretrain(
    spec: NetworkSpec,
    data: Data,
    settings: Pretraining,
    sampling: Sampling,
    validation: Data | None,
    notify: Notifier,
) -> Starts:
    """Optimise one start per chain.

    Args:
        spec: NetworkSpec.
        data: Training Data.
        settings: tfbnn.Pretraining.
        sampling: The seed, the number C of starts, and whether XLA compiles the steps.
        validation: Validation Data, or None.
        notify: Called with an Event now and then; a true result ends the pretraining.

    Raises:
        KeyboardInterrupt: If the user interrupts before the first steps are made. A later interrupt
            keeps the result so far.
    """
    notify.announce("compile")
    began = time.perf_counter()
    seed, num_chains, jit_compile = sampling.seed, sampling.num_chains, sampling.jit_compile
    theta = draw_prior(spec, seed, num_chains)
    theta = with_residual_noise(spec, theta, data)
    num_rows = int(data.num_rows)
    batch_size = min(settings.batch_size or num_rows, num_rows)
    steps_per_epoch = num_rows // batch_size
    num_steps = settings.epochs * steps_per_epoch
    # A call takes about a second at most.
    affordable = affordable_steps(6.0 * batch_size * theta.size) // steps_per_epoch
    counts, most_looks = _epochs_of_calls(settings, theta.size, affordable)
    indices_of_calls = row_indices(num_rows, batch_size, num_chains, seed, counts)
    rows_per_step = None if batch_size == num_rows else batch_size
    rate = settings.learning_rate, settings.learning_rate_schedule
    steps = make_adam_steps(spec, *rate, rows_per_step, most_looks, jit_compile)
    groups = chain_groups(num_chains, apart=batch_size * theta.shape[1] >= _LARGE_STEP)
    first_indices = next(indices_of_calls)
    nothing = tf.constant([0, 0, 0, num_steps])
    awaited(
        steps, start_adam(theta[groups[0]]), data, tf.constant(first_indices[:, groups[0]]), nothing
    )
    score = _make_score(spec, validation)
    compiled_in = time.perf_counter() - began

    began = time.perf_counter()
    begun = [start_adam(theta[group]) for group in groups]
    scores, unknown = np.full(num_chains, -np.inf), np.full(num_chains, np.nan)
    progress = _Progress(0, begun, theta, scores, unknown, np.zeros(num_chains, np.int64))
    epoch = 0
    patience, interrupted = settings.early_stopping, False
    try:
        for count, indices in zip(counts, chain([first_indices], indices_of_calls)):
            if _has_waited(progress, patience).all():
                break
            first, num_looks = epoch * steps_per_epoch, count if patience else 1
            steps_per_look = count * steps_per_epoch // num_looks
            control = tf.constant([first, num_looks, steps_per_look, num_steps])
            calls = [
                partial(steps, state, data, tf.constant(indices[:, group]), control)
                for state, group in zip(progress.states, groups)
            ]
            states, seen = zip(*each_in_background(lambda call: call(), calls, num_cores()))
            looks = np.concatenate(seen, axis=1), num_looks
            epoch += count
            advanced = progress._replace(states=list(states))
            progress = _looked(advanced, epoch, looks, score, patience)
            step, seconds = epoch * steps_per_epoch, time.perf_counter() - began
            event = PretrainingEvent(
                phase="pretraining",
                transition=step,
                num_transitions=num_steps,
                num_chains=num_chains,
                seconds=seconds,
                eta_seconds=seconds * (num_steps - step) / step,
                epoch=progress.epoch,
                validation_log_likelihood=float(np.mean(progress.last)),
            )
            if notify(event):
                break
    except KeyboardInterrupt:
        interrupted = True
        if not progress.epoch:
            raise
    theta, epochs = progress.best, progress.epochs
    if not patience:
        theta = np.concatenate([state.theta.numpy() for state in progress.states])
        epochs = np.full(num_chains, progress.epoch)
    theta = with_residual_noise(spec, theta, data)
    spent = Seconds(compile=compiled_in, pretraining=time.perf_counter() - began)
    text = f"ADAM, {span(epochs, '')} epochs"
    if np.isfinite(progress.last).any():
        low, high = progress.last.min(), progress.last.max()
        text += f", validation log likelihood {low:.3f} to {high:.3f} per row"
    return Starts(theta, text, spent, interrupted)


def _epochs_of_calls(
    settings: Pretraining, num_values: int, affordable: int
) -> tuple[list[int], int]:
    """Return (number of epochs of each call, most checks of early stopping per call).

    Early stopping checks every epoch.
    """
    most_looks = 1
    if settings.early_stopping:
        most_looks = max(1, min(_MOST_LOOKS, _MOST_VALUES // num_values))
        affordable = min(affordable, most_looks)
    epochs = max(1, min(settings.epochs, affordable))
    whole, rest = divmod(settings.epochs, epochs)
    return [epochs] * whole + [rest] * bool(rest), most_looks


# Parameters [M, C, P] at the checks, and the number of valid ones: one per epoch with early
# stopping.
Looks: TypeAlias = tuple[Array, int]
# Function from Looks to the log likelihood per validation row of the valid ones [m, C], or None.
Score: TypeAlias = Callable[[Array, int], Array] | None


class _Progress(NamedTuple):
    """State of pretraining; each call creates a new one, so that an interrupt leaves it consistent.

    Attributes:
        epoch: Number of finished epochs.
        states: AdamState of each chain group.
        best: Parameters with the best validation score so far [C, P].
        score, last: The best score and the last score [C].
        epochs: Epoch of the best score [C].
    """

    epoch: int
    states: list[AdamState]
    best: Array
    score: Array
    last: Array
    epochs: Array


def _looked(
    progress: _Progress, epoch: int, looks: Looks, score: Score, patience: int | None
) -> _Progress:
    """Update the progress with the checks of a call that ended at this epoch."""
    if score is None:
        return progress._replace(epoch=epoch)
    seen, num_looks = looks
    scores = awaited(score, seen, num_looks)
    for ago, theta, values in zip(reversed(range(num_looks)), seen, scores):
        waited = _has_waited(progress, patience)
        if waited.all():
            break
        better = ~waited & (values > progress.score)
        progress = progress._replace(
            epoch=epoch - ago,
            last=values,
            best=np.where(better[:, None], theta, progress.best),
            score=np.where(better, values, progress.score),
            epochs=np.where(better, epoch - ago, progress.epochs),
        )
    return progress


def _has_waited(progress: _Progress, patience: int | None) -> Array:
    """Check which chains [C] had no better score for `patience` epochs."""
    return progress.epoch - progress.epochs >= (patience or np.inf)


def _make_score(spec: NetworkSpec, validation: Data | None) -> Score:
    if validation is None:
        return None
    log_likelihoods, weight = compiled_log_likelihoods(Potential(spec)), validation.total_weight
    return lambda theta, count: (
        log_likelihoods(tf.constant(theta), tf.constant(count), validation).numpy() / weight
    )
