"""The sampled networks with everything needed to use them: what a model file holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from tfbnn.data.coding import Coding
from tfbnn.data.labels import Classes, label_array
from tfbnn.data.training_inputs import TrainingInputs
from tfbnn.data.transforms import Pipeline
from tfbnn.posterior.basins.record import Basins
from tfbnn.posterior.calibration.record import Calibration
from tfbnn.posterior.process import Conditioned, GivenRows, condition_all, num_averaged
from tfbnn.posterior.provenance import Provenance
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import WeightPrior
from tfbnn.spec.rows import Known, NetworkRows, Rows, transform_rows
from tfbnn.system.arrays import Array, ReadOnlyArrays, read_only


@dataclass(frozen=True, eq=False)
class Readouts(ReadOnlyArrays):
    """The normal distribution of every draw's readout, given the rest of that draw.

    Attributes:
        mean: Means of the entries of theta that are the readout's, kernel before bias
            [C, S, p * K], for p features (hidden units and the bias) and K outputs.
        factor: Upper triangular F with F F^T the covariance of one output's entries, its rows one
            after the other without the zeros: [C, S, G, p (p + 1) / 2], G = 1 where all outputs
            have the same, else K. None where it was not kept.
    """

    mean: Array
    factor: Array | None = None

    def of_chains(self, chains: Array) -> Readouts:
        """Return those of some chains, given by numbers or a mask."""
        return Readouts(self.mean[chains], None if self.factor is None else self.factor[chains])

    def factors(self, num_features: int) -> Array | None:
        """Return the matrices F of all draws [C * S, G, p, p], None where they were not kept."""
        if self.factor is None:
            return None
        packed = self.factor.reshape(-1, *self.factor.shape[2:])
        full: Array = np.zeros((*packed.shape[:2], num_features, num_features), packed.dtype)
        rows, columns = np.triu_indices(num_features)
        full[..., rows, columns] = packed
        return full


def pop_readouts(statistics: dict[str, Array]) -> Readouts | None:
    """Take what belongs to the readouts out of a dict of statistics: Readouts, or None."""
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
        feature_names: Names of the inputs, or None; of a coded column such as "colour=red".
        row_noise: Whether the fit was given a known noise scale per row.
        classes: Class labels, in the order of their numbers, or None for other targets.
        vector_target: Whether the one target was fitted as [N], so that predictions for users
            have this shape too; arrays in here keep a column per target.
        diagnostics: JSON-able summary of the diagnosis that ended the fit, or None without one.
        provenance: Seeds, settings, versions, data hash and more.
        readouts: Readouts of a run with collapsed readout, else None.
        mode: None where every draw is a network. Else the parameters theta [P] around which the
            network was made linear in theta: the draws are of a normal distribution there, and
            predict what the tangents do (`tfbnn.posterior.forward`), not what networks would.
        row_digests: Ascending digests of the rows of the fit (`tfbnn.spec.rows`), none where
            nobody kept them.
        calibration: Of the predictive distribution with noise, or None. It is about these draws
            under these weights, and does not follow them where they change.
        basins: Where the chains are, as `BayesianMLP.basins` found, or None.
        given: Rows on which the functions of infinite width are conditioned; None of networks.
        coding: How the columns of users' tables become inputs where some hold no numbers, or None.
            All arrays in here are of inputs.
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
        """Return the fields: a pickle is no larger after predictions, which keep weights and draws in float64."""
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
        """All draws, C * S."""
        return self.num_chains * self.num_results

    @property
    def has_mean_of_target(self) -> bool:
        """True where a new target of a regression, noise included, has a mean in original units."""
        likelihood = self.spec.regression_likelihood
        return self.y_pipeline.is_affine or likelihood.has_exponential_moments

    @cached_property
    def draw_weights(self) -> Array:
        """Weight of every draw, chain by chain [C * S]."""
        return read_only(np.repeat(self.chain_weights / self.num_results, self.num_results))

    @cached_property
    def target_unit(self) -> Array:
        """One unit of an affinely transformed target, in original units: [K]."""
        return 1.0 / self.y_pipeline.derivative(np.ones(self.spec.num_targets))

    @property
    def known(self) -> Known:
        """Facts about rows that come later."""
        names = tuple(self.target_names)
        return Known(self.feature_names, self.classes, self.coding, target_names=names)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of users' tables that the inputs come from, or None."""
        return self.known.column_names

    @property
    def num_columns(self) -> int:
        """Number of these columns."""
        return self.spec.num_inputs if self.coding is None else len(self.coding.columns)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs; those without are called by the place of their column."""
        if self.feature_names is not None:
            return self.feature_names
        return tuple(f"column {index}" for index in range(self.spec.num_inputs))

    @property
    def target_names(self) -> list[str]:
        """Names of the targets: those that the command line saved, else y or y1, y2, ..."""
        names, count = self.provenance.target_names, self.spec.num_targets
        if names is not None and len(names) == count:
            return names
        return ["y"] if count == 1 else [f"y{number + 1}" for number in range(count)]

    @property
    def is_compressed(self) -> bool:
        """True where `compress` chose the draws, so that they are no chains any more."""
        return self.provenance.compression is not None

    @property
    def no_chains(self) -> str | None:
        """Why nothing can be said of chains here, without a full stop; None of a run's draws."""
        if self.provenance.not_sampled is not None:
            what = "networks" if self.mode is None else "draws"
            return (
                f"The {what} of this model are not sampled from the posterior "
                f"({self.provenance.not_sampled})"
            )
        return "The draws of this model were chosen by compress" if self.is_compressed else None

    def transform(self, rows: Rows) -> NetworkRows:
        """Rows on the scale the network sees.

        Raises:
            ValueError: Where a transform is not defined, or its result out of the dtype's range.
        """
        return transform_rows(self.spec, self.x_pipeline, self.y_pipeline, rows)

    def by_chains(self, values: Array) -> Array:
        """Return values of all draws [C * S, ...] as [C, S, ...]."""
        return values.reshape(self.num_chains, self.num_results, *values.shape[1:])

    def as_fitted(self, values: Array) -> Array:
        """Predictions [..., columns] as users get them: [...] where the target was fitted as [N]."""
        return values[..., 0] if self.vector_target and self.spec.num_predicted == 1 else values

    def most_probable(self, mean: Array) -> Array:
        """Labels of the largest mean probability: predictions [N, columns] -> [N, K]."""
        best = self.spec.class_likelihood.class_probabilities(mean).argmax(axis=-1)
        return label_array(self.classes or ())[best]

    @cached_property
    def log_noise_scale(self) -> Array:
        """Learned log noise scales of all draws [C * S, number of them]."""
        return self._flat[:, self.spec.layout.log_noise_scale].astype(np.float64)

    @cached_property
    def effective_weights(self) -> list[Array]:
        """Per layer the factors that the network multiplies with, the ntk scales included.

        Returns:
            List of transposed kernels with the bias as last column [C * S, out, in + 1].

        Raises:
            ValueError: Where the draws are no networks, but directions around a mode.
        """
        self.require_networks("This")
        return [
            layer * self.input_scales(index)[:, None]
            for index, layer in enumerate(self._layers(self._flat))
        ]

    @cached_property
    def in_double(self) -> Ensemble:
        """The same draws in float64, whose predictions rounding does not tell apart."""
        spec = replace(self.spec, dtype="float64")
        return replace(self, spec=spec, draws=self.draws.astype(np.float64))

    @cached_property
    def effective_tangents(self) -> list[Array]:
        """Changes of `effective_weights` of the network at the mode on the way to each draw.

        The derivative at the mode, times draw minus mode: [C * S, out, in + 1] per layer. Scales
        multiply weights, and the logarithm of a scale is affine in theta, so that its difference
        over any step is its derivative; the step is one that no exponential can overflow in.
        """
        centre = self.at_mode
        steps = self._flat.astype(np.float64) - centre._flat
        layers, changes = (self._layers(theta) for theta in (centre._flat, steps))
        hyper = steps[:, self.spec.layout.num_weights :]
        lengths = np.maximum(np.abs(hyper).max(axis=1, initial=1.0), 1.0)[:, None]
        nearby = replace(centre, draws=(centre._flat + steps / lengths)[None])
        tangents = []
        for index, (layer, change) in enumerate(zip(layers, changes)):
            scales = centre.input_scales(index)
            growth = lengths * np.log(nearby.input_scales(index) / scales)
            tangent = (change + layer * growth[:, None]) * scales[:, None]
            tangents.append(tangent.astype(self.spec.dtype))
        return tangents

    def _layers(self, theta: Array) -> list[Array]:
        """Per layer the transposed kernels of theta [M, P], the bias last [M, out, in + 1]."""
        return [
            np.concatenate([np.swapaxes(kernel, 1, 2), bias[..., None]], axis=-1)
            for kernel, bias in perceptron(self.spec, "This").layout.kernels_and_biases(theta)
        ]

    @cached_property
    def at_mode(self) -> Ensemble:
        """The one network at the mode, in float64."""
        if self.mode is None:
            raise ValueError("These draws are networks of their own, without a mode.")
        return self.with_draws(self.mode.astype(np.float64)[None, None])

    def require_networks(self, what: str) -> None:
        """Refuse what takes draws for networks where they are directions around a mode.

        Args:
            what: What needs networks, to begin a sentence with.

        Raises:
            ValueError: Says so.
        """
        if self.mode is not None:
            raise ValueError(
                f"{what} needs draws that are networks, received {self.provenance.not_sampled}. "
                "Use predict, or fit_posterior for networks."
            )

    def input_scales(self, index: int) -> Array:
        """Return the factors of the weights of one layer, per input and for the bias.

        Returns:
            [C * S or 1, in + 1] in the dtype of the draws; ones but in ntk.
        """
        spec, theta = perceptron(self.spec, "This"), self._flat
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
        """The chains that have a weight: the others would cost time, and 0 * infinity is NaN."""
        used = self.chain_weights > 0
        if used.all():
            return self
        readouts = None if self.readouts is None else self.readouts.of_chains(used)
        chosen = self.picked(lambda values: values[used])
        return replace(chosen, chain_weights=self.chain_weights[used], readouts=readouts)

    @cached_property
    def stacked_weights(self) -> list[Array] | None:
        """`effective_weights` with other lines in the last layer: means of readouts, then factors.

        Returns:
            List of [C * S, out, in + 1], the last one [C * S, K + G p, p]; None where the readouts'
            covariances are not there, and of a network without layers of this kind.
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
        """The draws without statistics, each with its mirror image about the mean of its readout.

        The image is as exact a draw as the other, the distribution of a readout being symmetric,
        and averages over both have the mean that the distribution of all readouts has: less Monte
        Carlo error at the price of twice the draws. The ensemble itself where the readout was not
        collapsed.
        """
        if self.readouts is None or self.spec.readout is None:
            return self
        place, images = self.spec.readout.layer.weights, self.draws.copy()
        images[..., place] = 2.0 * self.readouts.mean - self.draws[..., place]
        draws = np.concatenate([self.draws, images], axis=1)
        return replace(self, draws=draws, sample_stats={}, readouts=None)

    @cached_property
    def few(self) -> Ensemble:
        """Evenly spaced draws of infinite width, without statistics: each is a whole distribution."""
        given = 0 if self.given is None else len(self.given.x)
        most = max(1, num_averaged(given, self.spec.num_targets) // self.num_chains)
        if self.num_results <= most:
            return self
        chosen = np.linspace(0, self.num_results - 1, most).round().astype(int)
        return replace(self, draws=self.draws[:, chosen], sample_stats={})

    @cached_property
    def conditioned_draws(self) -> list[Conditioned]:
        """Every draw of infinite width given the rows."""
        return condition_all(cast(InfiniteSpec, self.spec), self.draws, cast(GivenRows, self.given))

    @property
    def averaged(self) -> Ensemble:
        """The draws that averages are over: with mirror images, or of infinite width a few."""
        return self.few if isinstance(self.spec, InfiniteSpec) else self.mirrored

    @property
    def for_averages(self) -> Ensemble:
        """Return the `averaged` of the chains that have a weight."""
        return self.weighted.averaged

    def picked(self, pick: Callable[[Array], Array]) -> Self:
        """With what `pick` takes out of an array [C, S, ...] of the draws and their statistics."""
        statistics = {name: pick(values) for name, values in self.sample_stats.items()}
        return replace(self, draws=pick(self.draws), sample_stats=statistics)

    def with_draws(self, draws: Array) -> Self:
        """Return the same model with networks [C, S, P] for draws, equal weights and no statistics."""
        weights = np.full(len(draws), 1.0 / len(draws))
        nothing: dict[str, Any] = dict.fromkeys(("readouts", "mode", "calibration", "basins"))
        return replace(self, draws=draws, sample_stats={}, chain_weights=weights, **nothing)

    def with_chain_weights(self, weights: npt.ArrayLike) -> Self:
        """Return the same draws under other chain weights [C]."""
        weights = np.array(weights, dtype=np.float64)
        basins = None if self.basins is None else replace(self.basins, chain_weights=weights)
        return replace(
            self,
            chain_weights=weights,
            calibration=None,
            basins=basins,
            diagnostics=without_predictions(self.diagnostics),
        )

    @property
    def _flat(self) -> Array:
        return self.draws.reshape(self.num_draws, -1)


def _scales(prior: WeightPrior, place: slice, theta: Array) -> Array:
    """Prior scales of one kernel or bias: [draws or 1, inputs or 1]."""
    if prior.scale_prior is None:
        return np.full((1, 1), prior.scale)
    return np.exp(theta[:, place].astype(np.float64))


def without_predictions(diagnostics: dict[str, Any] | None) -> dict[str, Any] | None:
    """Diagnostics of a model whose predictions have changed since they were judged."""
    if diagnostics is None or "predictions" not in diagnostics:
        return diagnostics
    return {k: told for k, told in diagnostics.items() if k not in ("predictions", "verdict")}
