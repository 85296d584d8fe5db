"""Finds where the chains start: draws of the prior, ADAM, then Levenberg-Marquardt."""

import time

from tfbnn.engine.newton import polish
from tfbnn.engine.pretraining import pretrain
from tfbnn.engine.start import draw_prior, inside_support, with_residual_noise

__all__ = ["find_starts"]


def find_starts(spec, data, validation, settings, *, seed, num_chains, jit_compile, notify):
    """One start per chain.

    Args:
        spec: ModelSpec.
        data, validation: Data; the latter may be None.
        settings: tfbnn.Pretraining, or None for draws of the prior.
        seed: The user's seed.
        num_chains: C.
        jit_compile: Whether XLA compiles what is compiled.
        notify: Called with an event dict now and then; true, and its `stopped`, end the search.

    Returns:
        (theta [C, P], one line on how they were found, dict of seconds).
    """
    if settings is None or settings.epochs == 0:
        theta, text, seconds = draw_prior(spec, seed, num_chains), "draws of the prior", {}
        if settings is not None:
            theta = with_residual_noise(spec, theta, data)
    else:
        result = pretrain(
            spec,
            data,
            settings,
            seed=seed,
            num_chains=num_chains,
            validation=validation,
            jit_compile=jit_compile,
            notify=notify,
        )
        theta, text, seconds = result.theta, _describe_adam(result), dict(result.seconds)
    wanted = settings is not None and settings.newton_iterations not in ("auto", 0)
    if wanted and not notify.stopped:
        began = time.perf_counter()
        theta, newton = _polish_all(
            spec, data, theta, settings.newton_iterations, jit_compile, notify
        )
        text = f"{text}; {newton}"
        seconds["pretraining"] = seconds.get("pretraining", 0.0) + time.perf_counter() - began
    return inside_support(spec, theta), text, seconds


def _describe_adam(result):
    epochs = sorted(set(result.epochs.tolist()))
    text = f"ADAM, {epochs[0]}" + (f" to {epochs[-1]}" if len(epochs) > 1 else "") + " epochs"
    if result.validation_log_likelihood is not None:
        scores = result.validation_log_likelihood
        text += f", validation log likelihood {scores.min():.3f} to {scores.max():.3f} per row"
    return text


def _polish_all(spec, data, theta, num_iterations, jit_compile, notify):
    """Starts [C, P] after Levenberg-Marquardt, and a line on it."""
    began, results = time.perf_counter(), []
    total = num_iterations * len(theta)
    for chain, start in enumerate(theta):

        def show(iteration, log_prob, chain=chain):
            done, seconds = num_iterations * chain + iteration, time.perf_counter() - began
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

        results.append(polish(spec, start, data, num_iterations, jit_compile, show))
        if notify.stopped:
            break
    counts = [len(result.log_prob) - 1 for result in results]
    gains = [result.log_prob[-1] - result.log_prob[0] for result in results]
    text = (
        f"Levenberg-Marquardt, {min(counts)} to {max(counts)} iterations, log density up by "
        f"{min(gains):.4g} to {max(gains):.4g}"
    )
    theta = theta.copy()
    theta[: len(results)] = [result.theta for result in results]
    return theta, text
