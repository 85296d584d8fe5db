"""Finds where the chains start: draws of the prior, ADAM, Levenberg-Marquardt; keeps the best."""

import time
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.potential import Data, Potential
from tfbnn.engine.starts.check import draw_prior, inside_support, with_residual_noise
from tfbnn.engine.starts.newton import NewtonPlan, NewtonState, plan_newton, polish
from tfbnn.engine.starts.pretraining import PretrainingResult, pretrain
from tfbnn.run.counters import Seconds
from tfbnn.run.definition import Starts
from tfbnn.run.events import NewtonEvent
from tfbnn.run.options import Sampling
from tfbnn.run.preparation import Search, Stand
from tfbnn.run.progress import Notifier
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array

_STAGE = "newton"


def find_starts(
    spec: ModelSpec,
    data: Data,
    validation: Data | None,
    settings: Pretraining | None,
    sampling: Sampling,
    notify: Notifier,
    search: Search,
) -> Starts:
    """One start per chain.

    Args:
        spec: ModelSpec.
        data, validation: Data; the latter may be None.
        settings: tfbnn.Pretraining, or None for draws of the prior.
        sampling: The seed, the number of chains C, and whether XLA compiles ADAM.
        notify: Called with an Event now and then; true, and its `stopped`, end the search.
        search: Where it goes on from, and commits.

    Raises:
        KeyboardInterrupt: Before there is anything better than draws of the prior.
    """
    seed, num_chains = sampling.seed, sampling.num_chains
    if settings is None:
        return Starts(draw_prior(spec, seed, num_chains), "draws of the prior")
    num_starts = settings.num_starts or num_chains
    adam = _after_adam(search.found_in(_STAGE))
    if adam is None and settings.epochs == 0:
        theta = with_residual_noise(spec, draw_prior(spec, seed, num_starts), data)
        adam = _Adam(theta, "draws of the prior", Seconds())
    elif adam is None:
        searched = replace(sampling, num_chains=num_starts)
        result = pretrain(spec, data, settings, searched, validation, notify, search)
        text = _describe_adam(result)
        adam = _Adam(result.theta, text, result.seconds, result.interrupted)
    theta, text, seconds, interrupted = adam
    began = time.perf_counter()
    plan = plan_newton(spec, data.x.shape[-1], settings)
    if plan.num_iterations and not (interrupted or notify.stopped):
        notify.announce("newton")
        least = spec.layout.num_parameters if settings.newton_iterations == "auto" else -np.inf
        theta, newton, interrupted = _polish_all(spec, data, adam, plan, least, notify, search)
        text = f"{text}; {newton}"
    elif settings.newton_iterations == "auto":
        text = f"{text}; no Levenberg-Marquardt ({plan.reason})"
    theta = inside_support(spec, theta)
    if num_starts > num_chains:
        theta, best = _best_starts(spec, data, theta, num_chains)
        text = f"{text}; {best}"
    seconds += Seconds(pretraining=time.perf_counter() - began)
    return Starts(theta, text, seconds, interrupted)


def log_prob_of(spec: ModelSpec, data: Data, theta: Array) -> Array:
    """Log densities [C] at theta [C, P], one after the other, and compiled for none of them."""
    potential = Potential(spec)
    each = [potential.log_prob(tf.constant(start[None]), data).numpy() for start in theta]
    return np.concatenate(each)


def _describe_adam(result: PretrainingResult) -> str:
    epochs = sorted(set(result.epochs.tolist()))
    text = f"ADAM, {epochs[0]}" + (f" to {epochs[-1]}" if len(epochs) > 1 else "") + " epochs"
    if result.validation_log_likelihood is not None:
        scores = result.validation_log_likelihood
        text += f", validation log likelihood {scores.min():.3f} to {scores.max():.3f} per row"
    return text


class _Adam(NamedTuple):
    """What ADAM has left: theta [C, P], a line on it, and the seconds of the search so far."""

    theta: Array
    text: str
    seconds: Seconds
    interrupted: bool = False


class _Polished(NamedTuple):
    """How far Levenberg-Marquardt is; a new one after each iteration.

    Attributes:
        results: NewtonState of each start that is done.
        state: That of the next start, None before its first iteration.
    """

    results: tuple[NewtonState, ...] = ()
    state: NewtonState | None = None

    @property
    def reached(self) -> tuple[NewtonState, ...]:
        """The states of all starts that were tried."""
        return self.results if self.state is None else (*self.results, self.state)

    def stand(self, adam: _Adam, seconds: float) -> Stand:
        """What a later process needs to go on."""
        spent = asdict(adam.seconds + Seconds(pretraining=seconds))
        reached, arrays = self.reached, {"adam": adam.theta}
        content = {"stage": _STAGE, "text": adam.text, "seconds": spent, "done": len(self.results)}
        if reached:
            arrays["theta"] = np.stack([state.theta for state in reached])
            arrays["gradient"] = np.stack([state.gradient for state in reached])
            arrays["damping"] = np.array([state.damping for state in reached])
            arrays["log_prob"] = np.concatenate([state.log_prob for state in reached])
            arrays["lengths"] = np.array([len(state.log_prob) for state in reached])
        return Stand(content, arrays)

    @classmethod
    def read(cls, found: Stand | None) -> "_Polished":
        """What `stand` said, or the beginning."""
        if found is None or "theta" not in found.arrays:
            return cls()
        arrays, done = found.arrays, found.content["done"]
        histories = np.split(arrays["log_prob"], np.cumsum(arrays["lengths"])[:-1])
        reached = [
            NewtonState(theta, gradient, float(damping), history.tolist())
            for theta, gradient, damping, history in zip(
                arrays["theta"], arrays["gradient"], arrays["damping"], histories
            )
        ]
        return cls(tuple(reached[:done]), reached[done] if len(reached) > done else None)


