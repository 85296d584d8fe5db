"""Cool two populations of networks from the prior to the posterior, as starts of chains.

The particles sample the posterior of rows with additional noise. The standard deviation of this
noise is the temperature; class labels count 1 / (1 + temperature^2) times instead. The temperature
starts where the rows carry no information. Each step lowers it until the effective share of the
particles' weights is a half. The particles are then resampled by these weights and moved by
Hamiltonian Monte Carlo, whitened by the Gauss-Newton matrix at each particle.

A network with little noise settles in a basin while the temperature is high. ADAM and
Levenberg-Marquardt hardly ever leave a basin. On rows of a known teacher, chains started by them
stayed below its level in five of nine cells, chains started from populations in one
(benchmarks/results/thermalisation.md).

All particles of a population may descend from one draw. There are therefore two populations, which
share only the temperatures and step sizes. Half of the chains start from each, and R-hat shows
whether both found the same posterior. If one population ends more than P nats below the other, no
chain starts from it.

A learned noise scale would absorb everything that the networks do not fit yet. It is therefore left
out until the temperature is a quarter of the particles' residual scale, and is then set from the
residuals. If there are many rows, the particles see a sample of them, and the residuals that end
the cooling are those of all rows.

The whitening matrix depends on the position of the particle, so the moves do not leave the
posterior exactly invariant. The transitions of the chains that start here do. The log evidence of
64 particles was within 1.2 nats of quadrature on small networks, too low by half a nat with two
hidden units (benchmarks/results/starts_evidence.md); the error of stepping stones is a fifth of
that.

References:
    Neal 2001, Statistics and Computing 11, 125, annealed importance sampling. Del Moral, Doucet and Jasra
    2006, J. R. Stat. Soc. B 68, 411, resampling. Jasra et al. 2011, Scand. J. Stat. 38, 1, adaptive
    temperatures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf, tfp
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.fisher import compiled_prior_curvature
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix, scaled_jacobian
from tfbnn.engine.density.linear_map import DenseMap, LowRankMap, low_rank_map, whitening_map
from tfbnn.engine.density.value_and_gradient import Target, compiled_log_likelihoods
from tfbnn.engine.starts.check import draw_prior, residual_scales, with_residual_noise
from tfbnn.exceptions import StartError
from tfbnn.run.config import Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.events import PopulationEvent
from tfbnn.run.options import Sampling
from tfbnn.run.progress import Notifier
from tfbnn.spec.likelihoods import LEARNED
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited

# Range of temperatures, in units of the transformed targets. Below the coldest comes zero.
_HOTTEST, _COLDEST = 1e3, 1e-7
# Noise scale that replaces a learned one while the temperature acts as noise.
_NEXT_TO_NOTHING = 1e-9
# A step keeps this effective share of the particles, and at least this share of the temperature.
_EFFECTIVE_SHARE, _LEAST_RATIO = 0.5, 0.7
# Cooling ends at this share of the particles' residual scale. With a share of 1, networks that did
# not follow a sine of three periods yet were accepted, and the sine was taken for noise.
_SHARE_OF_MISFIT = 0.25
# Settings of Hamiltonian Monte Carlo at each temperature.
_TRANSITIONS, _LEAPFROG_STEPS, _ACCEPTANCE, _JITTER, _FIRST_STEP = 2, 32, 0.75, 0.2, 0.3
_NUM_POPULATIONS = 2
# Largest number of rows that particles see. The usual number of temperatures is 40 to 100.
_MOST_ROWS, USUAL_RUNGS = 1500, 64


class Populations(NamedTuple):
    """Particles of both populations at one temperature.

    Attributes:
        theta: Particles [2 M, P], one population after the other.
        temperature: Standard deviation of the additional noise.
        log_step: Log step size of the next move.
        log_evidence: Log evidence of the rows at this temperature, one per population [2].
    """

    theta: Array
    temperature: float
    log_step: float
    log_evidence: Array


def cooled_starts(
    spec: NetworkSpec, data: Data, num_particles: int, sampling: Sampling, notify: Notifier
) -> Starts:
    """Cool two populations on these rows, and take one particle per chain from them in turn.

    Args:
        spec: NetworkSpec.
        data: Data. Particles see at most 1500 of its rows.
        num_particles: Particles M per population, at least half the number of chains.
        sampling: The seed, the number of chains, and whether XLA compiles the moves.
        notify: Called with an Event at each temperature; a true result ends the cooling there.

    Raises:
        ValueError: If the model has no Gauss-Newton matrix or its prior is an earlier posterior.
        KeyboardInterrupt: If the user interrupts before the first temperature is done.
    """
    obstacle = cooling_obstacle(spec)
    if obstacle is not None:
        raise ValueError(
            f"Pretraining.num_particles cannot be used with this model, as {obstacle}. Leave it at None."
        )
    notify.announce("population")
    began, interrupted, count = time.perf_counter(), False, 0
    cooled, rows = without_learned_noise(spec), some_rows(data, sampling.seed)
    # These rows decide where cooling ends: at the learned noise, or where a sample of the rows says
    # nothing more about the other rows.
    judge = None if cooled == spec and rows is data or not spec.has_additive_noise else data
    population = hot(cooled, rows, num_particles, sampling.seed)
    try:
        while not _is_cold(cooled, population, judge):
            population = cooler(cooled, rows, population, sampling, count)
            count += 1
            if notify(_event(population, count, sampling.num_chains, time.perf_counter() - began)):
                break
    except KeyboardInterrupt:
        interrupted = True
        if not count:
            raise
    levels = _levels(cooled, rows, population)
    is_kept = levels >= levels.max() - spec.num_parameters
    chains, ends = np.arange(sampling.num_chains), _of_each(population.theta)[is_kept]
    theta = _in_turn(ends, len(chains))
    theta = with_noise(spec, theta, data)
    text = f"two populations of {num_particles} cooled from the prior at {count} temperatures"
    if population.temperature:
        text += f" to additional noise of {population.temperature:.2g}"
    else:
        text += ", log evidence {:.1f} and {:.1f}".format(*population.log_evidence)
    if not is_kept.all():
        text += f"; one was left out, {np.ptp(levels):.0f} nats below the other"
    spent = Seconds(pretraining=time.perf_counter() - began)
    return Starts(theta, text, spent, interrupted, superchains=chains % len(ends))


def cooling_obstacle(spec: NetworkSpec) -> str | None:
    """Return the reason why no population can be cooled, or None."""
    if spec.earlier is not None:
        return "its prior is an earlier posterior, which gives no independent draws"
    return spec.network.no_jacobian


def without_learned_noise(spec: NetworkSpec) -> NetworkSpec:
    """Return the spec with a negligible noise scale in place of a learned one."""
    if not (spec.layout.num_noise and spec.has_additive_noise):
        return spec
    quiet: Any = replace(cast(Any, spec.likelihood), noise_scale=_NEXT_TO_NOTHING)
    return replace(spec, likelihood=quiet)


def with_noise(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Add the noise scales that the residuals suggest to networks; return [C, P]."""
    missing = spec.num_parameters - theta.shape[1]
    theta = np.insert(theta, [spec.layout.log_noise_scale.start] * missing, 0.0, axis=1)
    return with_residual_noise(spec, theta, data)


