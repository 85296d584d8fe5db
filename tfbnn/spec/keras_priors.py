"""Priors of the variables of a Keras model, by patterns on their paths or by types of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tfbnn.spec.defaults import default_scale_prior
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.network_parts import Place
from tfbnn.spec.priors import HierarchicalNormal, WeightPrior, check_weight_prior
from tfbnn.system.words import did_you_mean

FIXED = "fixed"
_WANTED = "prior of a Keras model must be a dict of patterns, or one of tfbnn.priors"


@dataclass(frozen=True)
class VariableFacts(Place):
    """Facts that decide the prior of a variable.

    Attributes besides those of `Place`:
        layers: Class names of its layer and of the layers around it, such as "LSTMCell", "LSTM".
        fan_in: Number of inputs that a unit sums with these weights; 1 if it is no kernel.
        is_trainable: Whether Keras would train it; only trainable variables can be sampled.
        of_normalisation: Whether it scales or shifts normalised values.
    """

    layers: tuple[str, ...]
    fan_in: int
    is_trainable: bool
    of_normalisation: bool

    def is_meant_by(self, pattern: str) -> bool:
        """Check whether a pattern matches its path, a class of its layers, or its own name."""
        names = (self.path, *self.layers, self.path.rpartition("/")[2])
        return any(fnmatchcase(name, pattern) for name in names)


def default_keras_prior(likelihood: Likelihood) -> tuple[WeightPrior, str, str]:
    """Return the prior of all variables except those of normalisation, its text and the reason.

    Scales and shifts of a normalisation keep their values by default. The kernels before and after
    it have a prior already, and a prior here would be redundant.
    """
    prior = HierarchicalNormal(default_scale_prior(likelihood))
    return prior, str(prior), "the data choose a scale for each variable"


def resolve_keras_priors(
    prior: Any, variables: Sequence[VariableFacts], default: WeightPrior
) -> list[WeightPrior | None]:
    """Return the prior of each variable, or None for variables that keep their value.

    Args:
        prior: A weight prior for all variables except those of normalisation; or a dict from
            patterns to priors or "fixed". The first pattern that matches a variable decides.
            Variables that no pattern matches have the default.
        variables: VariableFacts.
        default: Prior of kernels and biases that no pattern matches.

    Raises:
        TypeError: For any other prior.
        ValueError: For a pattern that matches no trainable variable, and if nothing is sampled.
    """
    patterns, default = (prior, default) if isinstance(prior, Mapping) else ({}, prior)
    check_weight_prior(default, _WANTED)
    for pattern, chosen in patterns.items():
        if chosen != FIXED:
            check_weight_prior(chosen, _WANTED)
        _check_pattern(pattern, variables)
    found = [_prior_of(one, patterns, default) for one in variables]
    if all(one is None for one in found):
        raise ValueError(
            "The Keras model has nothing to sample: no weights are trainable, or all are fixed. Set "
            "layer.trainable = True for the layers that are to be sampled."
        )
    return found


def _prior_of(
    variable: VariableFacts, patterns: Mapping[str, Any], default: WeightPrior
) -> WeightPrior | None:
    if not variable.is_trainable:
        return None
    otherwise = FIXED if variable.of_normalisation else default
    chosen = next((p for key, p in patterns.items() if variable.is_meant_by(key)), otherwise)
    return chosen if isinstance(chosen, WeightPrior) else None


def _check_pattern(pattern: Any, variables: Sequence[VariableFacts]) -> None:
    if not isinstance(pattern, str):
        raise TypeError(
            f"A prior given as a dict must have patterns of text as keys, received {pattern!r}."
        )
    meant = [one for one in variables if one.is_meant_by(pattern)]
    if not any(one.is_trainable for one in meant):
        paths = [one.path for one in variables if one.is_trainable]
        what = "only weights that are not trainable" if meant else "no weights"
        raise ValueError(
            f"The pattern {pattern!r} of prior means {what}, received a model with {paths}."
            f"{did_you_mean(pattern, paths)} Patterns such as '*/kernel' mean paths, 'Dense' the layers "
            "of a type, 'kernel' all variables of that name."
        )
