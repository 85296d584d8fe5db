"""Frozen, validated, JSON-able description of a perceptron: everything except data and draws.

Files hold it as JSON. Users get it from `get_config` as plain dicts and lists, as in Keras: the
arguments of `BayesianMLP`, in which settings that the user left open stay open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from tfbnn.data.validation import check_integer
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.choices import AUTO
from tfbnn.spec.infinite_spec import InfiniteSpec, has_infinite, make_infinite_spec
from tfbnn.spec.network_parts import NetworkFacts
from tfbnn.spec.network_spec import (
    REGISTRY,
    LayeredSpec,
    NetworkSpec,
    Readout,
    check_likelihood_power,
    check_priors,
)
from tfbnn.spec.own_classes import with_custom
from tfbnn.spec.settings_json import settings_from_json

# Larger networks cannot be sampled, so a model file that declares one was not written by tfbnn.
_MAX_LAYERS, _MAX_WIDTH = 64, 65536


@dataclass(frozen=True, kw_only=True)
class ModelSpec(LayeredSpec):
    """A multilayer perceptron with priors and a likelihood. Build it with `make_spec`.

    Attributes besides those of `NetworkSpec`:
        layer_sizes: Widths from inputs to network outputs.
        activations: One name per hidden layer.
        priors: One LayerPrior per layer.
    """

    layer_sizes: tuple[int, ...]

    @property
    def kernel_shapes(self) -> list[tuple[int, int]]:
        return list(pairwise(self.layer_sizes))

    @property
    def readout(self) -> Readout:
        """The last layer and its prior."""
        return Readout(self.layout.layers[-1], self.priors[-1])

    @property
    def num_outputs(self) -> int:
        return self.layer_sizes[-1]  # `network` would count the parameters

    @cached_property
    def network(self) -> NetworkFacts:
        sizes = self.layer_sizes
        return NetworkFacts(
            input_shape=sizes[:1],
            num_outputs=sizes[-1],
            num_units=sum(sizes[1:]),
            widest=max(sizes),
            num_products=self.num_parameters,
            is_smooth=all(ACTIVATIONS[name].smooth for name in self.activations),
            no_jacobian=None,
        )

    @classmethod
    def from_json(
        cls, entry: dict[str, Any], custom: Iterable[Any] = ()
    ) -> "ModelSpec | InfiniteSpec":
        """Rebuild and validate a spec; `custom` holds user-defined classes, see `with_custom`.

        Raises:
            OwnClassError: For a prior or likelihood that is neither built in nor in `custom`.
            KeyError, TypeError, ValueError: For anything else that `to_json` cannot have written.
        """
        arguments = _as_arguments(entry)
        power = check_likelihood_power(arguments.pop("likelihood_power", 1.0))
        earlier = arguments.pop("earlier", None)
        spec = make_layers(**_read(arguments, custom))
        if spec.is_open or spec.choices:
            raise ValueError("a setting of the model is 'auto': files say what was chosen")
        spec = replace(spec, likelihood_power=power)
        if earlier is None:
            return spec
        return spec.after(settings_from_json(earlier, REGISTRY))


def perceptron(spec: NetworkSpec, what: str) -> ModelSpec:
    """Return the spec if it describes a perceptron, else raise.

    Args:
        spec: NetworkSpec.
        what: The feature that needs a perceptron, with which the error message begins.

    Raises:
        ValueError: For any other network.
    """
    if isinstance(spec, ModelSpec):
        return spec
    raise ValueError(
        f"{what} needs the layers of a BayesianMLP, or of a Keras model that is a plain stack of "
        f"Dense layers, received {spec.architecture_text}."
    )


def make_layers(layer_sizes: Any, *, activation: Any, **settings: Any) -> ModelSpec | InfiniteSpec:
    """Build a spec with `make_spec`, or with `make_infinite_spec` if layer_sizes are infinite."""
    make = make_infinite_spec if has_infinite(layer_sizes) else make_spec
    return make(layer_sizes, activation=activation, **settings)


def make_spec(layer_sizes: Any, *, activation: Any, **settings: Any) -> ModelSpec:
    """Validate the arguments of `BayesianMLP` and build the spec they describe.

    Args:
        layer_sizes, activation: As users pass them.
        settings: The other arguments, see `common_settings`.
    """
    sizes = _layer_sizes(layer_sizes)
    spec = ModelSpec.make(sizes, sizes[-1], activation, settings)
    check_priors(spec)
    return spec


def _layer_sizes(layer_sizes: Any) -> tuple[int, ...]:
    if isinstance(layer_sizes, np.ndarray):
        layer_sizes = layer_sizes.tolist()
    if not isinstance(layer_sizes, (list, tuple)):
        raise TypeError(
            "layer_sizes must be a list of widths such as [5, 20, 20, 1], received "
            f"{layer_sizes!r}."
        )
    if len(layer_sizes) < 2:
        raise ValueError(
            "layer_sizes must hold at least the number of inputs and of outputs, received "
            f"{list(layer_sizes)}."
        )
    sizes = tuple(check_integer("layer_sizes", width, minimum=1) for width in layer_sizes)
    if len(sizes) > _MAX_LAYERS + 1 or max(sizes) > _MAX_WIDTH:
        raise ValueError(
            f"layer_sizes must describe at most {_MAX_LAYERS} layers of widths up to {_MAX_WIDTH}, "
            f"received {len(sizes) - 1} layers, the widest with {max(sizes)}."
        )
    return sizes


# Attributes of `ModelSpec` whose argument has another name.
_ARGUMENTS = {"activations": "activation", "priors": "prior"}
_NAMES = {_ARGUMENTS.get(one.name, one.name) for one in fields(ModelSpec)}
_NAMES -= {"likelihood_power", "earlier", "choices", "others"}


def _as_arguments(entry: dict[str, Any]) -> dict[str, Any]:
    """Rename the entries that `to_json` gives to the names of the arguments."""
    return {_ARGUMENTS.get(name, name): value for name, value in entry.items()}


def _read(arguments: Mapping[str, Any], custom: Iterable[Any]) -> dict[str, Any]:
    """Rebuild the prior and likelihood in arguments of `make_spec` from JSON.

    Their classes are built in or in `custom`.
    """
    given, registry = dict(arguments), with_custom(REGISTRY, custom)
    if given["prior"] != AUTO:
        given["prior"] = [settings_from_json(prior, registry) for prior in given["prior"]]
    if given["likelihood"] != AUTO:
        given["likelihood"] = settings_from_json(given["likelihood"], registry)
    return given


def config_of(spec: NetworkSpec) -> dict[str, Any]:
    """Return the JSON-able arguments that describe a model, "auto" for settings left open.

    Raises:
        ValueError: For a model whose prior is the posterior of another.
    """
    if spec.earlier is not None:
        raise ValueError(
            "get_config cannot describe this model, whose prior holds rows of an earlier fit. Save both "
            "models, and build this one again with tfbnn.priors.FromPosterior."
        )
    config = _as_arguments(spec.to_json())
    config = {name: value for name, value in config.items() if name in _NAMES}
    if spec.is_open:
        config["y_transform"] = AUTO
    for choice in spec.choices:
        owner = config if choice.what in config else config["likelihood"]
        owner[choice.what] = AUTO
    return config


def arguments_of_config(config: Any, custom: Iterable[Any] = ()) -> dict[str, Any]:
    """Read the arguments in a config from `config_of`; classes are built in or in `custom`.

    Raises:
        TypeError, ValueError: For anything else.
    """
    if not isinstance(config, Mapping) or set(config) != _NAMES:
        kind = ValueError if isinstance(config, Mapping) else TypeError
        raise kind(
            f"config must be a dict with the entries {sorted(_NAMES)}, as get_config() gives them, received "
            f"{config!r:.200}."
        )
    return _read(config, custom)
