"""The options of `tfbnn fit`, and the model, kernel and arguments that they stand for.

An option that is not given is not passed on, so the defaults are those of the Python interface.
"""

import argparse
import dataclasses

from tfbnn.cli.console import comma_list

__all__ = [
    "CLASS_LIKELIHOODS",
    "add_options",
    "add_pace_options",
    "add_results_options",
    "fit_arguments",
    "given",
    "kernel_argument",
    "make_model",
]

CLASS_LIKELIHOODS = ("bernoulli", "categorical")

_RUN = (
    "num_chains",
    "num_results",
    "num_burnin_steps",
    "num_steps_between_results",
    "seed",
    "output",
    "resume",
    "commit_interval",
    "num_workers",
    "jit_compile",
    "verbose",
)
_PRETRAINING = (
    "epochs",
    "batch_size",
    "learning_rate",
    "learning_rate_schedule",
    "early_stopping",
    "newton_iterations",
    "num_starts",
)
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
_MODEL = ("activation", "parameterization", "x_transform", "y_transform", "dtype")


def add_options(parser):
    """Adds all options, in groups."""
    _add_data(parser.add_argument_group("data"))
    _add_model(parser.add_argument_group("network"))
    _add_sampling(parser.add_argument_group("sampling, named as in fit_posterior"))
    _add_kernel(parser.add_argument_group("kernel"))
    _add_pretraining(parser.add_argument_group("pretraining with ADAM, of each chain on its own"))
    add_results_options(parser.add_argument_group("results"))


def _add_data(group):
    add = group.add_argument
    add("data", metavar="DATA", help="CSV with header, NPZ, HDF5 or Parquet; '-': standard input")
    add("--target", action="append", required=True, metavar="COL", help="target; may be repeated")
    add("--features", type=comma_list, metavar="A,B,...", help="default: all other numeric columns")
    add(
        "--noise-column", action="append", metavar="COL",
        help="known standard deviation of each row, in the units of the target; may be repeated, "
        "once per target",
    )  # fmt: skip
    group = group.add_mutually_exclusive_group()
    group.add_argument("--validation", metavar="FILE", help="table of validation rows")
    group.add_argument(
        "--validation-fraction", type=float, metavar="F", help="hold out this share of the rows"
    )


def _add_model(group):
    add = group.add_argument
    add(
        "--layers", type=_widths, required=True, metavar="N,N,...",
        help="widths of the hidden layers, for example 20,20; 'none' for a linear model",
    )  # fmt: skip
    add(
        "--activation", type=_one_or_list, default=argparse.SUPPRESS, metavar="NAME",
        help="default tanh; or one per hidden layer: tanh,relu",
    )  # fmt: skip
    _optional(add, "--parameterization", "default standard; ntk suits every width", "NAME")
    _optional(
        add,
        "--prior-scale",
        "standard deviation of the normal prior of all weights, default 1",
        "S",
        float,
    )
    add(
        "--likelihood", default="gaussian",
        choices=["gaussian", "student_t", "heteroscedastic", *CLASS_LIKELIHOODS],
        help="noise model, default gaussian; heteroscedastic: the network also gives the noise; "
        "bernoulli, categorical: the target holds two, several class labels",
    )  # fmt: skip
    _optional(
        add,
        "--noise-scale",
        "standard deviation of the noise on the transformed scale: a "
        "number, one per target with commas, or learned (default)",
        "S",
        _noise_scale,
    )
    names = "log10 and standardize with commas, or none; default standardize"
    _optional(add, "--x-transform", names, "NAMES", _transforms)
    _optional(add, "--y-transform", f"{names}, none for classes", "NAMES", _transforms)
    _optional(add, "--dtype", "float32 (default) or float64", "NAME")


