"""`BayesianMLP`: build, fit, predict, judge, save; `load` and `resume`."""

import os
import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from tfbnn.data.checks import (
    check_names,
    checked_inputs,
    checked_rows,
    require_noise,
    rows_to_fit,
)
from tfbnn.data.labels import most_probable
from tfbnn.data.rows import prepare_noise, prepare_rows, transform_rows
from tfbnn.data.transforms import unfitted_pipeline
from tfbnn.data.trust import trust_levels
from tfbnn.data.validation import (
    as_float_array,
    check_choice,
    check_flag,
    check_integer,
    check_number,
)
from tfbnn.exceptions import ChainError, NotFittedError
from tfbnn.fit.assemble import diagnose_ensemble, load_run
from tfbnn.fit.fitting import fit
from tfbnn.fit.resuming import read_run
from tfbnn.posterior.prediction import function_draws, inverse_draws, predict, row_tiles
from tfbnn.run.options import FitOptions
from tfbnn.spec.model_spec import make_spec
from tfbnn.spec.priors import Normal
from tfbnn.spec.regression_likelihoods import Gaussian
from tfbnn.spec.settings_json import Pretraining
from tfbnn.spec.summary import describe_model
from tfbnn.system.signals import signals_interrupt

__all__ = ["BayesianMLP", "load", "resume"]


