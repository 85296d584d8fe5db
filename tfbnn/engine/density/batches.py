"""Batches of rows: parts of a table that are drawn once, at random, and of nearly one size."""

from __future__ import annotations

from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data

# Of the order of rows: not the user's seed, so that a table has the same batches in every run.
_KEY = (20241024, 1)


def shuffled(data: Data) -> Data:
    """The rows that count in a random order, the others behind them."""
    keys = tf.random.stateless_uniform([data.length], _KEY, None, None, tf.int32)
    order = tf.argsort(tf.where(data.counts, keys, tf.int32.max), stable=True)
    rows = data.map(lambda array: tf.gather(array, order, axis=-1))
    return rows._replace(first=tf.zeros_like(data.first), last=data.num_rows)


def batch(rows: Data, index: Tensor, num_batches: int) -> Data:
    """Batch `index` of all rows that count: neighbours, as many as in any other batch or one more."""
    share, rest = rows.num_rows // num_batches, rows.num_rows % num_batches
    begin = index * share + tf.minimum(index, rest)
    end = begin + share + tf.cast(index < rest, tf.int32)
    return rows.between(begin, end, -(-rows.length // num_batches), is_random=True)
