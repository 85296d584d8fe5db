"""The sampled networks with everything needed to use them: what a model file holds."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tfbnn.exceptions import NotFittedError
from tfbnn.spec import ModelSpec
from tfbnn.training_inputs import TrainingInputs
from tfbnn.transforms import Pipeline

__all__ = ["Ensemble"]


@dataclass(frozen=True, eq=False)
class Ensemble:
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
        feature_names: Names of the input columns, or None.
        row_noise: Whether the fit was given a known noise scale per row.
        classes: Class labels, in the order of their numbers, or None for other targets.
        diagnostics: JSON-able summary of the diagnosis that ended the fit, or None without one.
        provenance: JSON-able dict: seeds, settings, versions, data hash.
    """

    spec: ModelSpec
    x_pipeline: Pipeline
    y_pipeline: Pipeline
    draws: np.ndarray
    sample_stats: dict
    chain_weights: np.ndarray
    x_reference: np.ndarray
    training_inputs: TrainingInputs
    feature_names: tuple | None = None
    row_noise: bool = False
    classes: tuple | None = None
    diagnostics: dict | None = None
    provenance: dict = field(default_factory=dict)

    def __post_init__(self):
        for array in (
            self.draws,
            self.chain_weights,
            self.x_reference,
            *self.sample_stats.values(),
        ):
            array.setflags(write=False)

    @property
    def num_chains(self):
        return self.draws.shape[0]

    @property
    def num_results(self):
        return self.draws.shape[1]

    @property
    def num_draws(self):
        """All draws, C * S."""
        return self.num_chains * self.num_results

    @property
    def draw_weights(self):
        """Weight of every draw, chain by chain [C * S]."""
        return np.repeat(self.chain_weights / self.num_results, self.num_results)

    @property
    def is_compressed(self):
        """Whether the draws were chosen by `compress`, so that they are no chains any more."""
        return "compression" in self.provenance

    @cached_property
    def log_noise_scale(self):
        """Learned log noise scales of all draws [C * S, number of them]."""
        return self._flat[:, self.spec.layout.log_noise_scale].astype(np.float64)

    @cached_property
    def effective_weights(self):
        """Per layer the factors that the network multiplies with, the ntk scales included.

        Returns:
            List of transposed kernels with the bias as last column [C * S, out, in + 1].
        """
        theta, weights = self._flat, []
        for slot, prior, (kernel, bias) in zip(
            self.spec.layout.layers, self.spec.priors, self.spec.layout.kernels_and_biases(theta)
        ):
            if self.spec.is_ntk:
                kernel_scale = _scale(prior.kernel, slot.kernel_scale, theta)
                factor = kernel_scale / np.sqrt(slot.num_inputs)
                kernel = kernel * factor.astype(theta.dtype)[..., None]
                bias = bias * _scale(prior.bias, slot.bias_scale, theta).astype(theta.dtype)
            weights.append(np.concatenate([np.swapaxes(kernel, 1, 2), bias[..., None]], axis=-1))
        return weights

    @cached_property
    def weighted(self):
        """The chains that have a weight: the others would cost time, and 0 * infinity is NaN."""
        used = self.chain_weights > 0
        if used.all():
            return self
        statistics = {name: values[used] for name, values in self.sample_stats.items()}
        return replace(
            self,
            draws=self.draws[used],
            sample_stats=statistics,
            chain_weights=self.chain_weights[used],
        )

    def with_chain_weights(self, weights):
        """The same draws under other chain weights [C]."""
        return replace(self, chain_weights=np.array(weights, dtype=np.float64))

    def to_arviz(self):
        """The draws as ArviZ data, needs the extra `arviz`.

        Returns:
            What `arviz.from_dict` of the installed version builds: InferenceData or DataTree, with
            the groups posterior (theta [chain, draw, param]) and sample_stats.

        Raises:
            ImportError: When ArviZ is not installed.
        """
        try:
            import arviz
        except ImportError as error:
            raise ImportError(
                "to_arviz needs ArviZ, which is not installed. Install the extra tfbnn[arviz]."
            ) from error
        if self.num_draws == 0:
            raise NotFittedError("There are no draws to hand over to ArviZ.")
        groups = {"posterior": {"theta": self.draws}, "sample_stats": dict(self.sample_stats)}
        dims = {"theta": ["param"]}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups, dims=dims)
        return arviz.from_dict(**groups, dims=dims)

    @property
    def _flat(self):
        return self.draws.reshape(self.num_draws, -1)


def _scale(prior, place, theta):
    """Prior scale of one kernel or bias, broadcastable to [draws, 1]."""
    if place is None:
        return np.full((1, 1), prior.scale)
    return np.exp(theta[:, place : place + 1].astype(np.float64))
