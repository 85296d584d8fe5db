"""The options of `tfbnn fit`, and the model and arguments that they stand for.

An option that is not given is not passed on, so the defaults are those of the Python interface.
"""

import argparse
import dataclasses

from tfbnn.cli.console import comma_list
from tfbnn.cli.kernel_options import add_kernel_options
from tfbnn.cli.options import flag, given, optional
from tfbnn.spec import likelihoods

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
_MODEL = ("activation", "parameterization", "x_transform", "y_transform", "dtype")


def add_options(parser):
    """Adds all options, in groups."""
    _add_data(parser.add_argument_group("data"))
    _add_model(parser.add_argument_group("network"))
    _add_sampling(parser.add_argument_group("sampling, named as in fit_posterior"))
    add_kernel_options(parser.add_argument_group("kernel"))
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
    optional(add, "--parameterization", "default standard; ntk suits every width", "NAME")
    optional(
        add,
        "--prior-scale",
        "standard deviation of the normal prior of all weights, default 1",
        "S",
        float,
    )
    add(
        "--likelihood", default="gaussian",
        choices=list(likelihoods.OPTIONS),
        help="noise model, default gaussian; heteroscedastic: the network also gives the noise; "
        "bernoulli, categorical: the target holds two, several class labels",
    )  # fmt: skip
    optional(
        add,
        "--noise-scale",
        "standard deviation of the noise on the transformed scale: a "
        "number, one per target with commas, or learned (default)",
        "S",
        _noise_scale,
    )
    names = "log10 and standardize with commas, or none; default standardize"
    optional(add, "--x-transform", names, "NAMES", _transforms)
    optional(add, "--y-transform", f"{names}, none for classes", "NAMES", _transforms)
    optional(add, "--dtype", "float32 (default) or float64", "NAME")


def _add_sampling(group):
    add = group.add_argument
    optional(add, "--num-chains", "independent chains, default 4", "C", int)
    optional(add, "--num-results", "draws kept per chain, default 1000", "S", int)
    optional(add, "--num-burnin-steps", "warm-up transitions, default 1000", "B", int)
    optional(
        add,
        "--num-steps-between-results",
        "transitions skipped between two kept draws, default 0",
        "K",
        int,
    )
    optional(add, "--seed", "default 0", "N", int)
    optional(add, "--output", "run folder: draws stream there, and a killed run resumes", "FOLDER")
    add("--resume", action="store_true", default=argparse.SUPPRESS,
        help="go on with the run in --output, or begin it there")  # fmt: skip
    add_pace_options(group)
    add("--jit-compile", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS,
        help="compile with XLA, default yes")  # fmt: skip


def add_pace_options(group):
    """Adds --commit-interval, --num-workers and --verbose, as `fit` and `resume` have them."""
    optional(
        group.add_argument,
        "--commit-interval",
        "seconds between commits to the run folder, default 30",
        "T",
        float,
    )
    optional(
        group.add_argument,
        "--num-workers",
        "processes for the chains on a CPU: auto (default), 1 for none, or more",
        "N",
        _auto_or_int,
    )
    optional(
        group.add_argument,
        "--verbose",
        "auto (default), 1, or 0 for no progress",
        "V",
        _auto_or_int,
    )


def _add_pretraining(group):
    add = group.add_argument
    optional(add, "--epochs", "passes over the rows, default 500", "N", int)
    optional(add, "--batch-size", "rows per step, default 32; 0 or full: all", "B", _batch_size)
    optional(add, "--learning-rate", "default 0.001", "R", float)
    optional(add, "--learning-rate-schedule", "constant (default) or cosine", "NAME")
    optional(
        add,
        "--early-stopping",
        "stop after N epochs without a better validation score; needs validation rows",
        "N",
        int,
    )
    optional(
        add,
        "--newton-iterations",
        "Levenberg-Marquardt iterations after ADAM, auto (default) or a number",
        "N",
        _auto_or_int,
    )
    optional(
        add, "--num-starts", "starts to try, the best are kept; default one per chain", "N", int
    )
    add("--no-pretraining", action="store_true", help="start from draws of the prior")


def add_results_options(group):
    """Adds -o, --json and --strict, as `fit` and `resume` have them."""
    add = group.add_argument
    add("-o", dest="model_file", metavar="MODEL.h5", help="where to save the fitted model")
    add("--json", action="store_true", help="print the report as JSON")
    add("--strict", action="store_true", help="exit with 3 if the diagnosis has warnings")


def make_model(args, num_features, num_targets, num_classes=0):
    """The `BayesianMLP` that the options describe.

    Args:
        args: Parsed options.
        num_features, num_targets: Numbers of columns.
        num_classes: Number of different labels, for class likelihoods.
    """
    from tfbnn.model import BayesianMLP
    from tfbnn.spec import priors

    settings = given(args, _MODEL)
    if hasattr(args, "prior_scale"):
        settings["prior"] = priors.Normal(args.prior_scale)
    settings["likelihood"] = likelihood = _likelihood(args)
    num_outputs = likelihood.num_outputs(num_targets, num_classes)
    if likelihood.num_targets(num_outputs) != num_targets:
        raise ValueError(
            f"--likelihood {args.likelihood} takes one column of labels, received {num_targets} "
            "targets. Fit one model per target."
        )
    return BayesianMLP([num_features, *args.layers, num_outputs], **settings)


def _likelihood(args):
    scale, cls = given(args, ("noise_scale",)), likelihoods.OPTIONS[args.likelihood]
    if scale and "noise_scale" not in {field.name for field in dataclasses.fields(cls)}:
        raise ValueError(
            f"--noise-scale does not go with --likelihood {args.likelihood}, which has no noise "
            "scale besides the network. Leave it out."
        )
    return cls(**scale)


def fit_arguments(args):
    """The arguments of `fit_posterior` other than data and kernel."""
    from tfbnn.spec.settings_json import Pretraining

    asked = given(args, _PRETRAINING)
    if args.no_pretraining and asked:
        raise ValueError(
            f"--no-pretraining does not go with {flag(next(iter(asked)))}. Leave one of them out."
        )
    return given(args, _RUN) | {
        "pretraining": None if args.no_pretraining else Pretraining(**asked)
    }


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
