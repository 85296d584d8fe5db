"""Training rows as tensors of a few lengths, so that one compiled program serves many numbers of rows.

XLA compiles anew for every shape. Rows therefore lie in arrays that are a little longer than they
need to be; how many of them count is a run-time number, and the others, copies of the first row so
that nothing overflows there alone, are masked in every sum. A row may stand for several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.spec.likelihoods import LEARNED
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array

# Rows are a multiple of so many, the width of a processor's vectors, and of an eighth of the power
# of two below them: at most an eighth of the arrays is padding, and a factor of two in the number of
# rows has eight programs. Four where rows are so few that padding costs next to nothing.
_LEAST_MULTIPLE, _LENGTHS_PER_OCTAVE = 16, 8
_FEW_ROWS, _LENGTHS_OF_FEW = 512, 4

# From so many rows on chains sum them in so many pieces: then a gradient takes milliseconds, beside
# which the start of other programs is little. More cores than these do not make it faster.
_ROWS_IN_PIECES, _NUM_PIECES = 2**18, 16


class Data(NamedTuple):
    """Transformed rows as tensors, rows last; those in [first, last) count.

    Attributes:
        x: [D, L], or [C, D, L] where every network has its own rows.
        y: [K, L], or [C, K, L].
        row_noise: Known standard deviations, of the shape of y, or None.
        first, last: Places of the first row that counts and of the one after the last, int32.
        weights: How many rows each stands for [1, L], or [C, L], in the dtype of x; or None: itself.
        num_pieces: In how many parts sums over rows may be made beside each other, a plain number that
            never follows from cores or devices: how many are there changes no bit.
    """

    x: Tensor
    y: Tensor
    row_noise: Tensor
    first: Tensor
    last: Tensor
    weights: Tensor = None
    num_pieces: int = 1

    @property
    def length(self) -> int:
        """L, the rows there is room for."""
        return int(self.x.shape[-1])

    @property
    def num_rows(self) -> Tensor:
        """N, the rows that count, an int32 tensor."""
        return self.last - self.first

    @property
    def total_weight(self) -> float:
        """Return how many rows those that count stand for, outside compiled programs."""
        return float(tf.reduce_sum(self.counted(tf.ones([self.length], tf.float64))))

    @property
    def counts(self) -> Tensor:
        """Return which rows count: boolean [L]."""
        place = tf.range(self.length)
        return (place >= self.first) & (place < self.last)

    def counted(self, array: Tensor) -> Tensor:
        """Return an array [..., L] times the weights of its rows, with zeros in those that do not count."""
        kept = tf.where(self.counts, array, tf.zeros_like(array))
        return kept if self.weights is None else kept * tf.cast(self.weights, kept.dtype)

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Return the Data whose arrays are `function` of these; a missing one stays None."""
        arrays = {name: getattr(self, name) for name in ("x", "y", "row_noise", "weights")}
        return self._replace(
            **{name: function(array) for name, array in arrays.items() if array is not None}
        )

    def cast(self, dtype: str) -> Self:
        """Return the same rows in another dtype."""
        return self.map(lambda array: tf.cast(array, dtype))

    def block(self, index: Tensor, length: int) -> Self:
        """Rows index * length and following, in arrays of this length; at most that of these.

        The last block reaches back into rows of the one before it, which do not count there.
        """
        begin = index * length
        start = tf.minimum(begin, self.length - length)

        def cut(array: Tensor) -> Tensor:
            *others, _ = array.shape
            return tf.slice(array, [0] * len(others) + [start], [*others, length])

        return self.map(cut)._replace(
            first=tf.maximum(self.first, begin) - start,
            last=tf.minimum(self.last - start, length),
            num_pieces=1,
        )

    def even_length(self, most: int) -> int:
        """Return the length of as few blocks as have at most so many rows, all about full; at least 16."""
        most = max(most - most % _LEAST_MULTIPLE, _LEAST_MULTIPLE)
        num_blocks = -(-self.length // most)
        return min(padded_to(-(-self.length // num_blocks), _LEAST_MULTIPLE), self.length)

    def num_blocks(self, length: int) -> Tensor:
        """Return how many blocks of this length have rows that count, an int32 tensor."""
        return (self.last + (length - 1)) // length

    def rows(self) -> Self:
        """Return the rows that count and no others, outside compiled programs."""
        first, last = int(self.first), int(self.last)
        return self.map(lambda array: array[..., first:last])._replace(
            first=tf.constant(0), last=tf.constant(last - first), num_pieces=1
        )


def make_data(
    x: Array, y: Array, row_noise: Array | None, dtype: str, weights: Array | None = None
) -> Data:
    """Put transformed NumPy rows on the device: x [N, D], y and row_noise [N, K], weights [N]."""
    num_rows = len(x)
    padding = padded_length(num_rows) - num_rows

    def rows_last(array: Array) -> Tensor:
        padded = np.empty((array.shape[1], num_rows + padding), dtype)
        padded[:, :num_rows] = array.T
        padded[:, num_rows:] = padded[:, :1]
        return tf.constant(padded)

    columns = None if weights is None else weights[:, None]
    first, last = tf.constant(0), tf.constant(num_rows)
    return Data(x, y, row_noise, first, last, columns).map(rows_last)


def num_pieces(num_rows: int, jit_compile: bool) -> int:
    """Return in how many pieces chains sum so many rows, if XLA may compile these."""
    return _NUM_PIECES if jit_compile and num_rows >= _ROWS_IN_PIECES else 1


def no_rows(dtype: str) -> Data:
    """Return the Data of a density that has none."""
    nothing = tf.zeros([0, 0], dtype)
    return Data(nothing, nothing, None, tf.constant(0), tf.constant(0))


def all_of(x: Tensor, y: Tensor, row_noise: Tensor | None) -> Data:
    """Return data of tensors whose rows all count, rows last."""
    return Data(x, y, row_noise, tf.constant(0), tf.constant(x.shape[-1]))


def padded_length(num_rows: int) -> int:
    """Return the length of arrays that hold so many rows: at most an eighth longer.

    Below 512 rows a quarter, and below 64 multiples of 16.
    """
    lengths = _LENGTHS_OF_FEW if num_rows < _FEW_ROWS else _LENGTHS_PER_OCTAVE
    multiple = max(_LEAST_MULTIPLE, 2 ** (num_rows.bit_length() - 1) // lengths)
    return padded_to(num_rows, multiple)


def padded_to(number: int, multiple: int) -> int:
    """Return the next multiple."""
    return -(-number // multiple) * multiple


def earlier_data(spec: NetworkSpec, dtype: str) -> Data:
    """Return the earlier rows of a spec as the engine takes them."""
    kept = spec.earlier
    if kept is None:
        return no_rows(dtype)
    noise = None if kept.noise is None else kept.noise.values
    return make_data(kept.x.values, kept.y.values, noise, dtype, kept.weights.values)


class WeightedRows(NamedTuple):
    """Rows on the scale the network sees, and how many each stands for.

    Attributes:
        x: [N, D].
        y: [N, K].
        noise: Known standard deviations [N, K], or None.
        weights: [N], or None: each for itself.
    """

    x: Array
    y: Array
    noise: Array | None
    weights: Array | None = None

    @property
    def counts(self) -> Array:
        """The weights, ones where there are none."""
        return np.ones(len(self.x)) if self.weights is None else self.weights

    def taken(self, places: Array | slice) -> Self:
        """Return some of them."""
        arrays = {name: array for name, array in self._asdict().items() if array is not None}
        return self._replace(**{name: array[places] for name, array in arrays.items()})

    def data(self, dtype: str = "float64") -> Data:
        """Return them as the engine takes them."""
        return make_data(self.x, self.y, self.noise, dtype, self.weights)


def all_rows(spec: NetworkSpec, rows: NetworkRows | WeightedRows) -> WeightedRows:
    """Return the rows of the fit, weighted by the power of their likelihood, and the spec's earlier ones.

    Their likelihood is that of `spec.of_earlier()`.
    """
    x, y = (np.asarray(array, np.float64) for array in (rows.x, rows.y))
    weights, kept = np.full(len(x), spec.likelihood_power), spec.earlier
    if kept is None:
        return WeightedRows(x, y, rows.noise, weights)
    earlier_noise = None if kept.noise is None else kept.noise.values
    noise = None
    if rows.noise is not None or earlier_noise is not None:
        parts = known_noise(spec, rows.noise, y), known_noise(spec, earlier_noise, kept.y.values)
        noise = np.concatenate(parts)
    return WeightedRows(
        np.concatenate([x, kept.x.values]),
        np.concatenate([y, kept.y.values]),
        noise,
        np.concatenate([weights, kept.weights.values]),
    )


def known_noise(spec: NetworkSpec, noise: Array | None, y: Array) -> Array:
    """Known noise of rows, or offsets of counts [N, K], where those of other rows are known."""
    if noise is not None:
        return noise
    given = None if spec.has_counts else spec.likelihood.noise_scale
    return np.broadcast_to(0.0 if given is None or given == LEARNED else given, y.shape)
