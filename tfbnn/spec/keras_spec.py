"""The frozen, JSON-able description of a Keras model with priors on its variables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.validation import check_choice, check_integer
from tfbnn.spec.keras_config import check_config
from tfbnn.spec.keras_layout import VariableLayout, VariableSlot
from tfbnn.spec.layout import LayerSlot
from tfbnn.spec.network_spec import (
    DTYPES,
    OPEN,
    PARAMETERIZATIONS,
    REGISTRY,
    NetworkSpec,
    Readout,
    check_likelihood_power,
    check_scales,
)
from tfbnn.spec.own.classes import check_known_settings, check_own, with_custom
from tfbnn.spec.own.importing import import_obstacle
from tfbnn.spec.own.layers import known_layers
from tfbnn.spec.priors import LayerPrior, WeightPrior
from tfbnn.spec.priors.arrays import array_of, text_of
from tfbnn.spec.settings_json import settings_from_json, settings_to_json
from tfbnn.system.arrays import Array

# A file that asks for more is not one of ours.
_MOST_VARIABLES, _MOST_NUMBERS, _MOST_AXES, _LONGEST_TEXT = 10_000, 2**30, 8, 1000
# Variables that a note names.
_MOST_NAMED = 6
_FROZEN_DTYPES = ("float32", "float64", "int32", "int64", "uint8", "uint32", "bool")


@dataclass(frozen=True)
class SampledVariable:
    """A variable that is sampled.

    Attributes:
        path: Its name in the model, such as "dense/kernel".
        index: Its place among the model's variables.
        shape: Of its weights.
        fan_in: Numbers that a unit adds up with these weights; 1 of what is no kernel.
        prior: Of its weights.
    """

    path: str
    index: int
    shape: tuple[int, ...]
    fan_in: int
    prior: WeightPrior


@dataclass(frozen=True)
class FrozenVariable:
    """A variable that keeps its value: weights that are not sampled, and state.

    Attributes:
        path, index, shape: As of a SampledVariable.
        dtype: Name of its dtype.
        values: `text_of` its numbers.
    """

    path: str
    index: int
    shape: tuple[int, ...]
    dtype: str
    values: str

    @classmethod
    def of(cls, path: str, index: int, array: Array) -> FrozenVariable:
        """The variable with these values."""
        return cls(path, index, array.shape, array.dtype.name, text_of(array))

    @property
    def array(self) -> Array:
        """Its values.

        Raises:
            ValueError: Where they are not those of its shape.
        """
        dtype = check_choice("dtype", self.dtype, _FROZEN_DTYPES)
        try:
            return array_of(self.values, self.shape, dtype)
        except ValueError as error:
            raise ValueError(f"the values of {self.path!r:.99}: {error}") from error


@dataclass(frozen=True)
class KerasFacts:
    """What is known of a Keras model without Keras.

    Attributes:
        title: Kind and name, such as "Functional 'digits'".
        input_shape: Of one row.
        num_outputs: Numbers that it gives for a row.
        num_units: Numbers that all its layers give for a row.
        widest: The most numbers that one of them takes or gives.
        num_products: Products of all its layers for a row, about.
        is_smooth: Whether all its layers have a continuous gradient.
        readout: Place among the sampled variables of the kernel of a last Dense layer without
            activation, whose bias is next; None where there is none.
        no_jacobian: Why there are no derivatives of every row's outputs, or None.
        keras_version: Of the Keras that it was described with.
        random_layers: Names of layers that are random in training, and off here.
        custom: Where the classes are defined that are not Keras' own, "module:name" each.
    """

    title: str
    keras_version: str
    input_shape: tuple[int, ...]
    num_outputs: int
    num_units: int
    widest: int
    num_products: int
    is_smooth: bool
    readout: int | None
    no_jacobian: str | None
    random_layers: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> KerasFacts:
        """What `settings_to_json` wrote, validated."""
        _check_keys(entry, cls)
        facts = {key: value for key, value in entry.items() if key != "name"}
        for key in ("num_outputs", "num_units", "widest", "num_products"):
            facts[key] = _count(key, facts[key], minimum=1)
        facts["input_shape"] = _shape("input_shape", facts["input_shape"])
        if facts["readout"] is not None:
            facts["readout"] = _count("readout", facts["readout"], minimum=0)
        for key in ("title", "keras_version"):
            facts[key] = _text(key, facts[key])
        if facts["no_jacobian"] is not None:
            facts["no_jacobian"] = _text("no_jacobian", facts["no_jacobian"])
        for key in ("custom", "random_layers"):
            facts[key] = tuple(_text(key, name) for name in _listed(key, facts[key]))
        if not isinstance(facts["is_smooth"], bool):
            raise TypeError(f"is_smooth must be true or false, found {facts['is_smooth']!r:.99}")
        return cls(**facts)


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

    @cached_property
    def layout(self) -> VariableLayout:
        counts = [
            one.prior.num_scales(one.shape[0] if len(one.shape) == 2 else 1) for one in self.sampled
        ]
        noise = self.likelihood.num_noise_parameters(self.num_outputs)
        places = [(one.path, one.shape) for one in self.sampled]
        return VariableLayout.make(places, noise, counts)

    def weight_groups(self) -> Iterator[tuple[WeightPrior, slice, slice]]:
        """As in `NetworkSpec`, a group for each variable."""
        for variable, slot in zip(self.sampled, self.layout.slots):
            yield variable.prior, slot.weights, slot.scales

    @property
    def slots(self) -> list[tuple[SampledVariable, VariableSlot]]:
        """Sampled variables and their places."""
        return list(zip(self.sampled, self.layout.slots))

    @cached_property
    def readout(self) -> Readout | None:
        """The last layer where it is Dense, without an activation, and sampled with its bias."""
        index = self.facts.readout
        if index is None:
            return None
        (kernel, of_kernel), (bias, of_bias) = self.slots[index : index + 2]
        num_inputs, num_outputs = kernel.shape
        places = of_kernel.scales, of_bias.scales
        slot = LayerSlot(num_inputs, num_outputs, of_kernel.weights.start, *places)
        return Readout(slot, LayerPrior(kernel.prior, bias.prior))

    @property
    def num_inputs(self) -> int:
        """D, all numbers of a row, row by row of its axes."""
        return prod(self.facts.input_shape)

    @property
    def num_outputs(self) -> int:
        return self.facts.num_outputs

    @property
    def num_units(self) -> int:
        return self.facts.num_units

    @property
    def widest(self) -> int:
        return self.facts.widest

    @property
    def inputs_are_alike(self) -> bool:
        return len(self.facts.input_shape) > 1

    @property
    def num_products(self) -> int:
        return self.facts.num_products

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not sampled, and what is off, of a model that Keras would train otherwise."""
        said = [f"{self.layout.num_weights} weights of {self.architecture_text} are sampled."]
        if self.frozen:
            count = sum(prod(one.shape) for one in self.frozen)
            paths = ", ".join(one.path for one in self.frozen[:_MOST_NAMED])
            more = ", ..." if len(self.frozen) > _MOST_NAMED else ""
            said.append(f"{count} numbers keep their values: {paths}{more}.")
        if self.facts.random_layers:
            said.append(f"Off, as in every prediction: {', '.join(self.facts.random_layers)}.")
        return (" ".join(said),)

    @property
    def is_smooth(self) -> bool:
        return self.facts.is_smooth

    @property
    def gauss_newton_obstacle(self) -> str | None:
        return self.facts.no_jacobian

    @property
    def own_names(self) -> tuple[str, ...]:
        """As in `NetworkSpec`, with the classes of layers."""
        return (*super().own_names, *self.facts.custom)

    @property
    def import_obstacle(self) -> str | None:
        return super().import_obstacle or import_obstacle(self.layer_classes)

    @property
    def architecture_text(self) -> str:
        """Such as "Keras Functional 'digits', 8 x 8 x 1 -> 10"."""
        shape = " x ".join(map(str, self.facts.input_shape))
        return f"Keras {self.facts.title}, {shape} -> {self.num_outputs}"

    def flat_inputs(self, x: Any) -> Any:
        """Inputs [N, *input_shape] as [N, D]; all else as it is."""
        shape = self.facts.input_shape
        if len(shape) == 1 or np.ndim(x) == 2:
            return x
        array = np.asarray(x)
        if array.shape[1:] != shape:
            raise ValueError(
                f"x must have shape [N, {', '.join(map(str, shape))}], the inputs of the Keras model, "
                f"received {list(array.shape)}. Of one row pass x[None]."
            )
        return array.reshape(len(array), -1)

    def with_priors_of(self, other: NetworkSpec) -> KerasSpec:
        """The same network with the priors of another spec of it."""
        if not isinstance(other, KerasSpec) or len(other.sampled) != len(self.sampled):
            raise ValueError(f"The priors are those of another network, {other.architecture_text}.")
        pairs = zip(self.sampled, other.sampled)
        return replace(self, sampled=tuple(replace(a, prior=b.prior) for a, b in pairs))

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers; `from_json` reads them back."""
        entry = settings_to_json(self)
        del entry["choices"], entry["layer_classes"]
        return entry

    @staticmethod
    def describes(entry: dict[str, Any]) -> bool:
        """Whether this is what `to_json` of such a spec writes, and not that of another."""
        return entry.get("name") == KerasSpec.__name__

    @classmethod
    def from_json(cls, entry: dict[str, Any], custom: Iterable[Any] = ()) -> KerasSpec:
        """Rebuilds and validates a spec; `custom` are classes of the user's own, see `with_custom`.

        Raises:
            OwnClassError: For a prior or likelihood that is neither built in nor among those, and
                layers that nobody has brought.
            KeyError, TypeError, ValueError: For anything else, and for layers that a file may not
                name.
        """
        _check_keys(entry, cls, but=("choices", "layer_classes"))
        registry = with_custom(REGISTRY, custom)
        check_known_settings(_settings_in(entry), registry)
        facts = KerasFacts.from_json(entry["facts"])
        check_config(json.loads(entry["architecture"]), _class_names(facts.custom))
        spec = cls(
            facts=facts,
            architecture=entry["architecture"],
            sampled=tuple(
                _read_sampled(one, registry) for one in _listed("sampled", entry["sampled"])
            ),
            frozen=tuple(map(_read_frozen, _listed("frozen", entry["frozen"]))),
            layer_classes=known_layers(facts.custom),
            likelihood=settings_from_json(entry["likelihood"], registry),
            parameterization=check_choice(
                "parameterization", entry["parameterization"], PARAMETERIZATIONS
            ),
            x_transform=tuple(entry["x_transform"]),
            y_transform=tuple(entry["y_transform"]),
            dtype=check_choice("dtype", entry["dtype"], DTYPES),
            likelihood_power=check_likelihood_power(entry["likelihood_power"]),
        )
        check_keras_spec(spec)
        if entry["earlier"] is not None:
            spec = spec.after(settings_from_json(entry["earlier"], REGISTRY))
        if spec.y_transform == OPEN:
            raise ValueError("y_transform of the model is 'auto': files say what was chosen")
        return spec


def check_keras_spec(spec: KerasSpec) -> None:
    """Refuses what contradicts itself, and priors that their variables cannot have.

    Raises:
        ValueError: Says what.
    """
    spec.likelihood.check_outputs(spec.num_outputs)
    places = [one.index for one in spec.sampled] + [one.index for one in spec.frozen]
    if len(set(places)) < len(places) or not spec.sampled:
        raise ValueError("variables must have places of their own, and one of them be sampled")
    if sum(prod(one.shape) for one in spec.sampled) > _MOST_NUMBERS:
        raise ValueError(f"more than {_MOST_NUMBERS} weights are sampled")
    for one in spec.sampled:
        if one.prior.shape not in (None, one.shape):
            raise ValueError(
                f"{one.path!r} has shape {list(one.shape)}, received a prior with arrays of shape "
                f"{list(one.prior.shape or ())}. Give it a prior of its own: prior={{{one.path!r}: ..}}."
            )
        if one.prior.per_input and (len(one.shape) != 2 or one.shape[0] != spec.num_inputs):
            raise ValueError(
                f"{type(one.prior).__name__} has one scale per input and is for the kernel of a Dense "
                f"layer on the inputs, received it for {one.path!r} of shape {list(one.shape)}."
            )
    readout = spec.facts.readout
    if readout is not None:
        shapes = [one.shape for one in spec.sampled[readout : readout + 2]]
        if len(shapes) < 2 or len(shapes[0]) != 2 or shapes[1] != (shapes[0][1],):
            raise ValueError("the readout must be a kernel and its bias")
        if shapes[0][1] != spec.num_outputs:
            raise ValueError(f"the readout must have {spec.num_outputs} outputs")
    check_own(spec, REGISTRY)
    check_scales(spec)


def _class_names(custom: Sequence[str]) -> list[str]:
    """Names of classes without their modules."""
    return [name.partition(":")[2].rpartition(".")[2] for name in custom]


def _settings_in(entry: dict[str, Any]) -> list[Any]:
    """The JSON of its priors and its likelihood; what has no such form is left to others."""
    sampled = entry["sampled"] if isinstance(entry["sampled"], list) else []
    return [*(one.get("prior") for one in sampled if isinstance(one, dict)), entry["likelihood"]]


def _read_sampled(entry: dict[str, Any], registry: Mapping[str, type]) -> SampledVariable:
    _check_keys(entry, SampledVariable)
    prior = settings_from_json(entry["prior"], registry)
    if not isinstance(prior, WeightPrior):
        raise TypeError(f"a variable must have a prior of weights, found {entry['prior']!r:.99}")
    fan_in = _count("fan_in", entry["fan_in"], minimum=1)
    return SampledVariable(*_place(entry), fan_in, prior)


def _read_frozen(entry: dict[str, Any]) -> FrozenVariable:
    _check_keys(entry, FrozenVariable)
    dtype, values = entry["dtype"], entry["values"]
    if not (isinstance(dtype, str) and isinstance(values, str)):
        raise TypeError("dtype and values of a frozen variable must be texts")
    variable = FrozenVariable(*_place(entry), dtype, values)
    if not np.isfinite(variable.array.astype(np.float64)).all():
        raise ValueError(f"{variable.path!r:.99} must be finite")
    return variable


def _place(entry: dict[str, Any]) -> tuple[str, int, tuple[int, ...]]:
    index = _count("index", entry["index"], minimum=0)
    return _text("path", entry["path"]), index, _shape("shape", entry["shape"])


def _check_keys(entry: Any, kind: type, but: Sequence[str] = ()) -> None:
    keys = {"name", *(field.name for field in fields(kind))} - {*but}
    if not isinstance(entry, dict) or set(entry) != keys or entry["name"] != kind.__name__:
        raise ValueError(f"expected a {kind.__name__}, found {entry!r:.200}")


def _listed(name: str, entries: Any) -> list[Any]:
    if not isinstance(entries, list) or len(entries) > _MOST_VARIABLES:
        raise TypeError(f"{name} must be a list of at most {_MOST_VARIABLES} variables")
    return entries


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise TypeError(f"{name} must be a list of at most {_MOST_AXES} sizes, found {shape!r:.99}")
    sizes = tuple(_count(name, size, minimum=1) for size in shape)
    if prod(sizes) > _MOST_NUMBERS:
        raise ValueError(f"{name} must have at most {_MOST_NUMBERS} entries, found {sizes}")
    return sizes


def _count(name: str, value: Any, minimum: int) -> int:
    number = check_integer(name, value, minimum=minimum)
    if number > _MOST_NUMBERS:
        raise ValueError(f"{name} must be at most {_MOST_NUMBERS}, found {number}")
    return number


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise TypeError(f"{name} must be a text of up to {_LONGEST_TEXT}, found {value!r:.99}")
    return value
