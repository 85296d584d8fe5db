"""Training rows as padded tensors, so that one compiled program serves many numbers of rows.

XLA compiles again for every shape. Rows are therefore stored in arrays that are a little longer
than needed, and the number of rows that count is a run-time number. The padding consists of copies
of the first row, so that nothing overflows only there, and is masked in every sum. A row may have a
weight.
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

# Lengths are multiples of 16, the width of a processor's vectors, and of an eighth of the next
# lower power of two. At most an eighth of an array is then padding, and each factor of two in the
# number of rows has eight programs. For few rows, where padding costs next to nothing, it has four.
_LEAST_MULTIPLE, _LENGTHS_PER_OCTAVE = 16, 8
_FEW_ROWS, _LENGTHS_OF_FEW = 512, 4

# From this number of rows on, chains sum them in pieces: a gradient then takes milliseconds, and
# the start of other programs costs little in comparison. More cores than pieces do not make it
# faster.
_ROWS_IN_PIECES, _NUM_PIECES = 2**18, 16


class Data(NamedTuple):
    """Transformed rows as tensors with rows last; only the rows in [first, last) count.

    Attributes:
        x: Inputs [D, L], or [C, D, L] if every network has its own rows.
        y: Targets [K, L], or [C, K, L].
        row_noise: Known standard deviations, of the shape of y, or None.
        first, last: Positions of the first row that counts and of the one after the last, int32.
        weights: Weight of each row [1, L], or [C, L], in the dtype of x; None for weights of one.
        num_pieces: Number of parts in which sums over rows may be computed in parallel. It is a
            plain number that does not depend on cores or devices, so that their number changes no
            bit.
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
        """Length L of the arrays, padding included."""
        return int(self.x.shape[-1])

    @property
    def num_rows(self) -> Tensor:
        """Number N of rows that count, an int32 tensor."""
        return self.last - self.first

    @property
    def total_weight(self) -> float:
        """Total weight of the rows that count, outside compiled programs."""
        return float(tf.reduce_sum(self.counted(tf.ones([self.length], tf.float64))))

    @property
    def counts(self) -> Tensor:
        """Mask of the rows that count: boolean [L]."""
        indices = tf.range(self.length)
        return (indices >= self.first) & (indices < self.last)

    def counted(self, array: Tensor) -> Tensor:
        """Multiply an array [..., L] by the weights of its rows, with zeros in rows that do not count."""
        kept = tf.where(self.counts, array, tf.zeros_like(array))
        return kept if self.weights is None else kept * tf.cast(self.weights, kept.dtype)

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to all arrays; a missing array stays None."""
        arrays = {name: getattr(self, name) for name in ("x", "y", "row_noise", "weights")}
        return self._replace(
            **{name: function(array) for name, array in arrays.items() if array is not None}
        )

    def cast(self, dtype: str) -> Self:
        """Return the same rows in another dtype."""
        return self.map(lambda array: tf.cast(array, dtype))

    def block(self, index: Tensor, length: int) -> Self:
        """Return the block of rows that begins at index * length, in arrays of this length.

        `length` is at most the length of these arrays. The last block may overlap with the one
        before it; the shared rows do not count in the last block.
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
        """Return the length of the fewest blocks of at most `most` rows, all nearly full; at least 16."""
        most = max(most - most % _LEAST_MULTIPLE, _LEAST_MULTIPLE)
        num_blocks = -(-self.length // most)
        return min(padded_to(-(-self.length // num_blocks), _LEAST_MULTIPLE), self.length)

    def num_blocks(self, length: int) -> Tensor:
        """Return the number of blocks of this length up to the last row that counts, an int32 tensor."""
        return (self.last + (length - 1)) // length

    def rows(self) -> Self:
        """Return only the rows that count, outside compiled programs."""
        first, last = int(self.first), int(self.last)
        return self.map(lambda array: array[..., first:last])._replace(
            first=tf.constant(0), last=tf.constant(last - first), num_pieces=1
        )


def make_data(
    x: Array, y: Array, row_noise: Array | None, dtype: str, weights: Array | None = None
) -> Data:
    """Convert transformed NumPy rows to Data: x [N, D], y and row_noise [N, K], weights [N]."""
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
    """Return the number of pieces in which chains sum these rows; more than one needs XLA."""
    return _NUM_PIECES if jit_compile and num_rows >= _ROWS_IN_PIECES else 1


def no_rows(dtype: str) -> Data:
    """Return Data without rows, for a density that has none."""
    nothing = tf.zeros([0, 0], dtype)
    return Data(nothing, nothing, None, tf.constant(0), tf.constant(0))


def all_of(x: Tensor, y: Tensor, row_noise: Tensor | None) -> Data:
    """Return the Data of tensors with rows last, all of which count."""
    return Data(x, y, row_noise, tf.constant(0), tf.constant(x.shape[-1]))


def padded_length(num_rows: int) -> int:
    """Return the length of arrays that hold `num_rows` rows, at most an eighth longer.

    Below 512 rows it is at most a quarter longer, and below 64 the next multiple of 16.
    """
    lengths = _LENGTHS_OF_FEW if num_rows < _FEW_ROWS else _LENGTHS_PER_OCTAVE
    multiple = max(_LEAST_MULTIPLE, 2 ** (num_rows.bit_length() - 1) // lengths)
    return padded_to(num_rows, multiple)


def padded_to(number: int, multiple: int) -> int:
    """Round a number up to the next multiple."""
    return -(-number // multiple) * multiple


def earlier_data(spec: NetworkSpec, dtype: str) -> Data:
    """Return the earlier rows of a spec as Data."""
    kept = spec.earlier
    if kept is None:
        return no_rows(dtype)
    noise = None if kept.noise is None else kept.noise.values
    return make_data(kept.x.values, kept.y.values, noise, dtype, kept.weights.values)


class WeightedRows(NamedTuple):
    """Transformed rows with weights, as NumPy arrays.

    Attributes:
        x: Inputs [N, D].
        y: Targets [N, K].
        noise: Known standard deviations [N, K], or None.
        weights: Weights [N], or None for weights of one.
    """

    x: Array
    y: Array
    noise: Array | None
    weights: Array | None = None

    @property
    def counts(self) -> Array:
        """The weights [N], ones if there are none."""
        return np.ones(len(self.x)) if self.weights is None else self.weights

    def taken(self, indices: Array | slice) -> Self:
        """Return the rows at the given positions."""
        arrays = {name: array for name, array in self._asdict().items() if array is not None}
        return self._replace(**{name: array[indices] for name, array in arrays.items()})

    def data(self, dtype: str = "float64") -> Data:
        """Convert the rows to Data."""
        return make_data(self.x, self.y, self.noise, dtype, self.weights)


def all_rows(spec: NetworkSpec, rows: NetworkRows | WeightedRows) -> WeightedRows:
    """Return the rows of the fit, weighted by their likelihood power, and the spec's earlier rows.

    The likelihood of all of them is that of `spec.of_earlier()`.
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
    """Return the known noise of rows, or offsets of counts, with defaults filled in: [N, K].

    It is needed if only a part of the rows has known noise or offsets.
    """
    if noise is not None:
        return noise
    given = None if spec.has_counts else spec.likelihood.noise_scale
    return np.broadcast_to(0.0 if given is None or given == LEARNED else given, y.shape)
