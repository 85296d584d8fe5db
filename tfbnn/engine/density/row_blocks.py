"""Sums over rows, block by block: activations stay in the processor's cache, and memory is flat in N.

Within a block terms have the dtype of the network; their sum over its rows, and all sums over
blocks, are float64. Blocks follow each other in one loop, whose bounds are run-time numbers. Where
there are very many rows they are cut into pieces, each with such a loop, that have cores and GPUs for
themselves.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from tfbnn.engine.basis.compile import compiled, devices, has_gpu, xla_compiles
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.spec.density_spec import Sampled

# (theta [C, P], Data) -> terms of its rows [C, L].
RowTerms: TypeAlias = Callable[[Tensor, Data], Tensor]
# A value [C], and its gradient [C, P].
WithGradient: TypeAlias = tuple[Tensor, Tensor]

# What benchmarks/results/row_blocks.md says of processors: with w values to a row in the widest layer,
# of all networks, 2^26 / w^2 rows, as the operations of narrow networks are too quick for fewer; no
# fewer than make fast products, and no more than stay in the cache.
_ROWS_TIMES_WIDTH_SQUARED, _FEWEST, _MOST = 2**26, 256, 2**14
_CPU_VALUES, _GPU_VALUES = 2**20, 2**27
_LEAST_ROWS, _MOST_ROWS = 64, 2**20


def rows_per_block(spec: Sampled, num_networks: int) -> int:
    """Return the most rows of a block: few enough for the cache, enough to hide the cost of a loop.

    Args:
        spec: What is sampled.
        num_networks: C, the networks that share a program.
    """
    width = max(num_networks, 1) * spec.widest
    if has_gpu():
        rows = _GPU_VALUES // width
    else:
        rows = min(max(_ROWS_TIMES_WIDTH_SQUARED // width**2, _FEWEST), _MOST, _CPU_VALUES // width)
    return min(max(rows, _LEAST_ROWS), _MOST_ROWS)


def sum_over_rows(terms: RowTerms, theta: Tensor, data: Data, length: int) -> Tensor:
    """Sum of terms(theta, rows) over the rows that count, float64 [C].

    With more than `length` rows it is not meant to be differentiated; see
    `value_and_gradient_over_rows`.

    Args:
        terms: What is summed, of every row by itself.
        theta: [C, P].
        data: Data.
        length: The most rows per block.
    """
    zeros = tf.zeros(theta.shape[:1], tf.float64)
    return sum_over_blocks(lambda rows: _masked_sum(terms(theta, rows), rows), zeros, data, length)


def value_and_gradient_over_rows(
    terms: RowTerms, theta: Tensor, data: Data, length: int
) -> WithGradient:
    """Return `sum_over_rows` with its gradient [C, P] in the dtype of theta, to which rows are cast."""

    def of_rows(rows: Data) -> WithGradient:
        rows = rows.cast(theta.dtype)  # a block at a time: many rows have no room for another copy
        return taped(lambda theta: _masked_sum(terms(theta, rows), rows), theta)

    zeros = tuple(tf.zeros(shape, tf.float64) for shape in (theta.shape[:1], theta.shape))
    value, gradient = sum_over_blocks(of_rows, zeros, data, length)
    return value, tf.cast(gradient, theta.dtype)


def taped(function: Callable[[Tensor], Tensor], theta: Tensor) -> WithGradient:
    """Return the value of a function of theta, and its gradient in the dtype of theta, zero where flat."""
    with tf.GradientTape() as tape:
        tape.watch(theta)
        value = function(theta)
    return value, tape.gradient(value, theta, unconnected_gradients="zero")


def sum_over_blocks(function: Callable[[Data], Any], zeros: Any, data: Data, length: int) -> Any:
    """Sum of function(rows) over blocks of rows, in the dtype of `zeros`.

    Where one block holds all rows there is no loop, and the function's own dtype stays.

    Args:
        function: Gives a tensor or a tuple of them; rows that do not count add nothing.
        zeros: Of the same structure and shapes.
        data: Data.
        length: The most rows per block.
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
    """Sum over the blocks of exactly this length from number `begin` to before `end`."""

    def add(index: Tensor, total: Any) -> tuple[Tensor, Any]:
        return index + 1, _added(total, function(data.block(index, length)))

    start = (begin, zeros)
    return tf.while_loop(lambda index, _: index < end, add, start, parallel_iterations=1)[1]


def _added(total: Any, parts: Any) -> Any:
    return tf.nest.map_structure(
        lambda so_far, part: so_far + tf.cast(part, so_far.dtype), total, parts
    )


def in_pieces(data: Data) -> bool:
    """Return whether sums over these rows are to be made piece by piece, outside programs of XLA.

    One GPU has room for all rows at once.
    """
    return data.num_pieces > 1 and (len(devices()) > 1 or not has_gpu())


def _sum_over_pieces(function: Callable[[Data], Any], zeros: Any, data: Data, length: int) -> Any:
    """Return `sum_over_blocks` of each piece by one program of XLA.

    TensorFlow runs as many programs at once as it has threads; neighbouring pieces are on one device. A piece is so many blocks of all rows, which are not copied. Pieces are added in their order,
    whichever ended first.
    """
    length = data.even_length(min(length, -(-data.length // data.num_pieces)))
    num_blocks = -(-data.length // length)
    share = -(-num_blocks // data.num_pieces)

    def of_piece(data: Data, begin: Tensor) -> Any:
        end = tf.minimum(begin + share, data.num_blocks(length))
        return _sum_over_some(function, zeros, data, length, begin, end)

    program, places, total = compiled(of_piece, jit_compile=True), devices(), zeros
    for begin in range(0, num_blocks, share):
        with tf.device(places[begin * len(places) // num_blocks]):
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
