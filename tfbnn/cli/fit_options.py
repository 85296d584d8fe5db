"""The options of `tfbnn fit`, and the model and arguments that they stand for.

An option that is not given is not passed on, so the defaults are those of the Python interface.
"""

import argparse
from dataclasses import fields
from typing import Any

from tfbnn.cli.kernel_options import add_kernel_options
from tfbnn.cli.options import (
    DATA,
    Group,
    Option,
    Words,
    add_all,
    add_results_options,
    comma_list,
    flag,
    given,
    number,
)
from tfbnn.cli.settings import field_options
from tfbnn.data.transforms import TRANSFORMS
from tfbnn.fit.model import BayesianMLP, load
from tfbnn.posterior.sampled_model import networks_of
from tfbnn.run.options import FitOptions
from tfbnn.spec import likelihoods
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.likelihoods import LEARNED
from tfbnn.spec.network_spec import DTYPES, PARAMETERIZATIONS
from tfbnn.spec.priors import HierarchicalNormal, Laplace, Normal, WeightPrior
from tfbnn.spec.settings_json import Pretraining

# Widths of the hidden layers.
DEFAULT_LAYERS = (50,)


def _has_classes(likelihood: str) -> bool:
    return likelihoods.OPTIONS[likelihood].has_classes


def _widths(text: str) -> list[int]:
    wanted = "widths such as 20,20, or none"
    return [number(entry, int, wanted) for entry in comma_list(text)]


def _one_or_list(text: str) -> str | list[str]:
    entries = comma_list(text)
    return entries[0] if len(entries) == 1 else entries


def _transforms(text: str) -> list[str] | None:
    return comma_list(text) or None


def _y_transforms(text: str) -> str | list[str] | None:
    return text if is_auto(text) else _transforms(text)


def _noise_scale(text: str) -> str | float | list[float]:
    if text == LEARNED:
        return text
    wanted = "a number, one per target with commas, or learned"
    scales: list[float] = [number(entry, float, wanted) for entry in text.split(",")]
    return scales[0] if len(scales) == 1 else scales


def _batch_size(text: str) -> int | None:
    size = 0 if text == "full" else number(text, int, "a whole number, or full")
    return size or None


