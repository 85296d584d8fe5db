"""Priors of weights and of positive scales: settings and draws, in NumPy.

Their log densities, in TensorFlow, are in `tfbnn.engine.density.densities`, registered for each
class (see `tfbnn.spec.required`); tests compare the two. A scale prior is a density of a positive
scale s. Chains sample log(s), and the density of log(s) includes the Jacobian.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, prod, sqrt
from typing import Any, ClassVar

import numpy as np

from tfbnn.data.validation import as_float_array, check_integer, check_number, unknown_settings
from tfbnn.spec.settings_json import ADDED
from tfbnn.system.arrays import Array, read_only

# Classes by their names, as in files. A class enters the table of its family when it is defined.
SCALE_PRIORS: dict[str, type[ScalePrior]] = {}
WEIGHT_PRIORS: dict[str, type[WeightPrior]] = {}
REGISTRY: dict[str, type] = {}

_DRAWS_FOR_MEDIAN = 40_001


class ScalePrior(ABC):
    """Base class of the priors of a positive scale s; subclasses are frozen dataclasses.

    Attributes:
        sizes: Typical values of s, or of other quantities that are squared. The dtype of a model
            must be able to square them (`tfbnn.spec.network_spec`). By default the setting `scale`,
            if there is one.
    """

    scale: float | None = None

    def __init_subclass__(cls) -> None:
        SCALE_PRIORS[cls.__name__] = REGISTRY[cls.__name__] = cls

    def __post_init__(self) -> None:
        if type(self).scale is not None:  # the class has such a setting
            check_number("scale", self.scale, above=0)

    @property
    def sizes(self) -> tuple[float, ...]:
        return () if self.scale is None else (self.scale,)

    @property
    def median(self) -> float:
        """Median of s; without a closed form, an estimate from many draws, right to a hundredth."""
        return float(np.median(self.sample(np.random.default_rng(0), _DRAWS_FOR_MEDIAN)))

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw values of s."""


class WeightPrior(ABC):
    """Base class of the priors of weights, for each entry of a kernel or bias.

    Subclasses are frozen dataclasses.

    Attributes:
        is_own: Whether a user defines the class in a file of their own; such classes are in no
            table.
        scale: Scale that the ntk parameterisation takes out of the weights; None if there is none,
            or if it is sampled.
        scale_prior: Prior of a scale that is sampled together with the weights, or None.
        per_input: Whether each input has a sampled scale of its own; only for the first kernel.
        is_normal: Whether the weights are N(0, s^2), where s is the scale.
        is_even: Whether w and -w have the same density, for every weight.
        shape: Shape of the kernel or bias that the prior is for, or None if it fits all.
        sizes: Typical sizes of weights, see `ScalePrior`. By default those of the scale.
    """

    is_own: ClassVar[bool] = False
    scale: float | None = None
    scale_prior: ScalePrior | None = None
    per_input: bool = False

    def __init_subclass__(cls) -> None:
        if not cls.is_own:
            WEIGHT_PRIORS[cls.__name__] = REGISTRY[cls.__name__] = cls

    @abstractmethod
    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw weights. Priors with a sampled scale take it as their last argument."""

    def num_scales(self, num_inputs: int) -> int:
        """Return the number of sampled scales of a kernel; a bias has num_inputs = 1."""
        if self.scale_prior is None:
            return 0
        return num_inputs if self.per_input else 1

    @property
    def sizes(self) -> tuple[float, ...]:
        if self.scale_prior is not None:
            return self.scale_prior.sizes
        return () if self.scale is None else (self.scale,)

    @property
    def has_scale(self) -> bool:
        """True if the weights have a scale, fixed or sampled."""
        return self.scale is not None or self.scale_prior is not None

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None

    @property
    def is_normal(self) -> bool:
        return False

    @property
    def is_even(self) -> bool:
        low, high = self.limits
        return low == -high

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the interval outside which the density is zero."""
        return -inf, inf

    @property
    def is_bounded(self) -> bool:
        """True if the density is zero for some weights."""
        return any(map(isfinite, self.limits))


def check_scale_prior(prior: object) -> None:
    """Raise TypeError unless the argument is a prior of a positive scale."""
    if not isinstance(prior, ScalePrior):
        raise unknown_settings("scale_prior must be one of tfbnn.priors", SCALE_PRIORS, prior)


def text_of(array: Array) -> str:
    """Encode an array as base64 text for files: its exact bytes, little-endian, in C order."""
    stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return b64encode(stored.tobytes()).decode("ascii")


