"""A perceptron whose layers and noise are chosen by the rows of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

import numpy as np

from tfbnn.data.frames import refuse_foreign_table
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.validation import as_rectangle, check_integer
from tfbnn.exceptions import NotFittedError
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.infinite_spec import InfiniteSpec, make_infinite_spec
from tfbnn.spec.likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    HeteroscedasticGaussian,
    StudentT,
)
from tfbnn.spec.model_spec import ModelSpec, arguments_of_config, config_of, make_layers, make_spec
from tfbnn.spec.network_spec import NetworkSpec, check_likelihood, check_prior_sizes
from tfbnn.spec.settings_json import describe_settings

# Candidate hidden layers. The first is used if there are too few rows to compare any.
HIDDEN_LAYERS = ((50,), (20, 20), (50, 50))
# Candidate noise: one scale for all rows, a scale that depends on the inputs, heavy tails.
NOISES = (Gaussian(), HeteroscedasticGaussian(), StudentT())


def is_open(layer_sizes: Any) -> bool:
    """Check whether the rows of a fit will choose the layers."""
    is_list = isinstance(layer_sizes, (list, tuple))
    return is_auto(layer_sizes) or (is_list and any(map(is_auto, layer_sizes)))


@dataclass(frozen=True)
class OpenSpec:
    """Arguments of `BayesianMLP` without the layers, and with or without a likelihood.

    Attributes:
        ends: Numbers of inputs and of outputs; each is None if the rows decide it. With
            likelihood="auto" the latter is the number of targets.
        settings: The other arguments, see `make_spec`.
    """

    ends: tuple[int | None, int | None]
    settings: Mapping[str, Any]

    earlier: ClassVar[None] = None

    @classmethod
    def make(cls, layer_sizes: Any, **settings: Any) -> OpenSpec:
        """Check the arguments of a `BayesianMLP` with open layers, and build the spec.

        Raises:
            TypeError, ValueError: For settings that do not describe a model.
        """
        ends: tuple[int | None, int | None] = (None, None)
        if not is_auto(layer_sizes):
            if len(layer_sizes) != 3 or not is_auto(layer_sizes[1]):
                raise ValueError(
                    "layer_sizes must be widths, 'auto', or [inputs, 'auto', outputs], received "
                    f"{list(layer_sizes)}."
                )
            ends = tuple(  # type: ignore[assignment]  # of two
                None if is_auto(end) else check_integer("layer_sizes", end, minimum=1)
                for end in layer_sizes[::2]
            )
        for name in ("activation", "prior"):
            if isinstance(settings[name], (list, tuple)):
                raise ValueError(
                    f"{name} as a list has an entry for each layer, received it with "
                    f"layer_sizes={layer_sizes!r}. Give one for all, or the layers."
                )
        spec = cls(ends, settings)
        check_prior_sizes(spec.first)
        return spec

    @property
    def layer_sizes(self) -> Any:
        """The argument `layer_sizes`."""
        if self.ends == (None, None):
            return AUTO
        return [AUTO if end is None else end for end in (self.ends[0], None, self.ends[1])]

    @property
    def first(self) -> ModelSpec:
        """The first candidate network, with one input and target where these are not known."""
        noise = getattr(self.settings["likelihood"], "noise_scale", None)
        return self._candidates(1, len(noise) if isinstance(noise, tuple) else 1)[0]

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names of the user-defined classes."""
        return self.first.own_names

    @property
    def has_counts(self) -> bool:
        """True if targets are counts."""
        return getattr(self.settings["likelihood"], "has_counts", False)

    @property
    def likelihood_name(self) -> str:
        """Name of the likelihood's class, or "auto"."""
        likelihood = self.settings["likelihood"]
        return AUTO if is_auto(likelihood) else type(likelihood).__name__

    @property
    def architecture_text(self) -> str:
        """Text in place of the widths of layers."""
        return f"layers by the rows, {self.first.activations[0]}"

    @property
    def table(self) -> str:
        """Description of what is open, in place of a table of layers."""
        hidden = ", ".join("-".join(map(str, widths)) for widths in HIDDEN_LAYERS)
        likelihood = self.settings["likelihood"]
        if is_auto(likelihood):
            likelihood = f"one of {', '.join(map(describe_settings, NOISES))}, or by class labels"
        return (
            "BayesianMLP whose layers are chosen by the rows of a fit\n"
            f"Hidden layers: one of {hidden}\nActivation: {self.first.activations[0]}\n"
            f"Likelihood: {likelihood}"
        )

    def for_rows(self, x: Any, y: Any, missing: str) -> ModelSpec:
        """Return the first candidate network for a user's rows, with the others in `others`."""
        coding = learn_coding(x, "x", missing)
        if coding is None:
            shape = as_rectangle(x, "x", "numbers").shape
            num_inputs = shape[1] if len(shape) > 1 else 1
        else:
            num_inputs = coding.num_inputs
        refuse_foreign_table(y, "y")
        targets = np.asarray(y)
        num_targets = targets.shape[1] if targets.ndim == 2 else 1
        likelihoods, given = self._likelihoods, self.settings["likelihood"]
        is_open = is_auto(given)
        has_labels = targets.dtype.kind != "f" if is_open else getattr(given, "has_classes", False)
        labels = set(targets.ravel().tolist()) if has_labels else set()
        if is_open and labels and all(isinstance(one, (str, bool)) for one in labels):
            likelihoods = (Bernoulli() if len(labels) <= 2 else Categorical(),)
        first, *others = self._candidates(num_inputs, num_targets, len(labels), likelihoods)
        infinite = self._infinite(first) if isinstance(first.likelihood, Gaussian) else []
        return replace(first, others=(*others, *infinite))

    def to_config(self) -> dict[str, Any]:
        """Return the JSON-able arguments as `config_of` does, with one prior for all layers."""
        first = self.first
        config = config_of(first) | {"layer_sizes": self.layer_sizes}
        config["activation"] = first.activations[0]
        if config["prior"] != AUTO:
            config["prior"] = config["prior"][:1]
        if is_auto(self.settings["likelihood"]):
            config["likelihood"] = AUTO
        return config

    @property
    def _likelihoods(self) -> tuple[Any, ...]:
        likelihood = self.settings["likelihood"]
        return NOISES if is_auto(likelihood) else (likelihood,)

    def _candidates(
        self,
        num_inputs: int,
        num_targets: int,
        num_classes: int = 2,
        likelihoods: tuple[Any, ...] | None = None,
    ) -> list[ModelSpec]:
        """Build networks with all candidate layers for the first likelihood, then for the next."""
        num_inputs, given = self.ends[0] or num_inputs, self.ends[1]
        found = []
        for likelihood in likelihoods or self._likelihoods:
            check_likelihood(likelihood)
            if given is not None and not is_auto(self.settings["likelihood"]):
                num_outputs = given
            else:
                num_outputs = likelihood.num_outputs(given or num_targets, num_classes)
            settings = {**self.settings, "likelihood": likelihood}
            for widths in HIDDEN_LAYERS:
                found.append(make_spec([num_inputs, *widths, num_outputs], **settings))
        return found

    def _infinite(self, first: ModelSpec) -> list[InfiniteSpec]:
        """Return [network of infinite width], or [] if the settings have no such limit."""
        sizes = (first.layer_sizes[0], inf, first.num_targets)
        try:
            settings = {**self.settings, "likelihood": first.likelihood}
            return [make_infinite_spec(sizes, **settings)]
        except (TypeError, ValueError):
            return []


