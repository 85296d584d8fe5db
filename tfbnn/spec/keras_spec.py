"""Frozen, JSON-able description of a Keras model with priors on its variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.frames import listed
from tfbnn.data.validation import check_choice
from tfbnn.spec.infinite_spec import require_weights
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
    """A Keras model with priors and a likelihood; `tfbnn.engine.keras` makes and computes it.

    With "ntk", the kernels of the model are theta times s / sqrt(fan-in), and its other variables
    theta times s.

    Attributes besides those of `NetworkSpec`:
        facts: KerasFacts.
        architecture: Config of the model as JSON text, from which Keras rebuilds it.
        sampled: SampledVariables, in the order of theta.
        frozen: FrozenVariables.
        layer_classes: The classes that `facts.custom` names. They are part of the spec, so that a
            program compiled for a class is never used for an edited class of the same name. Files
            hold only the names.
    """

    facts: KerasFacts
    architecture: str
    sampled: tuple[SampledVariable, ...]
    frozen: tuple[FrozenVariable, ...]
    layer_classes: tuple[type, ...] = ()

    what_it_computes = ("architecture", "frozen")
    holds_priors = "sampled"

    @property
    def variables(self) -> list[tuple[str, tuple[int, ...], WeightPrior]]:
        return [(one.path, one.shape, one.prior) for one in self.sampled]

    @cached_property
    def readout(self) -> Readout | None:
        """The last layer if it is Dense without activation and sampled with its bias; else None."""
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
        """Sentences about variables that are not sampled, and layers that act only in training."""
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
        """Names as in `NetworkSpec`, and those of user-defined layer classes."""
        return (*super().own_names, *self.facts.custom)

    @property
    def architecture_text(self) -> str:
        """Short description, such as "Keras Functional 'digits', 8 x 8 x 1 -> 10"."""
        shape = " x ".join(map(str, self.facts.input_shape))
        return f"Keras {self.facts.title}, {shape} -> {self.num_outputs}"

    def flat_inputs(self, x: Any) -> Any:
        """Reshape inputs [N, *input_shape] to [N, D]; return other values unchanged."""
        shape = self.facts.input_shape
        if len(shape) == 1 or np.ndim(x) == 2:
            return x
        array = np.asarray(x)
        if not array.ndim:  # not an array; refused later, where the numbers are read
            return x
        if array.shape[1:] != shape:
            raise ValueError(
                f"x must have shape [N, {', '.join(map(str, shape))}], the inputs of the Keras model, "
                f"received {list(array.shape)}. For one row pass x[None]."
            )
        return array.reshape(len(array), -1)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain dicts, lists, strings and numbers, which `from_json` reads."""
        entry = settings_to_json(self)
        del entry["choices"], entry["others"], entry["layer_classes"]
        return entry

    @classmethod
    def from_json(cls, entry: dict[str, Any], custom: Iterable[Any] = ()) -> KerasSpec:
        """Rebuild and validate a spec; `custom` holds user-defined classes, see `with_custom`.

        Raises:
            OwnClassError: For a prior or likelihood that is neither built in nor in `custom`, and
                for layer classes that nobody has passed.
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
    """Check that a spec does not contradict itself, and that every prior fits its variable.

    Raises:
        TypeError, ValueError: With the reason.
    """
    spec.likelihood.check_outputs(spec.num_outputs)
    for variables, kind in ((spec.sampled, SampledVariable), (spec.frozen, FrozenVariable)):
        if len(variables) > MOST_VARIABLES or not all(isinstance(one, kind) for one in variables):
            raise TypeError(f"expected at most {MOST_VARIABLES} {kind.__name__}s")
    indices = [one.index for one in spec.sampled] + [one.index for one in spec.frozen]
    if len(set(indices)) < len(indices) or not spec.sampled:
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
    """Rebuild and validate a network's spec that `to_json` wrote; `custom` as in `with_custom`.

    Raises:
        OwnClassError: For a prior or likelihood that is neither built in nor in `custom`.
        KeyError, TypeError, ValueError: For anything else.
    """
    kind = KerasSpec if entry.get("name") == KerasSpec.__name__ else ModelSpec
    return kind.from_json(entry, custom)


def require_stack(spec: NetworkSpec, what: str) -> None:
    """Raise ValueError unless `spec` has layers that `what`, an export, can write."""
    require_weights(spec, what)
    if isinstance(spec, KerasSpec):
        raise ValueError(
            f"{what} needs a plain stack of Dense layers, received {spec.architecture_text}. "
            "Export single networks by Keras: model.to_keras(draw).export(path, format='onnx')."
        )
