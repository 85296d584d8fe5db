"""Hand on an earlier model to a fit: its posterior as prior, or the starts of its chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tfbnn.posterior.checks import checked_rows, require_rows_of_fit, rows_of_the_fit
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.choices import is_auto
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.open_spec import is_open
from tfbnn.spec.rows import Known, known_of_rows, row_digests

# In what the two have to agree, so that parameters mean the same.
_SAME = ("parameterization", "x_transform", "y_transform")


def known_from(model: SampledModel, initial_state: Any = None) -> Known | None:
    """Return what is known of rows before they come; None, unless prior or starts are of an earlier model.

    Args:
        model: The model that is to be fitted. A transform of the targets that is open in it will be
            that of the earlier one.
        initial_state: As in `FitOptions`.

    Raises:
        ValueError: When the chains are to start from a model of another network, or of other
            transforms.
    """
    sources = []
    if model.earlier is not None:
        sources.append(model.earlier)
    if isinstance(initial_state, Ensemble):
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
    """Refuse an earlier model in which parameters mean something else.

    Args:
        what: The argument that it came by.
        spec: NetworkSpec of the model that is to be fitted.
        there: NetworkSpec of the earlier one.

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
    """Name and settings, but the prior of the noise: priors need not agree."""
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


# Rows are chosen by a Gauss-Newton matrix and its factor, of 8 P^2 bytes each: 0.1 GB at this P.
_MOST_PARAMETERS = 4000


class FromPosterior:
    """The information in the rows of an earlier fit, for rows that arrive batch by batch.

    The prior is that of the earlier model times what stands for the likelihood of its rows: that of some
    of them, each as often as it stands for others. Up to 10 000 rows, and up to four outputs per parameter,
    are all kept, and then batches one after the other are as all rows at once. Among more rows those are
    likelier to be kept that determine more parameters, and weights make sums exact: the number of rows,
    their log likelihood at the last draw of every chain and, of models with some 40 parameters at most,
    its gradient and Gauss-Newton matrix, so that linear models with Gaussian noise lose nothing. For other
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
        x, y, noise_scale, offset: The rows of its fit, as in `fit_posterior`, for a model that was not fitted in
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
        offset: Any = None,
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
        known = known_of_rows(ensemble.spec, noise_scale, offset)
        if x is None:
            rows = rows_of_the_fit(model._training_rows, known, "FromPosterior", "x and y")
        else:
            rows, _ = checked_rows(ensemble, x, y, known, "FromPosterior")
            require_rows_of_fit(ensemble, rows, "FromPosterior")
        from tfbnn.fit.condensing import condense

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
        self.earlier = ensemble

    def __repr__(self) -> str:
        return f"FromPosterior({self._prior!r})"

    def in_place_of_auto(self, layer_sizes: Any, likelihood: Any) -> tuple[Any, Any]:
        """Return these arguments of a model, those of the earlier one where they are open."""
        there = self.earlier.spec
        if is_open(layer_sizes):
            layer_sizes = perceptron(there, "layer_sizes='auto'").layer_sizes
        return layer_sizes, there.likelihood if is_auto(likelihood) else likelihood

    def spec_for(self, make: Callable[..., NetworkSpec], settings: dict[str, Any]) -> NetworkSpec:
        """Return the spec of a model with this prior.

        Args:
            make: Makes the spec of settings and a prior.
            settings: Its arguments but the prior.

        Raises:
            TypeError, ValueError: As `make`, and for another network than the earlier one.
        """
        there = self.earlier.spec
        if is_auto(settings["parameterization"]):
            settings = settings | {"parameterization": there.parameterization}
        spec = make(prior="auto", **settings)
        refuse_other_network("prior", spec, there)
        spec = replace(spec.with_priors_of(there), likelihood=there.likelihood, choices=())
        return spec.after(self._prior)


def _require_curvature(spec: NetworkSpec) -> None:
    """Refuse networks that have no Gauss-Newton matrix, or one too large to factorise."""
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
