"""Kernels by name, and what their settings make of a model."""

from tests.support.builders import plain_spec
from tfbnn.engine.kernels.registry import available, resolve_kernel
from tfbnn.kernels import HMC, NUTS


def test_kernel_names():
    assert {"hmc", "nuts", "mala", "random_walk_metropolis"} <= set(available())
    assert available() == sorted(available())
    assert resolve_kernel("NUTS") == NUTS() and resolve_kernel(HMC) == HMC()
    for name in available():
        settings = resolve_kernel(name)
        assert resolve_kernel(type(settings).__name__) == settings


def test_accept_target_depends_on_smoothness():
    smooth, kinked = plain_spec([2, 4, 1]), plain_spec([2, 4, 1], activation="relu")
    for kernel in (HMC(), NUTS()):
        assert kernel.accept_target(kinked)[0] < kernel.accept_target(smooth)[0]
    assert HMC(target_accept_prob=0.9).accept_target(kinked) == (0.9, "as asked")
