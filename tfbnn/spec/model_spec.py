"""The frozen, validated, JSON-able description of a model: everything but data and draws."""

from collections import ChainMap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np

from tfbnn.data.transforms import parse_names
from tfbnn.data.validation import check_choice, check_integer, check_number, unknown_settings
from tfbnn.spec import likelihoods, priors
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.choices import AUTO, Choice, is_auto
from tfbnn.spec.defaults import settle, transform_choice
from tfbnn.spec.layout import Layout, make_layout
from tfbnn.spec.other_libraries import activation_name, dtype_name
from tfbnn.spec.own.classes import check_known, check_own, own_classes_in, with_custom
from tfbnn.spec.own.importing import import_name, import_obstacle
from tfbnn.spec.own.noise import CustomNoise
from tfbnn.spec.priors import FunctionPrior, ScalePrior, WeightPrior
from tfbnn.spec.settings_json import settings_from_json, settings_to_json

# Beyond them there is no sampling, and a model file that asks for more is not one of ours.
_MAX_LAYERS, _MAX_WIDTH = 64, 65536

PARAMETERIZATIONS = ("standard", "ntk")
DTYPES = ("float32", "float64")

# A transform of the targets that rows are to choose.
OPEN = (AUTO,)

# Those that a file holds as users pass them in.
_PLAIN_SETTINGS = ("parameterization", "x_transform", "y_transform", "dtype")

REGISTRY = ChainMap(priors.REGISTRY, likelihoods.REGISTRY)


