"""The posterior of an earlier fit as the prior of new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tfbnn.fit.handing_on import refuse_other_network
from tfbnn.posterior.basins.mixture import posterior_mixture
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.choices import is_auto
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import NormalMixture


class FromPosterior:
    """The posterior of an earlier fit as prior, for rows that arrive batch by batch.

    A normal distribution of all parameters, noise and prior scales included, for each basin that the
    chains of the earlier fit were in; they are mixed by the weights of the chains. Its means are those
    of the draws. Its covariances are those of the draws, shrunk to the inverse of the Gauss-Newton
    matrix of the earlier rows, which tells directions that few draws cannot: of a linear model with
    known noise it is the posterior, and batches one after the other are as all rows at once. Of a
    network whose posterior is not normal it is an approximation, and errs more the fewer rows the
    earlier fit had: `docs/guide/priors.md` has figures.

    The new model has the layer sizes, activations, parameterisation, likelihood and transforms of the
    earlier one, whose class labels, names and training ranges it takes over; the layers have no prior
    besides. Chains start from the means, without pretraining. Kernels with a readout in closed form
    refuse this prior.

    Args:
        model: A model with draws: fitted, loaded, or one that had such a prior itself.
        x, y, noise_scale: The rows of its fit, as in `fit_posterior`; default those that it was fitted
            to in this process. Without them, as of a loaded model, and for more than 2000 parameters,
            covariances are of the draws alone, shrunk to their diagonal: many more draws than
            parameters are needed then.

    Raises:
        NotFittedError: Before a fit.
        TypeError, ValueError: For what is no model, draws that are no networks, rows that do not fit,
            and rows for which the Gauss-Newton matrix is not finite and positive definite.

    Example:
        first = tfbnn.BayesianMLP([5, 20, 1]); first.fit_posterior(x1, y1)
        second = tfbnn.BayesianMLP([5, 20, 1], prior=tfbnn.priors.FromPosterior(first))
        second.fit_posterior(x2, y2)

    References:
        Opper 1998, "A Bayesian approach to on-line learning", in On-Line Learning in Neural
        Networks, Cambridge University Press. Frame and shrinkage as in `basins`.
    """

    def __init__(
        self, model: SampledModel, x: Any = None, y: Any = None, *, noise_scale: Any = None
    ) -> None:
        if not isinstance(model, SampledModel):
            raise TypeError(f"FromPosterior needs a fitted model, received {model!r:.200}.")
        ensemble = model.posterior
        ensemble.require_networks("FromPosterior")
        if (x is None) != (y is None):
            raise ValueError("FromPosterior needs x and y together, or neither.")
        rows = model.training_rows if x is None else None
        if x is not None:
            rows, _ = checked_rows(ensemble, x, y, noise_scale, "FromPosterior")
        elif noise_scale is not None:
            raise ValueError("FromPosterior takes noise_scale with x and y, received it alone.")
        self._mixture = posterior_mixture(
            ensemble, None if rows is None else ensemble.transform(rows)
        )
        self._earlier = ensemble

    @property
    def mixture(self) -> NormalMixture:
        """The distribution: weights [B], means [B, P] and covariances as of `NormalMixture`."""
        return self._mixture

    @property
    def earlier(self) -> Ensemble:
        """The sampled networks that it comes from."""
        return self._earlier

    def __repr__(self) -> str:
        return f"FromPosterior({self._mixture!r})"

    def spec_for(self, make: Callable[..., NetworkSpec], settings: dict[str, Any]) -> NetworkSpec:
        """The spec of a model with this prior.

        Args:
            make: Makes the spec of settings and a prior.
            settings: Its arguments but the prior.

        Raises:
            TypeError, ValueError: As `make`, and for another network than the earlier one.
        """
        there = self._earlier.spec
        if is_auto(settings["parameterization"]):
            settings = settings | {"parameterization": there.parameterization}
        spec = make(prior="auto", **settings)
        refuse_other_network("prior", spec, there)
        spec = replace(spec.with_priors_of(there), likelihood=there.likelihood, choices=())
        return spec.with_joint_prior(self._mixture)
