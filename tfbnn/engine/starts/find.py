"""Search for the starts of the chains by prior draws, ADAM and Levenberg-Marquardt; keep the best.

With an earlier posterior, the search also uses the rows of the earlier fits. The earlier networks
compete with those that ADAM finds now, if both can be compared fairly: by the log density of all
rows, or by held-out new rows. Held-out rows of the earlier fits are not fair, because the earlier
networks have seen them. Validation rows are not fair either, because these networks may have seen
them. In these cases the search is that of a fit to all rows.
"""

import time
from dataclasses import replace
from math import ceil

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data, WeightedRows, all_rows
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.infinite_width import maximum
from tfbnn.engine.density.value_and_gradient import compiled_value_and_gradient
from tfbnn.engine.starts.check import draw_prior, inside_support, misfits, with_residual_noise
from tfbnn.engine.starts.cooling import cooled_starts, cooling_obstacle, num_operations
from tfbnn.engine.starts.holdout import HoldoutScore, split_rows
from tfbnn.engine.starts.newton_plan import NewtonPlan, plan_newton, plan_on_all_rows
from tfbnn.engine.starts.noise_by_inputs import one_noise, with_noise_by_inputs
from tfbnn.engine.starts.polishing import Ground, parted, polish_all, refine_all
from tfbnn.engine.starts.pretraining import pretrain
from tfbnn.run.config import Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.options import Sampling
from tfbnn.run.progress import Notifier
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import TransformedRows
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array

# If ADAM's starts do not fit the rows: particles per population, and the most operations that
# cooling may take, about two minutes on two cores.
_FEW_PARTICLES, _MOST_OPERATIONS = 8, 3e12
# Shares of the remaining time of a search with a time limit.
_SHARE_OF_ADAM, _SHARE_OF_POLISH = 0.4, 0.8


def find_starts(
    spec: NetworkSpec,
    rows: TransformedRows,
    data: Data,
    settings: Pretraining | None,
    sampling: Sampling,
    notify: Notifier,
) -> Starts:
    """Find one start per chain.

    Args:
        spec: NetworkSpec.
        rows: TransformedRows.
        data: Data of its training rows.
        settings: tfbnn.Pretraining, or None for draws of the prior.
        sampling: The seed, the number of chains C, and whether XLA compiles ADAM.
        notify: Called with an Event now and then. A true result, or its `stopped`, ends the search.

    Raises:
        KeyboardInterrupt: If the user interrupts before there is anything better than prior draws.
    """
    if isinstance(spec, InfiniteSpec):
        return starts_at_maximum(spec, data, sampling)
    if settings is None:
        return Starts.given(draw_prior(spec, sampling.seed, sampling.num_chains), _first(spec))
    if settings.num_particles is not None:  # draws of the posterior need no holdout score
        settings = replace(settings, early_stopping=None, validation_split=0.0)
    of_one_noise = one_noise(spec)
    if of_one_noise is not None:
        found = find_starts(of_one_noise, rows, data, settings, sampling, notify)
        of_both = perceptron(spec, "Noise by the inputs")
        theta = inside_support(spec, with_noise_by_inputs(of_both, of_one_noise, found.theta))
        return found._replace(theta=theta, text=f"with one noise scale: {found.text}")
    ground, validation = ground_of(spec, rows, data, settings, sampling.seed)
    alone = _alone(spec)
    if validation is None:  # too few rows to hold some of them out
        settings = replace(settings, early_stopping=None)
    plan, refinement = _plans(alone, ground, settings)
    # Leave about as much of the time limit to Levenberg-Marquardt as to ADAM.
    share = _SHARE_OF_ADAM if plan.num_iterations else 1.0
    with notify.within(share * notify.seconds_left):
        adam = _candidates(spec, ground, validation, settings, sampling, notify)
    inside = inside_support(spec, adam.theta)
    if not np.array_equal(inside, adam.theta):  # other networks, with other residuals
        adam = adam._replace(theta=with_residual_noise(alone, inside, ground.sought_on))
    if ground.holdout is not None:  # set the noise scales from the held-out rows
        adam = adam._replace(theta=ground.holdout.settled(adam.theta))
    share = 1.0 if refinement is None else _SHARE_OF_POLISH
    with notify.within(share * notify.seconds_left):
        found, kept = _polished(alone, ground, adam, plan, settings, sampling.num_chains, notify)
    if refinement is not None and not (found.interrupted or notify.stopped):
        found = refine_all(alone, ground.data, found, kept, refinement, notify)
    return found._replace(theta=inside_support(spec, found.theta))


