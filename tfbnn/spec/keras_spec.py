"""The frozen, JSON-able description of a Keras model with priors on its variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.frames import listed
from tfbnn.data.validation import check_choice
from tfbnn.spec.keras_config import check_config, parsed_config
from tfbnn.spec.layout import Layer
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_parts import (
    MOST_NUMBERS,
    MOST_VARIABLES,
    FrozenVariable,
    KerasFacts,
    NetworkFacts,
    SampledVariable,
)
from tfbnn.spec.network_spec import (
    DTYPES,
    OPEN,
    PARAMETERIZATIONS,
    REGISTRY,
    NetworkSpec,
    Readout,
    check_likelihood,
    check_likelihood_power,
    check_priors,
)
from tfbnn.spec.own_classes import known_layers, with_custom
from tfbnn.spec.priors import LayerPrior, WeightPrior
from tfbnn.spec.settings_json import from_json, settings_to_json

_PARTS = {kind.__name__: kind for kind in (KerasFacts, SampledVariable, FrozenVariable)}


@dataclass(frozen=True, kw_only=True)
class KerasSpec(NetworkSpec):
    """A Keras model with priors and a likelihood; `tfbnn.engine.keras` makes it and computes it.

    In ntk the model gets kernels that are theta times s / sqrt(fan-in), and all else times s.

    Attributes besides those of `NetworkSpec`:
        facts: KerasFacts.
        architecture: The model's config as JSON text, out of which Keras builds it again.
        sampled: SampledVariables, in the order of theta.
        frozen: FrozenVariables.
        layer_classes: Those that `facts.custom` names. They are part of the spec, so that what was
            compiled of a class is never taken for an edited one of its name; files have the names.
    """

    facts: KerasFacts
    architecture: str
    sampled: tuple[SampledVariable, ...]
    frozen: tuple[FrozenVariable, ...]
    layer_classes: tuple[type, ...] = ()

    what_it_computes = ("architecture", "frozen")

    @property
    def variables(self) -> list[tuple[str, tuple[int, ...], WeightPrior]]:
        return [(one.path, one.shape, one.prior) for one in self.sampled]

    @cached_property
    def readout(self) -> Readout | None:
        """The last layer where it is Dense, without an activation, and sampled with its bias."""
        index = self.facts.readout
        if index is None:
            return None
        pair = slice(index, index + 2)
        kernel, bias = self.sampled[pair]
        return Readout(Layer(*self.layout.slots[pair]), LayerPrior(kernel.prior, bias.prior))

    @property
    def network(self) -> NetworkFacts:
        return self.facts

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is not sampled, and what is off that Keras has in training."""
        said = [f"{self.layout.num_weights} weights of {self.architecture_text} are sampled."]
        if self.frozen:
            count = sum(prod(one.shape) for one in self.frozen)
            paths = listed([one.path for one in self.frozen])
            said.append(f"{count} numbers keep their values: {paths}.")
        if any(one.path.endswith("/moving_mean") for one in self.frozen):
            said.append(
                "Moving averages of BatchNormalization are those of the weights that Keras trained, not "
                "of the draws; GroupNormalization has none."
            )
        if self.facts.random_layers:
            said.append(f"Off, as in every prediction: {', '.join(self.facts.random_layers)}.")
        return (" ".join(said),)

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names as of `NetworkSpec`, and those of the classes of layers."""
        return (*super().own_names, *self.facts.custom)

    @property
    def architecture_text(self) -> str:
        """Such as "Keras Functional 'digits', 8 x 8 x 1 -> 10"."""
        shape = " x ".join(map(str, self.facts.input_shape))
        return f"Keras {self.facts.title}, {shape} -> {self.num_outputs}"

    def flat_inputs(self, x: Any) -> Any:
        """Return inputs [N, *input_shape] as [N, D]; all else as it is."""
        shape = self.facts.input_shape
        if len(shape) == 1 or np.ndim(x) == 2:
            return x
        array = np.asarray(x)
        if not array.ndim:  # no array at all, which whoever reads the numbers refuses
            return x
        if array.shape[1:] != shape:
            raise ValueError(
                f"x must have shape [N, {', '.join(map(str, shape))}], the inputs of the Keras model, "
                f"received {list(array.shape)}. For one row pass x[None]."
            )
        return array.reshape(len(array), -1)

    def with_priors_of(self, other: NetworkSpec) -> KerasSpec:
        """Return the same network with the priors of another spec of it."""
        if not isinstance(other, KerasSpec) or len(other.sampled) != len(self.sampled):
            raise ValueError(f"The priors are those of another network, {other.architecture_text}.")
        pairs = zip(self.sampled, other.sampled)
        return replace(self, sampled=tuple(replace(a, prior=b.prior) for a, b in pairs))

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers; `from_json` reads them back."""
        entry = settings_to_json(self)
        del entry["choices"], entry["others"], entry["layer_classes"]
        return entry

    @classmethod
    def from_json(cls, entry: dict[str, Any], custom: Iterable[Any] = ()) -> KerasSpec:
        """Rebuild and validate a spec; `custom` are classes of the user's own, see `with_custom`.

        Raises:
            OwnClassError: For a prior or likelihood that is neither built in nor among those, and
                layers that nobody has brought.
            KeyError, TypeError, ValueError: For anything else, and for layers that a file may not
                name.
        """
        registry = with_custom({**REGISTRY, **_PARTS}, custom)
        found = {name: from_json(value, registry) for name, value in entry.items()}
        for name, kind in (("facts", KerasFacts), ("sampled", tuple), ("frozen", tuple)):
            if not isinstance(found[name], kind):
                raise TypeError(f"{name} must be {kind.__name__}, found {entry[name]!r:.99}")
        earlier, layer_classes = found.pop("earlier"), known_layers(found["facts"].custom)
        check_config(parsed_config(found["architecture"]), layer_classes)
        check_choice("parameterization", found["parameterization"], PARAMETERIZATIONS)
        check_choice("dtype", found["dtype"], DTYPES)
        check_likelihood(found["likelihood"])
        check_likelihood_power(found["likelihood_power"])
        del found["name"]
        spec = cls(**found, layer_classes=layer_classes)
        check_keras_spec(spec)
        if earlier is not None:
            spec = spec.after(earlier)
        if spec.y_transform == OPEN:
            raise ValueError("y_transform of the model is 'auto': files say what was chosen")
        return spec


