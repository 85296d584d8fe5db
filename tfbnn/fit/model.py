"""`BayesianMLP` and what it shares with `BayesianModel`: fit, save; `load` and `resume`.

What draws are for: `SampledModel`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbnn.data.bad_rows import places_named
from tfbnn.data.frames import column_names_of
from tfbnn.data.validation import check_flag, check_integer
from tfbnn.exceptions import ModelFileError
from tfbnn.fit.handing_on import FromPosterior, known_from
from tfbnn.fit.methods import BaselineMethods, DensityMethods
from tfbnn.posterior.basins.finding import BasinMethods
from tfbnn.posterior.basins.record import Basins
from tfbnn.posterior.calibration.calibrating import CalibrationMethods
from tfbnn.posterior.calibration.exported import bar_constants
from tfbnn.posterior.function_moments import moment_networks
from tfbnn.posterior.gradient import GradientMethods
from tfbnn.posterior.prior_predictive import PriorMethods
from tfbnn.posterior.sampled_model import networks_of
from tfbnn.spec.habits import explains_keywords
from tfbnn.spec.likelihoods import Gaussian, Likelihood
from tfbnn.spec.model_spec import ModelSpec, make_spec
from tfbnn.spec.network_spec import NetworkSpec, check_custom
from tfbnn.spec.rows import Rows, rows_to_fit
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.atomic import StrPath
from tfbnn.system.signals import signals_interrupt
from tfbnn.system.words import warn

# What fits is imported where it does: a process that loads and predicts needs none of it.
if TYPE_CHECKING:
    from tfbnn.data.learn_coding import Missing
    from tfbnn.engine.kernels.base import Kernel
    from tfbnn.posterior.ensemble import Ensemble
    from tfbnn.run.options import FitOptions
    from tfbnn.run.report import Run
    from tfbnn.run.until import Until

__all__ = ["BayesianMLP", "load", "resume"]


class SampledNetwork(
    BaselineMethods,
    CalibrationMethods,
    BasinMethods,
    DensityMethods,
    GradientMethods,
    PriorMethods,
):
    """The life cycle of a network whose posterior is sampled, whatever computes its outputs.

    Args:
        make: Makes the spec of settings and a prior.
        prior: Its prior, or a FromPosterior.
        settings: Its other arguments.
    """

    def __init__(
        self, make: Callable[..., NetworkSpec], prior: Any, settings: dict[str, Any]
    ) -> None:
        is_earlier = isinstance(prior, FromPosterior)
        spec = prior.spec_for(make, settings) if is_earlier else make(prior=prior, **settings)
        super().__init__(spec)
        self._earlier = prior.earlier if is_earlier else None

    def summary(self, print_fn: Callable[[str], object] = print) -> None:
        """Prints a table of layers, shapes, activations, parameters and priors."""
        print_fn(self._table)

    @explains_keywords
    def fit_posterior(
        self,
        x: Any,
        y: Any = None,
        *,
        noise_scale: Any = None,
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
        """Sample the posterior given the rows (x, y). The guide "Arguments of a fit" says more.

        Args:
            x: Inputs [N, D]: arrays, nested lists, data frames, datasets of h5py. Columns of
                text become an input of 0 and 1 for each value, which D counts.
            y: Targets [N, K], or [N] for one target, original units; class labels [N] for Categorical,
                0 and 1 or two labels for Bernoulli. Predictions have the shape of y.
            noise_scale: Known standard deviation of each row, [N] or [N, K], in the units of y. It
                replaces a fixed noise scale of the likelihood, and adds in quadrature to a learned one.
            groups: Labels [N] of rows that belong together, such as measurements of one subject. They
                are held out and left out together. None (default): all stand for themselves.
            missing: Missing values in x, "refuse" (default), or "indicator": the median and one more
                input that is 1 there, or a category in a column of text.
            kernel: "auto" (default): HMC, or NUTS for 30 parameters or less. Or a name of
                `tfbnn.kernels.available()`, settings from `tfbnn.kernels`, or a callable
                target_log_prob_fn -> tfp.mcmc.TransitionKernel.
            num_chains: Independent chains C, default 4.
            num_results: Draws S kept per chain, the most of them where `until` is given. "auto"
                (default): what a fixed budget of gradients affords; 1000 with until=None.
            until: When the run has enough: a `tfbnn.Until`; None: never before num_results draws;
                "auto" (default): tfbnn.Until() where num_results is "auto", else None.
            max_seconds: Wall-clock seconds from the call to the end, None (default) for no limit;
                short for until=Until(max_seconds=...).
            num_burnin_steps: Warm-up transitions: 80 % adapt step size and preconditioner, the others mix
                with both frozen. "auto" (default): 1000, fewer where these take minutes.
            num_steps_between_results: Transitions skipped between two kept draws. "auto" (default):
                none, or what keeps a run with max_seconds at some thousand draws.
            pretraining: `tfbnn.Pretraining`, or None to start from draws of the prior. "auto"
                (default): up to about 12000 steps of ADAM judged by held-out rows, then
                Levenberg-Marquardt where noise is small. All rows are sampled.
            initial_state: Where the chains start, without pretraining: an array [C, P] in theta; a
                number s for weights from N(0, s^2); a fitted model of the same kind; or the trained
                Keras model of a BayesianModel. None (default): what `pretraining` finds.
            likelihood_power: Power of the likelihood, above 0 and at most 1 (default: the posterior).
                Below 1 every row counts for that share of itself: a coarsened posterior.
            effort: Share of the usual work, above 0 and at most 1 (default), of starts, warm-up and
                draws where these are "auto".
            validation_data: (x, y) or (x, y, noise_scale), for early stopping and the diagnosis.
            calibrate: Whether the fit ends with `calibrate(method="loo")`. "auto" (default): where the
                noise is learned, from 150 rows on. It decides no draw.
            seed: Non-negative integer. The same seed on the same machine gives the same bits.
            output: Run folder: draws go there, and a run that was killed goes on from there. None
                (default): draws are kept in memory only.
            resume: Go on with the run in `output`, or begin it there, default False. Rows, versions and
                arguments must be the same, but for another `until` and a larger `num_results`.
            commit_interval: Seconds after which the next block of transitions ends with a commit,
                default 30: what a kill can lose, besides one block.
            jit_compile: Compile with XLA, default True.
            verbose: "auto" or 1: bars on a terminal, a line every 30 s elsewhere; 0: silence; 2: as 1,
                and commands report all details.
            callbacks: Each is called as callback(event: dict) about once a second; True stops the run
                with the draws kept so far. Callbacks of Keras take events for epochs.

        Returns:
            A `Run`: timings, acceptance, diagnosis, `report()`, `history`.

        Raises:
            TypeError, ValueError: For unusable data or settings, before anything is compiled.
            StartError: When the density is not finite where a chain starts.
            RunFolderError: When `output` holds something else, or another run.
            RunLockedError: When another process is at work in `output`.
            ChainError: When a chain failed; the draws of the others are kept.
            KeyboardInterrupt: On SIGINT, SIGTERM, or SIGUSR1 where it has no other handler, within
                seconds; the draws kept so far are in `model.posterior`, and committed.
        """
        from tfbnn.run.options import FitOptions

        initial_state = networks_of(initial_state)
        earlier = known_from(self, initial_state)
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
            initial_state=initial_state,
            likelihood_power=likelihood_power,
            effort=effort,
            seed=seed,
            jit_compile=jit_compile,
            verbose=verbose,
            callbacks=callbacks,
            output=output,
            resume=resume,
            commit_interval=commit_interval,
            column_names=column_names_of(y, earlier and earlier.target_names),
        )
        held_out = validation_data if isinstance(validation_data, (tuple, list)) else ()
        with places_named(x, *held_out[:1]):
            data = x, y, noise_scale, validation_data
            rows, validation = rows_to_fit(self.spec, *data, earlier, missing, groups)
            return self.fit_rows(rows, validation, options)

    def fit_rows(
        self, rows: Rows, validation: Rows | None, options: FitOptions, executor: Any = None
    ) -> Run:
        """`fit_posterior` to checked Rows, with FitOptions, at a place: see `tfbnn.fit.fitting`."""
        from tfbnn.fit.fitting import fit

        keep = partial(self._keep, rows)
        with signals_interrupt():
            run, result = fit(self._asked, rows, validation, options, keep, executor)
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
        if not run.num_results and self._ensemble is not None:
            pretrained = self._ensemble.provenance.not_sampled is not None
            has = (
                "has the networks that its chains started from, which are no draws"
                if pretrained
                else "keeps its earlier posterior"
            )
            warn(
                f"The run was stopped before its first draw; the model {has}.",
            )
        if not run.num_results:
            return run
        return replace(run, find_basins=partial(self._basins_of_run, self._ensemble))

    def _basins_of_run(self, of_run: Ensemble | None) -> Basins:
        """The Basins of the Ensemble that a run has left, while the model still has its draws."""
        now = self._ensemble
        if of_run is None or now is None or not np.may_share_memory(now.draws, of_run.draws):
            raise ValueError(
                "run.basins() is about draws that the model does not have any more, as it was fitted "
                "anew. Call basins right after the fit, or fit another model."
            )
        return self.basins()

    def save(self, path: StrPath) -> int:
        """Writes the fitted model to one HDF5 file, replacing an older one only when complete.

        Args:
            path: File name; by custom it ends in .h5. Those of other formats, .keras for one, are
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
    ) -> None:
        """Writes a report as one HTML page: verdict, convergence, predictions and more.

        The page needs nothing but itself and runs no script: it opens from the disk, offline, in
        light or dark, on a phone and on paper. Needs Matplotlib and Jinja2, the extra `plots`.

        Args:
            path: File to write, by custom ending in .html; an earlier report is replaced.
            x, y: Rows with known targets, best ones that the fit has not seen, for scores, pulls,
                coverage and reliability. Default None: the page does without these.
            noise_scale: Known standard deviations of these rows, in the units of y, or None.

        Raises:
            NotFittedError: Before a fit.
            ImportError: When Matplotlib or Jinja2 is not installed.
            TypeError, ValueError: For unusable rows.
            FileExistsError: When there is something at `path` that is no report of tfbnn.

        Example:
            model.save_report("report.html", x_test, y_test)
        """
        from tfbnn.plots.page.making import save_report

        save_report(self, path, x, y, noise_scale)

    def to_savedmodel(self, path: StrPath) -> None:
        """Writes mean and spread of the function as a TensorFlow SavedModel.

        Its signature "serving_default" takes x [N, D], float64, in original units (text coded, see
        `code_inputs`) and gives the
        dict {"mean": [N, K], "stddev": [N, K]}, float64, the numbers of `predict(x)` without noise, in
        columns whatever the shape of the target: transforms and chain weights are inside, the
        columns of classes are their probabilities. Any number of rows runs at bounded memory, tile
        by tile. Inputs are not checked: what "log10" cannot take gives NaN. Needs TensorFlow to
        write and to use.

        A calibrated model also gives "lower", "median" and "upper" [N, K], noise included: the median
        and the ends of the central 68.27 % of `predict(include_noise=True)`; where that keeps the
        bars of the posterior, outside the training inputs, those of a normal distribution. Of a model
        whose noise differs from row to row they are left out, with a warning.

        Args:
            path: Folder to write, which must not exist yet or be empty.

        Raises:
            NotFittedError: Before a fit.
            ValueError: After `fit_laplace`, whose draws are no networks.
            FileExistsError: When there is something at `path`.
        """
        ensemble, path = self._fitted("to_savedmodel", allow_unsampled=False), os.fspath(path)
        if os.path.exists(path) and not (os.path.isdir(path) and not os.listdir(path)):
            raise FileExistsError(
                f"{path!r} exists and is not an empty folder. Choose another path."
            )
        from tfbnn.engine.export.saved_model import write_saved_model

        networks = moment_networks(ensemble)
        write_saved_model(networks, bar_constants(networks.ensemble), path)


