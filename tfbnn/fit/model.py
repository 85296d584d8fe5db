"""`BayesianMLP` and its base class `SampledNetwork`: fits, files and the sampled log density.

The base class `SampledModel` has the methods that use the draws.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from tfbnn.data.bad_rows import positions_named
from tfbnn.data.frames import column_names_of
from tfbnn.data.learn_coding import REFUSE
from tfbnn.data.transforms import unfitted_pipeline
from tfbnn.data.validation import as_float_array, check_integer
from tfbnn.exceptions import NotFittedError
from tfbnn.fit.handing_on import FromPosterior, known_from
from tfbnn.posterior.basins.basins import Basins
from tfbnn.posterior.checks import given_together, require_noise
from tfbnn.posterior.function_moments import judging_networks, moment_networks
from tfbnn.posterior.sampled_model import SampledModel, networks_of
from tfbnn.spec.habits import explains_keywords, refuse_unknown
from tfbnn.spec.keras_spec import require_stack
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.network_spec import NetworkSpec, check_prior_sizes
from tfbnn.spec.open_spec import OpenSpec, make_any_spec
from tfbnn.spec.rows import (
    NetworkRows,
    Rows,
    known_of_rows,
    prepare_rows,
    rows_of_chains,
    rows_to_fit,
    transform_rows,
)
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath, check_page_path
from tfbnn.system.signals import signals_interrupt
from tfbnn.system.words import warn

# The modules that fit are imported where they are used: loading and predicting needs none of them.
if TYPE_CHECKING:
    from tfbnn.data.learn_coding import Missing
    from tfbnn.engine.kernels.base import Kernel
    from tfbnn.fit.baselines import Baseline
    from tfbnn.posterior.ensemble import Ensemble
    from tfbnn.run.options import FitOptions
    from tfbnn.run.report import Run
    from tfbnn.run.until import Until


class BaselineOptions(TypedDict, total=False):
    """Keyword arguments that all baselines share, as in `fit_posterior`."""

    noise_scale: Any
    offset: Any
    pretraining: Pretraining | str
    validation_data: Sequence[Any] | None
    seed: int
    jit_compile: bool
    verbose: int | str
    callbacks: Sequence[Any]


class SampledNetwork(SampledModel):
    """Base class of the models whose posterior is sampled: fits, baselines, files and log density.

    `fit_map`, `fit_ensemble` and `fit_laplace` are baselines to compare sampling with. They use the same
    model and the same starts. Each of them leaves the model fitted: it predicts, scores, saves and loads
    as after `fit_posterior`, and every use states that it was not sampled. `diagnose` raises an error,
    and n_effective of `evaluate` is NaN.

    Args:
        make: Function that makes the spec from settings and a prior.
        prior: Prior of the model, or a FromPosterior.
        settings: The other arguments of `make`.
    """

    def __init__(
        self,
        make: Callable[..., NetworkSpec | OpenSpec],
        prior: Any,
        settings: dict[str, Any],
    ) -> None:
        is_earlier = isinstance(prior, FromPosterior)
        spec = prior.spec_for(make, settings) if is_earlier else make(prior=prior, **settings)
        if isinstance(spec, NetworkSpec):
            check_prior_sizes(spec)
        super().__init__(spec)
        self._earlier = prior.earlier if is_earlier else None

    @explains_keywords
    def fit_posterior(
        self,
        x: Any,
        y: Any = None,
        *,
        noise_scale: Any = None,
        offset: Any = None,
        groups: Any = None,
        missing: Missing = "refuse",
        kernel: str | Kernel | Callable[..., Any] = "auto",
        num_chains: int = 4,
        num_results: int | str = "auto",
        until: Until | str | None = "auto",
        max_seconds: float | None = None,
        num_burnin_steps: int | str = "auto",
        num_steps_between_results: int | str = "auto",
        pretraining: Pretraining | str | None = "auto",
        initial_state: Any = None,
        likelihood_power: float = 1.0,
        effort: float = 1.0,
        validation_data: Sequence[Any] | None = None,
        calibrate: bool | str = "auto",
        seed: int = 0,
        output: StrPath | None = None,
        resume: bool = False,
        commit_interval: float = 30.0,
        jit_compile: bool = True,
        verbose: int | str = "auto",
        callbacks: Sequence[Any] = (),
    ) -> Run:
        """Sample the posterior given the training rows (x, y).

        The guide "Arguments of a fit" explains the arguments in detail.

        Args:
            x: Inputs [N, D]: an array, nested lists, a data frame or an h5py dataset. A text column
                becomes one input of 0 and 1 for each of its values.
            y: Targets [N, K], or [N] for one target, in original units; class labels [N] for
                Categorical, 0 and 1 or two labels for Bernoulli. Predictions have the shape of y.
            noise_scale: Known standard deviation of each row, [N] or [N, K], in the units of y. It
                replaces a fixed noise scale of the likelihood, and adds in quadrature to a learned one.
            offset: For counts, the logarithm of each row's exposure, [N] or [N, K]. The mean of a row
                is exp(offset) times its rate.
            groups: Labels [N] of rows that belong together and are held out and left out together.
                None (default): each row is a group.
            missing: Treatment of missing values in x: "refuse" (default), or "indicator": use the
                median and one more input that is 1 where a value is missing, or a category of text.
            kernel: "auto" (default): HMC, or NUTS for 30 parameters or fewer. Or a name of
                `tfbnn.kernels.available()`, settings from `tfbnn.kernels`, or a callable
                target_log_prob_fn -> tfp.mcmc.TransitionKernel.
            num_chains: Number of independent chains C, default 4.
            num_results: Draws S to keep per chain; with `until`, the maximum. "auto" (default): as many
                as a fixed budget of gradients allows, 1000 with until=None.
            until: Stopping rule: limits, a `tfbnn.Until`; "converged" for R-hat 1.01 and ESS 400; None
                to stop after num_results draws. "auto" (default): stop when more
                draws no longer change the predictions, or when the chains agree; None if num_results is
                given.
            max_seconds: Limit on the wall-clock seconds of the call, default None.
            num_burnin_steps: Warm-up transitions. The first 80 % adapt step size and preconditioner,
                the others run with both fixed. "auto" (default): 1000, fewer if these take minutes.
            num_steps_between_results: Transitions to skip between two kept draws. "auto" (default): 0,
                more if a run with max_seconds would keep many thousand draws.
            pretraining: `tfbnn.Pretraining`, or None to start from draws of the prior. "auto"
                (default): up to about 12000 steps of ADAM with early stopping, then
                Levenberg-Marquardt if the noise is small. Sampling uses all rows.
            initial_state: Starts of the chains, in place of pretraining: an array [C, P] in theta, a
                number s for weights from N(0, s^2), a fitted model of the same kind, or the trained
                Keras model.
            likelihood_power: Power of the likelihood, above 0 and at most 1 (default); below 1, the
                posterior is coarsened.
            effort: Share of the usual work on starts, warm-up and draws where these are "auto", above
                0 and at most 1 (default).
            validation_data: (x, y), (x, y, noise_scale) or (x, y, offset), for early stopping and the
                diagnosis.
            calibrate: Whether to end with `calibrate(method="loo")`, which changes no draw. "auto"
                (default): calibrate if the noise is learned and there are at least 150 rows.
            seed: Integer, default 0. The same seed on the same machine gives the same bits.
            output: Run folder for the draws, from which a killed run can be resumed. None (default):
                memory only.
            resume: Continue the run in `output`, default False. Rows, versions and arguments must be
                the same, except `until` and a larger `num_results`.
            commit_interval: Seconds between commits to `output`, default 30.
            jit_compile: Compile with XLA, default True.
            verbose: "auto" or 1: bars on a terminal, a line every 30 s elsewhere. 0: silence. 2: as 1,
                and all details.
            callbacks: Functions called with an event (a dict) about once a second. One that returns
                True stops the run, which keeps the draws so far. For a Keras callback, each event is
                an epoch.

        Returns:
            A `Run`: timings, acceptance, diagnosis, `report()`, `history`.

        Raises:
            TypeError, ValueError: For unusable data or settings, before anything is compiled.
            StartError: When the density is not finite where a chain starts.
            RunFolderError: When `output` holds other files, or another run.
            RunLockedError: When another process uses `output`.
            ChainError: When a chain failed; the draws of the others are kept.
            KeyboardInterrupt: Within seconds of SIGINT, SIGTERM or SIGUSR1. The draws so far are in
                `model.posterior`, and committed.
        """
        from tfbnn.run.options import FitOptions

        options = FitOptions(
            missing=missing,
            kernel=kernel,
            num_chains=num_chains,
            num_results=num_results,
            until=until,
            max_seconds=max_seconds,
            num_burnin_steps=num_burnin_steps,
            num_steps_between_results=num_steps_between_results,
            pretraining=pretraining,
            calibrate=calibrate,
            initial_state=networks_of(initial_state),
            likelihood_power=likelihood_power,
            effort=effort,
            seed=seed,
            jit_compile=jit_compile,
            verbose=verbose,
            callbacks=callbacks,
            output=output,
            resume=resume,
            commit_interval=commit_interval,
        )
        known = known_of_rows(self.asked, noise_scale, offset)
        return self.fit_data(x, y, known, options, validation_data, groups)

    def fit_map(self, x: Any, y: Any, **options: Unpack[BaselineOptions]) -> Baseline:
        """Fit one network: the network that the chains of `fit_posterior` would start from.

        The epistemic standard deviation of its predictions is 0. With `include_noise`, the standard
        deviation is that of the noise which the network learned. By default some 15 % of the rows are held
        out, as in `fit_posterior`, and score the search. ADAM is fitted to the other rows. The
        network on its path that predicts the held-out rows best is kept. This stops short of the maximum
        of the posterior density, because closer to it the network would follow single rows. Unless there is
        much noise, Levenberg-Marquardt is tried next, and its result is kept if it predicts the held-out
        rows better. It ends with a few iterations on all rows. Noise that depends on the inputs is learned
        last, on 85 % of the rows or those that validation_split leaves, and kept if it predicts the others
        better.

        Args:
            x, y: As in `fit_posterior`. The options noise_scale, offset, validation_data, seed, jit_compile
                and verbose are also as there.
            pretraining: `tfbnn.Pretraining`, or "auto" (default), as in `fit_posterior`. "auto" tries one
                start, or two if there is next to no noise. With num_starts, that many starts are tried, and
                the best is kept: by the held-out rows, or by the log density if no rows are held out.
                Settings of your own fit all rows unless they have a validation_split.
            callbacks: As in `fit_posterior`. One that returns True stops the fit, and the model keeps the
                network as it is then.

        Returns:
            `Baseline`: report(), seconds, log_prob, agreement with the training rows.

        Raises:
            TypeError, ValueError: For unusable data or settings, before anything is compiled.
            StartError: When the density is not finite at the network that was found.
            KeyboardInterrupt: On SIGINT and SIGTERM. The model keeps the network found so far, unless it
                already has a posterior.
        """
        return self._fit_baseline("fit_map", x, y, options)

    def fit_ensemble(
        self, x: Any, y: Any, *, num_members: int = 10, **options: Unpack[BaselineOptions]
    ) -> Baseline:
        """Fit several networks from independent starts, with equal weights: a deep ensemble.

        Each network starts from its own draw of the prior and is fitted like the network of `fit_map`. By
        default all of them hold out the same rows. The epistemic standard deviation is the spread of their
        functions. Each network has its own noise scale.

        Args:
            x, y, options: As in `fit_map`.
            num_members: Number of networks M, default 10. `model.posterior.draws` is [M, 1, P], one chain
                per network, so that `stack_chains` can weight them by held-out rows.
            pretraining: As in `fit_map`; num_starts is at least num_members. "auto" tries num_members
                starts. If there is next to no noise, it tries twice as many and keeps the best num_members.

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
        """Fit one network and a normal distribution around it: the Laplace approximation.

        The precision is the Gauss-Newton matrix at the network of `fit_map`, in all parameters, including
        log noise scales and log prior scales. A draw theta predicts with the network linearised in its
        weights there, f(x; mode) + J(x) (theta - mode), and has its own noise scale. For classes these
        values are logits. The draws are in `model.posterior.draws` [1, S, P], the mode is in
        `model.posterior.mode`. A draw is not a network, so `to_savedmodel`, `to_onnx`, `compress`,
        `stack_chains` and `to_arviz` raise an error. For a linear model with known Gaussian noise and Normal
        priors the approximation is the exact posterior. The draws ignore the limits of a Uniform prior. The
        distribution is centred where the search ended, even if that is not the maximum.

        Args:
            x, y, options: As in `fit_map`.
            num_results: Number of draws S, default 1000.

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

    def save(self, path: StrPath) -> int:
        """Write the fitted model to one HDF5 file. An existing file is replaced only by a complete one.

        Args:
            path: File name, which usually ends in .h5. Endings of other formats, such as .keras, are
                refused.

        Returns:
            The size of the file in bytes.
        """
        from tfbnn.storage import write_model

        write_model(self._fitted(), path)
        return os.path.getsize(path)

    @explains_keywords
    def save_report(
        self,
        path: StrPath,
        x: Any = None,
        y: Any = None,
        *,
        noise_scale: Any = None,
        offset: Any = None,
    ) -> None:
        """Write a report as one HTML page: verdict, convergence, predictions and more.

        The page needs no other files and runs no script. It opens offline, in light or dark mode, on a phone
        and on paper. Needs Matplotlib and Jinja2, the extra `plots`.

        Args:
            path: File to write, which usually ends in .html. An earlier report is replaced.
            x, y: Rows with known targets, preferably not used in the fit, for scores, pulls, coverage and
                reliability. Default None: the page omits these.
            noise_scale: Known standard deviations of these rows, in the units of y, or None.
            offset: For counts, logarithms of the exposures of these rows, or None.

        Raises:
            NotFittedError: Before a fit.
            ImportError: When Matplotlib or Jinja2 is not installed.
            TypeError, ValueError: For unusable rows.
            FileExistsError: When `path` exists and is not a report of tfbnn.

        Example:
            model.save_report("report.html", x_test, y_test)
        """
        from tfbnn.plots.page.subject import KnownRows, Subject
        from tfbnn.plots.page.writing import write_report

        known = known_of_rows(self.spec, noise_scale, offset)
        rows = KnownRows(x, y, known) if given_together("save_report", x, y) else None
        check_page_path(path)
        title = os.path.splitext(os.path.basename(os.fspath(path)))[0]
        write_report(Subject(self, rows), path, title)

    def to_savedmodel(self, path: StrPath) -> None:
        """Write the mean and spread of the function as a TensorFlow SavedModel.

        Its signature "serving_default" takes x [N, D], float64, in original units (text coded, see
        `code_inputs`). It returns the dict {"mean": [N, K], "stddev": [N, K]}, float64: the numbers of
        `predict(x)` without noise. They always have columns, whatever the shape of the target. Transforms
        and chain weights are included; for classes the columns are class probabilities. Any number of rows
        runs in bounded memory, tile by tile. Inputs are not checked: values that "log10" cannot take give
        NaN. Writing and using the model needs TensorFlow.

        A calibrated model also returns "lower", "median" and "upper" [N, K], noise included: the median and
        the ends of the central 68.27 % interval of `predict(include_noise=True)`. Where that method keeps
        the error bars of the posterior, outside the training inputs, they are those of a normal
        distribution. For a model whose noise differs from row to row they are omitted, with a warning.

        Args:
            path: Folder to write, which must not exist or must be empty.

        Raises:
            NotFittedError: Before a fit.
            ValueError: After `fit_laplace`, whose draws are not networks, and for a Keras model that is no
                plain stack of Dense layers.
            FileExistsError: When `path` exists and is not an empty folder.
        """
        ensemble, path = self._fitted("to_savedmodel", allow_unsampled=False), os.fspath(path)
        require_stack(ensemble.spec, "to_savedmodel")
        if os.path.exists(path) and not (os.path.isdir(path) and not os.listdir(path)):
            raise FileExistsError(
                f"{path!r} exists and is not an empty folder. Choose another path."
            )
        from tfbnn.engine.export.saved_model import write_saved_model
        from tfbnn.posterior.calibration.exported import bar_constants
        from tfbnn.posterior.onnx import graph_weights, moments_graph

        networks, scored = moment_networks(ensemble), judging_networks(ensemble)
        constants = bar_constants(networks.ensemble)
        judged = None
        if scored is not None and constants is not None:
            judged = scored, *graph_weights(scored)
        write_saved_model(networks, constants, moments_graph, judged, path)

    def summary(self, print_fn: Callable[[str], object] = print) -> None:
        """Print a table of layers, shapes, activations, parameters and priors."""
        print_fn(self._table)

    def log_prob(
        self,
        theta: Any,
        x: Any,
        y: Any,
        *,
        noise_scale: Any = None,
        offset: Any = None,
        return_terms: bool = False,
    ) -> Array | dict[str, Array]:
        """Compute the log density that is sampled, at parameters theta.

        The density is fully normalised. It is that of the transformed targets given the parameters, times
        that of the parameters in the coordinates in which they are sampled. It does not contain the Jacobian
        of the target transform. After a fit with a `likelihood_power` below 1, the likelihood is raised to
        this power, and so log_likelihood is multiplied by it.

        Args:
            theta: Parameters [..., P].
            x, y, noise_scale, offset: Rows as in `fit_posterior`. Before a fit, the classes are those of the
                labels in y. At infinite width the density is that of the 400 rows that are sampled on.
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
        transformed = self._transformed(x, y, noise_scale, offset, "log_prob")
        from tfbnn.engine.density.value_and_gradient import log_prob_terms

        terms = log_prob_terms(self.spec, theta.reshape(-1, theta.shape[-1]), *transformed)
        terms["log_prob"] = terms["log_prior"] + terms["log_likelihood"]
        terms = {name: values.reshape(theta.shape[:-1])[()] for name, values in terms.items()}
        return terms if return_terms else terms["log_prob"]

    def log_prob_function(
        self, x: Any, y: Any, *, noise_scale: Any = None, offset: Any = None
    ) -> Callable[[Any], Any]:
        """Return the log density that is sampled as a pure TensorFlow function, for other samplers.

        Args:
            x, y, noise_scale, offset: Rows as in `log_prob`. The function keeps them.

        Returns:
            Function of parameters theta [C, P], a tensor. It returns the log densities [C] in the dtype of
            theta, with gradients. The density is that of `log_prob`. The sum over rows is made in float64.
            With theta in float32 the result is rounded, to 0.004 at 5e4; `fit_posterior` avoids this by
            subtracting the value at the start. Use float64 for acceptance ratios with many rows.

        Raises:
            NotFittedError: When a transform has to be fitted first.

        Example:
            log_prob = model.log_prob_function(x, y)
            kernel = tfp.mcmc.HamiltonianMonteCarlo(log_prob, step_size=1e-3, num_leapfrog_steps=32)
        """
        transformed = self._transformed(x, y, noise_scale, offset, "log_prob_function")
        from tfbnn.engine.density.value_and_gradient import make_log_prob

        return make_log_prob(self.spec, *transformed)

    def fit_data(
        self,
        x: Any,
        y: Any,
        noise_scale: Any,
        options: FitOptions,
        validation_data: Any = None,
        groups: Any = None,
        backend: Any = None,
    ) -> Run:
        """Run `fit_posterior` with FitOptions on a given backend; see `tfbnn.fit.fitting`."""
        earlier = known_from(self, options.initial_state)
        if not options.column_names:
            names = column_names_of(y, earlier and earlier.target_names)
            options = replace(options, column_names=names)
        held_out = validation_data if isinstance(validation_data, (tuple, list)) else ()
        with positions_named(x, *held_out[:1]):
            spec = self.asked.for_rows(x, y, options.missing)
            data = x, y, noise_scale, validation_data
            rows, validation = rows_to_fit(spec, *data, earlier, options.missing, groups)
            return self.fit_rows(spec, rows, validation, options, backend)

    def fit_rows(
        self,
        spec: NetworkSpec,
        rows: Rows,
        validation: Rows | None,
        options: FitOptions,
        backend: Any = None,
    ) -> Run:
        """Run `fit_data` on Rows that are already checked."""
        from tfbnn.fit.fitting import fit

        keep = partial(self._keep, rows)
        with signals_interrupt():
            run, result = fit(spec, rows, validation, options, keep, backend)
        error = None
        if result.failures:
            from tfbnn.run.result import chain_error

            error = chain_error(result.failures, options.output)
        if result.interrupted:
            if error is not None:
                warn(str(error), UserWarning)
            raise KeyboardInterrupt from error
        if error is not None:
            raise error
        if run.num_results:
            return replace(run, find_basins=partial(self._basins_of_run, self._ensemble))
        if self._ensemble is not None:
            has = "keeps its earlier posterior"
            if self._ensemble.provenance.not_sampled is not None:
                has = "holds optimised networks, which are not draws of the posterior"
            warn(f"The run ended before its first draw; the model {has}.")
        return run

    def _fit_baseline(
        self,
        name: str,
        x: Any,
        y: Any,
        given: BaselineOptions,
        num_chains: int = 1,
        num_results: int = 1,
    ) -> Baseline:
        """Fit the baseline of the given name; each of its networks is stored as a chain."""
        from tfbnn.fit.baselines import fit_baseline
        from tfbnn.run.options import FitOptions

        refuse_unknown(name, given, BaselineOptions.__annotations__)
        rest: dict[str, Any] = {**given}
        beside = known_of_rows(self.asked, rest.pop("noise_scale", None), rest.pop("offset", None))
        validation_data = rest.pop("validation_data", None)
        earlier = known_from(self)
        options = FitOptions(
            **rest,
            num_chains=num_chains,
            num_results=num_results,
            num_burnin_steps=0,
            kernel="nuts",  # a placeholder: no baseline runs a kernel
            column_names=column_names_of(y, earlier and earlier.target_names),
        )
        held_out = validation_data if isinstance(validation_data, (tuple, list)) else ()
        with positions_named(x, *held_out[:1]), signals_interrupt():
            spec = self.asked.for_rows(x, y, REFUSE)
            rows, validation = rows_to_fit(spec, x, y, beside, validation_data, earlier)
            fitted = fit_baseline(spec, rows, validation, name, options)
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

    def _basins_of_run(self, of_run: Ensemble | None) -> Basins:
        """Return the Basins of the Ensemble of a run. Raise an error if the model was fitted again since."""
        now = self._ensemble
        if of_run is None or now is None or not np.may_share_memory(now.draws, of_run.draws):
            raise ValueError(
                "run.basins() needs the draws of this run, but the model has been fitted again since. Call "
                "it before the next fit."
            )
        return self.basins()

    def _transformed(self, x: Any, y: Any, noise_scale: Any, offset: Any, what: str) -> NetworkRows:
        """Return rows on the scale of the chains, by the transforms of the model or of its prior."""
        spec, source = self.spec, self._ensemble or self.earlier
        known = known_of_rows(spec, noise_scale, offset)
        rows = prepare_rows(spec, x, y, known, "", None if source is None else source.known)
        if self._ensemble is not None:
            require_noise(self._ensemble, rows.noise, what)
        if source is None:
            x_pipeline = unfitted_pipeline(spec.x_transform)
            y_pipeline = None if spec.is_open else unfitted_pipeline(spec.y_transform)
            if x_pipeline is None or y_pipeline is None:
                raise NotFittedError(
                    "'standardize' learns its mean and scale from training rows. Call fit_posterior "
                    "first, or build the model with x_transform=None, y_transform=None."
                )
        else:
            x_pipeline, y_pipeline = source.x_pipeline, source.y_pipeline
        return rows_of_chains(spec, transform_rows(spec, x_pipeline, y_pipeline, rows))


