"""Base class of the descriptions of networks, and checks of the settings that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf, prod
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from tfbnn.data.transforms import parse_names
from tfbnn.data.validation import check_choice, check_number, unknown_settings
from tfbnn.spec import counts as counts  # registers its classes
from tfbnn.spec import likelihoods, priors
from tfbnn.spec.activations import activations_of
from tfbnn.spec.choices import AUTO, Choice, is_auto
from tfbnn.spec.defaults import default_prior, default_y_transform, transform_choice
from tfbnn.spec.layout import Layer, Layout, Slot
from tfbnn.spec.network_parts import NetworkFacts
from tfbnn.spec.own_classes import check_settings, import_name, with_custom, without_layers
from tfbnn.spec.own_densities import CustomNoise, CustomPrior
from tfbnn.spec.priors import EarlierRows, HalfNormal, LayerPrior, ScalePrior, WeightPrior
from tfbnn.spec.settings_json import settings_to_json
from tfbnn.system.arrays import Array

T = TypeVar("T")

PARAMETERIZATIONS = ("standard", "ntk")
DTYPES = ("float32", "float64")

# Transform of the targets that the rows of a fit will choose.
OPEN = (AUTO,)
INFINITE = "inf"

REGISTRY = ChainMap(priors.REGISTRY, likelihoods.REGISTRY)


class Readout(NamedTuple):
    """A linear last layer: its layout in theta, kernel then bias, and its prior."""

    layer: Layer
    prior: LayerPrior


@dataclass(frozen=True, kw_only=True)
class NetworkSpec(ABC):
    """A network with priors on its weights and a likelihood.

    Attributes:
        likelihood: A likelihood settings object.
        parameterization: "standard" or "ntk". With "ntk" the network multiplies a kernel by
            s / sqrt(inputs of the layer) and a bias by s, where s is the scale of the prior. If
            each input has a scale of its own, each row of the kernel has its own s. The parameters
            themselves have prior scale 1.
        x_transform, y_transform: Tuples of transform names. The latter is empty for classes, and
            ("auto",) until the rows of a fit choose it: see `closed`.
        dtype: "float32" or "float64", of the parameters and of the sampling.
        likelihood_power: Power of the likelihood in the density: 1 unless a fit coarsens it. Every
            density, gradient and curvature made from the spec includes the power. Predictions and
            scores of rows use the likelihood without it.
        earlier: Contribution of the rows of an earlier fit to the prior of the weights, or None.
        choices: Choices made for settings that were "auto". They are not part of the model, and
            files keep them elsewhere.
        others: Other candidate networks, if the rows of a fit choose between them and this one; not
            part of the model either.
        what_it_computes: Names of the attributes that must agree between two networks for their
            weights to mean the same.
        holds_priors: Name of the attribute with the priors.
    """

    what_it_computes: ClassVar[tuple[str, ...]]
    gains_from_xla: ClassVar[bool] = True
    holds_priors: ClassVar[str] = "priors"

    likelihood: likelihoods.Likelihood
    parameterization: str
    x_transform: tuple[str, ...]
    y_transform: tuple[str, ...]
    dtype: str
    likelihood_power: float = 1.0
    earlier: EarlierRows | None = None
    choices: tuple[Choice, ...] = field(default=(), compare=False)
    others: tuple[NetworkSpec, ...] = field(default=(), compare=False)

    def for_rows(self, x: Any, y: Any, missing: str) -> Self:
        """Return the network for a user's rows; by default this one, whose sizes are known."""
        return self

    @property
    @abstractmethod
    def variables(self) -> Sequence[tuple[str, tuple[int, ...], WeightPrior]]:
        """(Name, shape, prior) of each kernel, bias and other variable, in the order of theta.

        The kernel of a layer comes before its bias.
        """

    @cached_property
    def layout(self) -> Layout:
        """Layout of all parameters in theta."""
        num_noise = self.likelihood.num_noise_parameters(self.num_outputs)
        num_scales = [
            prior.num_scales(shape[0] if len(shape) == 2 else 1)
            for _, shape, prior in self.variables
        ]
        ends = np.cumsum([0, *(prod(shape) for _, shape, _ in self.variables)]).tolist()
        behind = np.cumsum([ends[-1] + num_noise, *num_scales]).tolist()
        slots = tuple(
            Slot(name, shape, slice(*ends[k : k + 2]), slice(*behind[k : k + 2]))
            for k, (name, shape, _) in enumerate(self.variables)
        )
        return Layout(slots, ends[-1], num_noise, behind[-1])

    def weight_groups(self) -> Iterator[tuple[WeightPrior, slice, slice]]:
        """Yield (prior, slice of weights, slice of sampled log scales) for every variable."""
        for (_, _, prior), slot in zip(self.variables, self.layout.slots):
            yield prior, slot.weights, slot.scales

    def limits_of(self, prior: WeightPrior) -> tuple[Array, Array]:
        """Return the ends of a prior for theta, each [1] or [n]; in ntk theta is in units of the scale."""
        unit = priors.entries(prior.scale) if self.is_ntk and prior.scale else np.ones(1)
        low, high = prior.limits
        return low / unit, high / unit

    def may_see_inputs(self, slot: Slot) -> bool:
        """Check whether a variable may be the kernel of a layer on the inputs."""
        return len(slot.shape) == 2 and slot.shape[0] == self.num_inputs

    def indices_of_chains(self, num_rows: int) -> Array | None:
        """Return the indices of the rows on which theta is sampled, or None for all rows."""
        return None

    def num_rows_of_chains(self, num_rows: int) -> int:
        """Return the number of rows on which theta is sampled."""
        indices = self.indices_of_chains(num_rows)
        return num_rows if indices is None else len(indices)

    @property
    def readout(self) -> Readout | None:
        """The last layer if it is linear, has a bias and is sampled; else None, which is the default."""
        return None

    @property
    @abstractmethod
    def network(self) -> NetworkFacts:
        """Sizes and other facts of the network."""

    @property
    def num_inputs(self) -> int:
        """Number of inputs D: all numbers of an input row, whatever its shape."""
        return prod(self.network.input_shape)

    @property
    def num_outputs(self) -> int:
        """Number of outputs per row."""
        return self.network.num_outputs

    @property
    @abstractmethod
    def architecture_text(self) -> str:
        """Short description of the network, such as "5-20-20-1, tanh"."""

    def after(self, earlier: EarlierRows) -> Self:
        """Return the spec with the contribution of earlier rows to its prior.

        Raises:
            TypeError, ValueError: If `earlier` is no EarlierRows, or belongs to another network.
        """
        if not isinstance(earlier, EarlierRows):
            raise TypeError(f"earlier must be EarlierRows, received {earlier!r:.200}.")
        sizes = self.num_parameters, self.num_inputs, self.num_targets
        if sizes != (earlier.networks.shape[1], earlier.x.shape[1], earlier.y.shape[1]):
            raise ValueError(
                f"earlier must be of networks with {sizes[0]} parameters, {sizes[1]} inputs and "
                f"{sizes[2]} targets, received {earlier!r}."
            )
        return replace(self, earlier=earlier)

    @property
    def num_earlier(self) -> int:
        """Number of rows of earlier fits in the prior; each costs as much as a new row."""
        return 0 if self.earlier is None else self.earlier.num_kept

    def of_earlier(self) -> Self:
        """Return the spec of the likelihood of the earlier rows, without a further power."""
        return replace(self, earlier=None, likelihood_power=1.0)

    @property
    def own_settings(self) -> list[CustomPrior | CustomNoise]:
        """The user-defined priors of all layers, and the likelihood if it is user-defined."""
        settings = (*(prior for prior, _, _ in self.weight_groups()), self.likelihood)
        return [one for one in settings if isinstance(one, (CustomPrior, CustomNoise))]

    @property
    def own_classes(self) -> tuple[type, ...]:
        """Classes of `own_settings`, each once."""
        return tuple(dict.fromkeys(map(type, self.own_settings)))

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names of the user-defined classes, each as "module:name"."""
        return tuple(map(import_name, self.own_classes))

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain dicts, lists, strings and numbers.

        The function `spec_from_json` of `tfbnn.spec.keras_spec` reads them.
        """

    @property
    def num_parameters(self) -> int:
        """Number of parameters P, the length of theta."""
        return self.layout.num_parameters

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the network for the report of a fit; most networks have none."""
        return ()

    def parameter_name(self, index: int) -> str:
        """Return a readable name of one entry of theta, for messages."""
        return self.layout.parameter_name(index)

    def flat_inputs(self, x: Any) -> Any:
        """Reshape user inputs to one axis for all numbers of a row, if a row has several axes."""
        return x

    @property
    def num_targets(self) -> int:
        return self.likelihood.num_targets(self.num_outputs)

    @property
    def is_open(self) -> bool:
        """True if the rows of a fit will choose the transform of the targets."""
        return self.y_transform == OPEN

    def closed(self, y_transform: tuple[str, ...], why: str) -> Self:
        """Return the spec with a definite transform of the targets, if the transform was open.

        The reason `why` is recorded with the choice.
        """
        if not self.is_open:
            return self
        choice = transform_choice(y_transform, why)
        others = tuple(other.closed(y_transform, why) for other in self.others)
        choices = (*self.choices, choice)
        return replace(self, y_transform=y_transform, choices=choices, others=others)

    @property
    def coarsening_note(self) -> str | None:
        """Sentence for every report of draws whose likelihood has a power below 1, else None."""
        if self.likelihood_power == 1.0:
            return None
        return (
            f"likelihood_power={self.likelihood_power!r}: a coarsened posterior (Miller and Dunson "
            "2019), in which every row has this weight. It is wider than the posterior; R-hat, log "
            "densities and log evidence refer to it, while error bars add the full noise."
        )

    @property
    def noise_prior(self) -> ScalePrior | None:
        """Prior of learned noise scales, or None if there are none."""
        prior = self.likelihood.scale_prior
        return prior if isinstance(prior, ScalePrior) else None

    @property
    def has_classes(self) -> bool:
        """True if targets are class labels, and predictions probabilities."""
        return self.likelihood.has_classes

    @property
    def has_additive_noise(self) -> bool:
        """True if targets are numbers with noise around the outputs, neither classes nor counts."""
        return isinstance(self.likelihood, likelihoods.AdditiveNoise)

    @property
    def has_counts(self) -> bool:
        """True if targets are counts, and predictions rates."""
        return self.likelihood.has_counts

    @property
    def class_likelihood(self) -> likelihoods.ClassLikelihood:
        """The likelihood as a ClassLikelihood; raises TypeError if it has no classes."""
        if isinstance(self.likelihood, likelihoods.ClassLikelihood):
            return self.likelihood
        raise TypeError(f"{self.likelihood_name} has no classes. Ask `has_classes` first.")

    @property
    def regression_likelihood(self) -> likelihoods.Regression:
        """The likelihood as a Regression; raises TypeError if its targets are classes."""
        if isinstance(self.likelihood, likelihoods.Regression):
            return self.likelihood
        raise TypeError(f"{self.likelihood_name} has no noise. Ask `has_classes` first.")

    @property
    def num_classes(self) -> int:
        """Number of classes of every target; for class likelihoods only."""
        return self.class_likelihood.num_classes(self.num_outputs)

    @property
    def likelihood_name(self) -> str:
        """Name of the likelihood's class, for messages."""
        return type(self.likelihood).__name__

    @property
    def num_predicted(self) -> int:
        """Number of columns of a prediction: one per target, or with Categorical one per class."""
        return self.num_outputs if self.has_classes else self.num_targets

    @property
    def is_ntk(self) -> bool:
        return self.parameterization == "ntk"


