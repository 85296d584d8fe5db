"""Derivatives of every row's outputs, where TensorFlow can take those of all rows at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.system.words import without_controls

# theta [P], x [D, n] -> outputs [K, n].
Outputs = Callable[[Tensor, Tensor], Tensor]


def row_jacobians(outputs: Outputs, theta: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """(Derivatives [K, P, n] of the outputs in theta, outputs [K, n]).

    One back-propagation for each output of each row, all rows in one vectorised program.

    Args:
        outputs: A network.
        theta: Parameters [P].
        x: Transformed inputs [D, n].
    """

    def of_row(column: Tensor) -> tuple[Tensor, Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(theta)
            found = outputs(theta, column[:, None])[:, 0]
            each = tf.unstack(found)
        slopes = [tape.gradient(one, theta, unconnected_gradients="zero") for one in each]
        return tf.stack(slopes), found

    with _silence():
        jacobian, found = tf.vectorized_map(of_row, tf.transpose(x), fallback_to_while_loop=False)
    return tf.transpose(jacobian, [1, 2, 0]), tf.transpose(found)


@contextmanager
def _silence() -> Iterator[None]:
    """While active, TensorFlow does not log from this thread: what it raises, and "Fix that!"."""
    thread = get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger = tf.get_logger()
    logger.addFilter(is_of_others)
    try:
        yield
    finally:
        logger.removeFilter(is_of_others)


def jacobian_obstacle(outputs: Outputs, theta: Tensor, x: Tensor) -> str | None:
    """Why `row_jacobians` cannot be taken of a network, or None where they can."""
    try:
        compiled(partial(row_jacobians, outputs), jit_compile=False)(theta, x)
    except Exception as error:  # whatever an operation without a vectorised form raises
        reason = without_controls(str(error)).strip().splitlines() or [""]
        return (
            "TensorFlow takes no derivatives of all rows' outputs of this Keras model at once "
            f"({type(error).__name__}: {reason[0]:.99})"
        )
    return None
