"""What settings of a model that are "auto" come to where that needs no rows.

Functions named default_* return (setting, why), the reason in half a line for the report.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tfbnn.spec.choices import Choice, is_auto
from tfbnn.spec.likelihoods import LEARNED, Likelihood
from tfbnn.spec.priors import ARD, HalfNormal, HierarchicalNormal, ScalePrior


def default_scale_prior(likelihood: Likelihood) -> ScalePrior:
    """The prior of the scales of weights.

    With the heavy tail of HalfCauchy scales go where networks follow single rows. Targets have a unit,
    their spread; log-odds have none, and are large where classes hardly overlap.
    """
    return HalfNormal(3.0 if likelihood.has_classes else 1.0)


def default_prior(layer_sizes: Sequence[int], likelihood: Likelihood) -> tuple[Any, str]:
    """The prior of the weights, as `resolve_priors` takes it."""
    of_scales = default_scale_prior(likelihood)
    sampled = HierarchicalNormal(of_scales)
    first = {"kernel": ARD(of_scales), "bias": sampled}
    why = "the data choose a scale for each input and each layer"
    return [first, *[sampled] * (len(layer_sizes) - 2)], why


def default_parameterization(prior_is_chosen: bool) -> tuple[str, str]:
    """The parameterisation, by whether the prior was left open, too."""
    if prior_is_chosen:
        return "ntk", "one prior is right for every width"
    return "standard", "the prior that was given is one of the weights themselves"


def default_y_transform(likelihood: Likelihood) -> tuple[tuple[str, ...], str] | None:
    """The transform of the targets, or None where rows are to choose it."""
    if likelihood.has_classes:
        return (), "the targets are class labels"
    noise = likelihood.noise_scale
    if noise is not None and not (isinstance(noise, str) and noise == LEARNED):
        return ("standardize",), "the noise scale that was given counts in these units"
    return None


def settle(
    num_outputs: int,
    default_prior: Callable[[Likelihood], tuple[Any, str]],
    prior: Any,
    parameterization: Any,
    likelihood: Likelihood,
    y_transform: Any,
) -> tuple[Any, Any, Likelihood, Any, tuple[Choice, ...]]:
    """Settles what of these arguments of a model is "auto" and needs no rows.

    Args:
        num_outputs: Numbers that the network gives for a row.
        default_prior: The prior that "auto" stands for with a likelihood, and why.
        prior, parameterization, likelihood, y_transform: As users pass them.

    Returns:
        (Prior, parameterization, likelihood, transform of the targets, which may be "auto" still,
        Choices of those that were).
    """
    choices: list[Choice] = []
    prior_is_chosen = is_auto(prior)
    if prior_is_chosen:
        prior, why = default_prior(likelihood)
        choices.append(Choice("prior", _prior_text(prior), why))
    if is_auto(parameterization):
        parameterization, why = default_parameterization(prior_is_chosen)
        choices.append(Choice("parameterization", parameterization, why))
    if is_auto(likelihood.scale_prior):
        # Whatever its shape, noise is part of the spread of the targets.
        scale_prior, why = HalfNormal(1.0), "noise is hardly larger than the spread of the targets"
        likelihood = replace(likelihood, scale_prior=scale_prior)  # type: ignore[type-var]
        if likelihood.num_noise_parameters(num_outputs):
            choices.append(Choice("scale_prior", str(scale_prior), why))
    chosen = default_y_transform(likelihood) if is_auto(y_transform) else None
    if chosen is not None:
        y_transform, why = chosen
        choices.append(transform_choice(y_transform, why))
    return prior, parameterization, likelihood, y_transform, tuple(choices)


def transform_choice(names: Sequence[str], why: str) -> Choice:
    """The Choice of a transform of the targets."""
    return Choice("y_transform", ", ".join(names) or "none", why)


def _prior_text(prior: Any) -> str:
    """A prior, a dict or a list of them, for people."""
    if isinstance(prior, dict):
        return ", ".join(f"{_prior_text(one)} of the {name}" for name, one in prior.items())
    if isinstance(prior, list):
        return "; ".join(map(_prior_text, prior))
    return str(prior)
