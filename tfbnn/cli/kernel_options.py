"""The options of `tfbnn fit` for kernels, and the settings that they stand for."""

import argparse
import dataclasses

from tfbnn.cli.options import flag, given, optional

_KERNEL = (
    "step_size",
    "adapt_step_size",
    "target_accept_prob",
    "preconditioner",
    "num_leapfrog_steps",
    "trajectory_jitter",
    "max_tree_depth",
    "adjusted",
    "persistence",
    "trajectory_length",
    "max_leapfrog_steps",
    "energy_variance",
    "num_temperatures",
    "power",
    "metric",
    "softabs_alpha",
    "inner",
    "regulariser",
    "collapse_readout",
    "keep_readout_factor",
)


def add_kernel_options(group):
    """Adds --kernel and the settings of all kernels."""
    add = group.add_argument
    add(
        "--kernel", default="nuts", metavar="NAME",
        help="nuts (default), hmc, chees_hmc, mala, smmala, truncated_mala, "
        "random_walk_metropolis, underdamped_langevin, microcanonical, power_posterior, repriorised",
    )  # fmt: skip
    optional(add, "--step-size", "fixed step size; default: found and adapted", "E", float)
    add("--adapt-step-size", action="store_true", default=argparse.SUPPRESS,
        help="adapt also a given step size")  # fmt: skip
    optional(
        add,
        "--target-accept-prob",
        "acceptance to adapt to; default by kernel and activation",
        "A",
        float,
    )
    optional(add, "--preconditioner", "auto (default), gauss_newton, diagonal, identity", "NAME")
    optional(add, "--num-leapfrog-steps", "hmc: steps per transition, default 64", "L", int)
    optional(add, "--trajectory-jitter", "hmc: jitter of the step size, default 0.2", "J", float)
    optional(add, "--max-tree-depth", "nuts: at most 2^D - 1 steps, default 10", "D", int)
    add("--adjusted", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS,
        help="underdamped_langevin, microcanonical: accept or reject, default yes; without, biased")  # fmt: skip
    optional(
        add,
        "--persistence",
        "underdamped_langevin: share of the momentum that is kept, default 0.9",
        "A",
        float,
    )
    optional(add, "--trajectory-length", "microcanonical, chees_hmc: default adapted", "L", float)
    optional(
        add, "--max-leapfrog-steps", "microcanonical, chees_hmc: at most, default 512", "L", int
    )
    optional(
        add,
        "--energy-variance",
        "unadjusted microcanonical: aimed at, per parameter, default 0.0005",
        "V",
        float,
    )
    optional(add, "--num-temperatures", "power_posterior: rungs, default 10", "M", int)
    optional(add, "--power", "power_posterior: exponent of the ladder, default 4", "C", float)
    optional(add, "--metric", "smmala: softabs (default) or gauss_newton", "NAME")
    optional(add, "--softabs-alpha", "smmala: sharpness of the SoftAbs, default 1", "A", float)
    optional(
        add,
        "--inner",
        "repriorised, power_posterior: the kernel inside, whose options are taken as well",
        "NAME",
    )
    optional(add, "--regulariser", "repriorised: default the noise variance", "L", float)
    add("--collapse-readout", action="store_true", default=argparse.SUPPRESS,
        help="repriorised: sample the other layers only, and draw the last one exactly")  # fmt: skip
    add("--keep-readout-factor", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS,
        help="repriorised, collapsed: keep its covariance; default for up to 64 features")  # fmt: skip


def kernel_argument(args):
    """{"kernel": settings}; imports TensorFlow."""
    from tfbnn.engine.kernels import resolve_kernel

    settings, asked = resolve_kernel(args.kernel), given(args, _KERNEL)
    known = _field_names(settings)
    if "inner" in known:
        inner = resolve_kernel(asked.get("inner", settings.inner))
        known_inside = _field_names(inner)
        inside = {name: asked.pop(name) for name in list(asked) if name in known_inside - known}
        asked["inner"] = dataclasses.replace(inner, **inside)
        known |= known_inside
    for name in asked:
        if name not in known:
            raise ValueError(
                f"{flag(name)} is no setting of the kernel {args.kernel}, which has "
                f"{', '.join(map(flag, filter(known.__contains__, _KERNEL)))}. Leave it out."
            )
    return {"kernel": dataclasses.replace(settings, **asked)}


def _field_names(settings):
    return {field.name for field in dataclasses.fields(settings)}