def _levels(spec: NetworkSpec, rows: Data, population: Populations) -> Array:
    """Compute the mean log density of each population [2] at its temperature."""
    theta, temperature = population.theta, population.temperature
    log_prior = density_of(spec).log_prior(tf.constant(theta)).numpy()
    log_density: Array = log_prior + _log_likelihood(spec, rows, theta, temperature)
    return _of_each(log_density).mean(axis=1)


def _in_turn(populations: Array, num_chains: int) -> Array:
    """Take particles [num_chains, P] from populations [n, M, P] in turn, spread evenly in each."""
    chains, count = np.arange(num_chains), len(populations)
    indices = chains // count * populations.shape[1] // -(-num_chains // count)
    return populations[chains % count, indices]


def num_operations(spec: NetworkSpec, num_rows: int, num_particles: int) -> float:
    """Estimate the number of operations that cooling takes."""
    rows, size = min(num_rows, _MOST_ROWS) * spec.num_outputs, spec.num_parameters
    least = min(rows, size)
    gradients = _TRANSITIONS * _LEAPFROG_STEPS * (6.0 * rows + 4.0 * least) * size
    whitening = rows * size * least + float(least) ** 3
    return USUAL_RUNGS * _NUM_POPULATIONS * num_particles * (gradients + whitening)


def _event(population: Populations, count: int, num_chains: int, seconds: float) -> PopulationEvent:
    return PopulationEvent(
        phase="population",
        transition=count,
        num_transitions=max(USUAL_RUNGS, count),
        num_chains=num_chains,
        seconds=seconds,
        eta_seconds=float("nan"),
        temperature=population.temperature,
    )