@dataclass(frozen=True)
class ModelSpec:
    """A multilayer perceptron with priors and a likelihood. Build it with `make_spec`.

    Attributes:
        layer_sizes: Widths from inputs to network outputs.
        activations: One name per hidden layer.
        priors: One LayerPrior per layer.
        likelihood: A likelihood settings object.
        parameterization: "standard" or "ntk". In ntk the network multiplies a kernel by
            s / sqrt(inputs of the layer) and a bias by s, s the scale of its prior (or the line of
            each input by its own), and the parameters themselves have prior scale 1.
        x_transform, y_transform: Tuples of transform names; the latter empty for classes, and
            ("auto",) until rows say what it is to be: see `closed`.
        dtype: "float32" or "float64", of the parameters and of the sampling.
        likelihood_power: The power to which the density has the likelihood: 1 unless a fit coarsens
            it. Every density, gradient and curvature made from the spec has it; what predicts or
            scores rows has the likelihood as it is.
        earlier: What rows of an earlier fit add to the priors of the layers; or None.
        choices: Choices of what was "auto". They are no part of what the model is, and files keep
            them elsewhere.
    """

    layer_sizes: tuple[int, ...]
    activations: tuple[str, ...]
    priors: tuple[priors.LayerPrior, ...]
    likelihood: likelihoods.Likelihood
    parameterization: str
    x_transform: tuple[str, ...]
    y_transform: tuple[str, ...]
    dtype: str
    likelihood_power: float = 1.0
    earlier: FunctionPrior | None = None
    choices: tuple[Choice, ...] = field(default=(), compare=False)

    @cached_property
    def layout(self) -> Layout:
        num_scales = [
            (layer.kernel.num_scales(num_inputs), layer.bias.num_scales(1))
            for layer, num_inputs in zip(self.priors, self.layer_sizes)
        ]
        noise = self.likelihood.num_noise_parameters(self.layer_sizes[-1])
        return make_layout(self.layer_sizes, noise, num_scales)

    def weight_groups(self) -> Iterator[tuple[WeightPrior, slice, slice]]:
        """Yields (prior, place of the weights, place of their sampled log scales) of every group.

        Groups are the kernel and the bias of each layer, from inputs to outputs.
        """
        for slot, layer in zip(self.layout.layers, self.priors):
            yield layer.kernel, slot.kernel, slot.kernel_scales
            yield layer.bias, slot.bias, slot.bias_scales

    def after(self, earlier: FunctionPrior) -> "ModelSpec":
        """The spec with what earlier rows say. Raises TypeError, ValueError for another network's."""
        if not isinstance(earlier, FunctionPrior):
            raise TypeError(f"earlier must be a FunctionPrior, received {earlier!r:.200}.")
        sizes = self.num_parameters, self.num_inputs, self.num_outputs, self.layout.num_noise
        if not earlier.fits(*sizes):
            raise ValueError(
                f"earlier must be of networks with {sizes[0]} parameters, {sizes[1]} inputs, {sizes[2]} "
                f"outputs and {sizes[3]} learned noise scales, received {earlier!r}."
            )
        return replace(self, earlier=earlier)

    def without_earlier(self) -> "ModelSpec":
        """The spec with the priors of its layers alone."""
        return replace(self, earlier=None)

    # Every network has a Gauss-Newton matrix.
    has_gauss_newton: ClassVar[bool] = True

    @property
    def own_names(self) -> tuple[str, ...]:
        return tuple(map(import_name, own_classes_in(self)))

    @property
    def import_obstacle(self) -> str | None:
        return import_obstacle(own_classes_in(self))

    @property
    def num_parameters(self) -> int:
        """P, the length of theta."""
        return self.layout.num_parameters

    @property
    def num_units(self) -> int:
        """Units of all layers but the inputs."""
        return sum(self.layer_sizes[1:])

    @property
    def num_outputs(self) -> int:
        return self.layer_sizes[-1]

    @property
    def widest(self) -> int:
        """Units of the widest layer, the inputs included."""
        return max(self.layer_sizes)

    def parameter_name(self, index: int) -> str:
        """A readable name of one entry of theta, for messages."""
        return self.layout.parameter_name(index)

    @property
    def num_inputs(self) -> int:
        return self.layer_sizes[0]

    @property
    def num_targets(self) -> int:
        return self.likelihood.num_targets(self.layer_sizes[-1])

    @property
    def is_open(self) -> bool:
        """Whether the transform of the targets waits for rows that choose it."""
        return self.y_transform == OPEN

    def closed(self, y_transform: tuple[str, ...], why: str) -> "ModelSpec":
        """The spec with a definite transform of the targets, if it was open, and why that one."""
        if not self.is_open:
            return self
        choice = transform_choice(y_transform, why)
        return replace(self, y_transform=y_transform, choices=(*self.choices, choice))

    @property
    def coarsening_note(self) -> str | None:
        """What every report must say of draws that have the likelihood to a power below 1."""
        if self.likelihood_power == 1.0:
            return None
        return (
            f"likelihood_power={self.likelihood_power!r}: a coarsened posterior (Miller and Dunson "
            "2019), in which every row counts for that share of itself. It is wider than the "
            "posterior; R-hat, log densities and a log evidence are of it, bars add the noise of the "
            "likelihood as it is."
        )

    @property
    def noise_prior(self) -> ScalePrior | None:
        """Prior of learned noise scales; None where there are none."""
        prior = self.likelihood.scale_prior
        return prior if isinstance(prior, ScalePrior) else None

    @property
    def has_classes(self) -> bool:
        """Whether targets are class labels, and predictions probabilities."""
        return self.likelihood.has_classes

    @property
    def class_likelihood(self) -> likelihoods.ClassLikelihood:
        """The likelihood, which has to be one of classes."""
        if isinstance(self.likelihood, likelihoods.ClassLikelihood):
            return self.likelihood
        raise TypeError(f"{self.likelihood_name} has no classes. Ask `has_classes` first.")

    @property
    def regression_likelihood(self) -> likelihoods.Regression:
        """The likelihood, which has to be one of numbers."""
        if isinstance(self.likelihood, likelihoods.Regression):
            return self.likelihood
        raise TypeError(f"{self.likelihood_name} has no noise. Ask `has_classes` first.")

    @property
    def num_classes(self) -> int:
        """Number of classes of every target; for class likelihoods only."""
        return self.class_likelihood.num_classes(self.layer_sizes[-1])

    @property
    def likelihood_name(self) -> str:
        """Name of the likelihood's class, for messages."""
        return type(self.likelihood).__name__

    @property
    def num_predicted(self) -> int:
        """Columns of a prediction: one per target, or with Categorical one per class."""
        return self.layer_sizes[-1] if self.has_classes else self.num_targets

    @property
    def is_ntk(self) -> bool:
        return self.parameterization == "ntk"

    @property
    def is_smooth(self) -> bool:
        """Whether the potential has a continuous gradient in the activations."""
        return all(ACTIVATIONS[name].smooth for name in self.activations)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers; `from_json` reads them back."""
        entry = settings_to_json(self)
        del entry["name"], entry["choices"]
        if self.likelihood_power == 1.0:  # which is what files say that know of no other
            del entry["likelihood_power"]
        if self.earlier is None:
            del entry["earlier"]
        return entry

    @classmethod
    def from_json(cls, entry: dict[str, Any], custom: Iterable[Any] = ()) -> "ModelSpec":
        """Rebuilds and validates a spec; `custom` are classes of the user's own, see `with_custom`.

        Raises:
            OwnClassError: For a prior or likelihood that is neither built in nor among those.
            KeyError, TypeError, ValueError: For anything else that `to_json` cannot have written.
        """
        registry = with_custom(REGISTRY, custom)
        check_known(entry, registry)
        spec = make_spec(
            entry["layer_sizes"],
            activation=entry["activations"],
            prior=[settings_from_json(prior, registry) for prior in entry["priors"]],
            likelihood=settings_from_json(entry["likelihood"], registry),
            **{name: entry[name] for name in _PLAIN_SETTINGS},
        )
        if spec.is_open or spec.choices:
            raise ValueError("a setting of the model is 'auto': files say what was chosen")
        power = check_likelihood_power(entry.get("likelihood_power", 1.0))
        spec = replace(spec, likelihood_power=power)
        if "earlier" not in entry:
            return spec
        return spec.after(settings_from_json(entry["earlier"], REGISTRY))


def check_custom(custom: Iterable[Any]) -> tuple[type, ...]:
    """Classes of a user's own. Raises TypeError or ValueError for what is none, see `with_custom`."""
    with_custom(REGISTRY, custom := tuple(custom) if isinstance(custom, Iterable) else custom)
    return custom


