"""Sums over rows in blocks: activations stay in the processor's cache, and memory is constant in N.

Within a block, terms have the dtype of the network. The sum over its rows and all sums over blocks
are float64. Blocks are processed in one loop with run-time bounds. Very many rows are divided into
pieces. Each piece has its own loop and runs on its own core or GPU.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from tfbnn.engine.basis.compile import compiled, devices, has_gpu, xla_compiles
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.spec.density_spec import Sampled

# Function (theta [C, P], Data) -> terms of the rows [C, L].
RowTerms: TypeAlias = Callable[[Tensor, Data], Tensor]
# A value [C], and its gradient [C, P].
WithGradient: TypeAlias = tuple[Tensor, Tensor]

# Block lengths on processors from benchmarks/results/row_blocks.md. With w values per row in the
# widest layer of all networks, a block has 2^26 / w^2 rows, because operations of narrow networks
# are too quick for fewer. It has enough rows for fast products, and not more than fit in the cache.
_ROWS_TIMES_WIDTH_SQUARED, _FEWEST, _MOST = 2**26, 256, 2**14
_CPU_VALUES, _GPU_VALUES = 2**20, 2**27
_LEAST_ROWS, _MOST_ROWS = 64, 2**20


def rows_per_block(spec: Sampled, num_networks: int) -> int:
    """Return the largest block of rows that fits in the cache and still hides the cost of a loop.

    Args:
        spec: Spec of the model or log density.
        num_networks: Number C of networks that share a program.
    """
    width = max(num_networks, 1) * spec.network.widest
    if has_gpu():
        rows = _GPU_VALUES // width
    else:
        rows = min(max(_ROWS_TIMES_WIDTH_SQUARED // width**2, _FEWEST), _MOST, _CPU_VALUES // width)
    return min(max(rows, _LEAST_ROWS), _MOST_ROWS)


def sum_over_rows(terms: RowTerms, theta: Tensor, data: Data, length: int) -> Tensor:
    """Sum terms(theta, rows) over the rows that count, float64 [C].

    With more than `length` rows the sum is not meant to be differentiated; see
    `value_and_gradient_over_rows`.

    Args:
        terms: Function that returns one term per row.
        theta: Parameters [C, P].
        data: Data.
        length: Largest number of rows per block.
    """
    zeros = tf.zeros(theta.shape[:1], tf.float64)
    return sum_over_blocks(lambda rows: _masked_sum(terms(theta, rows), rows), zeros, data, length)


def value_and_gradient_over_rows(
    terms: RowTerms, theta: Tensor, data: Data, length: int
) -> WithGradient:
    """Compute `sum_over_rows` and its gradient [C, P] in the dtype of theta; rows are cast to it."""

    def of_rows(rows: Data) -> WithGradient:
        rows = rows.cast(theta.dtype)  # block by block, as another copy of many rows may not fit
        return taped(lambda theta: _masked_sum(terms(theta, rows), rows), theta)

    zeros = tuple(tf.zeros(shape, tf.float64) for shape in (theta.shape[:1], theta.shape))
    value, gradient = sum_over_blocks(of_rows, zeros, data, length)
    return value, tf.cast(gradient, theta.dtype)


def taped(function: Callable[[Tensor], Tensor], theta: Tensor) -> WithGradient:
    """Compute the value of a function of theta and its gradient in theta's dtype.

    The gradient is zero if the function does not depend on theta.
    """
    with tf.GradientTape() as tape:
        tape.watch(theta)
        value = function(theta)
    return value, tape.gradient(value, theta, unconnected_gradients="zero")


def sum_over_blocks(function: Callable[[Data], Any], zeros: Any, data: Data, length: int) -> Any:
    """Sum function(rows) over blocks of rows, in the dtype of `zeros`.

    If one block holds all rows, there is no loop, and the result has the function's own dtype.

    Args:
        function: Returns a tensor or a tuple of tensors; rows that do not count must add nothing.
        zeros: Zeros of the same structure and shapes.
        data: Data.
        length: Largest number of rows per block.
    """
    if in_pieces(data) and not (xla_compiles() or tf.executing_eagerly()):
        return _sum_over_pieces(function, zeros, data, length)
    if data.length <= length:
        return function(data)
    length = data.even_length(length)
    return _sum_over_some(function, zeros, data, length, tf.constant(0), data.num_blocks(length))


def _sum_over_some(
    function: Callable[[Data], Any], zeros: Any, data: Data, length: int, begin: Tensor, end: Tensor
) -> Any:
    """Sum over the blocks of exactly this length with indices from `begin` to before `end`."""

    def add(index: Tensor, total: Any) -> tuple[Tensor, Any]:
        return index + 1, _added(total, function(data.block(index, length)))

    start = (begin, zeros)
    return tf.while_loop(lambda index, _: index < end, add, start, parallel_iterations=1)[1]


def _added(total: Any, parts: Any) -> Any:
    return tf.nest.map_structure(
        lambda so_far, part: so_far + tf.cast(part, so_far.dtype), total, parts
    )


def in_pieces(data: Data) -> bool:
    """Check whether sums over these rows are computed in pieces, outside XLA programs.

    A single GPU has room for all rows at once.
    """
    return data.num_pieces > 1 and (len(devices()) > 1 or not has_gpu())


def _sum_over_pieces(function: Callable[[Data], Any], zeros: Any, data: Data, length: int) -> Any:
    """Compute `sum_over_blocks` with one XLA program per piece.

    TensorFlow runs as many programs at once as it has threads. Neighbouring pieces are on the same
    device. A piece is a range of the blocks of all rows, which are not copied. Pieces are added in
    their order, independent of which ended first.
    """
    length = data.even_length(min(length, -(-data.length // data.num_pieces)))
    num_blocks = -(-data.length // length)
    share = -(-num_blocks // data.num_pieces)

    def of_piece(data: Data, begin: Tensor) -> Any:
        end = tf.minimum(begin + share, data.num_blocks(length))
        return _sum_over_some(function, zeros, data, length, begin, end)

    program, names, total = compiled(of_piece, jit_compile=True), devices(), zeros
    for begin in range(0, num_blocks, share):
        with tf.device(names[begin * len(names) // num_blocks]):
            parts = program(data, tf.constant(begin))
        total = _added(total, parts)
    return total


def _masked_sum(terms: Tensor, rows: Data) -> Tensor:
    if terms.shape[-1] != rows.length or terms.shape.rank != 2:
        raise ValueError(
            f"A likelihood has one term per row, [{terms.shape[0]}, {rows.length}], received "
            f"{terms.shape.as_list()}. Sum over targets alone, see docs/developers/new_likelihood.md."
        )
    return tf.reduce_sum(rows.counted(tf.cast(terms, tf.float64)), axis=-1)
