"""Methods of a model that fit baselines, and that hand out the log density which is sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from tfbnn.data.bad_rows import places_named
from tfbnn.data.frames import column_names_of
from tfbnn.data.transforms import Pipeline, unfitted_pipeline
from tfbnn.data.validation import as_float_array, check_integer
from tfbnn.exceptions import NotFittedError
from tfbnn.fit.handing_on import known_from
from tfbnn.posterior.checks import require_noise
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.habits import hint
from tfbnn.spec.rows import NetworkRows, prepare_rows, rows_to_fit, transform_rows
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array
from tfbnn.system.signals import signals_interrupt
from tfbnn.system.words import warn

if TYPE_CHECKING:
    from tfbnn.fit.baselines import Baseline


class BaselineOptions(TypedDict, total=False):
    """Arguments of all baselines, as in `fit_posterior`."""

    noise_scale: Any
    pretraining: Pretraining | str
    validation_data: Sequence[Any] | None
    seed: int
    jit_compile: bool
    verbose: int | str
    callbacks: Sequence[Any]


class BaselineMethods(SampledModel):
    """Baselines to hold sampling against, from the same starts, in the same model.

    Every one of them leaves the model fitted: it predicts, scores, saves and loads as after
    `fit_posterior`, and says wherever it is used that it was not sampled. `diagnose` refuses, and
    n_effective of `evaluate` is NaN.
    """

    def fit_map(self, x: Any, y: Any, **options: Unpack[BaselineOptions]) -> Baseline:
        """Fits one network: what the chains of `fit_posterior` would start from.

        Its predictions have epistemic standard deviation 0; with `include_noise` they have that of
        the noise which the network learned. By default some 15 % of the rows are held out, as in
        `fit_posterior`, and judge the search. ADAM is fitted to the others, and gives the network on
        its way that predicts the held-out rows best: short of the maximum of the posterior density,
        as further up it would follow single rows. Unless there is much noise, Levenberg-Marquardt is
        tried after it, and kept where those rows are predicted better; it ends with a few iterations
        on all rows.

        Args:
            x, y: As in `fit_posterior`, and of `options` noise_scale, validation_data, seed,
                jit_compile and verbose.
            pretraining: `tfbnn.Pretraining`, or "auto" (default), as in `fit_posterior`: it tries
                one start, two where there is next to no noise. With num_starts so many are tried,
                and the best is kept, by held-out rows or else by log density. With settings of your
                own all rows are fitted unless they have a validation_split.
            callbacks: As in `fit_posterior`; one that returns True leaves the network as it is then.

        Returns:
            `Baseline`: report(), seconds, log_prob, agreement with the training rows.

        Raises:
            TypeError, ValueError: For unusable data or settings, before anything is compiled.
            StartError: When the density is not finite at the network that was found.
            KeyboardInterrupt: On SIGINT and SIGTERM. What was found until then is in the model, unless
                that has a posterior.
        """
        return self._fit_baseline("fit_map", x, y, options)

    def fit_ensemble(
        self, x: Any, y: Any, *, num_members: int = 10, **options: Unpack[BaselineOptions]
    ) -> Baseline:
        """Fits networks from starts of their own, with equal weights: a deep ensemble.

        Each starts from its own draw of the prior and is fitted as the network of `fit_map`; by
        default all hold out the same rows. The spread of their functions is the epistemic standard
        deviation, and each has its own noise scale.

        Args:
            x, y, options: As in `fit_map`.
            num_members: Networks M, default 10. `model.posterior.draws` is [M, 1, P], a chain each,
                so that `stack_chains` can weigh them by held-out rows.
            pretraining: As in `fit_map`; num_starts is at least num_members. "auto"
                tries num_members starts, and where there is next to no noise keeps the best
                num_members of twice as many.

        Returns:
            `Baseline`, as `fit_map`.

        Raises:
            TypeError, ValueError, StartError, KeyboardInterrupt: As `fit_map`.

        References:
            Lakshminarayanan, Pritzel and Blundell 2017, NeurIPS 30, arXiv:1612.01474.
        """
        count = check_integer("num_members", num_members, minimum=1)
        return self._fit_baseline("fit_ensemble", x, y, options, num_chains=count)

    def fit_laplace(
        self, x: Any, y: Any, *, num_results: int = 1000, **options: Unpack[BaselineOptions]
    ) -> Baseline:
        """Fits one network and a normal distribution around it: the Laplace approximation.

        The precision is the Gauss-Newton matrix at the network of `fit_map`, in all parameters, log
        noise and log prior scales included. A draw theta predicts what the network does that was
        made linear in its weights there, f(x; mode) + J(x) (theta - mode), and has its own noise
        scale; for classes these are logits. The draws are in `model.posterior.draws` [1, S, P], the
        mode in `model.posterior.mode`. A draw is no network: `to_savedmodel`, `to_onnx`, `compress`,
        `stack_chains` and `to_arviz` refuse. Of a linear model with known
        Gaussian noise and Normal priors this is the posterior. Draws know nothing of the ends of a
        Uniform prior, and where the search ended off the maximum the distribution is not moved there.

        Args:
            x, y, options: As in `fit_map`.
            num_results: Draws S, default 1000.

        Returns:
            `Baseline`, as `fit_map`.

        Raises:
            ValueError: Also for more than 8000 parameters, whose matrix would take gigabytes.
            StartError: Also when the matrix is not positive definite.
            TypeError, KeyboardInterrupt: As `fit_map`.

        References:
            MacKay 1992, Neural Computation 4, 448. Immer, Korzepa and Bauer 2021, "Improving
            predictions of Bayesian neural nets via local linearization", arXiv:2008.08400.
        """
        return self._fit_baseline("fit_laplace", x, y, options, num_results=num_results)

    def _fit_baseline(
        self,
        name: str,
        x: Any,
        y: Any,
        given: BaselineOptions,
        num_chains: int = 1,
        num_results: int = 1,
    ) -> Baseline:
        """Fits the baseline of this name, in which every network is a chain."""
        from tfbnn.fit.baselines import fit_baseline
        from tfbnn.run.options import FitOptions

        known = BaselineOptions.__annotations__
        for one in given:
            if one not in known:
                message = f"{name}() got an unexpected keyword argument {one!r}."
                raise TypeError(message + hint(one, known))
        rest: dict[str, Any] = {**given}
        noise_scale, validation_data = (
            rest.pop(one, None) for one in ("noise_scale", "validation_data")
        )
        earlier = known_from(self)
        options = FitOptions(
            **rest,
            num_chains=num_chains,
            num_results=num_results,
            num_burnin_steps=0,
            kernel="nuts",  # which none of them runs
            column_names=column_names_of(y, earlier and earlier.target_names),
        )
        held_out = validation_data if isinstance(validation_data, (tuple, list)) else ()
        with places_named(x, *held_out[:1]), signals_interrupt():
            rows, validation = rows_to_fit(self._asked, x, y, noise_scale, validation_data, earlier)
            fitted = fit_baseline(self._asked, rows, validation, name, options)
        record, ensemble, is_interrupted = fitted
        self._keep(rows, ensemble, in_any_case=not record.stopped)
        if is_interrupted:
            raise KeyboardInterrupt
        if record.stopped:
            has = "what was found until then"
            if self._sampled().provenance.not_sampled is None:
                has = "its earlier posterior"
            warn(f"{name} was stopped early; the model has {has}.")
        return record


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