def check_likelihood_power(power: Any) -> float:
    """A power of the likelihood as a float. Raises TypeError or ValueError outside (0, 1]."""
    return check_number("likelihood_power", power, above=0, maximum=1)


def _is_usable(likelihood: Any) -> TypeGuard[likelihoods.Likelihood]:
    """Whether a likelihood is of a class in the table, or inherits from `CustomNoise`."""
    return isinstance(likelihood, CustomNoise) or any(
        isinstance(likelihood, kind) for kind in likelihoods.REGISTRY.values()
    )


def make_spec(
    layer_sizes: Any,
    *,
    activation: Any,
    prior: Any,
    likelihood: Any,
    parameterization: Any,
    x_transform: Any,
    y_transform: Any,
    dtype: Any,
) -> ModelSpec:
    """Validates the arguments of `BayesianMLP` and builds the spec they describe."""
    sizes = _layer_sizes(layer_sizes)
    if not _is_usable(likelihood):
        wanted = "likelihood must be one of tfbnn.likelihoods"
        raise unknown_settings(wanted, likelihoods.REGISTRY, likelihood)
    likelihood.check_outputs(sizes[-1])
    settled = settle(sizes, prior, parameterization, likelihood, y_transform)
    prior, parameterization, likelihood, y_transform, choices = settled
    spec = ModelSpec(
        layer_sizes=sizes,
        activations=_activations(activation, num_hidden=len(sizes) - 2),
        priors=priors.resolve_priors(prior, num_layers=len(sizes) - 1),
        likelihood=likelihood,
        parameterization=check_choice("parameterization", parameterization, PARAMETERIZATIONS),
        x_transform=parse_names(x_transform, "x_transform"),
        y_transform=_y_transform(y_transform, likelihood),
        dtype=check_choice("dtype", dtype_name(dtype), DTYPES),
        choices=choices,
    )
    check_own(spec, REGISTRY)
    priors.check_shapes(spec.priors, sizes)
    unscaled = [
        prior
        for layer in spec.priors
        for prior in (layer.kernel, layer.bias)
        if not prior.has_scale
    ]
    if spec.is_ntk and unscaled:
        raise ValueError(
            f"{unscaled[0]!r} has no scale that the ntk parameterisation could take out of the "
            "weights, received parameterization='ntk'. Use parameterization='standard'."
        )
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


def _activations(activation: Any, num_hidden: int) -> tuple[str, ...]:
    if not isinstance(activation, (list, tuple)):
        return (_activation(activation),) * num_hidden
    if len(activation) != num_hidden:
        raise ValueError(
            f"activation must be one name or {num_hidden}, one per hidden layer, received "
            f"{len(activation)}."
        )
    return tuple(map(_activation, activation))


def _activation(activation: Any) -> str:
    return check_choice("activation", activation_name(activation), ACTIVATIONS)


def _y_transform(y_transform: Any, likelihood: likelihoods.Likelihood) -> tuple[str, ...]:
    """Names of the transforms of the targets, or OPEN where rows are to choose them."""
    if is_auto(y_transform):
        return OPEN
    names = parse_names(y_transform, "y_transform")
    if names and likelihood.has_classes:
        raise ValueError(
            f"y_transform must be None for {type(likelihood).__name__}, whose targets are class "
            f"labels, received {list(names)}. Leave y_transform out."
        )
    return names