def some_rows(data: Data, seed: int) -> Data:
    """Draw a sample of the rows if there are many; weights keep their ratios and get mean 1."""
    if int(data.num_rows) <= _MOST_ROWS:
        return data
    rows, generator = data.rows(), seeds.generator(seed, "cooled rows", 0)
    indices = np.sort(generator.choice(rows.length, _MOST_ROWS, replace=False))
    some = rows.map(lambda array: tf.gather(array, indices, axis=-1))
    some = some._replace(last=tf.constant(_MOST_ROWS))
    if some.weights is None:
        return some
    return some._replace(weights=some.weights / tf.reduce_mean(some.weights))


def _is_cold(spec: NetworkSpec, population: Populations, judge: Data | None) -> bool:
    """Check whether cooling is over: the temperature is zero, or low compared to the residuals.

    The residuals are those of the rows `judge`; without such rows only a temperature of zero ends
    the cooling.
    """
    if judge is None or not population.temperature:
        return not population.temperature
    missed = residual_scales(spec, population.theta, judge)
    return _SHARE_OF_MISFIT * float(np.median(missed.max(axis=1))) >= population.temperature


def hot(spec: NetworkSpec, rows: Data, num_particles: int, seed: int) -> Populations:
    """Return populations of prior draws at the hottest temperature."""
    theta = draw_prior(spec, seed, _NUM_POPULATIONS * num_particles)
    found = _log_likelihood(spec, rows, theta, _HOTTEST)
    return Populations(theta, _HOTTEST, float(np.log(_FIRST_STEP)), _log_mean(_of_each(found)))


def cooler(
    spec: NetworkSpec, rows: Data, population: Populations, sampling: Sampling, index: int
) -> Populations:
    """Resample and move the populations at the next temperature, numbered `index` from 0."""
    log_likelihood = partial(_log_likelihood, spec, rows, population.theta)
    here = log_likelihood(population.temperature)
    allowed = np.isfinite(here)
    if not _of_each(allowed).any(axis=1).all():
        raise StartError(
            "The likelihood is 0 at all networks that the prior draws. Use a narrower prior, or "
            "parameterization='ntk'."
        )

    def gained(temperature: float) -> Array:
        return np.where(allowed, log_likelihood(temperature), -np.inf) - np.where(
            allowed, here, 0.0
        )

    temperature = next_temperature(gained, population.temperature)
    log_weights = _of_each(gained(temperature))
    uniform = seeds.generator(sampling.seed, "cooling", 0, index).uniform(size=_NUM_POPULATIONS)
    kept = [resampled(*of_one) for of_one in zip(log_weights, uniform)]
    each = _of_each(population.theta)
    theta = np.concatenate([one[indices] for one, indices in zip(each, kept)])
    warm = warmed(spec, rows, temperature)
    theta, log_step = awaited(
        _make_moves(spec, sampling.jit_compile),
        _whitened(spec, theta, warm),
        warm,
        tf.constant(population.log_step, tf.float32),
        tf.constant(seeds.keys(sampling.seed, "cooling", 0, index, 1)[0]),
    )
    evidence = population.log_evidence + _log_mean(log_weights)
    return Populations(theta.numpy(), temperature, float(log_step), evidence)


def _log_likelihood(spec: NetworkSpec, rows: Data, theta: Array, temperature: float) -> Array:
    """Compute the log likelihoods [M] of the rows at a temperature."""
    function = compiled_log_likelihoods(density_of(spec))
    warm = warmed(spec, rows, temperature)
    found = awaited(function, tf.constant(theta[None]), tf.constant(1), warm).numpy()[0]
    return np.where(np.isfinite(found), spec.likelihood_power * found, -np.inf)


def _of_each(values: Array) -> Array:
    """Reshape values of all particles [2 M, ...] to one axis per population [2, M, ...]."""
    return values.reshape(_NUM_POPULATIONS, -1, *values.shape[1:])


def _log_mean(logs: Array) -> Array:
    """Compute the log of the mean of exp(logs) over the last axis."""
    found: Array = np.logaddexp.reduce(logs, axis=-1) - np.log(logs.shape[-1])
    return found


def warmed(spec: NetworkSpec, data: Data, temperature: float) -> Data:
    """Return the rows at a temperature: with additional noise, or with lower weights.

    The weights are lowered for class labels and counts.
    """
    if not spec.has_additive_noise:
        counts = tf.ones([1, data.length], data.x.dtype) if data.weights is None else data.weights
        return data._replace(weights=counts / (1.0 + temperature**2))
    given, zeros = spec.likelihood.noise_scale, tf.zeros_like(data.y)
    if data.row_noise is not None:
        zeros += data.row_noise**2
    elif given is not None and given != LEARNED:
        zeros += tf.reshape(tf.constant(given, data.y.dtype), [-1, 1]) ** 2
    return data._replace(row_noise=tf.sqrt(zeros + tf.constant(temperature**2, data.y.dtype)))


