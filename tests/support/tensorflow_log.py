"""Collect what TensorFlow's Python logs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf


@contextmanager
def tensorflow_log() -> Iterator[list[logging.LogRecord]]:
    """While active, records come into the list that it gives."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = tf.get_logger()
    logger.addHandler(handler)
    try:
        yield records
    finally:
        logger.removeHandler(handler)
