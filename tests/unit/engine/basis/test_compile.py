"""Traced code knows whether XLA compiles it."""

import gc
import weakref

import pytest
import tensorflow as tf

from tests.support.builders import plain_spec
from tests.support.tensorflow_log import tensorflow_log
from tfbnn.engine.basis import compile as compile_module
from tfbnn.engine.basis.compile import compiled, xla_compiles
from tfbnn.engine.density.fisher import compiled_prior_curvature
from tfbnn.engine.sampling.block import make_block
from tfbnn.engine.starts.adam import make_adam_steps
from tfbnn.kernels import HMC


def told(jit_compile, inner=tf.identity):
    """`xla_compiles` while a function is traced that calls another one."""
    said = []
    function = compiled(lambda x: said.append(xla_compiles()) or inner(x), jit_compile=jit_compile)
    function(tf.zeros(()))
    return said


def test_a_program_knows_whether_xla_compiles_it():
    assert not xla_compiles()
    assert told(True) == [True]
    assert told(False) == [False]
    assert not xla_compiles()


def test_what_a_program_of_xla_calls_is_compiled_by_xla():
    said = []
    told(True, compiled(lambda x: said.append(xla_compiles()) or x + 1.0, jit_compile=False))
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


def test_a_program_is_freed_with_what_holds_it():
    """XLA's part of it stays: TensorFlow keeps what it has compiled until the process ends."""
    program = compiled(lambda x: x + 1.0, jit_compile=False)
    program(tf.zeros(()))
    seen = weakref.ref(program)
    del program
    gc.collect()
    assert seen() is None


@pytest.mark.statistics
def test_caches_of_programs_are_bounded():
    before = num_programs()
    for width in range(1, 80):
        spec = plain_spec([2, width, 1])
        compiled_prior_curvature(spec)
        make_adam_steps(spec, 1e-3, "constant", None, 1, False)
        make_block(spec, HMC(), 1, False)
    gc.collect()
    assert num_programs() - before <= 3 * 32


def num_programs():
    gc.collect()
    return len(compile_module._functions)