def array_of(text: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Decode an array that `text_of` encoded.

    Raises:
        ValueError: For text that is not base64, or has another number of bytes.
    """
    stored = np.dtype(dtype).newbyteorder("<")
    raw = b64decode(text, validate=True)
    if len(raw) != stored.itemsize * prod(shape):
        raise ValueError(f"an array of shape {list(shape)} has not {len(raw)} bytes.")
    return np.frombuffer(raw, stored).astype(dtype).reshape(shape)


@dataclass(frozen=True, repr=False)
class FrozenArray:
    """An immutable array of finite numbers; create one with `of`.

    Attributes:
        shape: Shape of the array.
        data: Its float64 numbers as text, see `text_of`.
    """

    shape: tuple[int, ...]
    data: str

    def __post_init__(self) -> None:
        if not np.isfinite(self.values).all():
            raise ValueError("an array of settings must hold finite numbers.")

    @classmethod
    def of(cls, array: Array) -> FrozenArray:
        """Copy an array into a FrozenArray."""
        return cls(np.shape(array), text_of(np.asarray(array, np.float64)))

    @cached_property
    def values(self) -> Array:
        """The numbers as a read-only float64 array."""
        return read_only(array_of(self.data, self.shape))

    def __repr__(self) -> str:
        return f"array of shape {list(self.shape)}"


REGISTRY["FrozenArray"] = FrozenArray


def number_or_array(name: str, value: Any, above: float | None = None) -> float | FrozenArray:
    """Check a setting that is a number, or an array of any shape with at least one axis.

    Args:
        name: Name of the setting, for messages.
        value: What the user passed.
        above: Lower bound that every number must exceed, or None.

    Returns:
        A float, or a FrozenArray.

    Raises:
        TypeError, ValueError: For anything but finite numbers above the bound.
    """
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    if isinstance(value, FrozenArray):
        array = value.values
    elif isinstance(value, (list, tuple)) or np.ndim(value):
        array = as_float_array(value, name)
    else:
        return check_number(name, value, above=above)
    if not array.size or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers, received {array!r:.200}.")
    if above is not None and array.min() <= above:
        raise ValueError(f"{name} must be above {above:g} everywhere, received {array.min():g}.")
    return FrozenArray.of(array)


def entries(setting: float | FrozenArray) -> Array:
    """Return a setting as an array that broadcasts with weights [..., n] of theta: [n], or [1]."""
    return (
        setting.values.ravel() if isinstance(setting, FrozenArray) else np.full(1, float(setting))
    )


# 75 % quantile of the standard normal: half of the mass lies farther from zero, on either side.
_MEDIAN_OF_HALF_NORMAL = 0.6744897501960817


@dataclass(frozen=True)
class HalfNormal(ScalePrior):
    """`s = |z|`, z ~ N(0, scale^2)."""

    scale: float = 1.0

    @property
    def median(self) -> float:
        return _MEDIAN_OF_HALF_NORMAL * self.scale

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return self.scale * np.abs(generator.standard_normal(shape))


@dataclass(frozen=True)
class HalfCauchy(ScalePrior):
    """`s = |z|`, z ~ Cauchy(0, scale)."""

    scale: float = 1.0

    @property
    def median(self) -> float:
        return self.scale

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return self.scale * np.abs(generator.standard_cauchy(shape))


@dataclass(frozen=True)
class InverseGamma(ScalePrior):
    """The variance v = s^2 ~ InverseGamma(concentration, scale).

    Its density is proportional to v^(-a-1) e^(-b/v), with a the concentration and b the scale.
    """

    concentration: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("concentration", self.concentration, above=0)
        super().__post_init__()

    @property
    def sizes(self) -> tuple[float, ...]:
        return (sqrt(self.scale),)  # the size of s; `scale` is that of s^2

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return np.sqrt(self.scale / generator.gamma(self.concentration, size=shape))


@dataclass(frozen=True)
class LogNormal(ScalePrior):
    """log(s) ~ N(loc, scale^2)."""

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("loc", self.loc)
        super().__post_init__()

    @property
    def sizes(self) -> tuple[float, ...]:
        with np.errstate(over="ignore"):
            return (self.median, self.scale)

    @property
    def median(self) -> float:
        return float(np.exp(self.loc))

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return np.exp(self.loc + self.scale * generator.standard_normal(shape))


@dataclass(frozen=True)
class Normal(WeightPrior):
    """Each weight ~ N(loc, scale^2), independently.

    Attributes:
        scale: Standard deviation, default 1: a number for all weights, or an array of the weights'
            shape: [inputs, outputs] for a kernel, [outputs] for a bias.
        loc: Mean, default 0: a number, or an array as well.

    With arrays or a mean, the prior is for one kernel or bias, which the list of priors names:
    `[{"kernel": Normal(0.1, loc=kernel), "bias": Normal()}, Normal()]`. It then needs the standard
    parameterisation, and the readout has no closed form: samplers that need one refuse it.
    """

    scale: float | FrozenArray = 1.0  # type: ignore[assignment]
    loc: float | FrozenArray = field(default=0.0, metadata=ADDED)

    def __post_init__(self) -> None:
        for name, above in (("scale", 0), ("loc", None)):
            given = getattr(self, name)
            value = number_or_array(name, given, above)
            if isinstance(value, FrozenArray) or isinstance(given, np.ndarray):
                object.__setattr__(self, name, value)
        shapes = self._shapes
        if len(set(shapes)) > 1:
            raise ValueError(
                f"scale and loc must have one shape, received {' and '.join(map(str, shapes))}."
            )

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        settings = (self.scale, self.loc)
        return [value.shape for value in settings if isinstance(value, FrozenArray)]

    @property
    def shape(self) -> tuple[int, ...] | None:
        return next(iter(self._shapes), None)

    @property
    def has_scale(self) -> bool:
        return self.shape is None and self.loc == 0

    is_normal = is_even = has_scale

    @property
    def sizes(self) -> tuple[float, ...]:
        scales, largest = entries(self.scale), float(np.abs(entries(self.loc)).max())
        of_scales = float(scales.min()), float(scales.max())
        return (*of_scales, largest) if largest else of_scales

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return entries(self.loc) + entries(self.scale) * generator.standard_normal(shape)

    def __repr__(self) -> str:
        loc = "" if self.loc == 0 else f", loc={self.loc!r}"
        return f"Normal(scale={self.scale!r}{loc})"


@dataclass(frozen=True)
class Laplace(WeightPrior):
    """Each weight ~ Laplace(0, scale), density `exp(-|w| / scale) / (2 scale)`, default scale 1."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return generator.laplace(scale=self.scale, size=shape)


@dataclass(frozen=True)
class HierarchicalNormal(WeightPrior):
    """Each weight ~ N(0, s^2), with a sampled scale s for each kernel and each bias.

    `scale_prior` is the prior of s: HalfCauchy(1.0) by default, or any other scale prior. In the
    ntk parameterisation the unscaled weights are N(0, 1) and s multiplies them in the network.
    """

    scale_prior: ScalePrior = field(default_factory=HalfCauchy)

    is_normal = True

    def __post_init__(self) -> None:
        check_scale_prior(self.scale_prior)

    def sample(
        self,
        generator: np.random.Generator,
        shape: int | tuple[int, ...],
        scale: float | Array = 1.0,
    ) -> Array:
        return scale * generator.standard_normal(shape)


@dataclass(frozen=True)
class ARD(HierarchicalNormal):
    """Automatic relevance determination: weights of input i ~ N(0, s_i^2), every s_i sampled.

    It is only for the kernel of the first layer. If an input carries no information about the
    targets, its s_i shrinks, and its weights with it. `model.relevance()` gives the scales after a
    fit. Other layers and the biases need priors of their own, so the prior of the model is a list:
    `[{"kernel": ARD(), "bias": Normal()}, Normal()]` for one hidden layer.

    `scale_prior` is the prior of each s_i, independently. The default HalfCauchy(1.0) has its
    median at the scale of Normal(1.0), and allows for zero and for ten times as much. Any other
    scale prior may be passed. The inputs share no scale. In the ntk parameterisation the unscaled
    weights are N(0, 1), and the network multiplies those of input i by s_i over the square root of
    the number of inputs.

    References:
        MacKay 1992, Neural Computation 4, 448. Neal 1996, Bayesian Learning for Neural Networks,
        Lecture Notes in Statistics 118, Springer.
    """

    per_input = True


@dataclass(frozen=True)
class Uniform(WeightPrior):
    """Each weight is uniform on [low, high]; outside, the log density is minus infinity."""

    low: float
    high: float

    def __post_init__(self) -> None:
        check_number("low", self.low)
        check_number("high", self.high, above=self.low)

    @property
    def limits(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def sizes(self) -> tuple[float, ...]:
        return (self.high - self.low, max(abs(self.low), abs(self.high)))

    def sample(self, generator: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return generator.uniform(self.low, self.high, size=shape)


@dataclass(frozen=True)
class LayerPrior:
    """Priors of the kernel and the bias of one layer."""

    kernel: WeightPrior
    bias: WeightPrior


REGISTRY["LayerPrior"] = LayerPrior


def resolve_priors(prior: Any, num_layers: int) -> tuple[LayerPrior, ...]:
    """Convert a prior as users pass it to one `LayerPrior` per layer.

    Args:
        prior: A weight prior for everything, a dict {"kernel": .., "bias": ..}, or a list with one
            of these per layer.
        num_layers: Number of layers, the output layer included.

    Returns:
        Tuple of `num_layers` LayerPrior.

    Raises:
        TypeError, ValueError: For anything else.
    """
    if not isinstance(prior, (list, tuple)):
        return (_layer_prior(prior),) * num_layers
    if len(prior) != num_layers:
        raise ValueError(
            f"prior must be one prior or a list of {num_layers}, one per layer with the output "
            f"layer last, received {len(prior)}."
        )
    return tuple(map(_layer_prior, prior))


def _layer_prior(entry: Any) -> LayerPrior:
    entry = vars(entry) if isinstance(entry, LayerPrior) else entry
    priors = entry if isinstance(entry, dict) else {"kernel": entry, "bias": entry}
    if set(priors) != {"kernel", "bias"}:
        raise ValueError(
            "A prior given as a dict must have the keys 'kernel' and 'bias', received "
            f"{sorted(map(str, entry))}."
        )
    for prior in priors.values():
        check_weight_prior(prior, "prior must be made of tfbnn.priors")
    return LayerPrior(**priors)


def check_weight_prior(prior: object, wanted: str) -> None:
    """Raise TypeError unless `prior` is a prior of weights; the message begins with `wanted`."""
    if not isinstance(prior, WeightPrior):
        raise unknown_settings(wanted, WEIGHT_PRIORS, prior)


# Axes of the arrays of EarlierRows, with the letters of its docstring.
_AXES = {"x": "MD", "y": "MK", "noise": "MK", "weights": "M", "networks": "BP", "digests": "N"}


@dataclass(frozen=True)
class EarlierRows:
    """A factor of the prior: the likelihood of some rows, each to the power of its weight.

    It stands for the likelihood of all rows of earlier fits. M rows are kept, on the scale that the
    network sees, with D inputs and K targets. There are B networks of P parameters.

    Attributes:
        x: Inputs [M, D].
        y: Targets [M, K]; class numbers for class likelihoods.
        noise: Known standard deviations [M, K], or None.
        weights: Number of rows that each kept row stands for [M]; the sum is about `num_rows`.
        networks: Last draw of each chain of the earlier fit [B, P]; chains start there.
        num_rows: Number of all rows of earlier fits.
        digests: Digests of all these rows, see `Ensemble.row_digests`; None in older files.
    """

    x: FrozenArray
    y: FrozenArray
    noise: FrozenArray | None
    weights: FrozenArray
    networks: FrozenArray
    num_rows: int
    digests: FrozenArray | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        sizes: dict[str, int] = {}
        for name, axes in _AXES.items():
            array = getattr(self, name)
            if array is None and name in ("noise", "digests"):
                continue
            shape = array.shape if isinstance(array, FrozenArray) else ()
            fits = all(sizes.setdefault(axis, size) == size for axis, size in zip(axes, shape))
            if len(shape) != len(axes) or not fits:
                raise ValueError(
                    f"{name} of EarlierRows must be an array [{', '.join(axes)}] with sizes as of the "
                    f"others, received {array!r:.100}."
                )
        if self.weights.values.min() <= 0:
            raise ValueError("weights of EarlierRows must be positive.")
        digests = np.zeros(0) if self.digests is None else self.digests.values
        if np.any((digests != np.floor(digests)) | (digests < 0) | (digests >= 2.0**32)):
            raise ValueError("digests of EarlierRows must be integers of 32 bits.")
        check_integer("num_rows", self.num_rows, minimum=self.num_kept)

    @classmethod
    def of(cls, *, num_rows: int, noise: Array | None, **arrays: Array) -> EarlierRows:
        """Build the prior from arrays, named as its attributes."""
        frozen = {name: FrozenArray.of(array) for name, array in arrays.items()}
        kept_noise = None if noise is None else FrozenArray.of(noise)
        return cls(num_rows=num_rows, noise=kept_noise, **frozen)

    @property
    def num_kept(self) -> int:
        """Number of rows M that are kept."""
        return self.x.shape[0]

    @property
    def is_condensed(self) -> bool:
        """True if some rows were left out; `networks` then know more than the kept rows."""
        return self.num_kept < self.num_rows

    def __repr__(self) -> str:
        return f"what {self.num_rows} earlier rows say, by {self.num_kept} of them"


REGISTRY["EarlierRows"] = EarlierRows