def _plans(
    spec: NetworkSpec, ground: Ground, settings: Pretraining
) -> tuple[NewtonPlan, NewtonPlan | None]:
    """Return the plans of Levenberg-Marquardt before the choice of starts, and after it on all rows.

    The second is None if no further iterations are needed.
    """
    if ground.sample is not None:
        plan = plan_newton(spec, int(ground.sample.num_rows), settings)
        return plan, plan_on_all_rows(spec, int(ground.data.num_rows))
    plan = plan_newton(spec, int(ground.data.num_rows), settings)
    # The second plan brings back the training rows that were held out.
    return (plan, None) if ground.sought_on is ground.data else parted(plan)


def _candidates(
    spec: NetworkSpec,
    ground: Ground,
    validation: Data | None,
    settings: Pretraining,
    sampling: Sampling,
    notify: Notifier,
) -> Starts:
    """Return the candidates: networks of an earlier posterior, if comparable, then ADAM's results."""
    num_starts = settings.num_starts or sampling.num_chains

    def drawn(number: int) -> Array:
        theta = draw_prior(spec, sampling.seed, number)
        return with_residual_noise(spec, theta, ground.sought_on)

    if settings.num_particles is not None:
        return cooled_starts(spec, ground.sought_on, settings.num_particles, sampling, notify)
    if settings.epochs == 0:
        return Starts.given(drawn(num_starts), _first(spec))
    alone, searched = _alone(spec), replace(sampling, num_chains=num_starts)
    data, limit = ground.sought_on, settings.largest_misfit
    found = pretrain(alone, data, settings, searched, validation, notify)
    if limit is not None and not (found.interrupted or notify.stopped):
        found = _following(alone, data, found, limit, sampling, notify)
    if spec.earlier is not None and (ground.holdout is None or spec.earlier.is_condensed):
        networks = drawn(min(len(spec.earlier.networks.values), sampling.num_chains))
        theta, text = np.concatenate([networks, found.theta]), f"{_first(spec)}; {found.text}"
        superchains = found.superchains
        if superchains is not None:  # each network is a superchain of its own
            own = superchains.max() + 1 + np.arange(len(networks))
            superchains = np.concatenate([own, superchains])
        found = found._replace(theta=theta, text=text, superchains=superchains)
    return found


def _following(
    spec: NetworkSpec, data: Data, adam: Starts, limit: float, sampling: Sampling, notify: Notifier
) -> Starts:
    """Return ADAM's starts, or those of populations if too few of ADAM's starts fit the rows.

    A start fits the rows if its misfit is at most `limit`. There are too few if fewer starts than
    chains fit. Populations replace them only if they fit better.
    """
    num_chains = sampling.num_chains
    num_particles = max(_FEW_PARTICLES, ceil(num_chains / 2))
    costs = num_operations(spec, int(data.num_rows), num_particles)
    is_able = spec.has_additive_noise and cooling_obstacle(spec) is None
    if not is_able or costs > _MOST_OPERATIONS:
        return adam
    missed = np.nan_to_num(misfits(spec, adam.theta, data), nan=np.inf)
    count = np.sum(missed <= limit)
    if count >= num_chains:
        return adam
    try:
        cooled = cooled_starts(spec, data, num_particles, sampling, notify)
    except KeyboardInterrupt:
        return adam._replace(interrupted=True)
    seconds = adam.seconds + cooled.seconds
    found = adam._replace(text=f"{adam.text}; populations missed the rows by more")
    best = np.sort(missed)[:num_chains]
    if np.median(misfits(spec, cooled.theta, data)) < np.median(best):
        found = cooled._replace(
            text=f"{adam.text}, {count} of {len(missed)} starts followed the rows; {cooled.text}"
        )
    return found._replace(seconds=seconds, interrupted=cooled.interrupted)


def _alone(spec: NetworkSpec) -> NetworkSpec:
    """Return the spec for all rows that the search sees, those of earlier fits included."""
    return spec if spec.earlier is None else spec.of_earlier()


def _first(spec: NetworkSpec) -> str:
    """Describe the result of `draw_prior` in a few words."""
    return "draws of the prior" if spec.earlier is None else "networks of the earlier posterior"


