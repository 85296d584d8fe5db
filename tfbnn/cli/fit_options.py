"""The options of `tfbnn fit`, and the model and arguments that they describe.

Options of the fit, of pretraining and of kernels are made from the signature of `fit_posterior` and
from dataclasses. A new argument or field therefore becomes an option by itself.
"""

import argparse
import dataclasses
import inspect
from argparse import SUPPRESS
from collections import ChainMap
from collections.abc import Sequence
from typing import Annotated, Any

from tfbnn.cli.arguments import (
    ARGUMENTS,
    Group,
    ResultOptions,
    Words,
    add_fields,
    add_option,
    argument,
    argument_of,
    comma_list,
    described,
    given,
    number,
)
from tfbnn.cli.parsing import flag
from tfbnn.data.transforms import TRANSFORMS
from tfbnn.engine.kernels.base import KERNELS, Kernel, TunedKernel
from tfbnn.engine.kernels.registry import ComposedKernel, available, kernel_named, resolve_kernel
from tfbnn.fit.loading import load
from tfbnn.fit.model import BayesianMLP
from tfbnn.posterior.sampled_model import networks_of
from tfbnn.run.options import FitOptions
from tfbnn.run.until import WORDS, Until, until_of_text
from tfbnn.spec import likelihoods
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.likelihoods import LEARNED
from tfbnn.spec.network_spec import DTYPES, INFINITE, PARAMETERIZATIONS
from tfbnn.spec.priors import HierarchicalNormal, Laplace, Normal, WeightPrior
from tfbnn.spec.settings_json import Pretraining

# Priors of all weights, by their names on the command line.
_PRIORS: dict[str, type[WeightPrior]] = {
    "normal": Normal,
    "laplace": Laplace,
    "hierarchical": HierarchicalNormal,
}
# Arguments of `fit_posterior` with separate options here, or without any.
_OTHERWISE = ("kernel", "pretraining", "initial_state", "callbacks")
FIT_ARGUMENTS = [
    name
    for name in inspect.signature(BayesianMLP.fit_posterior).parameters
    if name in FitOptions.__dataclass_fields__ and name not in _OTHERWISE
]
# A view, so that it includes likelihoods that a user's code registers later.
_LIKELIHOODS: ChainMap[str, Any] = ChainMap(likelihoods.OPTIONS, {AUTO: None})
_COLUMNS = {"type": comma_list, "metavar": "A,B,..."}


class _Data:
    """Columns and source of the training rows.

    Attributes:
        data: Training rows: text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text from standard
            input.
        target: Target column; may be repeated.
        categories: Features that are categories although they look like numbers, such as years; text
            columns are always categories.
        noise_column: Known standard deviation of each row, in the units of the target; may be repeated,
            once per target.
        offset_column: Logarithm of the exposure of each row of counts; may be repeated, once per target.
        groups: Labels of rows that belong together, such as subjects; not a feature; rows of one label are
            held out and left out together, so that error bars hold for new groups.
        validation: Table of validation rows, for early stopping and the checks of the report.
    """

    data: Annotated[str, argument("DATA")]
    target: Annotated[list[str], {"action": "append", "metavar": "COL"}]
    categories: Annotated[Sequence[str], _COLUMNS] = ()
    noise_column: Annotated[Sequence[str], {"action": "append", "metavar": "COL"}] = []
    offset_column: Annotated[Sequence[str], {"action": "append", "metavar": "COL"}] = []
    groups: Annotated[str | None, {"metavar": "COL"}] = None
    validation: Annotated[str | None, {"metavar": "FILE"}] = None


class _Features:
    """Columns that are inputs.

    Attributes:
        features: Columns to use as inputs; default: all other columns of numbers, text and flags.
        ignore: Columns to leave out.
    """

    features: Annotated[list[str] | None, _COLUMNS] = None
    ignore: Annotated[Sequence[str], _COLUMNS] = ()


