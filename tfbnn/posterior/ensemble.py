"""The sampled networks with everything needed to use them: the contents of a model file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from tfbnn.data.coding import Coding, Column
from tfbnn.data.frames import numbered_targets
from tfbnn.data.labels import Classes, label_array
from tfbnn.data.training_inputs import TrainingInputs, trust_levels
from tfbnn.data.transforms import Pipeline
from tfbnn.posterior.basins.basins import Basins
from tfbnn.posterior.calibration.calibration import Calibration
from tfbnn.posterior.conditioned import Conditioned, GivenRows, conditioned, num_averaged
from tfbnn.posterior.provenance import Provenance
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import WeightPrior
from tfbnn.spec.rows import Known, NetworkRows, Rows, transform_rows
from tfbnn.system.arrays import Array, ReadOnlyArrays, read_only
from tfbnn.system.threads import on_all_cores


@dataclass(frozen=True, eq=False)
class Readouts(ReadOnlyArrays):
    """The normal distribution of every draw's readout, given the rest of that draw.

    Attributes:
        mean: Means of the entries of theta that are the readout's, kernel before bias
            [C, S, p * K], for p features (hidden units and the bias) and K outputs.
        factor: Upper triangular F with F F^T the covariance of one output's entries, its rows one
            after the other without the zeros: [C, S, G, p (p + 1) / 2], G = 1 where all outputs
            have the same, else K. None if it was not kept.
    """

    mean: Array
    factor: Array | None = None

    def of_chains(self, chains: Array) -> Readouts:
        """Return the readouts of some chains, given by numbers or a mask."""
        return Readouts(self.mean[chains], None if self.factor is None else self.factor[chains])

    def factors(self, num_features: int) -> Array | None:
        """Return the matrices F of all draws [C * S, G, p, p], or None if they were not kept."""
        if self.factor is None:
            return None
        packed = self.factor.reshape(-1, *self.factor.shape[2:])
        full: Array = np.zeros((*packed.shape[:2], num_features, num_features), packed.dtype)
        rows, columns = np.triu_indices(num_features)
        full[..., rows, columns] = packed
        return full


def pop_readouts(statistics: dict[str, Array]) -> Readouts | None:
    """Remove the readout statistics from a dict and return them as Readouts, or None."""
    mean, factor = (statistics.pop(name, None) for name in ("readout_mean", "readout_factor"))
    return None if mean is None else Readouts(mean, factor)


@dataclass(frozen=True, eq=False)
class Ensemble(ReadOnlyArrays):
    """Posterior draws of one model; arrays are read-only.

    Attributes:
        spec: The model.
        x_pipeline, y_pipeline: Fitted transforms of inputs and targets.
        draws: Parameters theta [C, S, P].
        sample_stats: Dict name -> [C, S]: lp, acceptance_rate, step_size, n_steps, diverging,
            energy.
        chain_weights: Weights of the chains in every average [C], adding up to 1.
        x_reference: Up to 200 rows [R, D] in original units, validation rows if there were any,
            at which function-space diagnostics are taken.
        training_inputs: Range, mean and covariance of the transformed training inputs.
        feature_names: Names of the inputs, or None; those of a coded column are like "colour=red".
        row_noise: Whether the fit was given a known noise scale per row.
        classes: Class labels, in the order of their numbers, or None for other targets.
        vector_target: Whether the single target was fitted as [N], so that predictions for users
            have this shape, too; arrays of the ensemble keep a column per target.
        diagnostics: JSON-able summary of the diagnosis that ended the fit, or None without one.
        provenance: Seeds, settings, versions, data hash and more.
        readouts: Readouts of a run with collapsed readout, else None.
        mode: None if every draw is a network. Else the parameters theta [P] around which the
            network was linearised in theta. The draws are then of a normal distribution there, and
            predict with the tangents (`tfbnn.posterior.forward`), not as networks.
        row_digests: Ascending digests of the rows of the fit (`tfbnn.spec.rows`), empty if they
            were not kept.
        calibration: Calibration of the predictive distribution with noise, or None. It belongs to
            these draws and weights, and is not updated if they change.
        basins: Basins of the chains, as `BayesianMLP.basins` found them, or None.
        given: Rows on which the functions of infinite width are conditioned; None for networks.
        coding: Coding of the columns of users' tables if some hold no numbers, or None.
            All arrays of the ensemble refer to the coded inputs.
    """

    spec: NetworkSpec
    x_pipeline: Pipeline
    y_pipeline: Pipeline
    draws: Array
    sample_stats: dict[str, Array]
    chain_weights: Array
    x_reference: Array
    training_inputs: TrainingInputs
    feature_names: tuple[str, ...] | None = None
    row_noise: bool = False
    classes: Classes | None = None
    vector_target: bool = False
    diagnostics: dict[str, Any] | None = None
    provenance: Provenance = Provenance()
    readouts: Readouts | None = None
    mode: Array | None = None
    row_digests: Array = field(default_factory=lambda: np.empty(0, np.uint32))
    calibration: Calibration | None = None
    basins: Basins | None = None
    coding: Coding | None = None
    given: GivenRows | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        statistics = {name: read_only(values) for name, values in self.sample_stats.items()}
        object.__setattr__(self, "sample_stats", statistics)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: a pickle leaves out the float64 arrays that predictions cache."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __repr__(self) -> str:
        return f"<Ensemble: theta {list(self.draws.shape)}, {', '.join(self.sample_stats)}>"

    @property
    def num_chains(self) -> int:
        return len(self.draws)

    @property
    def num_results(self) -> int:
        return int(self.draws.shape[1])

    @cached_property
    def num_draws(self) -> int:
        """Number of all draws, C * S."""
        return self.num_chains * self.num_results

    @property
    def has_mean_of_target(self) -> bool:
        """True if a new target of a regression, noise included, has a mean in original units."""
        likelihood = self.spec.regression_likelihood
        return self.y_pipeline.is_affine or likelihood.has_exponential_moments

    @cached_property
    def draw_weights(self) -> Array:
        """Weights of all draws, chain by chain [C * S]."""
        return read_only(np.repeat(self.chain_weights / self.num_results, self.num_results))

    @cached_property
    def target_unit(self) -> Array:
        """One unit of an affinely transformed target, in original units: [K]."""
        return 1.0 / self.y_pipeline.derivative(np.ones(self.spec.num_targets))

    @property
    def known(self) -> Known:
        """Names, classes and coding that later rows have to match."""
        names = self.provenance.target_names  # not those that `target_names` makes up
        has_names = names is not None and len(names) == self.spec.num_targets
        known = tuple(names or ()) if has_names else None
        return Known(self.feature_names, self.classes, self.coding, target_names=known)

    @cached_property
    def columns(self) -> list[tuple[Column, slice]]:
        """The columns of users' tables that the inputs come from, each with the slice of its inputs."""
        if self.coding is not None:
            return list(self.coding.spans)
        return [(Column(name), slice(i, i + 1)) for i, name in enumerate(self.input_names)]

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs; an unnamed input is called by the position of its column."""
        if self.feature_names is not None:
            return self.feature_names
        return tuple(f"column {index}" for index in range(self.spec.num_inputs))

    @property
    def target_names(self) -> list[str]:
        """Names of the targets: those that the command line saved, else y or y1, y2, ..."""
        names, count = self.provenance.target_names, self.spec.num_targets
        return names if names is not None and len(names) == count else numbered_targets(count)

    @property
    def is_compressed(self) -> bool:
        """True if `compress` chose the draws, so that they no longer form chains."""
        return self.provenance.compression is not None

    @property
    def no_chains(self) -> str | None:
        """Reason why the draws form no chains, without a full stop; None for the draws of a run."""
        if self.provenance.not_sampled is not None:
            what = "networks" if self.mode is None else "draws"
            return (
                f"The {what} of this model are not sampled from the posterior "
                f"({self.provenance.not_sampled})"
            )
        return "The draws of this model were chosen by compress" if self.is_compressed else None

    def transform(self, rows: Rows) -> NetworkRows:
        """Transform rows to the scale the network sees.

        Raises:
            ValueError: If a transform is not defined, or its result exceeds the range of the dtype.
        """
        return transform_rows(self.spec, self.x_pipeline, self.y_pipeline, rows)

    def by_chains(self, values: Array) -> Array:
        """Reshape values of all draws [C * S, ...] to [C, S, ...]."""
        return values.reshape(self.num_chains, self.num_results, *values.shape[1:])

    def as_fitted(self, values: Array) -> Array:
        """Return predictions [..., columns] in the shape of the fit: [...] for a target fitted as [N]."""
        return values[..., 0] if self.vector_target and self.spec.num_predicted == 1 else values

    def most_probable(self, mean: Array) -> Array:
        """Return the labels of the largest mean probability: predictions [N, columns] -> [N, K]."""
        best = self.spec.class_likelihood.class_probabilities(mean).argmax(axis=-1)
        return label_array(self.classes or ())[best]

    @cached_property
    def log_noise_scale(self) -> Array:
        """Learned log noise scales of all draws [C * S, number of scales]."""
        return self.flat[:, self.spec.layout.log_noise_scale].astype(np.float64)

    @cached_property
    def effective_weights(self) -> list[Array]:
        """The weights of each layer that the network multiplies with, the ntk scales included.

        Returns:
            List of transposed kernels with the bias as last column [C * S, out, in + 1].

        Raises:
            ValueError: If the draws are not networks but directions around a mode.
        """
        self.require_networks("This")
        return [
            layer * self.input_scales(index)[:, None]
            for index, layer in enumerate(self._layers(self.flat))
        ]

    @cached_property
    def in_double(self) -> Ensemble:
        """The same draws in float64, so that predictions do not differ by rounding."""
        spec = replace(self.spec, dtype="float64")
        return replace(self, spec=spec, draws=self.draws.astype(np.float64))

    @cached_property
    def effective_tangents(self) -> list[Array]:
        """Derivatives of `effective_weights` at the mode along the step to each draw.

        The derivative at the mode, times draw minus mode: [C * S, out, in + 1] per layer. Scales
        multiply weights, and the logarithm of a scale is affine in theta, so that its difference
        over any step is its derivative. The step is chosen so that no exponential can overflow.
        """
        centre = self.at_mode
        steps = self.flat.astype(np.float64) - centre.flat
        layers, changes = (self._layers(theta) for theta in (centre.flat, steps))
        hyper = steps[:, self.spec.layout.num_weights :]
        lengths = np.maximum(np.abs(hyper).max(axis=1, initial=1.0), 1.0)[:, None]
        nearby = replace(centre, draws=(centre.flat + steps / lengths)[None])
        tangents = []
        for index, (layer, change) in enumerate(zip(layers, changes)):
            scales = centre.input_scales(index)
            growth = lengths * np.log(nearby.input_scales(index) / scales)
            tangent = (change + layer * growth[:, None]) * scales[:, None]
            tangents.append(tangent.astype(self.spec.dtype))
        return tangents

    def _layers(self, theta: Array) -> list[Array]:
        """Return per layer the transposed kernels of theta [M, P], the bias last [M, out, in + 1]."""
        return [
            np.concatenate([np.swapaxes(kernel, 1, 2), bias[..., None]], axis=-1)
            for kernel, bias in perceptron(self.spec, "This").layout.kernels_and_biases(theta)
        ]

    @cached_property
    def at_mode(self) -> Ensemble:
        """The single network at the mode, in float64."""
        if self.mode is None:
            raise ValueError("These draws are networks of their own, without a mode.")
        return self.with_draws(self.mode.astype(np.float64)[None, None])

    def require_networks(self, what: str) -> None:
        """Refuse draws that are directions around a mode instead of networks.

        Args:
            what: Name of the caller that needs networks, the beginning of the message.

        Raises:
            ValueError: If the draws are not networks.
        """
        if self.mode is not None:
            raise ValueError(
                f"{what} needs draws that are networks, received {self.provenance.not_sampled}. "
                "Use predict, or fit_posterior for networks."
            )

    def input_scales(self, index: int) -> Array:
        """Return the factors that multiply the weights of one layer, per input and for the bias.

        Returns:
            [C * S or 1, in + 1] in the dtype of the draws; ones except in ntk.
        """
        spec, theta = perceptron(self.spec, "This"), self.flat
        (kernel, bias), prior = spec.layout.layers[index], spec.priors[index]
        num_inputs = kernel.shape[0]
        if not spec.is_ntk:
            return np.ones((1, num_inputs + 1), theta.dtype)
        of_kernel = _scales(prior.kernel, kernel.scales, theta) / np.sqrt(num_inputs)
        of_bias = _scales(prior.bias, bias.scales, theta)
        count = max(len(of_kernel), len(of_bias))
        of_kernel = np.broadcast_to(of_kernel, (count, num_inputs))
        scales = np.concatenate([of_kernel, np.broadcast_to(of_bias, (count, 1))], axis=1)
        return scales.astype(theta.dtype)

    @cached_property
    def weighted(self) -> Ensemble:
        """The chains with a positive weight: the others would cost time, and 0 * infinity is NaN."""
        used = self.chain_weights > 0
        if used.all():
            return self
        readouts = None if self.readouts is None else self.readouts.of_chains(used)
        chosen = self.picked(lambda values: values[used])
        return replace(chosen, chain_weights=self.chain_weights[used], readouts=readouts)

    @cached_property
    def stacked_weights(self) -> list[Array] | None:
        """`effective_weights` with the means of the readouts, then their factors, in the last layer.

        Returns:
            List of [C * S, out, in + 1], the last one [C * S, K + G p, p]; None if the readouts'
            covariances were not kept, and for a network without layers of this kind.
        """
        if not isinstance(self.spec, ModelSpec):
            return None
        num_features, num_outputs = self.spec.layer_sizes[-2] + 1, self.spec.layer_sizes[-1]
        factors = None if self.readouts is None else self.readouts.factors(num_features)
        if self.readouts is None or factors is None:
            return None
        mean = self.readouts.mean.reshape(-1, num_features, num_outputs)
        factors = np.swapaxes(factors, 2, 3).reshape(len(mean), -1, num_features)
        lines = np.concatenate([np.swapaxes(mean, 1, 2), factors], axis=1)
        scales = self.input_scales(len(self.spec.layer_sizes) - 2)[:, None]
        return [*self.effective_weights[:-1], lines * scales]

    @cached_property
    def mirrored(self) -> Ensemble:
        """The draws and their mirror images about the means of their readouts, without statistics.

        The distribution of a readout is symmetric, so that an image is as exact a draw as the
        original. Averages over both have the mean that the distribution of all readouts has: less
        Monte Carlo error at the price of twice the draws. If the readout was not collapsed, this is
        the ensemble itself.
        """
        if self.readouts is None or self.spec.readout is None:
            return self
        span, images = self.spec.readout.layer.weights, self.draws.copy()
        images[..., span] = 2.0 * self.readouts.mean - self.draws[..., span]
        draws = np.concatenate([self.draws, images], axis=1)
        return replace(self, draws=draws, sample_stats={}, readouts=None)

    @cached_property
    def few(self) -> Ensemble:
        """Evenly spaced draws of infinite width, without statistics; each is a whole distribution."""
        given = 0 if self.given is None else len(self.given.x)
        most = max(1, num_averaged(given, self.spec.num_targets) // self.num_chains)
        if self.num_results <= most:
            return self
        chosen = np.linspace(0, self.num_results - 1, most).round().astype(int)
        return replace(self, draws=self.draws[:, chosen], sample_stats={})

    @cached_property
    def conditioned_draws(self) -> list[Conditioned]:
        """All draws of infinite width, conditioned on the rows of the fit."""
        spec, given = cast(InfiniteSpec, self.spec), cast(GivenRows, self.given)
        return on_all_cores(lambda theta: conditioned(spec, theta, given), list(self.flat))

    def trust(self, x: Array) -> Array:
        """Compute the `trust_levels` [N] of inputs [N, D] on the scale the network sees."""
        return trust_levels(self.training_inputs, x, self.rounding)

    @cached_property
    def rounding(self) -> Array:
        """Errors of constant inputs [D] if float32 rounds them, on the scale the network sees; else 0."""
        inputs, low = self.training_inputs, self.training_inputs.low[None]
        with np.errstate(all="ignore"):
            rounded = self.x_pipeline.forward(self.x_pipeline.inverse(low) * (1.0 + 1e-6))
        return np.where(inputs.low == inputs.high, np.nan_to_num(np.abs(rounded - low)[0]), 0.0)

    @property
    def averaged(self) -> Ensemble:
        """The draws that averages are taken over: with mirror images, or a few of infinite width."""
        return self.few if isinstance(self.spec, InfiniteSpec) else self.mirrored

    @property
    def for_averages(self) -> Ensemble:
        """The `averaged` draws of the chains with a positive weight."""
        return self.weighted.averaged

    def picked(self, pick: Callable[[Array], Array]) -> Self:
        """Return the ensemble with `pick` applied to the draws and their statistics [C, S, ...]."""
        statistics = {name: pick(values) for name, values in self.sample_stats.items()}
        return replace(self, draws=pick(self.draws), sample_stats=statistics)

    def with_draws(self, draws: Array) -> Self:
        """Return the same model with networks [C, S, P] as draws, equal weights and no statistics."""
        weights = np.full(len(draws), 1.0 / len(draws))
        nothing: dict[str, Any] = dict.fromkeys(("readouts", "mode", "calibration", "basins"))
        return replace(self, draws=draws, sample_stats={}, chain_weights=weights, **nothing)

    def with_chain_weights(self, weights: npt.ArrayLike) -> Self:
        """Return the same draws under other chain weights [C]."""
        weights = np.array(weights, dtype=np.float64)
        basins = None if self.basins is None else replace(self.basins, chain_weights=weights)
        told = self.diagnostics
        if told is not None and "predictions" in told:
            # The verdicts were on other predictions.
            told = {name: told[name] for name in told if name not in ("predictions", "verdict")}
        return replace(
            self,
            chain_weights=weights,
            calibration=None,
            basins=basins,
            diagnostics=told,
        )

    @property
    def flat(self) -> Array:
        """All draws [C * S, P]."""
        return self.draws.reshape(self.num_draws, -1)


def _scales(prior: WeightPrior, span: slice, theta: Array) -> Array:
    """Return the prior scales of one kernel or bias: [draws or 1, inputs or 1]."""
    if prior.scale_prior is None:
        return np.full((1, 1), prior.scale)
    return np.exp(theta[:, span].astype(np.float64))