def check_keras_spec(spec: KerasSpec) -> None:
    """Refuse what contradicts itself, and priors that their variables cannot have.

    Raises:
        ValueError: Says what.
    """
    spec.likelihood.check_outputs(spec.num_outputs)
    for variables, kind in ((spec.sampled, SampledVariable), (spec.frozen, FrozenVariable)):
        if len(variables) > MOST_VARIABLES or not all(isinstance(one, kind) for one in variables):
            raise TypeError(f"expected at most {MOST_VARIABLES} {kind.__name__}s")
    places = [one.index for one in spec.sampled] + [one.index for one in spec.frozen]
    if len(set(places)) < len(places) or not spec.sampled:
        raise ValueError("variables must have places of their own, and one of them be sampled")
    if sum(prod(one.shape) for one in spec.sampled) > MOST_NUMBERS:
        raise ValueError(f"more than {MOST_NUMBERS} weights are sampled")
    readout = spec.facts.readout
    if readout is not None:
        shapes = [one.shape for one in spec.sampled[readout : readout + 2]]
        if len(shapes) < 2 or len(shapes[0]) != 2 or shapes[1] != (shapes[0][1],):
            raise ValueError("the readout must be a kernel and its bias")
        if shapes[0][1] != spec.num_outputs:
            raise ValueError(f"the readout must have {spec.num_outputs} outputs")
    check_priors(spec)


def spec_from_json(entry: dict[str, Any], custom: Iterable[Any] = ()) -> NetworkSpec:
    """Rebuild and validate what `to_json` of a network's spec wrote; `custom` as of `with_custom`.

    Raises:
        OwnClassError: For a prior or likelihood that is neither built in nor among those.
        KeyError, TypeError, ValueError: For anything else.
    """
    kind = KerasSpec if entry.get("name") == KerasSpec.__name__ else ModelSpec
    return kind.from_json(entry, custom)