def _add_sampling(group):
    add = group.add_argument
    add(
        "--kernel", default="nuts", metavar="NAME",
        help="nuts (default), hmc, chees_hmc, mala, smmala, truncated_mala, "
        "random_walk_metropolis, underdamped_langevin, microcanonical, power_posterior, repriorised",
    )  # fmt: skip
    _optional(add, "--num-chains", "independent chains, default 4", "C", int)
    _optional(add, "--num-results", "draws kept per chain, default 1000", "S", int)
    _optional(add, "--num-burnin-steps", "warm-up transitions, default 1000", "B", int)
    _optional(
        add,
        "--num-steps-between-results",
        "transitions skipped between two kept draws, default 0",
        "K",
        int,
    )
    _optional(add, "--seed", "default 0", "N", int)
    _optional(add, "--output", "run folder: draws stream there, and a killed run resumes", "FOLDER")
    add("--resume", action="store_true", default=argparse.SUPPRESS,
        help="go on with the run in --output, or begin it there")  # fmt: skip
    add_pace_options(group)
    add("--jit-compile", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS,
        help="compile with XLA, default yes")  # fmt: skip


def add_pace_options(group):
    """Adds --commit-interval, --num-workers and --verbose, as `fit` and `resume` have them."""
    _optional(
        group.add_argument,
        "--commit-interval",
        "seconds between commits to the run folder, default 30",
        "T",
        float,
    )
    _optional(
        group.add_argument,
        "--num-workers",
        "processes for the chains on a CPU: auto (default), 1 for none, or more",
        "N",
        _auto_or_int,
    )
    _optional(
        group.add_argument,
        "--verbose",
        "auto (default), 1, or 0 for no progress",
        "V",
        _auto_or_int,
    )


def _add_kernel(group):
    add = group.add_argument
    _optional(add, "--step-size", "fixed step size; default: found and adapted", "E", float)
    add("--adapt-step-size", action="store_true", default=argparse.SUPPRESS,
        help="adapt also a given step size")  # fmt: skip
    _optional(
        add,
        "--target-accept-prob",
        "acceptance to adapt to; default by kernel and activation",
        "A",
        float,
    )
    _optional(add, "--preconditioner", "auto (default), gauss_newton, diagonal, identity", "NAME")
    _optional(add, "--num-leapfrog-steps", "hmc: steps per transition, default 64", "L", int)
    _optional(add, "--trajectory-jitter", "hmc: jitter of the step size, default 0.2", "J", float)
    _optional(add, "--max-tree-depth", "nuts: at most 2^D - 1 steps, default 10", "D", int)
    add("--adjusted", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS,
        help="underdamped_langevin, microcanonical: accept or reject, default yes; without, biased")  # fmt: skip
    _optional(
        add,
        "--persistence",
        "underdamped_langevin: share of the momentum that is kept, default 0.9",
        "A",
        float,
    )
    _optional(add, "--trajectory-length", "microcanonical, chees_hmc: default adapted", "L", float)
    _optional(
        add, "--max-leapfrog-steps", "microcanonical, chees_hmc: at most, default 512", "L", int
    )
    _optional(
        add,
        "--energy-variance",
        "unadjusted microcanonical: aimed at, per parameter, default 0.0005",
        "V",
        float,
    )
    _optional(add, "--num-temperatures", "power_posterior: rungs, default 10", "M", int)
    _optional(add, "--power", "power_posterior: exponent of the ladder, default 4", "C", float)
    _optional(add, "--metric", "smmala: softabs (default) or gauss_newton", "NAME")
    _optional(add, "--softabs-alpha", "smmala: sharpness of the SoftAbs, default 1", "A", float)
    _optional(
        add,
        "--inner",
        "repriorised, power_posterior: the kernel inside, whose options are taken as well",
        "NAME",
    )
    _optional(add, "--regulariser", "repriorised: default the noise variance", "L", float)
    add("--collapse-readout", action="store_true", default=argparse.SUPPRESS,
        help="repriorised: sample the other layers only, and draw the last one exactly")  # fmt: skip
    add("--keep-readout-factor", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS,
        help="repriorised, collapsed: keep its covariance; default for up to 64 features")  # fmt: skip


def _add_pretraining(group):
    add = group.add_argument
    _optional(add, "--epochs", "passes over the rows, default 500", "N", int)
    _optional(add, "--batch-size", "rows per step, default 32; 0 or full: all", "B", _batch_size)
    _optional(add, "--learning-rate", "default 0.001", "R", float)
    _optional(add, "--learning-rate-schedule", "constant (default) or cosine", "NAME")
    _optional(
        add,
        "--early-stopping",
        "stop after N epochs without a better validation score; needs validation rows",
        "N",
        int,
    )
    _optional(
        add,
        "--newton-iterations",
        "Levenberg-Marquardt iterations after ADAM, auto (default) or a number",
        "N",
        _auto_or_int,
    )
    _optional(
        add, "--num-starts", "starts to try, the best are kept; default one per chain", "N", int
    )
    add("--no-pretraining", action="store_true", help="start from draws of the prior")