def _after_adam(found: Stand | None) -> _Adam | None:
    """What ADAM left an earlier process, which was polishing."""
    if found is None:
        return None
    content = found.content
    return _Adam(found.arrays["adam"], content["text"], Seconds(**content["seconds"]))


def _polish_all(
    spec: ModelSpec,
    data: Data,
    adam: _Adam,
    plan: NewtonPlan,
    least: float,
    notify: Notifier,
    search: Search,
) -> tuple[Array, str, bool]:
    """Starts [C, P] after Levenberg-Marquardt where it gained at least so much, a line on it, and whether
    the user asked to stop.

    A Gaussian posterior's log density is typically P / 2 below its maximum. A start that is closer
    to the maximum than P is as good as polished: further up, it would only fit the noise.
    """
    began, interrupted, before = time.perf_counter(), False, 0.0
    progress = _Polished.read(search.found_in(_STAGE))
    total, first = plan.num_iterations * len(adam.theta), len(progress.results)

    def stand() -> Stand:
        return progress.stand(adam, time.perf_counter() - began)

    def show(state: NewtonState) -> bool:
        nonlocal progress
        progress = progress._replace(state=state)
        done = plan.num_iterations * len(progress.results) + len(state.log_prob) - 1
        seconds, ended = time.perf_counter() - began, len(progress.results) - first
        event = NewtonEvent(
            phase="newton",
            transition=done,
            num_transitions=total,
            num_chains=len(adam.theta),
            seconds=seconds,
            # A start may end early: only those before it tell how long one takes.
            eta_seconds=_time_to_go(before, seconds, ended, len(adam.theta) - first),
            log_prob=state.log_prob[-1],
        )
        stopped = notify(event)
        search.keep(stand, now=stopped)
        return stopped

    try:
        while len(progress.results) < len(adam.theta) and not notify.stopped:
            before = time.perf_counter() - began
            start, state = adam.theta[len(progress.results)], progress.state
            method, count = plan.method, plan.num_iterations
            state = polish(spec, start, data, count, method, show, least, state)
            if not notify.stopped:
                progress = _Polished((*progress.results, state))
    except KeyboardInterrupt:
        interrupted = True
        search.keep(stand, now=True)
    results = progress.reached
    if not results:
        return adam.theta, "Levenberg-Marquardt was stopped", interrupted
    theta = adam.theta
    counts = [len(result.log_prob) - 1 for result in results]
    gains = np.array([result.gain for result in results])
    kept = np.flatnonzero(gains >= least)
    text = f"Levenberg-Marquardt ({plan.reason})"
    if not max(counts):  # where the log density is not finite there is no gain to speak of
        text += " found no step that raises the log density"
    elif len(kept):
        text += (
            f", {min(counts)} to {max(counts)} iterations, log density up by "
            f"{min(gains):.4g} to {max(gains):.4g}"
        )
        if len(kept) < len(results):
            text += f", kept for {len(kept)} of {len(results)} starts: it gained little for others"
    else:
        text += f" left out after {max(counts)} iterations: it gained too little to matter"
    theta = theta.copy()
    for chain in kept:
        theta[chain] = results[chain].theta
    return theta, text, interrupted


def _time_to_go(before: float, seconds: float, ended: int, count: int) -> float:
    """Seconds that so many starts still take, of which `ended` took `before`; NaN before the first."""
    return max(before * count / ended - seconds, 0.0) if ended else np.nan


def _best_starts(spec: ModelSpec, data: Data, theta: Array, num_chains: int) -> tuple[Array, str]:
    """The `num_chains` starts of highest log density, in their order, and a line on all."""
    log_prob = log_prob_of(spec, data, theta)
    ranked = np.argsort(-np.where(np.isfinite(log_prob), log_prob, -np.inf), kind="stable")
    best = np.sort(ranked[:num_chains])
    values = ", ".join(f"{log_prob[index]:.4g}" for index in ranked)
    return theta[best], f"the best {num_chains} of {len(theta)} starts, log densities {values}"
