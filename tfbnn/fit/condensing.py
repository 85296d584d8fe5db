"""Choose the rows of a fit that later fits keep, and the weight of each.

The likelihood of all rows is a sum over rows. A sum over some of the rows, each divided by the
probability with which it was chosen, has the same mean for every network. It is close to the full sum
for all relevant networks if rows are chosen by leverage, the number of parameters that a row
determines. A row that alone determines something is then certain to be chosen. The weights are
finally changed as little as possible to make some sums over rows exact: the number of rows, and their
log likelihood at one network of each chain. If there are few parameters compared with the kept rows,
the gradient and the Gauss-Newton matrix are exact too. This reproduces the likelihood of a linear
model.

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

# Outputs kept per parameter. With 2937 rows for 5-20-20-1 with 562 parameters, two outputs per parameter
# leave errors of some ten nats between draws of a chain, four leave two.
_OUTPUTS_PER_PARAMETER = 4
# Fewest rows to keep. A fit can afford this number, and nothing is lost if all rows are kept.
_FEWEST = 10_000
# Most numbers in the kept rows: 32 MB, or 43 MB as text in a file.
_MOST_NUMBERS = 4e6
# Share of the probabilities that ignores leverage, so that no weight is many times the mean.
_BY_NUMBER = 1 / 6
# Most sums made exact, per kept row: more would move the weights too far.
_SUMS_PER_ROW = 0.25
_BLOCK_ROWS, _SMALL = 1024, 1e-10


def condense(
    spec: NetworkSpec, rows: NetworkRows, draws: Array, chain_weights: Array, digests: Array
) -> EarlierRows:
    """Return the rows, with weights, that a later fit keeps of these rows and of earlier ones.

    Args:
        spec: NetworkSpec of the fit, whose own `earlier` is carried on.
        rows: Rows of the fit on the scale the network sees.
        draws: Draws of each chain [C, S, P]. Only the last draws are used.
        chain_weights: [C].
        digests: Digests of these rows and of earlier ones.

    Raises:
        ValueError: When a Gauss-Newton matrix is not finite and positive definite.

    Warns:
        UserWarning: When there is no room for as many rows as the parameters need.
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
    """Return how many rows to keep if there are more."""
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
    """Choose about `number` rows whose weighted likelihood approximates that of all rows."""
    leverages = sum(_leverages(spec, theta, rows) for theta in networks)
    by_number = np.mean(leverages) * rows.counts / np.mean(rows.counts)
    chances = _chances((1 - _BY_NUMBER) * leverages + _BY_NUMBER * by_number, number)
    indices = _chosen_indices(chances)
    few = rows.taken(indices)._replace(weights=rows.counts[indices] / chances[indices])
    num_sums = spec.num_parameters * (spec.num_parameters + 3) // 2
    with_curvature = num_sums <= _SUMS_PER_ROW * number
    terms = partial(_terms, spec, networks, with_curvature)
    return few._replace(weights=_calibrated(few, rows, terms))


def _terms(spec: NetworkSpec, networks: Array, with_curvature: bool, rows: Data) -> Array:
    """Return the terms of each row whose sums are made exact: [number of sums, n]."""
    theta, num_rows = tf.constant(networks), int(rows.num_rows)
    log_likelihood = Potential(spec).row_log_likelihood(theta, rows).numpy()
    found = [np.ones([1, num_rows]), log_likelihood[:, :num_rows]]
    if with_curvature:
        found.append(row_scores_and_information(spec, theta[0], rows))
    return np.concatenate(found)


def _calibrated(few: WeightedRows, rows: WeightedRows, terms: Callable[[Data], Array]) -> Array:
    """Return the weights of few rows, changed so that their sums of terms equal those of all rows.

    The change is the smallest possible.
    """
    blocks = range(0, len(rows.x), _BLOCK_ROWS)
    parts = [rows.taken(slice(begin, begin + _BLOCK_ROWS)) for begin in blocks]
    wanted = sum(terms(part._replace(weights=None).data()) @ part.counts for part in parts)
    here = terms(few._replace(weights=None).data())
    lengths, directions = np.linalg.eigh((here * few.counts) @ here.T)
    known = lengths > _SMALL * lengths[-1]  # the other directions are redundant
    missing = directions[:, known].T @ (wanted - here @ few.counts)
    moved = few.counts * (1.0 + here.T @ (directions[:, known] @ (missing / lengths[known])))
    # A negative weight has no meaning. It hardly ever occurs; the weights then stay unchanged.
    return moved if moved.min() > 0 else few.counts


def _chances(sizes: Array, number: int) -> Array:
    """Return probabilities proportional to sizes [N], at most one, whose sum is `number` (below N)."""
    certain = np.zeros(len(sizes), bool)
    while True:
        others = np.where(certain, 0.0, sizes)
        chances = np.where(certain, 1.0, others * (number - certain.sum()) / others.sum())
        if chances.max() <= 1.0:
            return chances
        certain |= chances >= 1.0


def _chosen_indices(chances: Array) -> Array:
    """Choose rows by their probabilities [N], as many as these sum to. Return the sorted indices."""
    generator = seeds.generator(0, "condensing", 0)
    order = generator.permutation(len(chances))
    ends = np.cumsum(chances[order]) + generator.uniform()
    return np.sort(order[np.floor(ends) > np.floor(ends - chances[order])])


def _leverages(spec: NetworkSpec, theta: Array, rows: WeightedRows) -> Array:
    """Return the number of parameters that each row determines, times its weight [N]."""
    factor = factor_at(spec, theta, rows.data())
    if factor is None:
        raise ValueError(
            "FromPosterior needs a Gauss-Newton matrix that is finite and positive definite at the "
            "last draw of every chain. Use dtype='float64', or a prior with curvature, such as Normal."
        )
    found: Array = row_leverages(spec, theta, rows._replace(weights=None).data(), factor)
    return found * rows.counts
