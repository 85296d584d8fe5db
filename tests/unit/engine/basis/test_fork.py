"""TensorFlow, used before a fork, is refused behind it, where it would hang without a word."""

import os

import pytest

from tfbnn.engine.basis import libraries
from tfbnn.engine.basis.compile import compiled, has_gpu

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def in_a_fork(function):
    """Call the function in a forked child and return what os._exit got of it."""
    child = os.fork()
    if not child:
        code = 99
        try:
            code = function()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_uses_it_is_refused_and_what_need_not_is_not():
    double = compiled(lambda x: 2.0 * x, jit_compile=False)
    double(libraries.tf.constant(1.0))

    def uses():
        for library in (libraries.tf, libraries.keras, libraries.tfp):
            with pytest.raises(RuntimeError, match="forked. .*get_context\\('spawn'\\)"):
                library.load()
        return 7 if not has_gpu() else 8

    assert in_a_fork(uses) == 7
    assert double(libraries.tf.constant(2.0)).numpy() == 4.0
