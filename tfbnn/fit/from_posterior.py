"""The posterior of an earlier fit as the prior of new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tfbnn.fit.handing_on import refuse_other_network
from tfbnn.posterior.checks import checked_rows, require_rows_of_fit
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.choices import is_auto
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import row_digests

# Rows are chosen by a Gauss-Newton matrix and its factor, of 8 P^2 bytes each: 0.1 GB at this P.
_MOST_PARAMETERS = 4000


class FromPosterior:
    """What the rows of an earlier fit have told, for rows that arrive batch by batch.

    The prior is that of the earlier model times what stands for the likelihood of its rows: that of some
    of them, each as often as it stands for others. Up to 10 000 rows, and up to four outputs per parameter,
    are all kept, and then batches one after the other are as all rows at once. Of more rows those are
    likelier to be kept that determine more parameters, and weights make sums exact: the number of rows,
    their log likelihood at the last draw of every chain and, of models with some 40 parameters at most,
    its gradient and Gauss-Newton matrix, so that linear models with Gaussian noise lose nothing. Of other
    networks it is an approximation: `docs/guide/priors.md` has figures.

    A file of the new model has these rows in it, inputs and targets. Numbers are bounded at 32 MB; where
    there is room for fewer rows a warning says so.

    The new model has the layer sizes, activations, parameterisation, likelihood and transforms of the
    earlier one, whose priors, class labels and names it takes over; trust is about the inputs of all rows,
    and none of them passes for one that no fit has seen. Its chains start
    from the best of what pretraining on all these rows finds and of the last draws of the earlier ones, where
    log density judges, or new rows; where rows judge that the earlier chains have seen, or may have
    (`validation_data`), from the former alone. With `pretraining=None`, or no epochs of ADAM, they start
    from these draws.
    Its log prior is known up to a constant, which no kernel needs. Kernels with a readout in closed form
    refuse it.

    Args:
        model: A fitted model; it may have had such a prior itself.
        x, y, noise_scale: The rows of its fit, as in `fit_posterior`, for a model that was not fitted in
            this process. Default: those that it was fitted to.

    Raises:
        NotFittedError: Before a fit.
        TypeError, ValueError: For what is no model, draws that are no networks, rows that are missing or
            are not as many as those of the fit, and a Gauss-Newton matrix that is not finite and
            positive definite; a network without one, as recurrent ones, or of more than 4000 parameters.

    Warns:
        UserWarning: When the rows are not those of the fit, and where there is no room for as many as
            parameters need.

    Example:
        first = tfbnn.BayesianMLP([5, 20, 1])
        first.fit_posterior(x1, y1)
        second = tfbnn.BayesianMLP([5, 20, 1], prior=tfbnn.priors.FromPosterior(first))
        second.fit_posterior(x2, y2)

    References:
        Huggins, Campbell and Broderick 2016, arXiv:1605.06423, weighted rows in place of all. Normal
        distributions of the weights, as of Opper 1998, "A Bayesian approach to on-line learning", in
        On-line Learning in Neural Networks, Cambridge University Press, do not hold what rows say of a
        network: draws of 5-20-20-1 on 2900 rows lie a thousand times too far out in them.
    """

    def __init__(
        self,
        model: SampledModel,
        x: Any = None,
        y: Any = None,
        *,
        noise_scale: Any = None,
    ) -> None:
        if not isinstance(model, SampledModel):
            raise TypeError(f"FromPosterior needs a fitted model, received {model!r:.200}.")
        ensemble = model.posterior
        ensemble.require_networks("FromPosterior")
        _require_curvature(ensemble.spec)
        if (x is None) != (y is None):
            raise ValueError(
                "FromPosterior needs x and y together, received "
                f"{'x' if x is None else 'y'}=None. Pass all rows of the fit, or neither."
            )
        if x is None:
            rows = model.rows_of_the_fit(noise_scale, "FromPosterior", "x and y")
        else:
            rows, _ = checked_rows(ensemble, x, y, noise_scale, "FromPosterior")
            require_rows_of_fit(ensemble, rows, "FromPosterior")
        from tfbnn.engine.starts.condensing import condense

        digests = ensemble.row_digests
        if not len(digests):  # of a file of before
            digests = row_digests(rows)
        self._prior = condense(
            ensemble.spec,
            ensemble.transform(rows),
            ensemble.draws,
            ensemble.chain_weights,
            digests,
        )
        self._earlier = ensemble

    @property
    def earlier(self) -> Ensemble:
        """The sampled networks that it comes from."""
        return self._earlier

    def __repr__(self) -> str:
        return f"FromPosterior({self._prior!r})"

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
        return spec.after(self._prior)


def _require_curvature(spec: NetworkSpec) -> None:
    """Refuses networks that have no Gauss-Newton matrix, or one too large to factorise."""
    if spec.gauss_newton_obstacle is not None:
        raise ValueError(
            f"FromPosterior needs the derivatives of every row's outputs: {spec.gauss_newton_obstacle}. "
            "Pass the last draws on by initial_state=model, and fit all rows together."
        )
    if spec.num_parameters > _MOST_PARAMETERS:
        raise ValueError(
            f"FromPosterior factorises P x P matrices, for at most {_MOST_PARAMETERS} parameters, this "
            f"model has {spec.num_parameters}. Use narrower layers."
        )
