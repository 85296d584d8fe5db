"""Finds where the chains start: draws of the prior, ADAM, Levenberg-Marquardt; keeps the best."""

import time

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts.check import draw_prior, inside_support, with_residual_noise
from tfbnn.engine.starts.newton import plan_newton, polish
from tfbnn.engine.starts.pretraining import pretrain


def find_starts(spec, data, validation, settings, *, seed, num_chains, jit_compile, notify):
    """One start per chain.

    Args:
        spec: ModelSpec.
        data, validation: Data; the latter may be None.
        settings: tfbnn.Pretraining, or None for draws of the prior.
        seed: The user's seed.
        num_chains: C.
        jit_compile: Whether XLA compiles ADAM.
        notify: Called with an event dict now and then; true, and its `stopped`, end the search.

    Returns:
        (theta [C, P], one line on how they were found, dict of seconds).
    """
    if settings is None:
        return draw_prior(spec, seed, num_chains), "draws of the prior", {}
    num_starts = settings.num_starts or num_chains
    if settings.epochs == 0:
        theta = with_residual_noise(spec, draw_prior(spec, seed, num_starts), data)
        text, seconds = "draws of the prior", {}
    else:
        result = pretrain(
            spec,
            data,
            settings,
            seed=seed,
            num_chains=num_starts,
            validation=validation,
            jit_compile=jit_compile,
            notify=notify,
        )
        theta, text, seconds = result.theta, _describe_adam(result), dict(result.seconds)
    began = time.perf_counter()
    plan = plan_newton(spec, data.x.shape[-1], settings)
    if plan.num_iterations and not notify.stopped:
        least = spec.layout.num_parameters if settings.newton_iterations == "auto" else -np.inf
        theta, newton = _polish_all(spec, data, theta, plan, least, notify)
        text = f"{text}; {newton}"
    elif settings.newton_iterations == "auto":
        text = f"{text}; no Levenberg-Marquardt ({plan.reason})"
    theta = inside_support(spec, theta)
    if num_starts > num_chains:
        theta, best = _best_starts(spec, data, theta, num_chains)
        text = f"{text}; {best}"
    seconds["pretraining"] = seconds.get("pretraining", 0.0) + time.perf_counter() - began
    return theta, text, seconds


def _describe_adam(result):
    epochs = sorted(set(result.epochs.tolist()))
    text = f"ADAM, {epochs[0]}" + (f" to {epochs[-1]}" if len(epochs) > 1 else "") + " epochs"
    if result.validation_log_likelihood is not None:
        scores = result.validation_log_likelihood
        text += f", validation log likelihood {scores.min():.3f} to {scores.max():.3f} per row"
    return text


def _polish_all(spec, data, theta, plan, least, notify):
    """Starts [C, P] after Levenberg-Marquardt where it gained at least so much, and a line on it.

    A Gaussian posterior's log density is typically P / 2 below its maximum. A start that is closer
    to the maximum than P is as good as polished: further up, it would only fit the noise.
    """
    began, results = time.perf_counter(), []
    total = plan.num_iterations * len(theta)
    for chain, start in enumerate(theta):

        def show(iteration, log_prob, chain=chain):
            done, seconds = plan.num_iterations * chain + iteration, time.perf_counter() - began
            event = {
                "phase": "newton",
                "transition": done,
                "num_transitions": total,
                "num_chains": len(theta),
                "seconds": seconds,
                "eta_seconds": seconds * (total - done) / done,
                "log_prob": log_prob,
            }
            return notify(event)

        results.append(polish(spec, start, data, plan.num_iterations, plan.method, show))
        if notify.stopped:
            break
    counts = [len(result.log_prob) - 1 for result in results]
    gains = np.array([result.log_prob[-1] - result.log_prob[0] for result in results])
    text = (
        f"Levenberg-Marquardt ({plan.reason}), {min(counts)} to {max(counts)} iterations, log "
        f"density up by {min(gains):.4g} to {max(gains):.4g}"
    )
    kept = np.flatnonzero(gains >= least)
    if len(kept) < len(results):
        text += f", kept for {len(kept)} of {len(results)} starts that gained at least P"
    theta = theta.copy()
    for chain in kept:
        theta[chain] = results[chain].theta
    return theta, text


def _best_starts(spec, data, theta, num_chains):
    """The `num_chains` starts of highest log density, in their order, and a line on all."""
    log_prob = np.concatenate(
        [Potential(spec).log_prob(tf.constant(start[None]), data).numpy() for start in theta]
    )
    ranked = np.argsort(-np.where(np.isfinite(log_prob), log_prob, -np.inf), kind="stable")
    best = np.sort(ranked[:num_chains])
    values = ", ".join(f"{log_prob[index]:.4g}" for index in ranked)
    return theta[best], f"the best {num_chains} of {len(theta)} starts, log densities {values}"
