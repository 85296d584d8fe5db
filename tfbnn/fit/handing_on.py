"""What a fit takes over from the model whose networks its chains start from."""

from __future__ import annotations

from typing import Any

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import Known

# In what the two have to agree, so that parameters mean the same.
_SAME = ("parameterization", "x_transform", "y_transform")


def known_from(spec: NetworkSpec, initial_state: Any) -> Known | None:
    """What is known of rows before they come; None, unless chains start from an Ensemble.

    Args:
        spec: NetworkSpec of the fit, as asked for. A transform of the targets that is open in it will
            be that of the ensemble.
        initial_state: As in `FitOptions`.

    Raises:
        ValueError: When the ensemble is one of another network, or of other transforms.
    """
    if not isinstance(initial_state, Ensemble):
        return None
    there = initial_state.spec
    is_open = spec.is_open or "y_transform" in {choice.what for choice in spec.choices}
    for name in (*spec.what_it_computes, *_SAME):
        if not (is_open and name == "y_transform"):
            _refuse_difference(name, getattr(spec, name), getattr(there, name, None))
    _refuse_difference("likelihood", *map(_without_prior, (spec.likelihood, there.likelihood)))
    transforms = initial_state.x_pipeline, initial_state.y_pipeline
    return initial_state.known._replace(transforms=transforms)


def _without_prior(likelihood: Likelihood) -> tuple[str, dict[str, Any]]:
    """Name and settings, but the prior of the noise: priors need not agree."""
    settings = {name: value for name, value in vars(likelihood).items() if name != "scale_prior"}
    return type(likelihood).__name__, settings


def _refuse_difference(name: str, here: Any, there: Any) -> None:
    if here != there:
        raise ValueError(
            f"initial_state must be a model whose {name} is {here!r}, as of this one, received "
            f"{there!r}. Build this model like that one, or pass an array of parameters."
        )
