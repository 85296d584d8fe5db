"""Defaults of the "auto" settings of a model that need no rows.

Functions named default_* return (setting, why), where the reason is half a line for the report.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

from tfbnn.spec.choices import Choice
from tfbnn.spec.likelihoods import LEARNED, Likelihood
from tfbnn.spec.priors import ARD, HalfNormal, HierarchicalNormal, ScalePrior


def default_scale_prior(likelihood: Likelihood) -> ScalePrior:
    """Return the prior of the scales of weights.

    With the heavy tail of HalfCauchy, scales become large and networks follow single rows. Targets
    have a unit, their spread. Log-odds have none, and are large where classes hardly overlap.
    """
    return HalfNormal(3.0 if likelihood.has_classes else 1.0)


def default_prior(layer_sizes: Sequence[float], likelihood: Likelihood) -> tuple[Any, str, str]:
    """Return (prior of the weights, as `resolve_priors` takes it, its text, the reason)."""
    # A smooth function of erf units consists of nearly linear units with a large scale behind them.
    of_scales = HalfNormal(3.0) if inf in layer_sizes else default_scale_prior(likelihood)
    sampled = HierarchicalNormal(of_scales)
    first, others = {"kernel": ARD(of_scales), "bias": sampled}, len(layer_sizes) - 2
    text = f"{first['kernel']} of the kernel, {sampled} of the bias" + f"; {sampled}" * others
    why = "the data choose a scale for each input and each layer"
    return [first, *[sampled] * others], text, why


def default_y_transform(likelihood: Likelihood) -> tuple[tuple[str, ...], str] | None:
    """Return the transform of the targets, or None if the rows of a fit will choose it."""
    if likelihood.has_classes:
        return (), "the targets are class labels"
    if likelihood.has_counts:
        return (), "the targets are counts"
    if likelihood.noise_scale not in (None, LEARNED):
        return ("standardize",), "the noise scale that was given counts in these units"
    return None


def transform_choice(names: Sequence[str], why: str) -> Choice:
    """Return the Choice of a transform of the targets."""
    return Choice("y_transform", ", ".join(names) or "none", why)
