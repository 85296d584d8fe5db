"""Choose layers and noise by held-out rows: candidates are fitted briefly, and the best is sampled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tfbnn.engine.basis.libraries import load_scipy
from tfbnn.engine.kernels.registry import resolve_kernel
from tfbnn.fit.choices import rules
from tfbnn.fit.choices.by_clock import affords_polish
from tfbnn.fit.choices.infinite import can_be_infinite, infinite_trial
from tfbnn.fit.choices.rules import FitSizes
from tfbnn.fit.choices.trials import Trial, fit_trial
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Progress
from tfbnn.spec.choices import Choice, is_auto
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.likelihoods import StudentT
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows, TransformedRows, evenly_spaced
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores, single_threaded_blas

# Most rows used in trials, and fewest rows for a comparison. Every row is held out once.
_MOST_ROWS, _FEWEST_ROWS, _NUM_FOLDS = 5000, 20, 5
_NUM_STEPS, _FEWEST_STEPS = 4000, 400
# Seconds of a fit above which trials have all their steps, and below which there are no trials.
_SECONDS, _FEWEST_SECONDS = 60.0, 20.0
# Share of a time limit after which no trial begins. On two free cores nine trials end within a third of 60 s; beside
# other programs they took all of it, and left no time for a draw.
_SHARE_OF_LIMIT = 1 / 3
_LEFT_OUT = "others left out, as a third of the time limit is for comparisons"
# Least gain in log density per row for Student-t noise. Errors of a brief fit have heavy tails, too, which
# disappear with more steps: on concrete and airfoil Student-t noise gained .08 and .07 per row in trials,
# and lost .2 and .06 when sampled.
_LEAST_OF_TAILS = 0.1
# Least gain for infinite width. Sampling improves networks over their trials more than infinite width: by .5,
# .3 and .65 more per row on concrete, wine and yacht. Where infinite width is best, it gained 1 (grid) to
# 3.6 (buckling) in trials.
_LEAST_OF_INFINITE = 0.5
# Other noise is refused if its squared errors exceed those with one noise scale by this factor.
_MOST_OF_SQUARES = 1.2


def choose_network(spec: ModelSpec, rows: TransformedRows, options: FitOptions) -> NetworkSpec:
    """Return the network that held-out rows favour, out of `spec` and its others, with the choice.

    Args:
        spec: ModelSpec with others, of the same transforms.
        rows: TransformedRows. Validation rows are not used.
        options: FitOptions.

    Raises:
        TypeError, ValueError: When the kernel can sample none of them.
    """
    others = [one for one in spec.others if isinstance(one, ModelSpec)]
    candidates = _possible([spec, *others], rows.train, options)
    is_open = can_be_infinite(spec, options, len(rows.train.x))
    infinite = [one for one in spec.others if isinstance(one, InfiniteSpec) and is_open]
    part, labels = _labelled(rows)
    obstacle = _obstacle(len(candidates) + len(infinite), labels, options)
    if obstacle is not None:
        return _chosen(candidates[0], obstacle)
    folds = np.random.default_rng(0).permutation(labels.max() + 1)[labels] % _NUM_FOLDS
    steps = _num_steps(FitSizes(len(rows.train.x), spec.num_parameters), options)
    progress = Progress(options.verbose)
    progress.say(f"Comparing {len(candidates) + len(infinite)} networks by held-out rows.")
    load_scipy()
    try:
        with single_threaded_blas():
            best, told = _compare(candidates, part, folds, steps, options)
            if infinite and _is_late(options):
                told.append(_LEFT_OUT)
                infinite = []
            for one in infinite:
                other = infinite_trial(one, part, folds)
                score = _scored("infinite width", other)
                told.append(f"{score}, taken if better by {_LEAST_OF_INFINITE:g}")
                if _is_better(other, best, _LEAST_OF_INFINITE):
                    best = other
    finally:
        progress.close()
    why = f"{_scored('held-out log density per row', best)}; {'; '.join(dict.fromkeys(told))}"
    return _chosen(best.spec, why)


def _chosen(spec: NetworkSpec, why: str) -> NetworkSpec:
    choice = Choice("network", f"{spec.architecture_text}, {spec.likelihood_name}", why)
    return replace(spec, choices=(choice, *spec.choices), others=())


def _possible(
    candidates: Sequence[ModelSpec], rows: NetworkRows, options: FitOptions
) -> list[ModelSpec]:
    """Return the candidates that the kernel can sample and the time budget affords."""
    kernel = None if is_auto(options.kernel) else resolve_kernel(options.kernel)
    refusals: list[Exception] = []
    found: list[ModelSpec] = []
    for spec in candidates:
        try:
            if kernel is not None:
                kernel.check_model(spec, row_noise=rows.noise is not None)
        except (TypeError, ValueError) as error:
            refusals.append(error)
            continue
        # With Student-t noise on the logarithm of the targets, their mean does not exist.
        has_mean = not isinstance(spec.likelihood, StudentT) or "log10" not in spec.y_transform
        # Other noise is tried only with the best layers, so the time for its polish is not checked here.
        is_other = bool(found) and spec.likelihood != found[0].likelihood
        if not found or has_mean and (is_other or affords_polish(spec, len(rows.x), options)):
            found.append(spec)
    if not found:
        raise refusals[0]
    return found


def _labelled(rows: TransformedRows) -> tuple[NetworkRows, Array]:
    """Return (rows to compare by, labels [N] of rows that stay together: one group, or equal inputs)."""
    taken = evenly_spaced(len(rows.train.x), _MOST_ROWS)
    part = rows.train.taken(taken)
    if rows.groups is None:
        return part, np.unique(part.x, axis=0, return_inverse=True)[1].ravel()
    return part, np.unique(rows.groups[taken], return_inverse=True)[1]


def _obstacle(num_candidates: int, labels: Array, options: FitOptions) -> str | None:
    """Return the reason to take the first candidate without a comparison, or None."""
    if num_candidates == 1:
        return f"no other suits kernel {options.kernel!r} and the time planned for the fit"
    if options.limit is not None and options.limit < _FEWEST_SECONDS:
        return f"max_seconds={options.limit:g} leaves no time to compare others"
    count = labels.max() + 1
    if len(labels) < _FEWEST_ROWS or count < _NUM_FOLDS:
        return f"{len(labels)} rows in {count} groups are too few to compare others by"
    return None


def _num_steps(sizes: FitSizes, options: FitOptions) -> int:
    """Return the steps of a trial: up to twice as many if the fit has twice the time or more."""
    budget = rules.budget(sizes)
    share = options.effort * (2.0 if budget is None else min(2.0, budget.seconds / _SECONDS))
    if options.limit is not None:
        share *= min(1.0, options.limit / _SECONDS)
    return 8 * int(max(_FEWEST_STEPS, share * _NUM_STEPS) // 8)


def _scored(name: str, trial: Trial) -> str:
    return f"{name} {trial.log_density.mean():.3g}"


def _is_late(options: FitOptions) -> bool:
    """Return whether too much of a time limit is used for another trial."""
    return time.perf_counter() - options.began > _SHARE_OF_LIMIT * (options.limit or np.inf)


def _compare(
    candidates: Sequence[ModelSpec],
    rows: NetworkRows,
    folds: Array,
    num_steps: int,
    options: FitOptions,
) -> tuple[Trial, list[str]]:
    """Return (the best trial, scores as texts): first the best layers, then the best noise for them."""

    def trials_of(specs: list[ModelSpec], steps: int, before: Trial | None = None) -> list[Trial]:
        # Most of the time is spent on compilation, which uses one thread each.
        def trial(spec: ModelSpec) -> Trial | None:
            if spec is not specs[0] and _is_late(options):
                return None
            return fit_trial(spec, rows, folds, steps, options.jit_compile, before)

        return [one for one in on_all_cores(trial, specs) if one is not None]

    first = candidates[0].likelihood
    trials = trials_of([spec for spec in candidates if spec.likelihood == first], num_steps)
    best = max(trials, key=lambda one: one.log_density.mean())
    # One-standard-error rule (Breiman et al. 1984): with fewer units, starts and chains get further.
    level = [one for one in trials if _gain(one.log_density - best.log_density) > -1.0]
    best = min(level, key=lambda one: sum(one.spec.layer_sizes[1:-1]))
    told = [f"hidden layers {', '.join(_scored(_hidden(one.spec), one) for one in trials)}"]
    with_layers = [spec for spec in candidates if _hidden(spec) == _hidden(best.spec)]
    others = [spec for spec in with_layers if spec.likelihood != first]
    rest: list[Trial] = []
    # They continue from the best trial, so that trial is continued as well.
    if others and not _is_late(options):
        best, *rest = trials_of([best.spec, *others], num_steps // 2, best)
        scores = [_scored(one.spec.likelihood_name, one) for one in (best, *rest)]
        told.append(f"the best of these after more steps: {', '.join(scores)}")
    if len(trials) < len({_hidden(spec) for spec in candidates}) or len(rest) < len(others):
        told.append(_LEFT_OUT)
    found = best
    for other in rest:
        least = _LEAST_OF_TAILS if isinstance(other.spec.likelihood, StudentT) else 0.0
        is_no_worse = other.squares.mean() <= _MOST_OF_SQUARES * best.squares.mean()
        if is_no_worse and _is_better(other, found, least):
            found = other
    return found, told


def _is_better(other: Trial, found: Trial, least: float) -> bool:
    """Return whether the mean log density is higher by more than its standard error, and by `least`."""
    gains = other.log_density - found.log_density
    return _gain(gains) > 1.0 and float(gains.mean()) >= least


def _hidden(spec: ModelSpec) -> str:
    """Return the widths of the hidden layers as text, such as "20-20"."""
    return "-".join(map(str, spec.layer_sizes[1:-1]))


def _gain(differences: Array) -> float:
    """Return the mean of the differences over rows, in units of its standard error."""
    error = float(np.std(differences)) / np.sqrt(len(differences))
    return float(np.mean(differences)) / max(error, np.finfo(float).tiny)