def known(spec: NetworkSpec | OpenSpec) -> NetworkSpec:
    """Return the spec if its layers are known, else raise.

    Raises:
        NotFittedError: If the rows of a fit will choose the layers.
    """
    if isinstance(spec, NetworkSpec):
        return spec
    raise NotFittedError(
        "The layers of this model are chosen when it is fitted. Give layer_sizes, or fit first."
    )


def make_any_spec(
    layer_sizes: Any, *, likelihood: Any, **settings: Any
) -> ModelSpec | InfiniteSpec | OpenSpec:
    """Check the arguments of `BayesianMLP`, and build the spec that they describe.

    Raises:
        TypeError, ValueError: For settings that do not describe a model.
    """
    if is_open(layer_sizes):
        return OpenSpec.make(layer_sizes, likelihood=likelihood, **settings)
    likelihood = Gaussian() if is_auto(likelihood) else likelihood
    return make_layers(layer_sizes, likelihood=likelihood, **settings)


def spec_of_config(config: Any, custom: Iterable[Any] = ()) -> ModelSpec | InfiniteSpec | OpenSpec:
    """Build the spec that `config_of` or `OpenSpec.to_config` describes.

    Its classes are built in or in `custom`.

    Raises:
        TypeError, ValueError: For anything else.
    """
    arguments = arguments_of_config(config, custom)
    if is_open(arguments["layer_sizes"]) and arguments["prior"] != AUTO:
        (arguments["prior"],) = arguments["prior"]
    spec = make_any_spec(**arguments)
    if isinstance(spec, ModelSpec):
        check_prior_sizes(spec)
    return spec