def next_temperature(log_weights: Callable[[float], Array], temperature: float) -> float:
    """Find the lower temperature at which the effective share of a population is a half, at least 0.

    Args:
        log_weights: Function from the new temperature to the log weights [2 M] of the particles.
        temperature: Current temperature of the particles.
    """
    from scipy.optimize import brentq

    def excess(log_temperature: float) -> float:
        logs = _of_each(log_weights(float(np.exp(log_temperature))))
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        # The share is that of the particles that the likelihood allows at all.
        share = weights.mean(axis=1) ** 2 / (weights**2).mean(axis=1)
        share /= np.isfinite(logs).mean(axis=1)
        return float(share.min()) - _EFFECTIVE_SHARE

    if excess(np.log(_COLDEST)) >= 0.0:
        return 0.0
    lowest = np.log(_COLDEST if temperature == _HOTTEST else _LEAST_RATIO * temperature)
    if excess(lowest) >= 0.0:
        return float(np.exp(lowest))
    return float(np.exp(brentq(excess, lowest, np.log(temperature), xtol=1e-2)))


def resampled(log_weights: Array, uniform: float) -> Array:
    """Resample systematically by log weights [M]; return the sorted indices [M] of the particles kept."""
    ends = np.cumsum(np.exp(log_weights - log_weights.max()))
    points = (np.arange(len(ends)) + uniform) * (ends[-1] / len(ends))
    return np.minimum(np.searchsorted(ends, points, side="right"), len(ends) - 1)


def _whitened(spec: NetworkSpec, theta: Array, rows: Data) -> DenseMap | LowRankMap:
    """Return the maps that turn the Gauss-Newton matrix at each particle [M, P] into the identity."""
    distinct, indices = np.unique(theta, axis=0, return_inverse=True)
    maps: DenseMap | LowRankMap
    if int(rows.num_rows) * spec.num_outputs < spec.num_parameters:
        prior = [compiled_prior_curvature(spec)(tf.constant(one, tf.float64)) for one in distinct]
        lines = np.stack([scaled_jacobian(spec, one, rows) for one in distinct])
        maps = low_rank_map(distinct, lines, np.stack(prior))
    else:
        curvature = np.stack([gauss_newton_matrix(spec, one, rows) for one in distinct])
        maps = whitening_map(distinct, curvature)
    return type(maps)(*(tf.constant(array[indices.ravel()]) for array in maps))


@lru_cache(maxsize=32)
def _make_moves(spec: NetworkSpec, jit_compile: bool) -> Any:
    """Compile (map, Data, log step size, key) -> (theta [M, P], log step size of the next move)."""
    potential = density_of(spec)

    def moves(linear_map: DenseMap | LowRankMap, rows: Data, log_step: Tensor, key: Tensor) -> Any:
        reference, _ = potential.value_and_gradient(linear_map.centre, rows)
        target = Target(potential, rows, linear_map, reference, (1.0,))
        keys = tf.random.split(key, 2 * _TRANSITIONS)

        def one(index: Tensor, z: Tensor, log_step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            shape, ends = [z.shape[0], 1], (1.0 - _JITTER, 1.0 + _JITTER)
            jitter = tf.random.stateless_uniform(shape, keys[2 * index], *ends)
            step = tf.cast(tf.exp(log_step) * jitter, z.dtype)
            kernel = tfp.mcmc.HamiltonianMonteCarlo(target, step, _LEAPFROG_STEPS)
            z, results = kernel.one_step(z, kernel.bootstrap_results(z), seed=keys[2 * index + 1])
            ratio = results.log_accept_ratio
            accepted = tf.where(tf.math.is_nan(ratio), tf.constant(-np.inf, ratio.dtype), ratio)
            accepted = tf.reduce_mean(tf.exp(tf.minimum(accepted, 0.0)))
            return index + 1, z, log_step + tf.cast(accepted, log_step.dtype) - _ACCEPTANCE

        start = (tf.constant(0), tf.zeros_like(linear_map.centre), log_step)
        _, z, log_step = tf.while_loop(lambda index, *_: index < _TRANSITIONS, one, start)
        return linear_map.forward(z), log_step

    return compiled(moves, jit_compile=jit_compile)
