"""What a fit takes over from an earlier model: from its prior, or from where its chains start."""

from __future__ import annotations

from typing import Any

from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import Known

# In what the two have to agree, so that parameters mean the same.
_SAME = ("parameterization", "x_transform", "y_transform")


def known_from(model: SampledModel, initial_state: Any = None) -> Known | None:
    """What is known of rows before they come; None, unless prior or starts are of an earlier model.

    Args:
        model: The model that is to be fitted. A transform of the targets that is open in it will be
            that of the earlier one.
        initial_state: As in `FitOptions`.

    Raises:
        ValueError: When the chains are to start from a model of another network, or of other
            transforms.
    """
    sources = []
    if model.earlier is not None:
        sources.append(model.earlier)
    if isinstance(initial_state, Ensemble):
        refuse_other_network("initial_state", model.spec, initial_state.spec)
        sources.append(initial_state)
    if not sources:
        return None
    transforms = [(source.x_pipeline, source.y_pipeline) for source in sources]
    if transforms[0] != transforms[-1]:
        raise ValueError(
            "initial_state must be a model with the transforms of the one that the prior is from, "
            "received one that learned others from its rows. Leave initial_state out."
        )
    return sources[0].known._replace(transforms=transforms[0])


def refuse_other_network(what: str, spec: NetworkSpec, there: NetworkSpec) -> None:
    """Refuses an earlier model in which parameters mean something else.

    Args:
        what: The argument that it came by.
        spec: NetworkSpec of the model that is to be fitted.
        there: NetworkSpec of the earlier one.

    Raises:
        ValueError: Names the setting in which they differ.
    """
    is_open = spec.is_open or "y_transform" in {choice.what for choice in spec.choices}
    for name in (*spec.what_it_computes, *_SAME):
        if not (is_open and name == "y_transform"):
            _refuse_difference(what, name, getattr(spec, name), getattr(there, name, None))
    settings = map(_without_prior, (spec.likelihood, there.likelihood))
    _refuse_difference(what, "likelihood", *settings)


def _without_prior(likelihood: Likelihood) -> tuple[str, dict[str, Any]]:
    """Name and settings, but the prior of the noise: priors need not agree."""
    settings = {name: value for name, value in vars(likelihood).items() if name != "scale_prior"}
    return type(likelihood).__name__, settings


def _refuse_difference(what: str, name: str, here: Any, there: Any) -> None:
    if here != there and name in ("architecture", "frozen"):  # long texts of Keras models
        raise ValueError(
            f"{what} must be a model of the same Keras model, received one whose {name} differs. Use the "
            "same Keras model object, or build it by the same code."
        )
    if here != there:
        raise ValueError(
            f"{what} must be a model whose {name} is {here!r}, as of this one, received "
            f"{there!r}. Build this model like that one."
        )
