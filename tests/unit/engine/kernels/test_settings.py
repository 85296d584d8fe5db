"""Bad settings of every kernel, refused where they are given."""

import numpy as np
import pytest

import tfbnn

BAD_KERNELS = [
    ({"step_size": 0.0}, ValueError, "step_size must be > 0"),
    ({"step_size": -0.1}, ValueError, "step_size must be > 0"),
    ({"step_size": np.nan}, ValueError, "step_size must be > 0"),
    ({"step_size": np.inf}, ValueError, "step_size must be > 0"),
    ({"step_size": "auto"}, TypeError, "step_size must be a number"),
    ({"step_size": [0.1, 0.2]}, TypeError, "step_size must be a number"),
    ({"step_size": True}, TypeError, "step_size must be a number"),
    ({"adapt_step_size": "yes"}, TypeError, "adapt_step_size"),
    ({"target_accept_prob": 0.0}, ValueError, "target_accept_prob must be > 0 and < 1"),
    ({"target_accept_prob": 1.0}, ValueError, "target_accept_prob must be > 0 and < 1"),
    ({"target_accept_prob": np.nan}, ValueError, "target_accept_prob must be"),
    ({"target_accept_prob": "0.8"}, TypeError, "target_accept_prob must be a number"),
    ({"preconditioner": "cholesky"}, ValueError, "preconditioner .*'cholesky'"),
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


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda k: k.HMC(num_leapfrog_steps=0), ValueError, "num_leapfrog_steps must be at least"),
        (lambda k: k.HMC(num_leapfrog_steps=2.5), TypeError, "num_leapfrog_steps must be an int"),
        (lambda k: k.HMC(trajectory_jitter=-0.1), ValueError, "trajectory_jitter must be >= 0"),
        (lambda k: k.HMC(trajectory_jitter=1.0), ValueError, "trajectory_jitter must be .*< 1"),
        (lambda k: k.HMC(trajectory_jitter=None), TypeError, "trajectory_jitter must be a number"),
        (lambda k: k.NUTS(max_tree_depth=0), ValueError, "max_tree_depth must be at least 1"),
        (lambda k: k.NUTS(max_tree_depth="10"), TypeError, "max_tree_depth must be an integer"),
        (lambda k: k.NUTS(max_tree_depth=21), ValueError, "max_tree_depth must be <= 20"),
        (lambda k: k.UnderdampedLangevin(persistence=1.0), ValueError, "persistence must be .*< 1"),
        (lambda k: k.UnderdampedLangevin(persistence="9"), TypeError, "persistence must be a num"),
        (lambda k: k.UnderdampedLangevin(adjusted=1), TypeError, "adjusted"),
        (lambda k: k.Microcanonical(adjusted="no"), TypeError, "adjusted"),
        (
            lambda k: k.Microcanonical(trajectory_length=0),
            ValueError,
            "trajectory_length must be >",
        ),
        (lambda k: k.Microcanonical(energy_variance=-1), ValueError, "energy_variance must be > 0"),
        (lambda k: k.Microcanonical(bias_tolerance=0.1), ValueError, "is for adjusted=False"),
        (lambda k: k.UnderdampedLangevin(bias_tolerance=0.1), ValueError, "is for adjusted=False"),
        (
            lambda k: k.UnderdampedLangevin(adjusted=False, bias_tolerance=2),
            ValueError,
            "bias_tolerance must be .*< 1",
        ),
        (
            lambda k: k.UnderdampedLangevin(adjusted=False, bias_tolerance=0.1, step_size=0.1),
            ValueError,
            "bias_tolerance chooses the step size",
        ),
        (
            lambda k: k.Microcanonical(adjusted=False, bias_tolerance=0.1, energy_variance=1e-3),
            ValueError,
            "both choose the step size",
        ),
        (lambda k: k.Microcanonical(max_leapfrog_steps=0), ValueError, "max_leapfrog_steps"),
        (lambda k: k.ChEESHMC(max_leapfrog_steps=9.5), TypeError, "max_leapfrog_steps"),
        (lambda k: k.ChEESHMC(trajectory_length="1"), TypeError, "trajectory_length must be a num"),
        (lambda k: k.ChEESHMC(step_size=0.1), ValueError, "trajectory_length must be given"),
        (lambda k: k.TruncatedMALA(preconditioner="gauss_newton"), ValueError, "box"),
        (lambda k: k.SMMALA(preconditioner="diagonal"), ValueError, "the metric takes its place"),
        (lambda k: k.SMMALA(metric="fisher"), ValueError, "metric must be one of.*'fisher'"),
        (lambda k: k.SMMALA(softabs_alpha=0), ValueError, "softabs_alpha must be > 0"),
        (lambda k: k.SMMALA(softabs_alpha="1"), TypeError, "softabs_alpha must be a number"),
        (lambda k: k.HMC(0.1), TypeError, "positional"),
        (lambda k: k.HMC(leapfrog_steps=3), TypeError, "leapfrog_steps"),
    ],
)
def test_bad_settings_of_one_kernel_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        make(tfbnn.kernels)
