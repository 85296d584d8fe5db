"""Rows of a fit and those before it as one table, in which a row may stand for several."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfbnn.engine.density.data import Data, make_data
from tfbnn.spec.likelihoods import LEARNED
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array


class WeightedRows(NamedTuple):
    """Rows on the scale the network sees, and how many each stands for.

    Attributes:
        x: [N, D].
        y: [N, K].
        noise: Known standard deviations [N, K], or None.
        weights: [N].
    """

    x: Array
    y: Array
    noise: Array | None
    weights: Array

    def chosen(self, places: Array | slice) -> WeightedRows:
        """Some of them."""
        noise = None if self.noise is None else self.noise[places]
        return WeightedRows(self.x[places], self.y[places], noise, self.weights[places])

    def data(self, dtype: str = "float64", *, weighted: bool = True) -> Data:
        """As the engine takes them."""
        return make_data(self.x, self.y, self.noise, dtype, self.weights if weighted else None)


def all_rows(spec: NetworkSpec, rows: NetworkRows) -> WeightedRows:
    """Those of the fit, as often as the power of their likelihood says, and the spec's earlier ones.

    Their likelihood is that of `spec.of_earlier()`.
    """
    x, y = (np.asarray(array, np.float64) for array in (rows.x, rows.y))
    weights, kept = np.full(len(x), spec.likelihood_power), spec.earlier
    if kept is None:
        return WeightedRows(x, y, rows.noise, weights)
    earlier_noise = None if kept.noise is None else kept.noise.values
    noise = None
    if rows.noise is not None or earlier_noise is not None:
        parts = _noise_of(spec, rows.noise, y), _noise_of(spec, earlier_noise, kept.y.values)
        noise = np.concatenate(parts)
    return WeightedRows(
        np.concatenate([x, kept.x.values]),
        np.concatenate([y, kept.y.values]),
        noise,
        np.concatenate([weights, kept.weights.values]),
    )


def data_of(rows: NetworkRows | WeightedRows, dtype: str) -> Data:
    """Rows of either kind as the engine takes them."""
    return rows.data(dtype) if isinstance(rows, WeightedRows) else make_data(*rows, dtype)


def _noise_of(spec: NetworkSpec, noise: Array | None, y: Array) -> Array:
    """Known noise of rows [N, K], where that of other rows is known."""
    if noise is not None:
        return noise
    given = spec.likelihood.noise_scale
    return np.broadcast_to(0.0 if given is None or given == LEARNED else given, y.shape)