@dataclass(frozen=True, kw_only=True)
class LayeredSpec(NetworkSpec):
    """A multilayer perceptron, of finite or infinite width.

    Attributes besides those of `NetworkSpec`:
        layer_sizes: Widths from inputs to outputs.
        activations: One name per hidden layer.
        priors: One LayerPrior per layer.
    """

    layer_sizes: tuple[Any, ...]
    activations: tuple[str, ...]
    priors: tuple[LayerPrior, ...]

    what_it_computes = ("layer_sizes", "activations")

    @classmethod
    def make(cls, sizes: tuple[Any, ...], num_outputs: int, activation: Any, settings: Any) -> Self:
        """Build a spec from the arguments of `BayesianMLP`, for `check_priors`."""
        layer_priors, common = common_settings(
            num_outputs,
            partial(default_prior, sizes),
            partial(priors.resolve_priors, num_layers=len(sizes) - 1),
            **settings,
        )
        activations = activations_of(activation, num_hidden=len(sizes) - 2)
        return cls(layer_sizes=sizes, activations=activations, priors=layer_priors, **common)

    @property
    @abstractmethod
    def kernel_shapes(self) -> list[tuple[int, int]]:
        """Shape of the kernel of each layer."""

    @cached_property
    def variables(self) -> list[tuple[str, tuple[int, ...], WeightPrior]]:
        found: list[tuple[str, tuple[int, ...], WeightPrior]] = []
        for number, (layer, shape) in enumerate(zip(self.priors, self.kernel_shapes), start=1):
            found.append((f"layer {number} kernel", shape, layer.kernel))
            found.append((f"layer {number} bias", shape[1:], layer.bias))
        return found

    def may_see_inputs(self, slot: Slot) -> bool:
        """Check whether a variable is the first kernel."""
        return slot.name == "layer 1 kernel"

    @property
    def architecture_text(self) -> str:
        """Widths and activations, such as "5-20-20-1, tanh"."""
        return ", ".join(["-".join(map(str, self.layer_sizes)), *dict.fromkeys(self.activations)])

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain dicts, lists, strings and numbers, for `ModelSpec.from_json`."""
        entry = settings_to_json(self)
        del entry["name"], entry["choices"], entry["others"]
        if self.likelihood_power == 1.0:  # the value of files without this entry
            del entry["likelihood_power"]
        if self.earlier is None:
            del entry["earlier"]
        return entry | {"layer_sizes": [INFINITE if n == inf else n for n in self.layer_sizes]}


def dtype_name(dtype: Any) -> Any:
    """Return the name of a NumPy or TensorFlow dtype; return other values unchanged."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    try:
        return np.dtype(dtype).name
    except TypeError:
        return getattr(dtype, "name", dtype)


