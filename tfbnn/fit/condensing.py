"""Chooses the rows of a fit that later fits shall remember, and how many others each stands for.

The likelihood of all rows is a sum over rows, and a sum over some of them, each divided by the
probability with which it was chosen, is it on average, for every network. It is nearly so for all
networks that matter if rows are chosen by leverage, how many parameters a row determines: those that
alone determine something are certain to be chosen. Weights are then moved by as little as makes some
sums over rows exact: their number, their log likelihood at a network of each chain, and, where
parameters are few beside the rows that are kept, its gradient and the Gauss-Newton matrix, with which
the likelihood of a linear model is what it was.

References:
    Ma, Mahoney and Yu 2015, JMLR 16, 861, sampling by leverage. Huggins, Campbell and Broderick 2016,
    arXiv:1605.06423, weighted rows for a likelihood. Deville and Sarndal 1992, JASA 87, 376,
    weights that make sums exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import Data, WeightedRows, all_rows
from tfbnn.engine.density.laplace import factor_at, row_leverages, row_scores_and_information
from tfbnn.engine.density.potential import Potential
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import EarlierRows
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array
from tfbnn.system.threads import single_threaded_blas
from tfbnn.system.words import warn

# Outputs that are kept per parameter. With 2937 rows for 5-20-20-1 with 562 parameters two outputs each
# leave errors of some ten nats between draws of a chain, four leave two.
_OUTPUTS_PER_PARAMETER = 4
# Rows that are kept at least: as many as a fit can well afford, as nothing is lost where all are.
_FEWEST = 10_000
# Numbers of all rows that are kept: 32 MB, of which a file's text makes 43.
_MOST_NUMBERS = 4e6
# Share of the choice that goes by the number of rows alone, so that no weight is many times the mean.
_BY_NUMBER = 1 / 6
# Sums that are made exact, per row that is kept: more would move the weights too far.
_SUMS_PER_ROW = 0.25
_BLOCK_ROWS, _SMALL = 1024, 1e-10


def condense(
    spec: NetworkSpec, rows: NetworkRows, draws: Array, chain_weights: Array, digests: Array
) -> EarlierRows:
    """Return what a later fit shall remember of rows, and of those before them.

    Args:
        spec: NetworkSpec of the fit, whose own `earlier` is carried on.
        rows: Its rows on the scale the network sees.
        draws: Of each chain [C, S, P], the last of which count.
        chain_weights: [C].
        digests: Of the rows and those before them.

    Raises:
        ValueError: Where a Gauss-Newton matrix is not finite and positive definite.

    Warns:
        UserWarning: Where there is no room for as many rows as parameters would need.
    """
    spec, table = replace(spec, dtype="float64"), all_rows(spec, rows)
    networks = draws[chain_weights > 0, -1].astype(np.float64)
    wanted = _wanted(spec, table)
    with single_threaded_blas():  # or the last bits would depend on the number of cores
        if len(table.x) > wanted:
            table = _some_of(table, spec.of_earlier(), networks, wanted)
    before = 0 if spec.earlier is None else spec.earlier.num_rows
    kept = table._asdict() | {"networks": networks, "digests": digests}
    return EarlierRows.of(num_rows=len(rows.x) + before, **kept)


def _wanted(spec: NetworkSpec, rows: WeightedRows) -> int:
    """Return how many rows are kept where there are more."""
    outputs = _OUTPUTS_PER_PARAMETER * spec.num_parameters
    wanted = max(_FEWEST, -(-outputs // spec.num_outputs))
    room = int(_MOST_NUMBERS / (rows.x.shape[1] + 2 * rows.y.shape[1] + 1))
    if room < min(wanted, len(rows.x)):
        warn(
            f"FromPosterior can keep {room} of {len(rows.x)} rows, but {spec.num_parameters} parameters "
            f"need {wanted}. Later fits will lose information. Use fewer inputs or parameters.",
        )
    return min(wanted, room)


def _some_of(rows: WeightedRows, spec: NetworkSpec, networks: Array, number: int) -> WeightedRows:
    """About so many of the rows, whose weighted likelihood is about that of all."""
    leverages = sum(_leverages(spec, theta, rows) for theta in networks)
    by_number = np.mean(leverages) * rows.counts / np.mean(rows.counts)
    chances = _chances((1 - _BY_NUMBER) * leverages + _BY_NUMBER * by_number, number)
    places = _places(chances)
    few = rows.taken(places)._replace(weights=rows.counts[places] / chances[places])
    num_sums = spec.num_parameters * (spec.num_parameters + 3) // 2
    with_curvature = num_sums <= _SUMS_PER_ROW * number
    terms = partial(_terms, spec, networks, with_curvature)
    return few._replace(weights=_calibrated(few, rows, terms))


def _terms(spec: NetworkSpec, networks: Array, with_curvature: bool, rows: Data) -> Array:
    """Return the terms of every row whose sums shall be exact: [their number, n]."""
    theta, num_rows = tf.constant(networks), int(rows.num_rows)
    log_likelihood = Potential(spec).row_log_likelihood(theta, rows).numpy()
    found = [np.ones([1, num_rows]), log_likelihood[:, :num_rows]]
    if with_curvature:
        found.append(row_scores_and_information(spec, theta[0], rows))
    return np.concatenate(found)


def _calibrated(few: WeightedRows, rows: WeightedRows, terms: Callable[[Data], Array]) -> Array:
    """Weights of few rows, moved as little as makes sums of terms those of all rows."""
    blocks = range(0, len(rows.x), _BLOCK_ROWS)
    parts = [rows.taken(slice(begin, begin + _BLOCK_ROWS)) for begin in blocks]
    wanted = sum(terms(part._replace(weights=None).data()) @ part.counts for part in parts)
    here = terms(few._replace(weights=None).data())
    lengths, directions = np.linalg.eigh((here * few.counts) @ here.T)
    known = lengths > _SMALL * lengths[-1]  # others say the same twice
    missing = directions[:, known].T @ (wanted - here @ few.counts)
    moved = few.counts * (1.0 + here.T @ (directions[:, known] @ (missing / lengths[known])))
    # A row cannot stand for less than none; hardly ever would one.
    return moved if moved.min() > 0 else few.counts


def _chances(sizes: Array, number: int) -> Array:
    """Chances in proportion to sizes [N], at most one, which add up to a number below N."""
    certain = np.zeros(len(sizes), bool)
    while True:
        others = np.where(certain, 0.0, sizes)
        chances = np.where(certain, 1.0, others * (number - certain.sum()) / others.sum())
        if chances.max() <= 1.0:
            return chances
        certain |= chances >= 1.0


def _places(chances: Array) -> Array:
    """Places, rising, of rows chosen by their chances [N], as many as these add up to."""
    generator = seeds.generator(0, "condensing", 0)
    order = generator.permutation(len(chances))
    ends = np.cumsum(chances[order]) + generator.uniform()
    return np.sort(order[np.floor(ends) > np.floor(ends - chances[order])])


def _leverages(spec: NetworkSpec, theta: Array, rows: WeightedRows) -> Array:
    """Return how many parameters each row determines, times its weight [N]."""
    factor = factor_at(spec, theta, rows.data())
    if factor is None:
        raise ValueError(
            "FromPosterior needs a Gauss-Newton matrix that is finite and positive definite at the "
            "last draw of every chain. Use dtype='float64', or a prior with curvature, such as Normal."
        )
    found: Array = row_leverages(spec, theta, rows._replace(weights=None).data(), factor)
    return found * rows.counts
