"""Which prior is of which layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfbnn.data.validation import unknown_settings
from tfbnn.spec.priors.base import REGISTRY, WEIGHT_PRIORS, WeightPrior


@dataclass(frozen=True)
class LayerPrior:
    """The priors of one layer."""

    kernel: WeightPrior
    bias: WeightPrior


REGISTRY["LayerPrior"] = LayerPrior


def resolve_priors(prior: Any, num_layers: int) -> tuple[LayerPrior, ...]:
    """Turns what the user passes as `prior` into one `LayerPrior` per layer.

    Args:
        prior: A weight prior for everything, a dict {"kernel": .., "bias": ..}, or a list with one
            of these per layer.
        num_layers: Number of layers, the output layer included.

    Returns:
        Tuple of `num_layers` LayerPrior.

    Raises:
        TypeError, ValueError: For what is none of these, and for a prior with one scale per input
            that would be of anything but the first kernel.
    """
    if not isinstance(prior, (list, tuple)):
        layers = (_layer_prior(prior),) * num_layers
    elif len(prior) == num_layers:
        layers = tuple(_layer_prior(entry) for entry in prior)
    else:
        raise ValueError(
            f"prior must be one prior or a list of {num_layers}, one per layer with the output "
            f"layer last, received {len(prior)}."
        )
    _check_per_input(layers)
    return layers


def check_shapes(layers: Sequence[LayerPrior], layer_sizes: Sequence[int]) -> None:
    """Refuses priors with arrays that are not of the shape of their kernel or bias.

    Raises:
        ValueError: Naming the layer, the shape that it has, and that of the prior.
    """
    for number, layer in enumerate(layers, start=1):
        kernel = tuple(layer_sizes[number - 1 : number + 1])
        for kind, prior, shape in (
            ("kernel", layer.kernel, kernel),
            ("bias", layer.bias, kernel[1:]),
        ):
            if prior.shape not in (None, shape):
                raise ValueError(
                    f"The {kind} of layer {number} has shape {list(shape)}, received a prior with "
                    f"arrays of shape {list(prior.shape or ())}. Give each layer its own: "
                    'prior=[{"kernel": Normal(..), "bias": Normal(..)}, ..].'
                )


def prior_per_input(num_layers: int) -> str:
    """What to type as `prior` of so many layers for one sampled scale per input."""
    first = '{"kernel": ARD(), "bias": Normal()}'
    return f"prior=[{', '.join([first, *['Normal()'] * (num_layers - 1)])}]"


def _check_per_input(layers: Sequence[LayerPrior]) -> None:
    for number, layer in enumerate(layers, start=1):
        for kind, prior in (("kernel", layer.kernel), ("bias", layer.bias)):
            if prior.per_input and (number, kind) != (1, "kernel"):
                raise ValueError(
                    f"{type(prior).__name__} has one scale per input and is for the kernel of the "
                    f"first layer alone, received it for the {kind} of layer {number}. "
                    f"Pass {prior_per_input(len(layers))}."
                )


def _layer_prior(entry: Any) -> LayerPrior:
    kernel = bias = entry
    if isinstance(entry, LayerPrior):
        kernel, bias = entry.kernel, entry.bias
    elif isinstance(entry, dict):
        if set(entry) != {"kernel", "bias"}:
            raise ValueError(
                "A prior given as a dict must have the keys 'kernel' and 'bias', received "
                f"{sorted(map(str, entry))}."
            )
        kernel, bias = entry["kernel"], entry["bias"]
    return LayerPrior(_weight_prior(kernel), _weight_prior(bias))


def _weight_prior(prior: object) -> WeightPrior:
    if not isinstance(prior, WeightPrior):
        raise unknown_settings("prior must be made of tfbnn.priors", WEIGHT_PRIORS, prior)
    return prior
