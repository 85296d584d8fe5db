"""Kernels by name, what their settings make of a model, and bad ones refused where they are given."""

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tfbnn.engine.kernels.registry import available, resolve_kernel
from tfbnn.kernels import HMC, NUTS

UNADJUSTED = {"adjusted": False, "bias_tolerance": 0.1}
BAD_KERNELS = [
    ({"step_size": 0.0}, ValueError, "step_size must be > 0"),
    ({"step_size": np.nan}, ValueError, "step_size must be > 0"),
    ({"step_size": np.inf}, ValueError, "step_size must be > 0"),
    ({"step_size": "auto"}, TypeError, "step_size must be a number"),
    ({"step_size": True}, TypeError, "step_size must be a number"),
    ({"adapt_step_size": "yes"}, TypeError, "adapt_step_size"),
    ({"target_accept_prob": 0.0}, ValueError, "target_accept_prob must be > 0 and < 1"),
    ({"target_accept_prob": 1.0}, ValueError, "target_accept_prob must be > 0 and < 1"),
    ({"target_accept_prob": "0.8"}, TypeError, "target_accept_prob must be a number"),
    ({"preconditioner": "hessian"}, ValueError, "preconditioner must be one of.*'hessian'"),
    ({"preconditioner": None}, TypeError, "preconditioner must be one of.*None"),
]


# Kernels around another one, which has these settings, have tests of their own.
OTHERS = ("available", "PowerPosterior", "Repriorised")
KERNELS = [name for name in tfbnn.kernels.__all__ if name not in OTHERS]


@pytest.mark.parametrize(("settings", "error", "match"), BAD_KERNELS, ids=str)
def test_bad_settings_of_any_kernel_are_refused(settings, error, match):
    for kernel in KERNELS:
        with pytest.raises(error, match=match):
            getattr(tfbnn.kernels, kernel)(**settings)


VALUES = [
    (lambda k: k.HMC(num_leapfrog_steps=0), "num_leapfrog_steps must be at least"),
    (lambda k: k.HMC(trajectory_jitter=-0.1), "trajectory_jitter must be >= 0"),
    (lambda k: k.HMC(trajectory_jitter=1.0), "trajectory_jitter must be .*< 1"),
    (lambda k: k.NUTS(max_tree_depth=0), "max_tree_depth must be at least 1"),
    (lambda k: k.NUTS(max_tree_depth=21), "max_tree_depth must be <= 20"),
    (lambda k: k.UnderdampedLangevin(persistence=1.0), "persistence must be .*< 1"),
    (lambda k: k.Microcanonical(trajectory_length=0), "trajectory_length must be >"),
    (lambda k: k.Microcanonical(energy_variance=-1), "energy_variance must be > 0"),
    (lambda k: k.Microcanonical(bias_tolerance=0.1), "is for adjusted=False"),
    (lambda k: k.UnderdampedLangevin(bias_tolerance=0.1), "is for adjusted=False"),
    (lambda k: k.UnderdampedLangevin(**UNADJUSTED | {"bias_tolerance": 2}), "must be .*< 1"),
    (lambda k: k.UnderdampedLangevin(**UNADJUSTED, step_size=0.1), "bias_tolerance chooses the st"),
    (lambda k: k.Microcanonical(**UNADJUSTED, energy_variance=1e-3), "both choose the step size"),
    (lambda k: k.Microcanonical(max_leapfrog_steps=0), "max_leapfrog_steps"),
    (lambda k: k.ChEESHMC(step_size=0.1), "trajectory_length must be given"),
    (lambda k: k.TruncatedMALA(preconditioner="gauss_newton"), "box"),
    (lambda k: k.SMMALA(preconditioner="diagonal"), "the metric takes its place"),
    (lambda k: k.SMMALA(metric="fisher"), "metric must be one of.*'fisher'"),
    (lambda k: k.SMMALA(softabs_alpha=0), "softabs_alpha must be > 0"),
    (lambda k: k.Repriorised(regulariser=0.0), "regulariser"),
    (lambda k: k.Repriorised(regulariser=-1.0), "regulariser"),
    (lambda k: k.Repriorised(regulariser=1.0, collapse_readout=True), "regulariser=None"),
    (lambda k: k.PowerPosterior(num_temperatures=1), "num_temperatures"),
    (lambda k: k.PowerPosterior(power=0), "power"),
    (lambda k: k.PowerPosterior(crowded_at=1.0), "crowded_at"),
]
TYPES = [
    (lambda k: k.UnderdampedLangevin(adjusted=1), "adjusted"),
    (lambda k: k.Microcanonical(adjusted="no"), "adjusted"),
    (lambda k: k.ChEESHMC(max_leapfrog_steps=9.5), "max_leapfrog_steps"),
    (lambda k: k.Repriorised(collapse_readout="yes"), "collapse_readout"),
    (lambda k: k.PowerPosterior(num_temperatures=4.0), "num_temperatures"),
    (lambda k: k.PowerPosterior(power="4"), "power"),
    (lambda k: k.PowerPosterior(power=None), "power must be a number"),
    (lambda k: k.HMC(trajectory_jitter=None), "trajectory_jitter must be a number"),
    (lambda k: k.SMMALA(softabs_alpha=None), "softabs_alpha must be a number"),
    (lambda k: k.PowerPosterior(crowded_at="auto"), "crowded_at"),
    (lambda k: k.HMC(0.1), "positional"),
    (lambda k: k.HMC(leapfrog_steps=3), "leapfrog_steps"),
]


@pytest.mark.parametrize(
    ("error", "make", "match"),
    [*((ValueError, *row) for row in VALUES), *((TypeError, *row) for row in TYPES)],
)
def test_bad_settings_of_one_kernel_are_refused(error, make, match):
    with pytest.raises(error, match=match):
        make(tfbnn.kernels)


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
    assert HMC(target_accept_prob=0.9).accept_target(kinked) == (0.9, "set in the kernel")