def _polished(
    spec: NetworkSpec,
    ground: Ground,
    adam: Starts,
    plan: NewtonPlan,
    settings: Pretraining,
    num_chains: int,
    notify: Notifier,
) -> tuple[Starts, tuple[int, ...]]:
    """Polish the candidates, keep the best, one per chain, and return them with the polished indices."""
    began, holdout, found = time.perf_counter(), ground.holdout, adam
    kept: tuple[int, ...] = ()
    if plan.num_iterations and not (adam.interrupted or notify.stopped):
        notify.announce("newton")
        # A smaller gain is of no use if the starts are posterior draws or the count is automatic.
        needs_gain = settings.newton_iterations == "auto" or settings.num_particles is not None
        least = spec.layout.num_parameters if needs_gain and holdout is None else -np.inf
        found, kept = polish_all(spec, ground, adam, plan, least, notify)
    elif settings.newton_iterations == "auto":
        found = adam._replace(text=f"{adam.text}; no Levenberg-Marquardt ({plan.reason})")
    if len(found.theta) > num_chains:
        theta = inside_support(spec, found.theta)
        if holdout is None:
            scores, what = log_prob_of(spec, ground.data, theta), "log densities"
        else:
            scores, what = np.array([holdout.score(start) for start in theta]), "held-out scores"
        ranked = np.argsort(-np.where(np.isfinite(scores), scores, -np.inf), kind="stable")
        best = np.sort(ranked[:num_chains])
        values = ", ".join(f"{scores[index]:.4g}" for index in ranked)
        text = f"{found.text}; the best {num_chains} of {len(scores)} starts, {what} {values}"
        kept = tuple(np.flatnonzero(np.isin(best, kept)).tolist())
        shared = found.superchains
        superchains = None if shared is None else shared[best]
        found = found._replace(theta=theta[best], text=text, superchains=superchains)
    seconds = found.seconds + Seconds(pretraining=time.perf_counter() - began)
    return found._replace(seconds=seconds), kept


def log_prob_of(spec: Sampled, data: Data, theta: Array) -> Array:
    """Compute the log densities [C] at theta [C, P], one chain after the other."""
    # This program also computes gradients; the search for step sizes needs it anyway.
    function = compiled_value_and_gradient(density_of(spec))
    return np.concatenate([function(tf.constant(start[None]), data)[0] for start in theta])


def ground_of(
    spec: NetworkSpec, rows: TransformedRows, data: Data, settings: Pretraining, seed: int
) -> tuple[Ground, Data | None]:
    """Return the rows that starts are searched on, and validation Data for ADAM or None.

    If a share of the rows should be held out and there are validation rows, these replace them.
    """
    share, table = settings.validation_split, WeightedRows(*rows.train)
    if spec.earlier is not None:
        table = all_rows(spec, rows.train)
        data = table.data(spec.dtype)
    if rows.held_out is None:
        fitted, held_out = _sides(spec, rows, table, share, seed)
    else:
        fitted, held_out = table, WeightedRows(*rows.held_out)
    holdout = None if held_out is None else HoldoutScore(_alone(spec), held_out)
    fitted_data = data if len(fitted.x) == len(table.x) else fitted.data(spec.dtype)
    sample = _sample(fitted, settings.search_rows, seed, spec.dtype)
    sought_on = fitted_data if sample is None else sample
    ground = Ground(data, sought_on, holdout if share else None, sample)
    return ground, None if holdout is None else holdout.data


def _sample(rows: WeightedRows, count: int | None, seed: int, dtype: str) -> Data | None:
    """Draw a weighted sample of `count` rows; return None if there are no more rows than that.

    The log likelihood of the sample is on average that of all rows, so that priors and gains have
    the same importance as with all rows.
    """
    if count is None or len(rows.x) <= count:
        return None
    generator = seeds.generator(seed, "search rows", 0)
    taken = rows.taken(np.sort(generator.choice(len(rows.x), count, replace=False)))
    return taken._replace(weights=taken.counts * (len(rows.x) / count)).data(dtype)


def _sides(
    spec: NetworkSpec, new: TransformedRows, table: WeightedRows, share: float, seed: int
) -> tuple[WeightedRows, WeightedRows | None]:
    """Split a table of new and earlier rows into (rows to fit, held-out rows or None)."""
    groups = new.groups
    if spec.earlier is None or not spec.earlier.is_condensed:
        if groups is not None:  # each row of earlier fits is a group of its own
            others = groups.max() + 1 + np.arange(len(table.x) - len(groups))
            groups = np.concatenate([groups, others])
        return split_rows(table, share, seed, groups)
    fitted, held_out = split_rows(WeightedRows(*new.train), share, seed, groups)
    return all_rows(spec, fitted), held_out


def starts_at_maximum(spec: InfiniteSpec, data: Data, sampling: Sampling) -> Starts:
    """Draw one start per chain from the normal approximation at the maximum of the scales' posterior.

    Args:
        spec: InfiniteSpec.
        data: Data of the rows that theta is sampled on.
        sampling: The seed and the number of chains.
    """
    began, found = time.perf_counter(), maximum(spec, data)
    root = np.linalg.cholesky(np.linalg.inv(found.curvature))
    normals = [
        seeds.generator(sampling.seed, "start", chain).standard_normal(len(root))
        for chain in range(sampling.num_chains)
    ]
    others = ", ".join(f"{one:.4g}" for one in found.others)
    return Starts(
        found.theta + np.stack(normals) @ root.T,
        f"draws around the maximum of the evidence, log density {found.log_prob:.4g}; others {others}",
        Seconds(pretraining=time.perf_counter() - began),
    )
