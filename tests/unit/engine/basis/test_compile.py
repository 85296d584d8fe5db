"""What is traced knows whether XLA compiles it."""

import pytest
import tensorflow as tf

from tests.support.tensorflow_log import tensorflow_log
from tfbnn.engine.basis.compile import compiled, xla_compiles


def told(jit_compile, inner=None):
    """What `xla_compiles` says while a function is traced, and a function that it calls."""
    said = []

    def function(x):
        said.append(xla_compiles())
        return x + 1.0 if inner is None else inner(x)

    compiled(function, jit_compile=jit_compile)(tf.zeros(()))
    return said


def test_a_program_knows_whether_xla_compiles_it():
    assert not xla_compiles()
    assert told(True) == [True]
    assert told(False) == [False]
    assert not xla_compiles()


def test_what_a_program_of_xla_calls_is_compiled_by_xla():
    said = []

    def inner(x):
        said.append(xla_compiles())
        return x + 1.0

    told(True, compiled(inner, jit_compile=False))
    assert said == [True]


def test_a_failed_trace_leaves_nothing_behind():
    def fails(x):
        raise ValueError("in the trace")

    with pytest.raises(ValueError, match="in the trace"):
        compiled(fails, jit_compile=True)(tf.zeros(()))
    assert not xla_compiles()


def test_a_program_for_each_model_is_no_retracing():
    with tensorflow_log() as records:
        for size in range(1, 12):
            compiled(lambda x: x + 1.0, jit_compile=False)(tf.zeros(size))
    assert not records
