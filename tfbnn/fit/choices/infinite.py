"""Infinite width: its trial when networks are compared, and the options of its fits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.infinite_width import maximum, maximum_near
from tfbnn.fit.choices import rules
from tfbnn.fit.choices.trials import Trial, judged
from tfbnn.posterior.conditioned import GivenRows, conditioned, moments
from tfbnn.run.options import FitOptions
from tfbnn.run.until import Until
from tfbnn.spec.choices import is_auto
from tfbnn.spec.infinite_spec import MOST_ROWS, InfiniteSpec
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.rows import NetworkRows, rows_of_chains
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores

# Most rows for which infinite width is compared with other networks, so that its fit takes a few minutes;
# and the fewest seconds of a fit with a time limit.
_MOST_COMPARED, _FEWEST_SECONDS = 1500, 60.0


def can_be_infinite(spec: ModelSpec, options: FitOptions, num_rows: int) -> bool:
    """Return whether a fit may choose infinite width in place of the network `spec`.

    There must be at most as many rows as weights, and no option that needs weights or less work. With
    more rows than weights and next to no noise, sampled networks are far better than their trials: with
    80 rows per input the errors of buckling were 7e-7 of the spread, those of infinite width 4e-5
    (benchmarks/results/infinite.md).
    """
    return (
        num_rows <= min(_MOST_COMPARED, spec.layout.num_weights)
        and is_auto(options.kernel)
        and is_auto(options.pretraining)
        and options.initial_state is None
        and options.likelihood_power == options.effort == 1.0
        and (options.limit is None or options.limit >= _FEWEST_SECONDS)
    )


def infinite_trial(spec: InfiniteSpec, rows: NetworkRows, folds: Array) -> Trial:
    """Score infinite width on the rows of each fold, at the maximum of the evidence of the other rows.

    Args:
        spec: InfiniteSpec.
        rows: NetworkRows.
        folds: The fold in which each row is held out [n], numbered from 0.
    """
    chains = rows_of_chains(spec, rows)
    first = maximum(spec, make_data(*chains, spec.dtype)).theta
    found = on_all_cores(partial(_held_out, spec, rows, folds, first), range(folds.max() + 1))
    outputs = np.empty((len(folds), spec.num_outputs))
    for fold, (_, there) in enumerate(found):
        outputs[folds == fold] = there
    return judged(spec, np.stack([theta for theta, _ in found]), outputs, rows, folds)


def _held_out(
    spec: InfiniteSpec, rows: NetworkRows, folds: Array, first: Array, fold: int
) -> tuple[Array, Array]:
    """Return (scales [P] given the rows outside a fold, outputs at the rows inside [n, num_outputs])."""
    fitted = rows.taken(np.flatnonzero(folds != fold))
    theta, given = maximum_near(spec, rows_of_chains(spec, fitted), first), GivenRows(*fitted)
    draw = conditioned(spec, theta, given)
    return theta, moments(spec, draw, given, rows.x[folds == fold]).T


def options_of_infinite(spec: InfiniteSpec, options: FitOptions, num_rows: int) -> FitOptions:
    """Return options for a network of infinite width.

    The chains stop when they agree, because their draws are cheap.

    Raises:
        ValueError: For options that need weights, and for more rows than fit into memory.
    """
    if not spec.num_parameters:
        raise ValueError(
            "Infinite width has nothing to sample where all scales are fixed. Leave the noise or a prior "
            "open, such as likelihood=Gaussian()."
        )
    if options.likelihood_power != 1.0:
        raise ValueError(
            f"Infinite width needs likelihood_power=1, received {options.likelihood_power:g}."
        )
    # A resumed run has the Pretraining it was begun with, which trains nothing.
    asked = options.pretraining
    if isinstance(asked, Pretraining) and (asked.epochs or asked.newton_iterations):
        raise ValueError(
            "Infinite width has no weights to train, received a Pretraining: its chains start at the maximum "
            "of the evidence. Leave pretraining out."
        )
    if num_rows > MOST_ROWS:
        raise ValueError(
            f"Infinite width takes up to {MOST_ROWS} rows, each of which is in the covariance of every draw, "
            f"received {num_rows}. Use finite widths, such as [D, 50, K], or some of the rows."
        )
    if options.until is None or not is_auto(options.num_results):
        return options
    until = options.until
    until = replace(until, score_change=None) if isinstance(until, Until) else Until()
    return replace(options, until=until, num_results=rules.most_of_scales(options.effort))
