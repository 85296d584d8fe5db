"""Finds where the chains start: draws of the prior, ADAM, Levenberg-Marquardt; keeps the best."""

import time
from dataclasses import replace

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data, make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.value_and_gradient import compiled_value_and_gradient
from tfbnn.engine.starts.check import draw_prior, inside_support, with_residual_noise
from tfbnn.engine.starts.judge import make_judge, split_rows
from tfbnn.engine.starts.newton import plan_newton
from tfbnn.engine.starts.polishing import Ground, Unpolished, after_adam, polish_all
from tfbnn.engine.starts.pretraining import PretrainingResult, pretrain
from tfbnn.run.counters import Seconds
from tfbnn.run.definition import Starts
from tfbnn.run.options import Sampling
from tfbnn.run.preparation import Search
from tfbnn.run.progress import Notifier
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.rows import TransformedRows
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array


def find_starts(
    spec: ModelSpec,
    rows: TransformedRows,
    data: Data,
    settings: Pretraining | None,
    sampling: Sampling,
    notify: Notifier,
    search: Search,
) -> Starts:
    """One start per chain.

    Args:
        spec: ModelSpec.
        rows: TransformedRows.
        data: Data of its training rows.
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
    ground, validation = _ground(spec, rows, data, settings.validation_split, seed)
    judge, adam = ground.judge, after_adam(search)
    if validation is None:  # too few rows to hold some of them out
        settings = replace(settings, early_stopping=None)
    if adam is None and settings.epochs == 0:
        theta = with_residual_noise(spec, draw_prior(spec, seed, num_starts), ground.fitted)
        adam = Unpolished(theta, "draws of the prior", Seconds())
    elif adam is None:
        searched = replace(sampling, num_chains=num_starts)
        result = pretrain(spec, ground.fitted, settings, searched, validation, notify, search)
        text = _describe_adam(result)
        adam = Unpolished(result.theta, text, result.seconds, result.interrupted)
    began = time.perf_counter()
    if judge is not None:
        adam = adam._replace(theta=judge.settled(adam.theta))
    theta, text, seconds, interrupted = adam
    plan = plan_newton(spec, int(data.num_rows), settings)
    if plan.num_iterations and not (interrupted or notify.stopped):
        notify.announce("newton")
        is_judged_by_gain = settings.newton_iterations == "auto" and judge is None
        least = spec.layout.num_parameters if is_judged_by_gain else -np.inf
        polished = polish_all(spec, ground, adam, plan, least, notify, search)
        theta, interrupted = polished.theta, polished.interrupted
        text = f"{text}; {polished.text}"
    elif settings.newton_iterations == "auto":
        text = f"{text}; no Levenberg-Marquardt ({plan.reason})"
    theta = inside_support(spec, theta)
    if num_starts > num_chains:
        if judge is None:
            scores, what = log_prob_of(spec, data, theta), "log densities"
        else:
            scores, what = np.array([judge.score(start) for start in theta]), "held-out scores"
        theta, best = _best_starts(theta, scores, what, num_chains)
        text = f"{text}; {best}"
    seconds += Seconds(pretraining=time.perf_counter() - began)
    return Starts(theta, text, seconds, interrupted)


def log_prob_of(spec: ModelSpec, data: Data, theta: Array) -> Array:
    """Log densities [C] at theta [C, P], one after the other."""
    # With the gradients, as the search for step sizes needs that program anyway.
    function = compiled_value_and_gradient(Potential(spec))
    return np.concatenate([function(tf.constant(start[None]), data)[0] for start in theta])


def _describe_adam(result: PretrainingResult) -> str:
    epochs = sorted(set(result.epochs.tolist()))
    text = f"ADAM, {epochs[0]}" + (f" to {epochs[-1]}" if len(epochs) > 1 else "") + " epochs"
    if result.validation_log_likelihood is not None:
        scores = result.validation_log_likelihood
        text += f", validation log likelihood {scores.min():.3f} to {scores.max():.3f} per row"
    return text


def _best_starts(theta: Array, scores: Array, what: str, num_chains: int) -> tuple[Array, str]:
    """The `num_chains` starts of highest score, in their order, and a line on all."""
    ranked = np.argsort(-np.where(np.isfinite(scores), scores, -np.inf), kind="stable")
    best = np.sort(ranked[:num_chains])
    values = ", ".join(f"{scores[index]:.4g}" for index in ranked)
    return theta[best], f"the best {num_chains} of {len(theta)} starts, {what} {values}"


def _ground(
    spec: ModelSpec, rows: TransformedRows, data: Data, share: float, seed: int
) -> tuple[Ground, Data | None]:
    """What starts are found on, and validation Data for ADAM or None.

    Where a share of the rows is to judge, validation rows do so in their stead.
    """
    if rows.held_out is not None:
        judge = make_judge(spec, rows.held_out)
        return Ground(data, data, judge if share else None), judge.data
    fitted, held_out = split_rows(rows.train, share, seed)
    if held_out is None:
        return Ground(data, data, None), None
    judge = make_judge(spec, held_out)
    return Ground(data, make_data(*fitted, spec.dtype), judge), judge.data
