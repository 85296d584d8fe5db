"""Description of a network whose hidden layers have infinite width: a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.validation import check_integer
from tfbnn.spec.choices import is_auto
from tfbnn.spec.likelihoods import Gaussian, Likelihood
from tfbnn.spec.limit_kernels import LIMITS
from tfbnn.spec.network_parts import NetworkFacts
from tfbnn.spec.network_spec import INFINITE, LayeredSpec, check_priors
from tfbnn.system.arrays import Array

# Largest number of rows on which the hyper-parameters are sampled, because each gradient inverts
# their covariance; and largest number of rows on which predictions are conditioned.
MOST_SAMPLED, MOST_ROWS = 400, 4000
# Standard deviation of noise that is always added, on the scale that the network sees: with less,
# covariances cannot be factorised in float64.
NOISE_FLOOR = 1e-4
_MOST_LAYERS = 16


@dataclass(frozen=True)
class FunctionGaussian(Gaussian):
    """Gaussian noise around functions whose value at each row is itself normal, for every draw.

    The outputs are the K means of such a function, then its K standard deviations. Users see only a
    Gaussian.
    """

    def num_targets(self, num_outputs: int) -> int:
        return num_outputs // 2

    def num_outputs(self, num_targets: int, num_classes: int = 0) -> int:
        return 2 * num_targets

    def num_noise_parameters(self, num_outputs: int) -> int:
        return super().num_noise_parameters(num_outputs // 2)

    def spread(self, outputs: Array) -> Array:
        """Return standard deviations [S, n, K] of the functions from outputs [S, n, 2 K]."""
        return outputs[..., outputs.shape[-1] // 2 :]

    def scale(self, outputs: Array, log_noise_scale: Array, row_noise: Array | None) -> Array:
        noise = super().scale(outputs, log_noise_scale, row_noise)
        return np.hypot(np.hypot(noise, NOISE_FLOOR), self.spread(outputs))

    def check_outputs(self, num_outputs: int) -> None:
        super().check_outputs(num_outputs // 2)

    def __repr__(self) -> str:
        return repr(Gaussian(self.noise_scale, self.scale_prior))


# Files and messages show it as the Gaussian from which it is made; pickles use the qualified name.
FunctionGaussian.__name__ = Gaussian.__name__


class LayerVariances(NamedTuple):
    """Prior variances of a layer: of the kernel, divided by its number of inputs, and of the bias.

    The first kernel has one variance per input [D], or one for all.
    """

    kernel: Any
    bias: Any


@dataclass(frozen=True, kw_only=True)
class InfiniteSpec(LayeredSpec):
    """A multilayer perceptron of infinite width. Build it with `make_infinite_spec`.

    Its weights are integrated out: theta holds only the log scales of noise and priors. Everything
    is computed in float64.

    Attributes besides those of `NetworkSpec`:
        layer_sizes: Number of inputs, infinity for each hidden layer, number of targets.
        activations, priors: As in `ModelSpec`.
    """

    gains_from_xla = False

    @property
    def kernel_shapes(self) -> list[tuple[int, int]]:
        """Shapes of kernels without weights, which have only scales."""
        return [(int(self.layer_sizes[0]), 0), *[(1, 0)] * (len(self.layer_sizes) - 2)]

    def layer_variances(self, theta: Array) -> list[LayerVariances]:
        """Compute the LayerVariances of each layer for parameters theta [P]."""
        found = []
        for prior, _, scale_span in self.weight_groups():
            fixed = np.full(1, float(prior.scale or 0.0) ** 2)
            found.append(fixed if prior.scale_prior is None else np.exp(2.0 * theta[scale_span]))
        first, *kernels = found[::2]
        kernels = [first / self.layer_sizes[0], *(one[0] for one in kernels)]
        return [LayerVariances(one, bias[0]) for one, bias in zip(kernels, found[1::2])]

    def noise_scales(self, theta: Array, row_noise: Array | None, num_rows: int) -> Array:
        """Compute noise standard deviations of every row for parameters theta [S, P]: [S, N, K]."""
        nothing = np.zeros((len(theta), num_rows, 2 * self.num_targets))
        log_scales = theta[:, self.layout.log_noise_scale]
        scales = self.regression_likelihood.scale(nothing, log_scales, row_noise)
        return np.broadcast_to(scales, (len(theta), num_rows, self.num_targets))

    @cached_property
    def network(self) -> NetworkFacts:
        num_outputs = 2 * int(self.layer_sizes[-1])
        return NetworkFacts(
            input_shape=(int(self.layer_sizes[0]),),
            num_outputs=num_outputs,
            num_units=num_outputs,
            widest=num_outputs,
            # A covariance is inverted for each gradient.
            num_products=MOST_SAMPLED**2,
            is_smooth=True,
            no_jacobian=None,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        said = (
            "Infinite width: weights are integrated out, and the scales of noise and priors are sampled. "
            f"The noise is never below {NOISE_FLOOR:g} on the scale that the network sees. "
            "Files hold the rows of the fit."
        )
        stands = sorted({"tanh", "sigmoid"} & set(self.activations))
        if stands:
            said += f" An erf of the same slope stands for {' and '.join(stands)}."
        return (said,)

    def indices_of_chains(self, num_rows: int) -> Array | None:
        """Return indices of 400 rows, drawn with a fixed seed, or None if there are no more."""
        if num_rows <= MOST_SAMPLED:
            return None
        indices: Array = np.sort(np.random.default_rng(0).permutation(num_rows)[:MOST_SAMPLED])
        return indices


_ADVICE = "Use fit_posterior and predict, which needs NumPy alone, or finite widths."


def require_weights(spec: object, what: str, advice: str = _ADVICE) -> None:
    """Raise ValueError for infinite width; the message begins with `what`, which needs weights."""
    if isinstance(spec, InfiniteSpec):
        raise ValueError(f"{what} needs networks with weights, received infinite width. {advice}")


def has_infinite(layer_sizes: Any) -> bool:
    """Check whether the hidden layers are infinite.

    Raises:
        ValueError: If only some of them are infinite, if inputs or outputs are, or if there are too
            many.
    """
    if isinstance(layer_sizes, np.ndarray):
        layer_sizes = layer_sizes.tolist()
    if not isinstance(layer_sizes, (list, tuple)):
        return False
    infinite = [size in (INFINITE, inf) for size in layer_sizes]
    if not any(infinite):
        return False
    if len(infinite) < 3 or infinite[0] or infinite[-1] or not all(infinite[1:-1]):
        raise ValueError(
            "layer_sizes must have hidden layers that are all finite or all infinite, such as [5, inf, 1], "
            f"received {list(layer_sizes)}."
        )
    if len(infinite) > _MOST_LAYERS:
        raise ValueError(
            f"layer_sizes must have at most {_MOST_LAYERS} entries where layers are infinite, received "
            f"{len(infinite)}."
        )
    return True


def make_infinite_spec(
    layer_sizes: Any, *, activation: Any, likelihood: Likelihood, prior: Any, **settings: Any
) -> InfiniteSpec:
    """Check the arguments of `BayesianMLP` with infinite hidden layers, and build their spec.

    Raises:
        TypeError, ValueError: For settings that have no infinite limit.
    """
    # An array with infinity holds floats.
    ends = [layer_sizes[0], layer_sizes[-1]]
    ends = [
        int(end) if isinstance(end, (float, np.floating)) and end.is_integer() else end
        for end in ends
    ]
    ends = [check_integer("layer_sizes", end, minimum=1) for end in ends]
    sizes = (ends[0], *[inf] * (len(layer_sizes) - 2), ends[1])
    if not isinstance(likelihood, Gaussian):
        raise ValueError(
            f"Infinite width needs likelihood=Gaussian(), received {likelihood!r}. Use finite widths for "
            "other noise and for classes."
        )
    if is_auto(settings["parameterization"]):
        settings["parameterization"] = "ntk"
    if settings["parameterization"] != "ntk":
        raise ValueError(
            "Infinite width needs parameterization='ntk', received "
            f"{settings['parameterization']!r}: with weights of a fixed scale outputs would be infinite."
        )
    of_function = FunctionGaussian(likelihood.noise_scale, likelihood.scale_prior)
    settings |= {"likelihood": of_function, "prior": prior}
    spec = InfiniteSpec.make(sizes, 2 * ends[1], activation, settings)
    for one in (prior for layer in spec.priors for prior in (layer.kernel, layer.bias)):
        if not (one.is_normal and one.has_scale):
            raise ValueError(
                f"Infinite width needs normal priors, received {one!r}. Use Normal, HierarchicalNormal or ARD."
            )
    for name in spec.activations:
        if name not in LIMITS:
            raise ValueError(
                f"Infinite width has closed forms for {', '.join(LIMITS)}, received activation={name!r}."
            )
    check_priors(spec)
    return replace(spec, dtype="float64")
