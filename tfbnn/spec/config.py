"""A model as plain dicts and lists, as Keras has them: the arguments of `BayesianMLP`.

Unlike `ModelSpec.to_json`, which is for files, it leaves open what the user did.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tfbnn.spec.choices import AUTO
from tfbnn.spec.model_spec import ModelSpec, make_spec
from tfbnn.spec.network_spec import REGISTRY, check_prior_sizes
from tfbnn.spec.own_classes import with_custom
from tfbnn.spec.settings_json import settings_from_json

# Arguments by the names that `ModelSpec` has for them.
_ARGUMENTS = {"activations": "activation", "priors": "prior"}
_NAMES = (
    "layer_sizes",
    "activation",
    "prior",
    "likelihood",
    "parameterization",
    "x_transform",
    "y_transform",
    "dtype",
)


def config_of(spec: ModelSpec) -> dict[str, Any]:
    """The arguments that describe a model, JSON-able; "auto" where a setting was left open.

    Raises:
        ValueError: For a model whose prior is the posterior of another.
    """
    if spec.earlier is not None:
        raise ValueError(
            "get_config has settings alone, and the prior of this model has rows of an earlier fit in it. "
            "Save the models, and build it anew with tfbnn.priors.FromPosterior."
        )
    entries = spec.to_json()
    config = {_ARGUMENTS.get(name, name): entry for name, entry in entries.items()}
    config.pop("likelihood_power", None)  # an argument of a fit
    if spec.is_open:
        config["y_transform"] = AUTO
    for choice in spec.choices:
        owner = config if choice.what in config else config["likelihood"]
        owner[choice.what] = AUTO
    return config


def spec_of_config(config: Any, custom: Iterable[Any] = ()) -> ModelSpec:
    """The model that `config_of` describes, of built-in classes and those in `custom`.

    Raises:
        TypeError, ValueError: For anything else.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config must be a dict as get_config() gives it, received {config!r}.")
    if set(config) != set(_NAMES):
        raise ValueError(
            f"config must have the entries {list(_NAMES)}, as get_config() gives them, received "
            f"{list(config)}."
        )
    given = dict(config)
    registry = with_custom(REGISTRY, custom)
    given["likelihood"] = settings_from_json(given["likelihood"], registry)
    if given["prior"] != AUTO:
        given["prior"] = [settings_from_json(prior, registry) for prior in given["prior"]]
    spec = make_spec(given.pop("layer_sizes"), **given)
    check_prior_sizes(spec)
    return spec