def check_likelihood_power(power: Any) -> float:
    """Check that a power of the likelihood lies in (0, 1], and return it as a float.

    Raises:
        TypeError, ValueError: For any other value.
    """
    return check_number("likelihood_power", power, above=0, maximum=1)


def check_custom(custom: Iterable[Any]) -> tuple[type, ...]:
    """Check user-defined classes, and return those that are not layers.

    Layer classes are remembered instead.

    Raises:
        TypeError, ValueError: For anything that `with_custom` refuses.
    """
    classes: tuple[type, ...] = without_layers(custom)
    with_custom(REGISTRY, classes)
    return classes


def check_likelihood(likelihood: Any) -> None:
    """Raise TypeError unless the argument is a likelihood."""
    if not isinstance(likelihood, (CustomNoise, *likelihoods.REGISTRY.values())):
        wanted = "likelihood must be one of tfbnn.likelihoods, or noise that inherits from CustomNoise there:"
        raise unknown_settings(wanted, likelihoods.REGISTRY, likelihood)


def common_settings(
    num_outputs: int,
    default_prior: Callable[[likelihoods.Likelihood], tuple[Any, str, str]],
    resolve_prior: Callable[[Any], T],
    *,
    prior: Any,
    likelihood: Any,
    parameterization: Any,
    x_transform: Any,
    y_transform: Any,
    dtype: Any,
) -> tuple[T, dict[str, Any]]:
    """Check the settings that all networks share, and replace "auto" where no rows are needed.

    Args:
        num_outputs: Number of outputs of the network.
        default_prior: Function of the likelihood that returns the prior for "auto", its text and the
            reason.
        resolve_prior: Function that converts a prior as users pass it, or that default.
        prior, likelihood, parameterization, x_transform, y_transform, dtype: As users pass them.

    Returns:
        (Result of `resolve_prior`, fields of a NetworkSpec).

    Raises:
        TypeError, ValueError: For settings that do not describe a model.
    """
    check_likelihood(likelihood)
    likelihood.check_outputs(num_outputs)
    dtype = check_choice("dtype", dtype_name(dtype), DTYPES)
    choices, prior_is_chosen = [], is_auto(prior)
    if prior_is_chosen:
        prior, text, why = default_prior(likelihood)
        choices.append(Choice("prior", text, why))
    if is_auto(parameterization):
        parameterization, why = "ntk", "one prior is right for every width"
        if not prior_is_chosen:
            parameterization = "standard"
            why = "the prior that was given is one of the weights themselves"
        choices.append(Choice("parameterization", parameterization, why))
    if is_auto(likelihood.scale_prior):
        # Whatever its shape, noise is part of the spread of the targets.
        scale_prior, why = HalfNormal(1.0), "noise is hardly larger than the spread of the targets"
        if likelihood.has_counts:
            why = "rates hardly scatter by more than their mean"
        likelihood = replace(likelihood, scale_prior=scale_prior)
        if likelihood.num_noise_parameters(num_outputs):
            choices.append(Choice("scale_prior", str(scale_prior), why))
    if is_auto(y_transform) and (chosen := default_y_transform(likelihood)) is not None:
        y_transform, why = chosen
        choices.append(transform_choice(y_transform, why))
    return resolve_prior(prior), {
        "likelihood": likelihood,
        "parameterization": check_choice("parameterization", parameterization, PARAMETERIZATIONS),
        "x_transform": parse_names(x_transform, "x_transform"),
        "y_transform": _y_transform(y_transform, likelihood),
        "dtype": dtype,
        "choices": tuple(choices),
    }