class BayesianMLP:
    """A multilayer perceptron whose posterior is sampled by Markov chain Monte Carlo.

    Args:
        layer_sizes: Widths from inputs to outputs, for example [5, 20, 20, 1].
        activation: A name, or one per hidden layer: tanh, sigmoid, relu, leaky_relu, elu, selu,
            softplus, gelu, swish or silu, sin, identity. Default "tanh".
        prior: A prior from `tfbnn.priors` for all weights, a dict {"kernel": .., "bias": ..}, or a
            list with one of these per layer. Default Normal(1.0).
        likelihood: From `tfbnn.likelihoods`. Default Gaussian("learned").
        parameterization: "standard" (default), or "ntk": a kernel is multiplied by its prior scale
            over the square root of the layer's inputs, so that one prior suits every width.
        x_transform, y_transform: None, a name or a list of names out of "log10" and "standardize",
            fitted to the training rows and saved with the model. Default of x_transform is
            "standardize"; that of y_transform is "auto": "standardize", but None for the class
            labels of Bernoulli and Categorical, which take no other.
        dtype: "float32" (default) or "float64".

    Raises:
        TypeError, ValueError: For settings that do not describe a model.

    Example:
        model = tfbnn.BayesianMLP([5, 20, 20, 1], y_transform=["log10", "standardize"])
        run = model.fit_posterior(x, y)
        print(run.report())
        mean, stddev = model.predict(x_new)
    """

    def __init__(
        self,
        layer_sizes,
        *,
        activation="tanh",
        prior=Normal(1.0),
        likelihood=Gaussian("learned"),
        parameterization="standard",
        x_transform="standardize",
        y_transform="auto",
        dtype="float32",
    ):
        spec = make_spec(
            layer_sizes,
            activation=activation,
            prior=prior,
            likelihood=likelihood,
            parameterization=parameterization,
            x_transform=x_transform,
            y_transform=y_transform,
            dtype=_dtype_name(dtype),
        )
        self._set(spec)

    @classmethod
    def from_spec(cls, spec):
        """The model, not fitted yet, that a `ModelSpec` describes."""
        model = cls.__new__(cls)
        model._set(spec)
        return model

    @classmethod
    def from_ensemble(cls, ensemble):
        """The fitted model that an `Ensemble` describes."""
        model = cls.from_spec(ensemble.spec)
        model._ensemble = ensemble
        return model

    def _set(self, spec):
        self.spec = spec
        self._ensemble = self._training_rows = None
        self.column_names = {}

    @property
    def posterior(self):
        """The sampled networks: draws [C, S, P], sample_stats, chain_weights [C], to_arviz()."""
        return self._fitted()

    @property
    def classes(self):
        """Class labels, in the order of Categorical's columns; None for other targets."""
        return self._fitted().classes

    def summary(self, print_fn=print):
        """Prints a table of layers, shapes, activations, parameters and priors."""
        print_fn(describe_model(self.spec))

    def fit_posterior(
        self,
        x,
        y,
        *,
        noise_scale=None,
        kernel="nuts",
        num_chains=4,
        num_results=1000,
        num_burnin_steps=1000,
        num_steps_between_results=0,
        pretraining=Pretraining(),
        validation_data=None,
        seed=0,
        output=None,
        resume=False,
        commit_interval=30.0,
        num_workers="auto",
        jit_compile=True,
        verbose="auto",
        callbacks=(),
    ):
        """Samples the posterior given the rows (x, y).

        Args:
            x: Inputs [N, D]: NumPy arrays, nested lists, data frames.
            y: Targets [N, K], or [N] for one target, original units. For Categorical class labels
                [N], text or integers; for Bernoulli 0 and 1 or booleans [N, K], or two labels [N].
                The labels are kept with the model: 0 .. M - 1 where all are such numbers, else
                those that occur, sorted.
            noise_scale: Known standard deviation of each row, [N] or [N, K], in the units of y
                before transforms; not for class labels. It replaces a fixed noise scale of the likelihood and adds in
                quadrature to a learned one.
            kernel: "nuts" (default), another of `tfbnn.kernels.available()`, settings from
                `tfbnn.kernels`, or a callable
                target_log_prob_fn -> tfp.mcmc.TransitionKernel, whose target maps [C, P] to [C].
            num_chains: Independent chains C, default 4.
            num_results: Draws S kept per chain, default 1000.
            num_burnin_steps: Warm-up transitions, default 1000: the first 80 % adapt step size and
                preconditioner, the last 20 % mix with everything frozen.
            num_steps_between_results: Transitions skipped between two kept draws, default 0.
            pretraining: `tfbnn.Pretraining`, or None to start from draws of the prior.
            validation_data: (x, y) or (x, y, noise_scale), for early stopping and as reference
                inputs of the diagnostics.
            seed: Non-negative integer. The same seed on the same machine gives the same bits.
            output: Run folder. Draws go there and not into memory, and a run that was killed goes
                on from there: see "Long runs" in the README. It is made where there is none, and
                refused where there is something in it, unless `resume`. None (default): draws are
                kept in memory only.
            resume: Go on with the run in `output`, which must have been begun with the same rows
                and arguments, on the same versions; `num_results` may be larger than it was. What
                comes out has the bits of a run that nothing interrupted. An empty or missing folder
                starts afresh. Default False.
            commit_interval: Seconds after which the next block of transitions ends with a commit,
                default 30: what a kill can lose at most, besides one block. Phases end with one.
            num_workers: Processes that advance the chains on a CPU, each with one thread per
                operation. 1: none, all chains run in threads of this process, on all its cores. A
                larger number: a process that crashes is replaced, up to three times without a commit
                between, and goes on from its last commit without disturbing the others; without
                `output` they write to a temporary folder. "auto" (default): one per core for runs
                with `output` that will take ten minutes or more (estimated from the settings),
                because there a crash must not end everything; else 1, because threads start at once
                and are faster (by a sixth: benchmarks/results/workers.md). A resumed run goes on as
                it was begun. Chains
                that advance in one program stay in this process: on a GPU, of a kernel whose chains
                learn from each other, and eight or more of a tiny network. With one thread per
                operation either way the draws have the same bits.
            jit_compile: Compile with XLA, default True.
            verbose: "auto" or 1: a live line on a terminal, a line every 30 s elsewhere; 0: silence.
            callbacks: Each is called as callback(event: dict) between blocks; returning True stops
                the run with the draws kept so far.

        Returns:
            A `Run`: timings, acceptance, diagnosis, `report()`.

        Raises:
            TypeError, ValueError: For unusable data or settings, before anything is compiled.
            StartError: When the density is not finite where a chain starts.
            RunFolderError: When `output` holds something else, a run that is not to be resumed, or
                one that was begun with other rows, settings or versions, which are named;
                RunLockedError when another process is at work there.
            ChainError: When a chain failed on the way, or its worker processes crashed four times in
                a row without a commit; the draws of the others are in `model.posterior`, and what
                the chain had committed is in `output`.
            KeyboardInterrupt: On SIGINT, SIGTERM, or SIGUSR1 where it has no other handler; draws
                kept so far are in `model.posterior`, and committed. Chains that failed before or
                meanwhile are named in a warning.
        """
        options = FitOptions(
            kernel=kernel,
            num_chains=num_chains,
            num_results=num_results,
            num_burnin_steps=num_burnin_steps,
            num_steps_between_results=num_steps_between_results,
            pretraining=pretraining,
            seed=seed,
            jit_compile=jit_compile,
            verbose=verbose,
            callbacks=callbacks,
            output=output,
            resume=resume,
            commit_interval=commit_interval,
            num_workers=num_workers,
            column_names=self.column_names,
        )
        rows, validation = rows_to_fit(self.spec, x, y, noise_scale, validation_data)
        return self.fit_rows(rows, validation, options)

    def fit_rows(self, rows, validation, options, place=None):
        """`fit_posterior` to checked Rows, with FitOptions, at a place as in `tfbnn.fit.fitting`."""
        keep = partial(self._keep, rows)
        with signals_interrupt():
            run, result = fit(self.spec, rows, validation, options, keep, place)
        error = _chain_error(result.failures, options.output) if result.failures else None
        if result.interrupted:
            if error is not None:
                warnings.warn(str(error), UserWarning, stacklevel=3)
            raise KeyboardInterrupt from error
        if error is not None:
            raise error
        if not run.num_results and self._ensemble is not None:
            warnings.warn(
                "The run was stopped before its first draw; the model keeps its earlier posterior.",
                UserWarning,
                stacklevel=3,
            )
        return run

    def predict(
        self,
        x,
        *,
        include_noise=False,
        quantiles=None,
        space="original",
        noise_scale=None,
        backend="auto",
        return_trust=False,
    ):
        """Mean and spread of the predictive distribution.

        Every draw is carried to original units before anything is averaged. Of classes, mean,
        standard deviation over draws and quantiles are of their probabilities: [N, M] with
        Categorical, the columns in the order of `classes`; [N, K] with Bernoulli, of 1 or the second
        label.

        Args:
            x: Inputs [N, D].
            include_noise: False (default): the spread of the function (epistemic). True: of a new
                observation. With Student-t noise under "log10" a mean and standard deviation in
                original units do not exist and are infinite; quantiles do. Refused for classes:
                their mean probability is that of a new observation already.
            quantiles: Probabilities in (0, 1), or None.
            space: "original" units (default), or "transformed", the scale the network sees: of
                classes the logits, with Categorical less their mean over classes.
            noise_scale: Known standard deviations of the rows, [N] or [N, K], in the units of y;
                required with `include_noise` after a fit that had them.
            backend: What computes the networks' outputs, equal to 1e-5: "numpy", which needs nothing
                else and is as fast as XLA on a CPU, "tensorflow", or "auto" (default): TensorFlow
                for large batches where it is imported already and sees a GPU, else NumPy.
            return_trust: Whether to say of every row if it lies where there were training inputs:
                1 inside, 0 at the edge, -1 outside (`tfbnn.trust`).

        Returns:
            `Prediction` with mean [N, K], stddev [N, K], quantiles [Q, N, K] or None, trust [N] or
            None; it unpacks as `mean, stddev = model.predict(x)`.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable inputs.
        """
        ensemble = self._fitted()
        x = checked_inputs(ensemble, x)
        check_flag("include_noise", include_noise)
        check_flag("return_trust", return_trust)
        noise = prepare_noise(self.spec, noise_scale, len(x))
        if include_noise and self.spec.has_classes:
            raise ValueError(
                "include_noise=True does not go with "
                f"{type(self.spec.likelihood).__name__}: the mean probability of a class is that "
                "of a new observation already. Leave it False."
            )
        if include_noise:
            require_noise(ensemble, noise, "include_noise=True")
        check_choice("space", space, {"original", "transformed"})
        check_choice("backend", backend, {"auto", "numpy", "tensorflow"})
        if quantiles is not None:
            quantiles = [
                check_number("quantiles", q, above=0, below=1)
                for q in np.atleast_1d(quantiles).tolist()
            ]
        prediction = predict(
            ensemble,
            x,
            include_noise=include_noise,
            quantiles=quantiles,
            space=space,
            row_noise=noise,
            backend=backend,
        )
        if not return_trust:
            return prediction
        trust = trust_levels(ensemble.training_inputs, ensemble.x_pipeline.forward(x))
        return replace(prediction, trust=trust)

    def predict_classes(self, x):
        """Class labels of the largest mean probability; of Bernoulli targets that above one half.

        Args:
            x: Inputs [N, D].

        Returns:
            Labels [N], text, integers or booleans as in the fit; [N, K] for K > 1 Bernoulli
            targets.

        Raises:
            NotFittedError: Before a fit.
            ValueError: For a likelihood without classes.
        """
        if not self.spec.has_classes:
            raise ValueError(
                "predict_classes needs the likelihood Bernoulli or Categorical, this model has "
                f"{type(self.spec.likelihood).__name__}. Use predict."
            )
        mean = self.predict(x).mean
        labels = most_probable(self.spec, self._ensemble.classes, mean)
        return labels[:, 0] if labels.shape[1] == 1 else labels

    def predict_draws(self, x, *, space="original"):
        """Noise-free predictions of every network, chain by chain: [C * S, N, K].

        Of classes they are probabilities, [C * S, N, M] with Categorical.

        All draws of all chains are there, whatever the weights of the chains are: averages have to
        weigh them with `posterior.draw_weights` [C * S], as `predict` does.

        Args:
            x: Inputs [N, D].
            space: "original" units (default) or "transformed", as in `predict`.
        """
        ensemble = self._fitted()
        x = checked_inputs(ensemble, x)
        check_choice("space", space, {"original", "transformed"})
        tiles = [function_draws(ensemble, x[rows]) for rows in row_tiles(ensemble, len(x))]
        draws = np.concatenate(tiles, axis=1)
        return inverse_draws(ensemble, draws) if space == "original" else draws

    def evaluate(self, x, y, *, noise_scale=None):
        """Scores the predictive distribution on rows (x, y).

        Args:
            x: Inputs [N, D].
            y: Targets [N, K] or [N], original units.
            noise_scale: Known standard deviations of the rows in the units of y, or None.

        Returns:
            Dict of floats (arrays [K] per target where there are several targets): rmse, r2 of the
            mean in original units; rmse_transformed, r2_transformed; rmse_log10, r2_log10 where
            "log10" is used; log_predictive_density of the mixture of all draws, mean per row, in
            original units (Jacobian included), and log_predictive_density_transformed;
            log_predictive_density_moment_matched of the normal with the same mean and standard
            deviation, transformed; crps in original units; coverage {k: share of targets within k
            standard deviations, noise included, transformed}, k = 1..5; pull_width, the standard
            deviation of those standardised residuals; n_effective, the median effective number of
            draws behind the predictions (of all chains with a weight, as if it were the same);
            num_rows.

            Of classes: accuracy of the most probable class; brier, the squared distance of
            probabilities and truth summed over all classes, two for a Bernoulli target, 0 to 2
            (Brier 1950); ece, the expected calibration error of the most probable class in 15
            bins of equal width (Guo et al. 2017, arXiv:1706.04599); log_predictive_density, mean
            per row of the log of the averaged probability of the true class (of the true
            combination of classes for several targets); n_effective, of the logits; num_rows.
        """
        from tfbnn.posterior.metrics import evaluate, evaluate_classes

        ensemble = self._fitted()
        rows = checked_rows(ensemble, x, y, noise_scale, "evaluate")
        if self.spec.has_classes:
            return evaluate_classes(ensemble, rows.x, rows.y)
        return evaluate(ensemble, rows.x, rows.y, rows.noise)

    def log_prob(self, theta, x, y, *, noise_scale=None, return_terms=False):
        """The log density that is sampled, at parameters theta.

        It is fully normalised, of the transformed targets given the parameters and of the
        parameters in the coordinates they are sampled in; the Jacobian of the target transform is
        not part of it.

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
        classes = None if self._ensemble is None else self._ensemble.classes
        rows = prepare_rows(self.spec, x, y, noise_scale, classes=classes)
        if self._ensemble is not None:
            check_names(rows.feature_names, self._ensemble.feature_names, "x")
            require_noise(self._ensemble, rows.noise, "log_prob")
        transformed = transform_rows(self.spec, *self._pipelines(), rows)
        from tfbnn.engine.density.log_prob import log_prob_terms

        terms = log_prob_terms(self.spec, theta.reshape(-1, theta.shape[-1]), *transformed)
        terms["log_prob"] = terms["log_prior"] + terms["log_likelihood"]
        terms = {name: values.reshape(theta.shape[:-1])[()] for name, values in terms.items()}
        return terms if return_terms else terms["log_prob"]

    def diagnose(self, x_reference=None):
        """R-hat and effective sample sizes, of predictions first.

        Args:
            x_reference: Inputs [R, D] at which predictions are compared, of classes their logits
                (`space="transformed"`). Default: up to 200 validation rows, or training rows, saved
                with the model.

        Returns:
            `Diagnosis` with rhat_function, ess_function [R, K], rhat_parameters, ess_parameters
            [P], warnings, `summary()` and more. They are about the chains as they were sampled;
            where `stack_chains` has weighted them, the summary says so.

        Raises:
            NotFittedError: Before a fit.
            ValueError: For unusable inputs, and for a compressed model.
        """
        from tfbnn.posterior.stacking.stacking import weighting_note

        ensemble = self._fitted()
        if ensemble.is_compressed:
            raise ValueError(
                "R-hat and effective sample sizes are about chains, but the draws of this model "
                "were chosen by compress. Diagnose the model that it was compressed from."
            )
        reference = None if x_reference is None else checked_inputs(ensemble, x_reference)
        return replace(
            diagnose_ensemble(ensemble, reference),
            chain_weights=ensemble.chain_weights,
            weighting=weighting_note(ensemble),
        )

    def stack_chains(self, x_validation=None, y_validation=None, *, noise_scale=None):
        """Weighs the chains by how well they predict held-out rows together: stacking.

        For chains that do not mix. The weights maximise the mean log score of the mixture of the
        chains' predictive densities on the held-out rows (Yao, Vehtari and Gelman 2022, JMLR 23,
        arXiv:2006.12335), and every later prediction, score and saved file uses them. The mixture
        is **not the posterior**, and reports say so. Chains can end up without any weight. Draws
        stay as they are, so that stacking again starts from scratch.

        Args:
            x_validation: Inputs [N, D] of rows that the fit has not seen. Default: the training
                rows, each left out in turn by PSIS-LOO, which needs the extra `arviz`, the model
                as it was fitted (a file holds no rows), and some tenths of a millisecond per chain
                and row.
            y_validation: Their targets [N, K] or [N], original units; given with `x_validation`.
            noise_scale: Known standard deviations of the validation rows, [N] or [N, K], in the
                units of y; required after a fit that had them.

        Returns:
            `tfbnn.posterior.stacking.stacking.Stacking`: weights [C], method, log_score_uniform, log_score_stacked,
            num_rows, pareto_k, `summary()`. The scores are of the very rows the weights were
            fitted to: judge the mixture with `evaluate` on others.

        Raises:
            NotFittedError: Before a fit.
            ImportError: When PSIS-LOO is asked for and ArviZ is not installed.
            TypeError, ValueError: For unusable rows, one of inputs and targets without the other,
                neither of them after loading, or a row to which every chain gives density zero.

        Warns:
            UserWarning: When many leave-one-out densities are unreliable (Pareto k above 0.7).
        """
        from tfbnn.posterior.stacking.stacking import stack

        ensemble = self._fitted()
        if x_validation is None and y_validation is None:
            rows = self._rows_of_the_fit(
                noise_scale, "stack_chains without validation rows", "x_validation and y_validation"
            )
        elif x_validation is None or y_validation is None:
            missing = "x_validation" if x_validation is None else "y_validation"
            raise ValueError(
                "stack_chains needs x_validation and y_validation together, received "
                f"{missing}=None. Pass both, or neither for leave-one-out on the training rows."
            )
        else:
            rows = checked_rows(
                ensemble, x_validation, y_validation, noise_scale, "stack_chains", "validation "
            )
        stacking = stack(ensemble, rows, leave_one_out=x_validation is None)
        self._ensemble = replace(
            ensemble.with_chain_weights(stacking.weights),
            provenance=ensemble.provenance | {"chain_weights": stacking.provenance()},
        )
        return stacking

    def compress(
        self,
        num_draws=100,
        method="kernel_thinning",
        *,
        x_reference=None,
        x=None,
        y=None,
        noise_scale=None,
        seed=0,
    ):
        """A model with fewer draws that predicts about the same, with a statement of the change.

        Smaller files and faster predictions. The draws chosen have equal weights and form one
        chain; weights that `stack_chains` gave to chains are honoured by the choice. They are no
        Markov chain any more: `diagnose` refuses, and `n_effective` of `evaluate` is NaN.

        Args:
            num_draws: Draws to choose out of all chains with a weight, default 100.
            method: "kernel_thinning" (default) keeps mean, standard deviation and quantiles of the
                predictions at reference inputs (Dwivedi and Mackey 2024, arXiv:2105.05842), out
                of up to 4000 equally spaced draws. "stride" takes equally spaced
                draws. "stein" aims at the posterior density itself, whatever the chains did
                (Riabiz et al. 2022, arXiv:2005.03952), needs TensorFlow and the rows of the fit,
                and works in weight space: with hundreds of weights it keeps predictions worse
                than a stride (`benchmarks/results/compression.md`).
            x_reference: Inputs [R, D] at which predictions are to be kept; targets are not needed,
                and 1000 inputs like those to come keep them better than the default. The change is
                then stated at the reference inputs saved with the model, so pass others. Default:
                three quarters of those saved, and the change is stated at the last quarter.
            x, y, noise_scale: Rows of the fit for "stein", as in `fit_posterior`. Default: those
                that this model was fitted to in this process.
            seed: Non-negative integer, of kernel thinning. The same seed gives the same draws.

        Returns:
            BayesianMLP with `posterior.draws` [1, num_draws, P] and the record `compression`. A
            draw is repeated where a chain has more weight than draws.

        Raises:
            NotFittedError: Before a fit.
            ImportError: When TensorFlow is not installed, for "stein".
            TypeError, ValueError: For unusable inputs, rows or settings, more draws than there
                are, a model that was compressed already, and for "stein" unequal chain weights
                or Uniform priors.

        Warns:
            UserWarning: When the rows for "stein" are not those of the fit.

        Example:
            small = model.compress(num_draws=100, x_reference=x_train[:1000])
            print(small.compression.summary())
            small.save("small.h5")
        """
        from tfbnn.posterior.compression.compression import METHODS, compress

        ensemble = self._fitted()
        rows = None
        if check_choice("method", method, METHODS) == "stein":
            rows = self._rows_for_stein(x, y, noise_scale)
        elif not (x is None and y is None and noise_scale is None):
            raise ValueError(
                f"x, y and noise_scale belong to method='stein', received them with {method!r}. "
                "Pass inputs at which to keep predictions as x_reference."
            )
        small = compress(
            ensemble,
            check_integer("num_draws", num_draws, minimum=1),
            method,
            x_reference=None if x_reference is None else checked_inputs(ensemble, x_reference),
            rows=rows,
            seed=check_integer("seed", seed, minimum=0),
        )
        return type(self).from_ensemble(small)

    @property
    def compression(self):
        """The `tfbnn.posterior.compression.compression.Compression` that `compress` left, or None for other models."""
        from tfbnn.posterior.compression.compression import Compression

        record = self._fitted().provenance.get("compression")
        return None if record is None else Compression(**record)

    def save(self, path):
        """Writes the fitted model to one HDF5 file, replacing an older one only when complete."""
        from tfbnn.storage import write_model

        write_model(self._fitted(), path)

    def to_savedmodel(self, path):
        """Writes mean and spread of the function as a TensorFlow SavedModel.

        Its signature "serving_default" takes x [N, D], float64, in original units and gives the
        dict {"mean": [N, K], "stddev": [N, K]}, float64, the numbers of `predict(x)` without noise:
        transforms and chain weights are inside, the columns of classes are their probabilities.
        Any number of rows runs at bounded memory, tile by tile. Inputs are not checked: what
        "log10" cannot take gives NaN. Needs TensorFlow to write and to use.

        Args:
            path: Folder to write, which must not exist yet or be empty.

        Raises:
            NotFittedError: Before a fit.
            FileExistsError: When there is something at `path`.
        """
        ensemble, path = self._fitted(), os.fspath(path)
        if os.path.exists(path) and not (os.path.isdir(path) and not os.listdir(path)):
            raise FileExistsError(
                f"{path!r} exists and is not an empty folder. Choose another path."
            )
        from tfbnn.engine.export.saved_model import write_saved_model

        write_saved_model(ensemble, path)

    def to_onnx(self, path):
        """Writes mean and spread of the function as an ONNX file; needs the extra `onnx`.

        Input "x" [N, D] and outputs "mean", "stddev" [N, K] are those of `to_savedmodel`; names of
        inputs and classes are in the file's metadata, as JSON. Operations are of operator set 17.
        All draws of all rows of a call are computed at once, so memory grows with draws x widest
        layer x N: pass large tables in pieces. "gelu" of a float64 network is exact to 1e-7, as
        runtimes have its error function for float32 alone.

        Args:
            path: File to write; by custom it ends in .onnx.

        Raises:
            NotFittedError: Before a fit.
            ImportError: When the package onnx is not installed.
            ValueError: When the draws take more than the 2 GiB that such a file can hold.
        """
        from tfbnn.posterior.onnx import write_onnx

        write_onnx(self._fitted(), path)

    def _keep(self, rows, ensemble):
        # Leave-one-out stacking needs the rows; a model file does not hold them.
        self._ensemble, self._training_rows = ensemble, rows

    def _fitted(self):
        if self._ensemble is None:
            raise NotFittedError(
                "This BayesianMLP has no posterior draws yet. Call fit_posterior first, or load a "
                "saved model with tfbnn.load."
            )
        requested = self._ensemble.provenance.get("num_results_requested") or 0
        if self._ensemble.num_results < requested:
            warnings.warn(
                f"The run was stopped early: {self._ensemble.num_results} of {requested} draws per "
                "chain are there.",
                UserWarning,
                stacklevel=3,
            )
        return self._ensemble

    def _pipelines(self):
        if self._ensemble is not None:
            return self._ensemble.x_pipeline, self._ensemble.y_pipeline
        pipelines = [unfitted_pipeline(n) for n in (self.spec.x_transform, self.spec.y_transform)]
        if None in pipelines:
            raise NotFittedError(
                "'standardize' learns its mean and scale from training rows. Call fit_posterior "
                "first, or build the model with x_transform=None, y_transform=None."
            )
        return pipelines

    def _rows_of_the_fit(self, noise_scale, what, names):
        if noise_scale is not None:
            raise ValueError(
                f"noise_scale belongs to {names}, received it without them. Pass {names} too, or "
                "leave it None: the training rows have theirs."
            )
        if self._training_rows is None:
            raise ValueError(
                f"{what} needs the training rows, which only the model that was fitted in this "
                f"process has. Pass {names}."
            )
        return self._training_rows

    def _rows_for_stein(self, x, y, noise_scale):
        if x is None and y is None:
            return self._rows_of_the_fit(noise_scale, "method='stein'", "x and y")
        if x is None or y is None:
            raise ValueError(
                "method='stein' needs x and y together, received "
                f"{'x' if x is None else 'y'}=None. Pass all rows of the fit."
            )
        return checked_rows(self._ensemble, x, y, noise_scale, "method='stein'")


def load(path, *, untrusted=False, max_bytes=2 * 2**30):
    """Loads a fitted model from the file that `save` wrote, or a run folder; needs no TensorFlow.

    Of a run folder (`output` of `fit_posterior`) the model has the draws that are committed for all
    chains so far; the run may go on meanwhile.

    Every check that Python can make is made either way: a file holds numbers and names out of known
    tables, never code or the names of other files.

    Args:
        path: The model file, or the run folder.
        untrusted: True for files that strangers may have written. A process of its own then parses
            the file, so that one crafted to exploit the HDF5 library itself cannot harm this one;
            costs about 0.3 s. Default False; the command line has it on. Not for run folders.
        max_bytes: Largest size of the file, and of its arrays in memory; default 2 GiB.

    Returns:
        BayesianMLP.

    Raises:
        FileNotFoundError: When there is no such file.
        ModelFileError: When the file is not what it says.
        RunFolderError: When the folder is not a run.
        NotFittedError: When the run has no draws yet.
        ChildProcessError: When `untrusted` is asked for and no process can be started.
    """
    from tfbnn.storage import read_model

    check_flag("untrusted", untrusted)
    max_bytes = check_integer("max_bytes", max_bytes, minimum=1)
    if os.path.isdir(path):
        if untrusted:
            raise ValueError(
                f"untrusted=True is for model files, received the run folder {os.fspath(path)!r}. "
                "Load your own run with untrusted=False; of another's ask for the file of save()."
            )
        return BayesianMLP.from_ensemble(load_run(path))
    return BayesianMLP.from_ensemble(read_model(path, untrusted=untrusted, max_bytes=max_bytes))


def resume(
    folder,
    *,
    num_results=None,
    commit_interval=30.0,
    num_workers="auto",
    verbose="auto",
    callbacks=(),
):
    """Goes on with the run in a folder, which has all that is needed; finished runs are left.

    Args:
        folder: The `output` of `fit_posterior`.
        num_results: Draws kept per chain, if there are to be more than the run was begun with.
        commit_interval, num_workers, verbose, callbacks: As in `fit_posterior`.

    Returns:
        (BayesianMLP, Run), as after the fit. The draws have the bits of a run that nothing
        interrupted.

    Raises:
        RunFolderError, RunLockedError, ChainError, KeyboardInterrupt: As `fit_posterior`.
        ValueError: When the kernel is a callable, which `fit_posterior(resume=True)` takes.

    Example:
        model, run = tfbnn.resume("run/")
    """
    model, go_on = prepare_resume(
        folder,
        num_results=num_results,
        commit_interval=commit_interval,
        num_workers=num_workers,
        verbose=verbose,
        callbacks=callbacks,
    )
    return model, go_on()


def prepare_resume(folder, *, verbose="auto", callbacks=(), **options):
    """(Model, function that goes on with its run and returns the Run); see `resume`.

    The model has draws after the function, also where that was interrupted.
    """
    definition, arguments = read_run(folder, verbose=verbose, callbacks=callbacks, **options)
    model = BayesianMLP.from_spec(definition.spec)
    return model, partial(model.fit_rows, definition.rows, definition.validation, arguments)


def _dtype_name(dtype):
    if dtype is None or isinstance(dtype, str):
        return dtype
    try:
        return np.dtype(dtype).name
    except TypeError:
        return dtype


def _chain_error(failures, output):
    """ChainError that names the chains of `failures`, dict tuple of chains -> exception."""
    texts = [
        f"chain {', '.join(map(str, chains))}: {type(error).__name__}: {error}"
        for chains, error in failures.items()
    ]
    rest = "The draws of the others are in model.posterior."
    if output is not None:
        rest += f" Go on with resume=True, or: tfbnn resume {output}"
    error = ChainError(f"{len(failures)} of the runs of chains failed, {'; '.join(texts)}. {rest}")
    error.__cause__ = next(iter(failures.values()))
    return error