def _kernel_words(*others: str) -> Words:
    """Return the names of kernels, and others. Names of kernel classes are accepted too."""
    known = Words((*others, *available()))
    return Words(known.known, lambda text: text if kernel_named(text) else known(text))


ARGUMENTS |= {
    (Kernel,): {"metavar": "NAME", "type": _kernel_words()},
    (Until, str): {"metavar": "ess=X,rhat=X,...", "type": Words(WORDS, until_of_text)},
}


def _words(*known: str, make: Any = None, metavar: str = "NAME") -> dict[str, Any]:
    return {"type": Words(known, make), "metavar": metavar}


def _one_or_list(text: str) -> str | list[str]:
    entries = comma_list(text)
    return entries[0] if len(entries) == 1 else entries


def _widths(text: str) -> list[int | str] | str:
    if is_auto(text):
        return text
    wanted = "auto, widths such as 20,20, inf, or none"
    entries = comma_list(text)
    return [one if one == INFINITE else number(one, int, wanted) for one in entries]


def _transforms(text: str) -> str | list[str] | None:
    return text if is_auto(text) else comma_list(text) or None


def _noise_scale(text: str) -> Any:
    wanted = "a number, one per target with commas, or learned"
    if text == LEARNED:
        return text
    scales = [number(entry, float, wanted) for entry in text.split(",")]
    return scales[0] if len(scales) == 1 else scales


def _batch_size(text: str) -> int | None:
    size = 0 if text == "full" else number(text, int, "a whole number, or full")
    return size or None


class _Network:
    """Options of the model. The defaults of `BayesianMLP` apply to options that are not given.

    Attributes:
        layers: Widths of the hidden layers, for example 20,20; inf for infinite width; 'none' for a linear
            model; auto (default): chosen by held-out rows.
        activation: Activation function, default tanh; or one per hidden layer: tanh,relu.
        parameterization: standard, ntk, which suits every width, or auto (default): ntk unless a prior
            is given.
        prior: Prior of all weights: normal, laplace, hierarchical, or auto (default).
        prior_scale: Scale of a normal or Laplace prior, default 1; without --prior, the prior is normal.
        likelihood: Noise model; heteroscedastic: the network also predicts the noise; bernoulli: two class
            labels; categorical: several class labels; poisson, negative_binomial: counts; auto (default):
            gaussian, heteroscedastic or student_t, chosen by held-out rows; gaussian if layers are given.
        noise_scale: Standard deviation of the noise on the transformed scale: a number, one per target
            with commas, or learned (default).
        x_transform: log10 and standardize with commas, or none; default standardize.
        y_transform: log10 and standardize with commas, or none; default auto: chosen by the targets.
        dtype: float32 (default) or float64.
    """

    layers: Annotated[Any, {"type": _widths, "metavar": "N,N,..."}] = AUTO
    activation: Annotated[Any, _words(*ACTIVATIONS, make=_one_or_list)] = SUPPRESS
    parameterization: Annotated[str, _words(AUTO, *PARAMETERIZATIONS)] = SUPPRESS
    prior: Annotated[str, _words(AUTO, *_PRIORS)] = SUPPRESS
    prior_scale: Annotated[float | str, {"type": float, "metavar": "S"}] = SUPPRESS
    likelihood: Annotated[str, {"choices": _LIKELIHOODS}] = AUTO
    noise_scale: Annotated[Any, _words(LEARNED, make=_noise_scale, metavar="S")] = SUPPRESS
    x_transform: Annotated[Any, _words("none", *TRANSFORMS, make=_transforms)] = SUPPRESS
    y_transform: Annotated[Any, _words(AUTO, "none", *TRANSFORMS, make=_transforms)] = SUPPRESS
    dtype: Annotated[str, _words(*DTYPES)] = SUPPRESS


