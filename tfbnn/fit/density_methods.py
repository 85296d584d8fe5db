"""The methods of a model that hand out the log density which is sampled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfbnn.data.transforms import Pipeline, unfitted_pipeline
from tfbnn.data.validation import as_float_array
from tfbnn.exceptions import NotFittedError
from tfbnn.posterior.checks import require_noise
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import NetworkRows, prepare_rows, transform_rows
from tfbnn.system.arrays import Array


class DensityMethods(SampledModel):
    """The sampled density, as numbers and as a function for other samplers."""

    def log_prob(
        self, theta: Any, x: Any, y: Any, *, noise_scale: Any = None, return_terms: bool = False
    ) -> Array | dict[str, Array]:
        """The log density that is sampled, at parameters theta.

        It is fully normalised, of the transformed targets given the parameters and of the
        parameters in the coordinates they are sampled in; the Jacobian of the target transform is
        not part of it. After a fit with a `likelihood_power` below 1 the likelihood, and so the term
        log_likelihood, is to this power.

        Args:
            theta: Parameters [..., P].
            x, y, noise_scale: Rows as in `fit_posterior`. Before a fit, the labels in y say
                themselves what the classes are.
            return_terms: Whether to return a dict with log_prior, log_likelihood, log_prob.

        Returns:
            Array [...], float64, or the dict of such arrays.

        Raises:
            NotFittedError: When a transform has to be fitted first.
        """
        theta = as_float_array(theta, "theta").astype(self.spec.dtype)
        if theta.ndim == 0 or theta.shape[-1] != self.spec.layout.num_parameters:
            raise ValueError(
                f"theta must have shape [..., {self.spec.layout.num_parameters}], received "
                f"{list(theta.shape)}."
            )
        transformed = self._transformed(x, y, noise_scale, "log_prob")
        from tfbnn.engine.density.value_and_gradient import log_prob_terms

        terms = log_prob_terms(self.spec, theta.reshape(-1, theta.shape[-1]), *transformed)
        terms["log_prob"] = terms["log_prior"] + terms["log_likelihood"]
        terms = {name: values.reshape(theta.shape[:-1])[()] for name, values in terms.items()}
        return terms if return_terms else terms["log_prob"]

    def log_prob_function(self, x: Any, y: Any, *, noise_scale: Any = None) -> Callable[[Any], Any]:
        """The log density that is sampled, as a pure TensorFlow function for other samplers.

        Args:
            x, y, noise_scale: Rows as in `log_prob`, which the function keeps.

        Returns:
            Function of parameters theta [C, P], a tensor, that returns the log density of each [C] in
            the dtype of theta, with gradients. What `log_prob` says of it holds here too. Its sum over
            rows is made in float64; with theta in float32 the result is rounded, to 0.004 at 5e4, which
            `fit_posterior` avoids by subtracting the value at the start: in acceptance ratios of many
            rows use float64.

        Raises:
            NotFittedError: When a transform has to be fitted first.

        Example:
            log_prob = model.log_prob_function(x, y)
            kernel = tfp.mcmc.HamiltonianMonteCarlo(log_prob, step_size=1e-3, num_leapfrog_steps=32)
        """
        transformed = self._transformed(x, y, noise_scale, "log_prob_function")
        from tfbnn.engine.density.value_and_gradient import make_log_prob

        return make_log_prob(self.spec, *transformed)

    @property
    def _source(self) -> Ensemble | None:
        """The networks whose transforms rows get: its own, else those its prior comes from."""
        return self._ensemble or self.earlier

    def _transformed(self, x: Any, y: Any, noise_scale: Any, what: str) -> NetworkRows:
        known = None if self._source is None else self._source.known
        rows = prepare_rows(self.spec, x, y, noise_scale, "", known)
        if self._ensemble is not None:
            require_noise(self._ensemble, rows.noise, what)
        return transform_rows(self.spec, *self._pipelines(), rows)

    def _pipelines(self) -> tuple[Pipeline, Pipeline]:
        if self._source is not None:
            return self._source.x_pipeline, self._source.y_pipeline
        x_pipeline = unfitted_pipeline(self.spec.x_transform)
        y_pipeline = None if self.spec.is_open else unfitted_pipeline(self.spec.y_transform)
        if x_pipeline is None or y_pipeline is None:
            raise NotFittedError(
                "'standardize' learns its mean and scale from training rows. Call fit_posterior "
                "first, or build the model with x_transform=None, y_transform=None."
            )
        return x_pipeline, y_pipeline