class BayesianMLP(SampledNetwork):
    """A multilayer perceptron whose posterior is sampled by Markov chain Monte Carlo.

    Args:
        layer_sizes: Widths from inputs to outputs, for example [5, 20, 20, 1]. `fit_posterior` explains
            how many inputs a text column makes. "auto" (default), or [5, "auto", 1]: each fit compares
            one hidden layer of 50, two of 20 or 50 and, with few rows, infinite width on held-out
            rows, and samples the best. [5, inf, 1], with `math.inf` or "inf" for every hidden layer: the
            limit of infinite width. This is a Gaussian process whose weights are integrated out and
            whose scales are sampled, for up to 4000 rows; see the guide "Infinite width".
        activation: A name, or one per hidden layer: tanh, sigmoid, relu, leaky_relu (of slope 0.2, as in
            TensorFlow) or leaky_relu_0.01 (as in PyTorch and JAX), elu, selu, softplus, gelu, swish or
            silu, sin, cos, erf, identity or linear. Default "tanh"; at infinite width an erf of the
            same slope replaces it. Functions of these names from TensorFlow, Keras and NumPy are
            accepted too, such as tf.nn.relu.
        prior: A prior from `tfbnn.priors` for all weights, a dict {"kernel": .., "bias": ..}, or a
            list with one of these per layer. "auto" (default): ARD(HalfNormal(1.0)) on the first
            kernel, one scale per input, and HierarchicalNormal(HalfNormal(1.0)) elsewhere. For classes,
            whose log-odds may be large, both use HalfNormal(3.0). The scales are sampled, so that the
            data determine them. ARD is allowed for the first kernel only:
            [{"kernel": ARD(), "bias": Normal()}, Normal()] with one hidden layer.
        likelihood: From `tfbnn.likelihoods`. "auto" (default): Gaussian("learned") if the layers are
            given. Otherwise each fit compares it with input-dependent noise (HeteroscedasticGaussian)
            and Student-t noise, and uses Bernoulli or Categorical for targets of text or booleans.
        parameterization: "standard", or "ntk": a kernel is multiplied by its prior scale over the
            square root of the number of inputs of the layer, so that one prior suits every width.
            "auto" (default): "ntk" with the prior "auto", "standard" with a given prior.
        x_transform, y_transform: None, a name or a list of names out of "log10" and "standardize",
            fitted to the training rows and saved with the model. The default of x_transform is
            "standardize", that of y_transform is "auto". "auto" means "standardize", preceded by
            "log10" if all targets of a fit, validation rows included, are positive and each column
            spans more than two decades. "log10" is not used if rounding blurs the logarithms of the
            smallest targets, or if regressions in closed form score higher without it. With a given
            noise scale, which is in these units, "auto" means "standardize". It means None for the
            class labels of Bernoulli and Categorical, which allow no other. Each fit chooses anew;
            `spec` has the choice of the last fit.
        dtype: "float32" (default) or "float64", also as a dtype of NumPy, TensorFlow or JAX.

    `summary` shows the values chosen for "auto", and the report of a fit gives the reasons. These
    choices depend on sizes and rows, never on a clock.

    Raises:
        TypeError, ValueError: For settings that do not describe a model.

    Example:
        model = tfbnn.BayesianMLP([5, 20, 20, 1], y_transform=["log10", "standardize"])
        run = model.fit_posterior(x, y)
        print(run.report())
        mean, stddev = model.predict(x_new)
    """

    @explains_keywords
    def __init__(
        self,
        layer_sizes: Sequence[Any] | str = "auto",
        *,
        activation: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] = "tanh",
        prior: Any = "auto",
        likelihood: Likelihood | str = "auto",
        parameterization: str = "auto",
        x_transform: str | Sequence[str] | None = "standardize",
        y_transform: str | Sequence[str] | None = "auto",
        dtype: Any = "float32",
    ) -> None:
        if isinstance(prior, FromPosterior):
            layer_sizes, likelihood = prior.in_place_of_auto(layer_sizes, likelihood)
        settings = {
            "activation": activation,
            "likelihood": likelihood,
            "parameterization": parameterization,
            "x_transform": x_transform,
            "y_transform": y_transform,
            "dtype": dtype,
        }
        super().__init__(partial(make_any_spec, layer_sizes), prior, settings)