# Priors of all weights, by their names here.
_PRIORS: dict[str, type[WeightPrior]] = {
    "normal": Normal,
    "laplace": Laplace,
    "hierarchical": HierarchicalNormal,
}
_TRANSFORMS = "log10 and standardize with commas, or none"
_NETWORK = (
    Option(
        "activation",
        "default tanh; or one per hidden layer: tanh,relu",
        "NAME",
        Words(tuple(ACTIVATIONS), _one_or_list),
    ),
    Option(
        "parameterization",
        "standard, ntk, which suits every width, or auto (default): ntk unless a prior is given",
        "NAME",
        Words((AUTO, *PARAMETERIZATIONS)),
    ),
)
_PRIOR = (
    Option(
        "prior",
        f"of all weights: {', '.join(_PRIORS)}, or auto (default)",
        "NAME",
        Words((AUTO, *_PRIORS)),
    ),
    Option("prior_scale", "scale of a normal (default) or Laplace prior, default 1", "S", float),
)
_NOISE_SCALE = Option(
    "noise_scale",
    "standard deviation of the noise on the transformed scale: a number, one per target with "
    "commas, or learned (default)",
    "S",
    Words((LEARNED,), _noise_scale),
)
_SCALES = (
    Option(
        "x_transform",
        f"{_TRANSFORMS}; default standardize",
        "NAMES",
        Words(("none", *TRANSFORMS), _transforms),
    ),
    Option(
        "y_transform",
        f"{_TRANSFORMS}; default auto: by the targets",
        "NAMES",
        Words((AUTO, "none", *TRANSFORMS), _y_transforms),
    ),
    Option("dtype", "float32 (default) or float64", "NAME", Words(DTYPES)),
)
_DOCSTRING = BayesianMLP.fit_posterior.__doc__
# As `fit` and `resume` have them.
PACE = field_options(FitOptions, _DOCSTRING, ("commit_interval", "verbose"))
_CHAINS = (
    "num_chains",
    "num_results",
    "until",
    "max_seconds",
    "num_burnin_steps",
    "num_steps_between_results",
)
_KEPT = ("seed", "jit_compile", "output", "resume")
_MISSING = field_options(FitOptions, _DOCSTRING, ("missing",))
_SAMPLING = [
    *field_options(
        FitOptions,
        _DOCSTRING,
        (*_CHAINS, "effort", "likelihood_power", "calibrate", *_KEPT),
    ),
    *PACE,
]
_BATCH_SIZE = Option(
    "batch_size", "rows per step, default 32; 0 or full: all", "N", Words(("full",), _batch_size)
)
_OTHERS = [field.name for field in fields(Pretraining) if field.name != _BATCH_SIZE.name]
_PRETRAINING = [*field_options(Pretraining, Pretraining.__doc__, _OTHERS), _BATCH_SIZE]
_INITIAL_STATE = Option(
    "initial_state",
    "where the chains start, without pretraining: a number, for random weights of that size, or the "
    "file of a fitted model with the same layers, likelihood and transforms",
    "S|MODEL.h5",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds all options, in groups."""
    _add_data(parser.add_argument_group("data"))
    _add_model(parser.add_argument_group("network"))
    add_all(parser.add_argument_group("sampling, named as in fit_posterior"), _SAMPLING)
    add_kernel_options(parser.add_argument_group("kernel"))
    group = parser.add_argument_group(
        "pretraining with ADAM, of each chain on its own; without any of these chosen by the rows"
    )
    add_all(group, _PRETRAINING)
    group.add_argument(
        "--no-pretraining", action="store_true", help="start from draws of the prior"
    )
    _INITIAL_STATE.add(group)
    add_results_options(parser.add_argument_group("results"))


def _add_data(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("data", metavar="DATA", help=DATA)
    add("--target", action="append", required=True, metavar="COL", help="target; may be repeated")
    features = group.add_mutually_exclusive_group()
    features.add_argument(
        "--features",
        type=comma_list,
        metavar="A,B,...",
        help="default: all other columns of numbers, text and flags",
    )
    features.add_argument(
        "--ignore", type=comma_list, default=[], metavar="A,B,...", help="columns to leave out"
    )
    add(
        "--categories",
        type=comma_list,
        default=[],
        metavar="A,B,...",
        help="features that are names although they look like numbers, such as years; columns of "
        "text are categories anyhow",
    )
    add(
        "--noise-column",
        action="append",
        default=[],
        metavar="COL",
        help="known standard deviation of each row, in the units of the target; may be repeated, "
        "once per target",
    )
    add_all(group, _MISSING)
    add(
        "--groups",
        metavar="COL",
        help="labels of rows that belong together, such as subjects; no feature. Rows of one label are "
        "held out and left out together, so that error bars hold for new ones",
    )
    validation = group.add_mutually_exclusive_group()
    validation.add_argument("--validation", metavar="FILE", help="table of validation rows")
    validation.add_argument(
        "--validation-fraction", type=float, metavar="F", help="hold out this share of the rows"
    )


def _add_model(group: Group) -> None:
    group.add_argument(
        "--layers",
        type=_widths,
        default=DEFAULT_LAYERS,
        metavar="N,N,...",
        help="widths of the hidden layers, for example 20,20; 'none' for a linear model; default 50",
    )
    add_all(group, (*_NETWORK, *_PRIOR))
    group.add_argument(
        "--likelihood",
        default="gaussian",
        choices=sorted(likelihoods.OPTIONS, key=_has_classes),
        help="noise model, default gaussian; heteroscedastic: the network also gives the noise; "
        "bernoulli, categorical: the target holds two, several class labels",
    )
    add_all(group, (_NOISE_SCALE, *_SCALES))


def make_model(
    args: argparse.Namespace, num_features: int, num_targets: int, num_classes: int = 0
) -> BayesianMLP:
    """The `BayesianMLP` that the options describe.

    Args:
        args: Parsed options.
        num_features, num_targets: Numbers of columns.
        num_classes: Number of different labels, for class likelihoods.
    """
    settings = given(args, (*_NETWORK, *_SCALES))
    settings["prior"] = _prior(args)
    settings["likelihood"] = likelihood = _likelihood(args)
    num_outputs = likelihood.num_outputs(num_targets, num_classes)
    if likelihood.num_targets(num_outputs) != num_targets:
        raise ValueError(
            f"--likelihood {args.likelihood} takes one column of labels, received {num_targets} "
            "targets. Fit one model per target."
        )
    return BayesianMLP([num_features, *args.layers, num_outputs], **settings)


def _prior(args: argparse.Namespace) -> str | WeightPrior:
    scale = {"scale": args.prior_scale} if hasattr(args, "prior_scale") else {}
    name: str = getattr(args, "prior", "normal" if scale else AUTO)
    if is_auto(name) and not scale:
        return name
    if scale and (is_auto(name) or _PRIORS[name].scale is None):
        raise ValueError(
            f"--prior-scale goes with --prior normal or laplace, received --prior {name}, whose "
            "scales are sampled. Leave it out."
        )
    return _PRIORS[name](**scale)


def _likelihood(args: argparse.Namespace) -> likelihoods.Likelihood:
    scale, cls = given(args, (_NOISE_SCALE,)), likelihoods.OPTIONS[args.likelihood]
    if scale and cls.noise_scale is None:
        raise ValueError(
            f"--noise-scale does not go with --likelihood {args.likelihood}, which has no noise "
            "scale besides the network. Leave it out."
        )
    return cls(**scale)


def fit_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `fit_posterior` other than data and kernel."""
    asked = given(args, _PRETRAINING)
    if args.no_pretraining and asked:
        raise ValueError(
            f"--no-pretraining does not go with {flag(next(iter(asked)))}. Leave one of them out."
        )
    arguments = given(args, (*_MISSING, *_SAMPLING))
    if args.no_pretraining:
        arguments["pretraining"] = None
    elif asked:
        arguments["pretraining"] = Pretraining(**asked)
    if hasattr(args, _INITIAL_STATE.name):
        arguments[_INITIAL_STATE.name] = _initial_state(args.initial_state)
    return arguments


def _initial_state(text: str) -> Any:
    """A number, or the networks of the model in a file."""
    try:
        return float(text)
    except ValueError:
        return networks_of(load(text, untrusted=True))