class BayesianMLP(SampledNetwork):
    """A multilayer perceptron whose posterior is sampled by Markov chain Monte Carlo.

    Args:
        layer_sizes: Widths from inputs to outputs, for example [5, 20, 20, 1]; `fit_posterior` says how
            many inputs a column of text makes.
        activation: A name, or one per hidden layer: tanh, sigmoid, relu, leaky_relu (of slope 0.2, as
            TensorFlow's) or leaky_relu_0.01 (as PyTorch's and JAX's), elu, selu, softplus, gelu, swish or
            silu, sin, identity or linear. Default "tanh". Functions of these names of TensorFlow,
            Keras, JAX, PyTorch and NumPy are taken for them: tf.nn.relu.
        prior: A prior from `tfbnn.priors` for all weights, a dict {"kernel": .., "bias": ..}, or a
            list with one of these per layer. "auto" (default): ARD(HalfNormal(1.0)) on the first
            kernel, one scale per input, and HierarchicalNormal(HalfNormal(1.0)) elsewhere,
            HalfNormal(3.0) in both for classes, whose log-odds may be large; the scales are
            sampled, so that the data choose them. ARD is for the first kernel alone:
            [{"kernel": ARD(), "bias": Normal()}, Normal()] with one hidden layer.
        likelihood: From `tfbnn.likelihoods`. Default Gaussian("learned").
        parameterization: "standard", or "ntk": a kernel is multiplied by its prior scale over the
            square root of the layer's inputs, so that one prior suits every width. "auto"
            (default): "ntk" with the prior "auto", "standard" with one that is given.
        x_transform, y_transform: None, a name or a list of names out of "log10" and "standardize",
            fitted to the training rows and saved with the model. Default of x_transform is
            "standardize"; that of y_transform is "auto": "standardize", with "log10" before it
            where all targets of a fit, validation rows included, are positive and each column spans
            more than two decades, unless they are rounded so that the smallest lose their logarithms
            or regressions in closed form score higher without. With a noise scale that is given,
            which counts in these units, it is "standardize"; None for the class labels of Bernoulli
            and Categorical, which take no other. Each fit chooses anew; `spec` is what the last one
            chose.
        dtype: "float32" (default) or "float64".

    What was "auto" says `summary`, and the report of a fit why. Such choices depend on sizes and
    rows, never on a clock.

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
        layer_sizes: Sequence[int],
        *,
        activation: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] = "tanh",
        prior: Any = "auto",
        likelihood: Likelihood = Gaussian("learned"),
        parameterization: str = "auto",
        x_transform: str | Sequence[str] | None = "standardize",
        y_transform: str | Sequence[str] | None = "auto",
        dtype: Any = "float32",
    ) -> None:
        settings = {
            "activation": activation,
            "likelihood": likelihood,
            "parameterization": parameterization,
            "x_transform": x_transform,
            "y_transform": y_transform,
            "dtype": dtype,
        }
        super().__init__(partial(make_spec, layer_sizes), prior, settings)


def load(
    path: StrPath,
    *,
    untrusted: bool = False,
    max_bytes: int = 2 * 2**30,
    custom: Sequence[type] = (),
) -> SampledNetwork:
    """Loads a fitted model from the file that `save` wrote, or a run folder; needs no TensorFlow.

    Only the file of a `BayesianModel` needs Keras, unless that was a plain stack of Dense layers, whose
    file is that of a `BayesianMLP`.

    Of a run folder (`output` of `fit_posterior`) the model has the draws that are committed for all
    chains so far; the run may go on meanwhile. Its error bars are those of these draws; a file that
    was saved after the fit has them calibrated where the fit did, as has what `tfbnn.resume` gives.

    Every check that Python can make is made either way: a file holds numbers and names out of known
    tables, never code or the names of other files.

    Args:
        path: The model file, or the run folder.
        untrusted: True for files that strangers may have written. A process of its own then parses
            the file, so that one crafted to exploit the HDF5 library itself cannot harm this one;
            costs about 0.3 s. Default False; the command line has it on. Not for run folders.
        max_bytes: Largest size of the file, and of its arrays in memory; default 2 GiB.
        custom: Classes of your own, as of `priors.CustomPrior` and `likelihoods.CustomNoise`, or of
            layers of a Keras model, that the model may have: files name classes and hold no code. Those
            that are not needed do no harm. Not with `untrusted`, as a stranger's file would choose the
            settings of your code; of layers that were brought before it gets none either.

    Returns:
        BayesianMLP, or BayesianModel.

    Raises:
        FileNotFoundError: When there is no such file.
        ImportError: For a Keras model where Keras is not installed.
        ModelFileError: When the file is not what it says, or of a class that is not in `custom`.
        RunFolderError: When the folder is not a run, or of such a class.
        TypeError, ValueError: For `custom` that are no such classes, or have names of built-in ones.
        NotFittedError: When the run has no draws yet.
        ChildProcessError: When `untrusted` is asked for and no process can be started.
    """
    from tfbnn.storage import read_model

    check_flag("untrusted", untrusted)
    max_bytes = check_integer("max_bytes", max_bytes, minimum=1)
    given, custom = custom, check_custom(custom)
    if untrusted and given:
        raise ValueError(
            "untrusted=True reads files of strangers, which get none of your classes, received "
            f"custom={[cls.__name__ for cls in given]}. Load files that you trust with untrusted=False."
        )
    if os.path.isdir(path):
        if untrusted:
            raise ValueError(
                f"untrusted=True is for model files, received the run folder {os.fspath(path)!r}. "
                "Load your own run with untrusted=False; of another's ask for the file of save()."
            )
        from tfbnn.fit.assemble import load_run

        ensemble, rows = load_run(path, custom)
        model = _class_of(ensemble.spec).from_ensemble(ensemble)
        model._training_rows = rows
        return model
    ensemble = read_model(path, untrusted=untrusted, max_bytes=max_bytes, custom=custom)
    try:
        return _class_of(ensemble.spec).from_ensemble(ensemble)
    except ValueError as error:
        raise ModelFileError(f"{os.fspath(path)!r}: {error}") from error


def _class_of(spec: NetworkSpec) -> type[SampledNetwork]:
    """The class of models with such a spec."""
    if isinstance(spec, ModelSpec):
        return BayesianMLP
    from tfbnn.fit.keras_model import BayesianModel

    return BayesianModel


@explains_keywords
def resume(
    folder: StrPath,
    *,
    num_results: int | None = None,
    until: Until | str | None = "auto",
    max_seconds: float | None = None,
    commit_interval: float = 30.0,
    verbose: int | str = "auto",
    callbacks: Sequence[Any] = (),
    custom: Sequence[type] = (),
) -> tuple[SampledNetwork, Run]:
    """Goes on with the run in a folder, which has all that is needed; finished runs are left.

    Args:
        folder: The `output` of `fit_posterior`.
        num_results: Draws kept per chain, if there are to be more than the run was begun with.
        until: When it has enough, as in `fit_posterior`. "auto" (default): what it was begun with,
            unless num_results is given.
        max_seconds: Wall-clock seconds from this call to the end, as in `fit_posterior`. Default
            None: the limit that the run was begun with, if any, counted from now.
        commit_interval, verbose, callbacks: As in `fit_posterior`.
        custom: Classes of your own that the model may have, as in `load`.

    Returns:
        (BayesianMLP or BayesianModel, Run), as after the fit. The draws have the bits of a run that nothing
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
        until=until,
        max_seconds=max_seconds,
        commit_interval=commit_interval,
        verbose=verbose,
        callbacks=callbacks,
        custom=check_custom(custom),
    )
    return model, go_on()


def prepare_resume(folder: StrPath, **options: Any) -> tuple[SampledNetwork, Callable[[], Run]]:
    """(Model, function that goes on with its run and returns the Run); see `resume`.

    The model has draws after the function, also where that was interrupted.
    """
    from tfbnn.fit.assemble import read_run

    definition, arguments = read_run(folder, **options)
    model = _class_of(definition.spec).from_spec(definition.spec)
    return model, partial(model.fit_rows, definition.rows, definition.validation, arguments)
