"""Checks of the functions passed to `tfbnn.sample`, the choice of settings, and the run."""

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from tfbnn.diagnostics.agreement import Agreement
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.basis.seeds import describe_environment
from tfbnn.engine.density.data import no_rows
from tfbnn.engine.density.densities import check_dependence, check_tensor
from tfbnn.engine.functional.samples import OfDraws, Samples, agreement_of, quantities_of
from tfbnn.engine.kernels.registry import kernel_to_json, resolve_kernel
from tfbnn.engine.running.driver import run
from tfbnn.run.config import RunConfig, Starts
from tfbnn.run.deadline import Deadline
from tfbnn.run.evidence import Ladder
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier
from tfbnn.run.result import Kept
from tfbnn.run.stopping import StoppingRule
from tfbnn.run.until import Until
from tfbnn.spec.density_spec import DensitySpec, Function
from tfbnn.spec.own_classes import import_name
from tfbnn.spec.settings_json import describe_settings
from tfbnn.system.arrays import Array
from tfbnn.system.signals import signals_interrupt

_PARTS = ("log_prior", "log_likelihood")
# Allowed relative difference between a function of a batch and of one of its rows, in float32.
# Distance of the test points from the starts, which may be equal, and largest number of chains
# tested.
_TOLERANCE, _SPREAD, _MOST_PROBED = 1e-4, 0.01, 4


def make_density_spec(log_prob: Any, theta: Array) -> DensitySpec:
    """Check the argument `log_prob` at the starts theta [C, P], and return its spec.

    Raises:
        TypeError: If it is not a function, or not one of TensorFlow operations.
        ValueError: For values of another shape, and for rows that depend on each other.
    """
    is_pair = isinstance(log_prob, (tuple, list))
    functions = tuple(log_prob) if is_pair else (log_prob,)
    if len(functions) != (2 if is_pair else 1) or not all(map(callable, functions)):
        raise TypeError(
            "log_prob must be a function [C, P] -> [C], or a pair (log_prior, log_likelihood) of "
            f"them, received {log_prob!r}."
        )
    for label, function in zip(_PARTS if is_pair else ("log_prob",), functions):
        _check(label, function, theta)
    names = tuple(map(import_name, functions))
    return DensitySpec(names, theta.shape[1], theta.dtype.name, functions, object())


def _check(label: str, function: Function, theta: Array) -> None:
    points = tf.constant(theta)
    with tf.GradientTape() as tape:
        tape.watch(points)
        value = function(points)
    expected = f"{label} must return a tensor [C] for positions [C, P] = {list(theta.shape)}"
    advice = "Sum over the last axis alone: tf.reduce_sum(..., axis=-1)."
    check_tensor(expected, value, theta.shape[:1], advice)
    if not value.dtype.is_floating:
        raise TypeError(f"{expected}, of floating point, received {value.dtype.name}.")
    gradient = tape.gradient(value, points)
    if gradient is not None or label != _PARTS[0] or not _is_flat(function, theta):
        check_dependence(label, gradient)
    _check_independence(label, function, theta)


def _is_flat(function: Function, theta: Array) -> bool:
    """Return whether a density has one finite value around the starts, as that of a uniform prior."""
    near = (theta + step * (1.0 + np.abs(theta)) for step in (-_SPREAD, 0.0, _SPREAD))
    points = [tf.constant(some.astype(theta.dtype)) for some in near]
    traced = compiled(function, jit_compile=False)
    try:
        values = np.concatenate([traced(some) for some in points])
    except (AttributeError, NotImplementedError):  # of NumPy
        return False
    values = values[np.isfinite(values)]
    return bool(np.all(values == values[:1]))


def _check_independence(label: str, function: Function, theta: Array) -> None:
    """Check near the starts that the value of a function for one chain does not depend on the others."""
    spread = _SPREAD * (1.0 + np.abs(theta))
    offsets = np.random.default_rng(0).standard_normal(theta.shape)
    points = tf.constant((theta + spread * offsets)[:_MOST_PROBED].astype(theta.dtype))
    beside = function(points).numpy()
    alone = np.concatenate([function(points[chain : chain + 1]) for chain in range(len(points))])
    is_finite = np.isfinite(beside) & np.isfinite(alone)
    gaps = np.where(is_finite, np.abs(beside - alone), 0.0)
    if np.max(gaps) > _TOLERANCE * (1.0 + np.max(np.abs(beside[is_finite]), initial=0.0)):
        chain = int(np.argmax(gaps))
        raise ValueError(
            f"{label} must treat chains independently, received {beside[chain]} for chain {chain} "
            f"together with others and {alone[chain]} without them. Sum over the last axis only: "
            "tf.reduce_sum(..., axis=-1)."
        )


def run_density(
    spec: DensitySpec, theta: Array, options: FitOptions, quantities: OfDraws | None
) -> Samples:
    """Run the chains, or resume a run, and return its Samples.

    Args:
        spec, theta: Log density and starts.
        options: FitOptions.
        quantities: Function of the draws that `until` checks, as in `tfbnn.sample`.

    Raises:
        TypeError, ValueError: If density, kernel and options cannot be combined.
        RunFolderError: Also if the log density has other values than at the beginning of the run.
        KeyboardInterrupt: If the user stopped the run and no chain had failed.
    """
    asked = resolve_kernel(options.kernel)
    asked.check_model(spec, row_noise=False)
    asked.check_chains(options.num_chains)
    settings, geometry = asked.resolve(spec, num_rows=0)
    if len(settings.temperatures) > 1 and len(spec.functions) == 1:
        raise ValueError(
            f"{type(settings).__name__} tempers the likelihood and not the prior: log_prob must be a "
            "pair (log_prior, log_likelihood), received one function."
        )
    config = RunConfig(
        spec=spec,
        kernel=kernel_to_json(asked),
        sampling=options.sampling(budget=0),
        environment=describe_environment(),
        temperatures=settings.temperatures,
        initial_state=Starts.given(theta),
    )
    sampling, until = config.sampling, config.sampling.until
    notify = Notifier(options.verbose, options.callbacks, Deadline(options.limit, options.began))

    def measure(kept: Kept, superchains: Array | None) -> Agreement:
        found = quantities_of(kept.draws, quantities)
        return agreement_of(found, kept.statistics["lp"], superchains)

    rule = None if until is None else StoppingRule(until, sampling.num_results, measure)
    data, starts = partial(no_rows, spec.dtype), Starts.given(theta)
    with signals_interrupt():
        _, result = run(config, settings, options, notify, rule, data, lambda data: starts)
    if result.interrupted and not result.failures:
        raise KeyboardInterrupt
    ladder = Ladder.measure(config.temperatures, result.rung_log_likelihood)
    own = {
        "seconds": asdict(result.seconds),
        "notes": (*result.notes, *(() if ladder is None else ladder.notes())),
    }
    return Samples(
        **vars(result) | own,
        quantities=quantities_of(result.draws, quantities) if result.draws.size else {},
        kernel=describe_settings(settings),
        geometry=geometry,
        bias=settings.bias_note,
        num_burnin_steps=result.warmup_cut or sampling.num_burnin_steps,
        num_steps_between_results=sampling.num_steps_between_results,
        seed=sampling.seed,
        log_evidence=None if ladder is None else ladder.log_evidence,
        history=notify.history,
        until=until or Until(),
    )