def check_priors(spec: NetworkSpec) -> None:
    """Check that every prior fits its weights.

    Raises:
        TypeError, ValueError: With the name of the weights, or the prior.
    """
    registry = with_custom(REGISTRY, spec.own_classes)
    for settings in spec.own_settings:
        check_settings(settings, registry)
    for (name, shape, prior), slot in zip(spec.variables, spec.layout.slots):
        if prior.shape not in (None, shape):
            raise ValueError(
                f"{name!r} has shape {list(shape)}, received a prior with arrays of shape "
                f"{list(prior.shape or ())}. Give each kernel and bias a prior of its own."
            )
        if prior.per_input and not spec.may_see_inputs(slot):
            raise ValueError(no_scales_of_inputs(prior, name))
        if spec.is_ntk and not prior.has_scale:
            raise ValueError(
                f"{prior!r} has no scale that the ntk parameterisation could take out of the "
                "weights, received parameterization='ntk'. Use parameterization='standard'."
            )


def no_scales_of_inputs(prior: WeightPrior, name: str) -> str:
    """Return the error message for weights whose prior has one scale per input but may not."""
    return (
        f"{type(prior).__name__} has one scale per input and is for the kernel of a layer on the inputs "
        f"alone, received it for {name!r}. Pass prior=[{{'kernel': ARD(), 'bias': Normal()}}, Normal(), ..], "
        "or of a Keras model prior={PATH: ARD()}."
    )


