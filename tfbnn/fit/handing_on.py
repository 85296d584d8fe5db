"""Use an earlier model in a fit: its posterior as the prior, or its draws as the starts of the chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tfbnn.posterior.checks import rows_given_or_fitted
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.choices import is_auto
from tfbnn.spec.infinite_spec import require_weights
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.open_spec import OpenSpec, is_open
from tfbnn.spec.rows import Known, known_of_rows, row_digests

# Settings in which both models have to agree, so that their parameters have the same meaning.
_SAME = ("parameterization", "x_transform", "y_transform")


def known_from(model: SampledModel, initial_state: Any = None) -> Known | None:
    """Return the properties of rows that an earlier model fixes. None without an earlier model.

    The earlier model is that of the prior, or that of the starts.

    Args:
        model: The model to fit. An open transform of its targets becomes that of the earlier model.
        initial_state: As in `FitOptions`.

    Raises:
        ValueError: When the starts come from a model with another network, or with other transforms.
    """
    sources = []
    if model.earlier is not None:
        sources.append(model.earlier)
    if isinstance(initial_state, Ensemble):
        if not isinstance(model._described, OpenSpec):  # these are compared when the rows are known
            refuse_other_network("initial_state", model.spec, initial_state.spec)
        sources.append(initial_state)
    if not sources:
        return None
    transforms = [(source.x_pipeline, source.y_pipeline) for source in sources]
    if transforms[0] != transforms[-1]:
        raise ValueError(
            "initial_state must have the same transforms as the model given to FromPosterior, received "
            "a model with others. Leave initial_state out."
        )
    return sources[0].known._replace(transforms=transforms[0])


def refuse_other_network(what: str, spec: NetworkSpec, there: NetworkSpec) -> None:
    """Refuse an earlier model whose parameters have another meaning.

    Args:
        what: Name of the argument that passed the earlier model.
        spec: NetworkSpec of the model to fit.
        there: NetworkSpec of the earlier model.

    Raises:
        ValueError: Names the setting in which they differ.
    """
    is_open = spec.is_open or "y_transform" in {choice.what for choice in spec.choices}
    for name in (*spec.what_it_computes, *_SAME):
        if not (is_open and name == "y_transform"):
            _refuse_difference(what, name, getattr(spec, name), getattr(there, name, None))
    settings = map(_without_prior, (spec.likelihood, there.likelihood))
    _refuse_difference(what, "likelihood", *settings)


def _without_prior(likelihood: Likelihood) -> tuple[str, dict[str, Any]]:
    """Return the name and settings of a likelihood without the prior of the noise, which may differ."""
    settings = {name: value for name, value in vars(likelihood).items() if name != "scale_prior"}
    return type(likelihood).__name__, settings


def _refuse_difference(what: str, name: str, here: Any, there: Any) -> None:
    if here != there and name in ("architecture", "frozen"):  # long texts of Keras models
        raise ValueError(
            f"{what} must be a model of the same Keras model, received one whose {name} differs. Use the "
            "same Keras model object, or build it by the same code."
        )
    if here != there:
        raise ValueError(
            f"{what} must be a model whose {name} is {here!r}, as of this one, received "
            f"{there!r}. Build this model like that one."
        )


# Choosing rows needs a Gauss-Newton matrix and its factor, of 8 P^2 bytes each: 0.1 GB at this P.
_MOST_PARAMETERS = 4000


class FromPosterior:
    """Prior that carries the information of an earlier fit, for rows that arrive batch by batch.

    The prior is that of the earlier model times an approximation of the likelihood of its rows. The
    approximation is the likelihood of some of these rows, each raised to the power of its weight. Up to
    10 000 rows, and up to four outputs per parameter, all rows are kept, and fitting batches one after
    the other is then equivalent to fitting all rows at once. Among more rows, those that determine more
    parameters are more likely to be kept. The weights make some sums over rows exact: the number of
    rows, and their log likelihood at the last draw of every chain. For models with up to some 40
    parameters they also make its gradient and Gauss-Newton matrix exact, so that linear models with
    Gaussian noise lose nothing. For other networks the prior is an approximation:
    `docs/guide/batches.md` has figures.

    A file of the new model contains these rows, inputs and targets. Their size is limited to 32 MB; a
    warning is given if this leaves room for too few rows.

    The new model must have the layer sizes, activations, parameterisation, likelihood and transforms of
    the earlier one. It takes over the priors, class labels and names. Trust refers to the inputs of all
    rows, and none of them counts as unseen. The chains start from the best of the networks that
    pretraining on all these rows finds and the last draws of the earlier chains, if they are compared by
    log density or on new rows. If they are compared on rows that the earlier chains have seen, or may
    have seen (`validation_data`), the chains start from pretraining only. With `pretraining=None`, or no
    epochs of ADAM, they start from the last draws. The log prior is known up to a constant, which no
    kernel needs. Kernels with a readout in closed form refuse this prior.

    Args:
        model: A fitted model. It may have such a prior itself.
        x, y, noise_scale, offset: The rows of its fit, as in `fit_posterior`, for a model that was not
            fitted in this process. Default: the rows to which it was fitted.

    Raises:
        NotFittedError: Before a fit.
        TypeError, ValueError: For an object that is not a model, draws that are not networks, missing
            rows, another number of rows than in the fit, and a Gauss-Newton matrix that is not finite
            and positive definite; for a network that has no such matrix, such as a recurrent one, or
            more than 4000 parameters.

    Warns:
        UserWarning: When the rows are not those of the fit, and when there is no room for as many rows
            as the parameters need.

    Example:
        first = tfbnn.BayesianMLP([5, 20, 1])
        first.fit_posterior(x1, y1)
        second = tfbnn.BayesianMLP([5, 20, 1], prior=tfbnn.priors.FromPosterior(first))
        second.fit_posterior(x2, y2)

    References:
        Huggins, Campbell and Broderick 2016, arXiv:1605.06423, weighted rows in place of all rows.
        Normal distributions of the weights, as in Opper 1998, "A Bayesian approach to on-line learning",
        in On-line Learning in Neural Networks, Cambridge University Press, do not carry the information
        of rows about a network: draws of 5-20-20-1 on 2900 rows lie a thousand times too far out in them.
    """

    def __init__(
        self,
        model: SampledModel,
        x: Any = None,
        y: Any = None,
        *,
        noise_scale: Any = None,
        offset: Any = None,
    ) -> None:
        if not isinstance(model, SampledModel):
            raise TypeError(f"FromPosterior needs a fitted model, received {model!r:.200}.")
        ensemble = model.posterior
        require_weights(ensemble.spec, "FromPosterior")
        ensemble.require_networks("FromPosterior")
        _require_curvature(ensemble.spec)
        known = known_of_rows(ensemble.spec, noise_scale, offset)
        fitted = model._training_rows
        rows = rows_given_or_fitted(ensemble, fitted, x, y, known, "FromPosterior")
        from tfbnn.fit.condensing import condense

        digests = ensemble.row_digests
        if not len(digests):  # a file of an earlier release
            digests = row_digests(rows)
        self._prior = condense(
            ensemble.spec,
            ensemble.transform(rows),
            ensemble.draws,
            ensemble.chain_weights,
            digests,
        )
        self.earlier = ensemble

    def __repr__(self) -> str:
        return f"FromPosterior({self._prior!r})"

    def in_place_of_auto(self, layer_sizes: Any, likelihood: Any) -> tuple[Any, Any]:
        """Return layer sizes and likelihood of a model; open ones become those of the earlier model."""
        there = self.earlier.spec
        if is_open(layer_sizes):
            layer_sizes = perceptron(there, "layer_sizes='auto'").layer_sizes
        return layer_sizes, there.likelihood if is_auto(likelihood) else likelihood

    def spec_for(self, make: Callable[..., NetworkSpec], settings: dict[str, Any]) -> NetworkSpec:
        """Return the spec of a model with this prior.

        Args:
            make: Function that makes the spec from settings and a prior.
            settings: Its arguments except the prior.

        Raises:
            TypeError, ValueError: As `make`, and for a network that differs from the earlier one.
        """
        there = self.earlier.spec
        if is_auto(settings["parameterization"]):
            settings = settings | {"parameterization": there.parameterization}
        spec = make(prior="auto", **settings)
        refuse_other_network("prior", spec, there)
        taken = {
            name: getattr(there, name) for name in (spec.holds_priors, "likelihood", "y_transform")
        }
        spec = replace(spec, **taken, choices=())
        return spec.after(self._prior)


def _require_curvature(spec: NetworkSpec) -> None:
    """Refuse networks without a Gauss-Newton matrix, or with one too large to factorise."""
    if spec.network.no_jacobian is not None:
        raise ValueError(
            f"FromPosterior needs the derivatives of every row's outputs: {spec.network.no_jacobian}. "
            "Pass the last draws on by initial_state=model, and fit all rows together."
        )
    if spec.num_parameters > _MOST_PARAMETERS:
        raise ValueError(
            f"FromPosterior factorises P x P matrices, for at most {_MOST_PARAMETERS} parameters, this "
            f"model has {spec.num_parameters}. Use narrower layers."
        )
