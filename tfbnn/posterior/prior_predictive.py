"""Draws from the prior, and from the prior predictive distribution."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.coding import as_inputs
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import Pipeline, fit_pipeline, unfitted_pipeline
from tfbnn.data.validation import check_integer
from tfbnn.posterior.at_rows import Points, at_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.network_spec import draw_parameters
from tfbnn.system.arrays import Array

# Apart from the streams of the noise, which `at_rows` draws for every row.
_STREAM = 1


class PriorDraws(NamedTuple):
    """Draws of the prior, and what they predict; S draws, N rows, K columns as in `predict`.

    Attributes:
        theta: Parameters [S, P], in the coordinates that are sampled.
        f: Functions [S, N, K], or [S, N] where the target was fitted as [N]; of classes their
            probabilities.
        y: Rows with noise, one for each draw, of the shape of f; of classes class numbers [S, N, K].
    """

    theta: Array
    f: Array
    y: Array


class PriorMethods(SampledModel):
    """The model before the rows."""

    def sample_prior(
        self, x: Any, *, noise_scale: Any = None, num_results: int = 100, seed: int = 0
    ) -> PriorDraws:
        """Draws networks from the prior, and rows from the prior predictive distribution.

        To see what a prior means: functions that are all flat, or rows far outside of what is possible,
        speak against it. Noise that is learned is drawn from its prior as well.

        Args:
            x: Inputs [N, D], as in `predict`.
            noise_scale: Known standard deviations of the rows, as in `predict`; required after a fit
                that had them.
            num_results: Draws S, default 100.
            seed: Integer.

        Returns:
            `PriorDraws` (theta, f, y). After a fit inputs and targets are in original units, by the
            transforms of the fit. Before one, "standardize" of the inputs is learned from x, and
            targets are on the scale the network sees, unless their transform learns nothing; of what is
            "auto" in the model a fit may choose otherwise by its rows.

        Raises:
            TypeError, ValueError: For unusable inputs, for more than 4 GB of draws, and for a model
                whose prior is `FromPosterior`.

        Example:
            draws = model.sample_prior(np.linspace(-2, 2, 100)[:, None])
            plt.plot(draws.f[:, :, 0].T)
        """
        num_results = check_integer("num_results", num_results, minimum=1)
        seed = check_integer("seed", seed, minimum=0)
        spec = self.spec
        if spec.earlier is not None:
            raise ValueError(
                "sample_prior needs priors of layers, received an earlier fit: use its predict_draws."
            )
        generators = [np.random.default_rng([seed, draw, _STREAM]) for draw in range(num_results)]
        theta = np.stack([draw_parameters(spec, one) for one in generators]).astype(spec.dtype)
        known = _unfitted(self, x) if self._ensemble is None else self._ensemble
        ensemble = known.with_draws(theta[None])
        points = Points.checked(ensemble, x, None, noise_scale, "sample_prior")
        functions, observations, _ = at_rows(ensemble, points, False, seed)
        shaped = (ensemble.as_fitted(values[0]) for values in (functions, observations))
        return PriorDraws(theta, *shaped)


def _unfitted(model: SampledModel, x: Any) -> Ensemble:
    """Return an ensemble as it is known before a fit."""
    spec = model.spec
    inputs = as_inputs(spec.flat_inputs(x), "x", spec.num_inputs, None)
    x_pipeline = fit_pipeline(spec.x_transform, inputs.values, "x", inputs.names)
    y_pipeline = None if spec.is_open else unfitted_pipeline(spec.y_transform)
    nothing = np.empty((1, 0, spec.num_parameters), spec.dtype)
    return Ensemble(
        spec=spec,
        x_pipeline=x_pipeline,
        y_pipeline=Pipeline() if y_pipeline is None else y_pipeline,
        draws=nothing,
        sample_stats={},
        chain_weights=np.ones(1),
        x_reference=inputs.values,
        training_inputs=summarise_inputs(x_pipeline.forward(inputs.values)),
        feature_names=inputs.names,
        classes=tuple(range(spec.num_classes)) if spec.has_classes else None,
    )