def _y_transform(y_transform: Any, likelihood: likelihoods.Likelihood) -> tuple[str, ...]:
    """Return the names of the transforms of the targets, or OPEN if rows will choose them."""
    if is_auto(y_transform):
        return OPEN
    names = parse_names(y_transform, "y_transform")
    if names and (likelihood.has_classes or likelihood.has_counts):
        kind = "class labels" if likelihood.has_classes else "counts"
        raise ValueError(
            f"y_transform must be None for {type(likelihood).__name__}, whose targets are {kind}, "
            f"received {list(names)}. Leave y_transform out."
        )
    return names


# Margin, in powers of two, between the largest size and the largest number with a finite square. It
# leaves room for draws that are larger than their scale, and for sums of them.
_ROOM = 4


def check_prior_sizes(spec: NetworkSpec) -> None:
    """Check that the dtype of the model can square the scales of priors and noise.

    The inverses of the scales must have squares, too: densities and curvatures hold (w / s)^2 and
    1 / s^2, which would otherwise be zero, infinite or NaN. Only new models are checked: files are
    read whatever they hold.

    Raises:
        ValueError: With the prior, and the sizes that the dtype allows.
    """
    numbers = np.finfo(spec.dtype)
    limit = 2.0 ** (numbers.maxexp // 2 - _ROOM)
    checked: list[WeightPrior | ScalePrior] = [prior for _, _, prior in spec.variables]
    if spec.noise_prior is not None:
        checked.append(spec.noise_prior)
    # A size in float32 could not be compared with the limits of float64.
    checked_sizes = ((prior, float(size)) for prior in checked for size in prior.sizes)
    sizes = [(size, 1.0 / limit, limit, repr(prior)) for prior, size in checked_sizes]
    noise = spec.likelihood.noise_scale
    if noise is not None and not isinstance(noise, str):
        # Only targets divided by it are squared.
        low, high = float(np.sqrt(numbers.tiny)), float(numbers.max)
        sizes += [(size, low, high, "noise_scale") for size in np.ravel(noise).tolist()]
    for size, low, high, what in sizes:
        if not low <= size <= high:
            raise ValueError(
                f"The sizes of {what} must lie between {low:.2g} and {high:.2g} for {spec.dtype}, "
                f"received {size:.3g}. Rescale inputs or targets, or use dtype='float64'."
            )


def draw_parameters(spec: NetworkSpec, generator: np.random.Generator) -> Array:
    """Draw all parameters theta [P] from their prior, in the sampled coordinates."""
    layout = spec.layout
    theta = np.zeros(layout.num_parameters)
    for prior, span, scale_span in spec.weight_groups():
        count = span.stop - span.start
        if prior.scale_prior is not None:
            num_scales = scale_span.stop - scale_span.start
            scales = prior.scale_prior.sample(generator, num_scales)
            theta[scale_span] = np.log(scales)
            in_theta = 1.0 if spec.is_ntk else np.repeat(scales, count // num_scales)
            theta[span] = prior.sample(generator, count, in_theta)  # type: ignore[call-arg]
        else:
            weights = prior.sample(generator, count)
            theta[span] = weights / prior.scale if spec.is_ntk and prior.scale else weights
    if layout.num_noise and spec.noise_prior is not None:
        scales = spec.noise_prior.sample(generator, layout.num_noise)
        theta[layout.log_noise_scale] = np.log(scales)
    return theta