class _Fit:
    """Arguments of `fit_posterior` that commands describe in other words than its docstring.

    Attributes:
        num_results: Draws to keep per chain; with --until, the maximum; default auto.
        until: Stopping rule; auto (default): stop when more draws no longer change the predictions, or
            when the chains agree; limits such as ess=400,rhat=1.01; converged: these two limits; none: stop
            after --num-results draws.
        max_seconds: Limit on the wall-clock seconds of the command; default: no limit.
        calibrate: Calibrate the error bars at the end by leave-one-out, which changes no draw; default:
            if the noise is learned from at least 150 rows.
        output: Run folder for the draws, from which a killed run can be resumed; -o names the model file;
            default: keep the draws in memory only.
        resume: Continue the run in the folder of --output; default: begin a run there.
        commit_interval: Seconds between commits of draws to the run folder, default 30.
        verbose: 0: silent; 1 or auto (default): progress bars on a terminal, a line every 30 s elsewhere;
            2: as 1, and a report with all details.
    """


class _Start:
    """Starts of the chains.

    Attributes:
        no_pretraining: Start from draws of the prior.
        initial_state: Starts of the chains, without pretraining: the standard deviation of normal random
            weights, or the file of a fitted model with the same layers, likelihood and transforms.
        batch_size: Rows per step, default 32; 0 or full: all.
    """

    no_pretraining: bool = False
    initial_state: Annotated[str, {"metavar": "S|MODEL.h5"}] = SUPPRESS
    batch_size: Annotated[Any, _words("full", make=_batch_size, metavar="N")] = SUPPRESS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options, in groups."""
    data = parser.add_argument_group("data")
    add_fields(data, _Data)
    add_fields(data.add_mutually_exclusive_group(), _Features)
    add_fields(parser.add_argument_group("network"), _Network)
    add_fit_arguments(parser.add_argument_group("sampling"), FIT_ARGUMENTS)
    add_kernel_options(parser.add_argument_group("kernel"))
    group = parser.add_argument_group(
        "pretraining with ADAM, for each chain; chosen automatically if none of these is given"
    )
    settings = [name for name in Pretraining.__dataclass_fields__ if name != "batch_size"]
    add_fields(group, Pretraining, settings)
    add_fields(group, _Start)
    add_fields(parser.add_argument_group("results"), ResultOptions)


def add_fit_arguments(group: Group, names: Sequence[str]) -> None:
    """Add options for arguments of `fit_posterior`."""
    for name in names:
        text = _Fit.__doc__ if described(_Fit.__doc__, name) else BayesianMLP.fit_posterior.__doc__
        add_fields(group, FitOptions, [name], text or "")


def add_kernel_options(group: Group) -> None:
    """Add --kernel and the settings of all kernels."""
    text = f"auto (default) or {', '.join(available())}"
    add_option(group, "kernel", {"metavar": "NAME", "type": _kernel_words(AUTO)}, text, AUTO)
    for name, owners in _kernel_settings().items():
        texts: dict[str, list[str]] = {}
        for owner, kernels in owners.items():
            texts.setdefault(described(owner.__doc__, name), []).extend(kernels)
        # All kernels have the settings of TunedKernel, or their inner kernel has them.
        about = "; ".join(
            text if TunedKernel in owners else f"{', '.join(kernels)}: {text}"
            for text, kernels in texts.items()
        )
        about += "; its options are accepted too" if name == "inner" else ""
        add_option(group, name, argument_of([*owners], name), about)


def _kernel_settings() -> dict[str, dict[type[Kernel], list[str]]]:
    """Return, for each setting, the classes that declare it, each with the kernels that have it."""
    found: dict[str, dict[type[Kernel], list[str]]] = {}
    for kernel_name, kernel in sorted(KERNELS.items()):
        for field in dataclasses.fields(kernel):
            owner = next(c for c in kernel.__mro__ if field.name in inspect.get_annotations(c))
            found.setdefault(field.name, {}).setdefault(owner, []).append(kernel_name)
    return found


def kernel_argument(args: argparse.Namespace) -> dict[str, Kernel]:
    """Return {"kernel": settings}, or an empty dict if the kernel is chosen automatically."""
    asked = given(args, _kernel_settings())
    if is_auto(args.kernel):
        for name in asked:
            raise ValueError(
                f"{flag(name)} is a setting of a kernel, received --kernel auto. Name the kernel, for "
                "example --kernel hmc."
            )
        return {}
    settings = resolve_kernel(args.kernel)
    known = set(settings.__dataclass_fields__)
    if isinstance(settings, ComposedKernel):
        inner = resolve_kernel(asked.get("inner", settings.inner))
        known_inside = set(inner.__dataclass_fields__)
        inside = {name: asked.pop(name) for name in list(asked) if name in known_inside - known}
        asked["inner"] = dataclasses.replace(inner, **inside)
        known |= known_inside
    for name in asked:
        if name not in known:
            raise ValueError(
                f"The kernel {args.kernel} has no option {flag(name)}. Its options are "
                f"{', '.join(map(flag, filter(known.__contains__, _kernel_settings())))}."
            )
    return {"kernel": dataclasses.replace(settings, **asked)}


def make_model(
    args: argparse.Namespace, num_features: int, num_targets: int, num_classes: int = 0
) -> BayesianMLP:
    """Make the `BayesianMLP` that the options describe.

    Args:
        args: Parsed options.
        num_features, num_targets: Numbers of columns.
        num_classes: Number of distinct labels, for class likelihoods.
    """
    names = ("activation", "parameterization", "x_transform", "y_transform", "dtype")
    scale, name = given(args, ["noise_scale"]), args.likelihood
    if is_auto(name) and (scale or not is_auto(args.layers)):
        name = "gaussian"
    if is_auto(name):
        sizes = [num_features, AUTO, num_targets]
        return BayesianMLP(sizes, prior=_prior(args), **given(args, names))
    kind = likelihoods.OPTIONS[name]
    if scale and kind.noise_scale is None:
        raise ValueError(
            f"--noise-scale does not go with --likelihood {args.likelihood}, which has no noise "
            "scale besides the network. Leave it out."
        )
    likelihood = kind(**scale)
    num_outputs = likelihood.num_outputs(num_targets, num_classes)
    if likelihood.num_targets(num_outputs) != num_targets:
        raise ValueError(
            f"--likelihood {args.likelihood} takes one column of labels, received {num_targets} "
            "targets. Fit one model per target."
        )
    hidden = [AUTO] if is_auto(args.layers) else args.layers
    sizes = [num_features, *hidden, num_outputs]
    return BayesianMLP(sizes, prior=_prior(args), likelihood=likelihood, **given(args, names))


def has_classes(name: str) -> bool:
    """Return whether --likelihood names a likelihood of class labels."""
    return not is_auto(name) and likelihoods.OPTIONS[name].has_classes


def _prior(args: argparse.Namespace) -> str | WeightPrior:
    scale = {"scale": args.prior_scale} if hasattr(args, "prior_scale") else {}
    name: str = getattr(args, "prior", "normal" if scale else AUTO)
    if scale and (is_auto(name) or _PRIORS[name].scale is None):
        raise ValueError(
            f"--prior-scale goes with --prior normal or laplace, received --prior {name}, whose "
            "scales are sampled. Leave it out."
        )
    return name if is_auto(name) else _PRIORS[name](**scale)


def fit_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fit_posterior` other than data and kernel."""
    arguments, asked = given(args, FIT_ARGUMENTS), given(args, Pretraining.__dataclass_fields__)
    if args.no_pretraining and asked:
        raise ValueError(
            f"--no-pretraining does not go with {flag(next(iter(asked)))}. Leave one of them out."
        )
    if args.no_pretraining or asked:
        arguments["pretraining"] = Pretraining(**asked) if asked else None
    if hasattr(args, "initial_state"):
        try:
            arguments["initial_state"] = float(args.initial_state)
        except ValueError:
            arguments["initial_state"] = networks_of(load(args.initial_state, untrusted=True))
    return arguments