def add_results_options(group):
    """Adds -o, --json and --strict, as `fit` and `resume` have them."""
    add = group.add_argument
    add("-o", dest="model_file", metavar="MODEL.h5", help="where to save the fitted model")
    add("--json", action="store_true", help="print the report as JSON")
    add("--strict", action="store_true", help="exit with 3 if the diagnosis has warnings")


def _optional(add, flag, text, metavar, kind=str):
    add(flag, type=kind, default=argparse.SUPPRESS, metavar=metavar, help=text)


def make_model(args, num_features, num_targets, num_classes=None):
    """The `BayesianMLP` that the options describe.

    Args:
        args: Parsed options.
        num_features, num_targets: Numbers of columns.
        num_classes: Number of different labels, for class likelihoods.
    """
    from tfbnn import BayesianMLP, priors

    settings = given(args, _MODEL)
    if hasattr(args, "prior_scale"):
        settings["prior"] = priors.Normal(args.prior_scale)
    settings["likelihood"] = _likelihood(args)
    if args.likelihood == "categorical" and num_targets > 1:
        raise ValueError(
            f"--likelihood categorical takes one column of labels, received {num_targets} targets. "
            "Fit one model per target."
        )
    special = {"heteroscedastic": 2 * num_targets, "categorical": num_classes}
    num_outputs = special.get(args.likelihood, num_targets)
    return BayesianMLP([num_features, *args.layers, num_outputs], **settings)


def _likelihood(args):
    from tfbnn import likelihoods

    scale = given(args, ("noise_scale",))
    kinds = {
        "gaussian": likelihoods.Gaussian,
        "student_t": likelihoods.StudentT,
        "heteroscedastic": likelihoods.HeteroscedasticGaussian,
        "bernoulli": likelihoods.Bernoulli,
        "categorical": likelihoods.Categorical,
    }
    if scale and args.likelihood not in ("gaussian", "student_t"):
        raise ValueError(
            f"--noise-scale does not go with --likelihood {args.likelihood}, which has no noise "
            "scale besides the network. Leave it out."
        )
    return kinds[args.likelihood](**scale)


def fit_arguments(args):
    """The arguments of `fit_posterior` other than data and kernel."""
    from tfbnn import Pretraining

    asked = given(args, _PRETRAINING)
    if args.no_pretraining and asked:
        raise ValueError(
            f"--no-pretraining does not go with {_flag(next(iter(asked)))}. Leave one of them out."
        )
    return given(args, _RUN) | {
        "pretraining": None if args.no_pretraining else Pretraining(**asked)
    }


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
                f"{_flag(name)} is no setting of the kernel {args.kernel}, which has "
                f"{', '.join(map(_flag, filter(known.__contains__, _KERNEL)))}. Leave it out."
            )
    return {"kernel": dataclasses.replace(settings, **asked)}


def _field_names(settings):
    return {field.name for field in dataclasses.fields(settings)}


def given(args, names):
    """Dict of those of the named options that were given."""
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def _flag(name):
    return "--" + name.replace("_", "-")


def _widths(text):
    wanted = "widths such as 20,20, or none"
    return [_number(entry, int, wanted) for entry in comma_list(text)]


def _one_or_list(text):
    entries = comma_list(text)
    return entries[0] if len(entries) == 1 else entries


def _transforms(text):
    return comma_list(text) or None


def _noise_scale(text):
    if text == "learned":
        return text
    wanted = "a number, one per target with commas, or learned"
    scales = [_number(entry, float, wanted) for entry in text.split(",")]
    return scales[0] if len(scales) == 1 else scales


def _auto_or_int(text):
    return text if text == "auto" else _number(text, int, "auto or a whole number")


def _batch_size(text):
    size = 0 if text == "full" else _number(text, int, "a whole number, or full")
    return size or None


def _number(text, kind, wanted):
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {wanted}, received {text!r}") from None
