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
from tfbnn.spec.network_spec import NetworkSpec, check_custom, check_prior_sizes
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
        check_prior_sizes(spec)
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
        """Samples the posterior given the rows (x, y).

        Args:
            x: Inputs [N, D]: NumPy arrays, nested lists, data frames, datasets of h5py. Float64 in a
                file that NumPy has mapped for reading is not copied. The names of a frame's
                columns are kept with the model, which then takes frames with these columns in any
                order and ignores others. Columns of text and categories become an input of 0 and 1
                for each value, one for two values; booleans one. D counts these inputs. The values
                are kept with the model, which refuses others.
            y: Targets [N, K], or [N] for one target, original units; what is given as [N] is also
                predicted as [N]. For Categorical class labels [N], text or integers; for Bernoulli
                0 and 1 or booleans [N, K], or two labels [N]. The labels are kept with the model:
                0 .. M - 1 where all are such numbers, else those that occur, sorted. The names of a
                frame or series are kept, too.
            noise_scale: Known standard deviation of each row, [N] or [N, K], in the units of y
                before transforms; not for class labels. It replaces a fixed noise scale of the
                likelihood and adds in quadrature to a learned one.
            groups: Labels [N] of rows that belong together, text or integers: repeated measurements
                of one subject. Rows of one label stay together where some are held out for the starts
                and where rows are left out for calibration, so that error bars hold for new subjects.
                The likelihood counts every row as ever. None (default): each row stands for itself.
            missing: Missing values (NaN, None, NA) in x, "refuse" (default), or "indicator": a column
                of numbers gets its median for them and one more input, which is 1 there; of text they
                are a category of their own. D counts these inputs. The model then takes missing values
                in the columns that had some. Those of y are refused.
            kernel: "auto" (default): HMC with 64 leapfrog steps, 256 where a pilot finds little
                noise, 32 where N P is large; NUTS for 30 parameters or less. Or one of
                `tfbnn.kernels.available()`, settings from `tfbnn.kernels`, or a callable
                target_log_prob_fn -> tfp.mcmc.TransitionKernel, whose target maps [C, P] to [C].
            num_chains: Independent chains C, default 4.
            num_results: Draws S kept per chain, the most of them where `until` is given. "auto"
                (default): the most that a fixed budget of gradients affords, some minutes on two
                cores; 1000 with until=None.
            until: When the run has enough: a `tfbnn.Until`; None: never before num_results draws;
                "auto" (default): tfbnn.Until() where num_results is "auto", else None.
            max_seconds: Wall-clock seconds from the call to the end; short for
                until=Until(max_seconds=...), which says how they are planned. Default None: no
                limit. A run that has no time for a single draw warns, and its model refuses to
                predict.
            num_burnin_steps: Warm-up transitions: the first 80 % adapt step size and preconditioner,
                the last 20 % mix with everything frozen. "auto" (default): 1000, or fewer where so
                many would take minutes, by the gradients that they cost.
            num_steps_between_results: Transitions skipped between two kept draws. "auto"
                (default): none, or what keeps a run with max_seconds at some thousand draws.
            pretraining: `tfbnn.Pretraining`, or None to start from draws of the prior. "auto"
                (default): a `Pretraining` of up to about 12000 steps, of more rows where there are
                more. It holds out 15 % of the rows, at most 2000, more of few and none of less than
                ten, or takes validation_data instead. They stop ADAM, judge starts and keep noise
                scales from collapsing. Unless a pilot finds much noise, Levenberg-Marquardt is tried
                after ADAM; where it finds next to none, two starts for every chain. Of more than 65536
                rows, or ten to a weight where these are more, starts are sought on a sample. All rows
                are sampled. A `Pretraining` of your own holds out nothing unless it has a
                validation_split.
            initial_state: Where the chains start, without pretraining; None (default): what
                `pretraining` finds. An array [C, P] in theta, as `model.posterior.draws` are: a
                chain from a draw of the posterior needs no convergence, and of targets that were
                made by a network drawn from the prior, that network is one
                (benchmarks/thermalisation.py). Or a number s: weights from N(0, s^2) in theta, which
                in the ntk parameterisation are weights before their prior scale; noise scales and
                sampled prior scales at the median of their prior. Or a fitted model of the same
                sizes, activations, parameterisation, likelihood and names of transforms: each chain
                starts from the function of the last draw of one of its chains, in turn. Its
                transforms, class labels and names of inputs hold for the new rows; the priors may be
                others. Or the Keras model that a BayesianModel was made of, after its training: every
                chain starts at its weights, the noise at the residuals of the rows and prior scales at
                the size of the weights. It has to be trained on rows as the network sees them:
                transformed, or with x_transform=None and y_transform=None.
            likelihood_power: Power of the likelihood in the density that is sampled, above 0 and at
                most 1, default 1: the posterior. Below 1 every row counts for that share of itself,
                the prior as before: a coarsened posterior, for a model that is right up to a misfit
                that more rows would not take away (Miller and Dunson 2019, J. Am. Stat. Assoc. 114,
                1113, arXiv:1506.06101). It is wider, and chains agree about it sooner; Gaussian
                noise that is known is as if it had the variance noise_scale^2 / likelihood_power.
                What predicts and scores has the likelihood's own noise. Pretraining aims at it as
                well, and PowerPosterior's ladder ends there. Report, file, `tfbnn info` and `tfbnn
                diagnose` say so.
            effort: Share of the usual work, above 0 and at most 1, default 1: of the starts and steps of
                pretraining, which below 0.5 is ADAM alone, of the steps of warm-up (100 at least) and of
                the budget for draws, where these are "auto". For many fits, as in a search; draws are
                judged as ever.
            validation_data: (x, y) or (x, y, noise_scale), for early stopping and as reference
                inputs of the diagnostics.
            calibrate: Whether the fit ends with `calibrate(method="loo")`. It does so by stddev from 300
                rows on: error bars are then held to the rows of the fit, each left out in turn, and
                `calibrated=False` asks for those of the posterior. "auto" (default): where the noise
                is learned, and so takes misfit for noise, from 150 rows on. Where most rows decide
                their own predictions, or draws of chains that hardly moved do not tell how much, the
                report notes it instead. It decides no draw.
            seed: Non-negative integer. The same seed on the same machine gives the same bits.
            output: Run folder: draws go there and not into memory, and a run that was killed goes
                on from there. See "Long runs" in the documentation. It is made where there is none, and
                refused where there is something in it, unless `resume`. None (default): draws are
                kept in memory only.
            resume: Go on with the run in `output`, or begin it there where that is empty or
                missing, default False. The run must have been begun with the same rows and
                arguments, on the same versions; `until` may be another one, and `num_results`
                larger than it was. What comes out has the bits of a run that nothing interrupted.
            commit_interval: Seconds after which the next block of transitions ends with a commit,
                default 30: what a kill can lose at most, besides one block. Phases of the chains end
                with one, and so does the search for starts; a kill before begins that again.
            jit_compile: Compile with XLA, default True.
            verbose: "auto" or 1: bars on a terminal, a line every 30 s elsewhere; 0:
                silence; 2: as 1, and where a command prints the report, with all details.
            callbacks: Each is called as callback(event: dict) between blocks, and once a second
                during a longer one; returning True stops the run with the draws kept so far. Before
                the first draw the model gets the pretrained networks, which say that they are no
                draws, unless it has an earlier posterior. An event has the phase ("pretraining",
                "newton", "warmup", "sampling"), "transition" of "num_transitions" in "unit",
                "seconds" and "eta_seconds" of the phase, "total_eta_seconds" of the run, NaN where
                unknown, and what `tfbnn.run.events` says of each phase. With `until`, the latest
                "rhat" and "ess" are there from the first look at the draws on, "num_judged" of them
                per chain; before it they are NaN. A callback of Keras, such as CSVLogger, TensorBoard
                or EarlyStopping, takes every event for an epoch, one of ADAM where that may stop
                early. Its logs have val_loss, log_prob, acceptance_rate, step_size, num_divergent,
                num_kept, rhat and ess, each while there is one: EarlyStopping("ess", mode="max",
                patience=2) counts looks. What it stops is the run: where it watches "val_loss",
                before the chains move.

        Returns:
            A `Run`: timings, acceptance, diagnosis, `report()`, `history`.

        Raises:
            TypeError, ValueError: For unusable data or settings, before anything is compiled: of
                initial_state numbers that are not finite, a wrong shape, weights outside the box of a
                Uniform prior, a model that does not agree with this one, and a `Pretraining` besides.
            StartError: When the density is not finite where a chain starts.
            RunFolderError: When `output` holds something else, a run that is not to be resumed, or
                one that was begun with other rows, settings or versions, which are named;
                RunLockedError when another process is at work there.
            ChainError: When a chain failed on the way; the draws of the others are in
                `model.posterior`, and what the chain had committed is in `output`.
            KeyboardInterrupt: On SIGINT, SIGTERM, or SIGUSR1 where it has no other handler, within
                seconds: a block that takes longer is left behind. What was kept so far is in
                `model.posterior`, as after a callback's stop, and committed. Chains that failed
                before or meanwhile are named in a warning.
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
        dtype: "float32" (default) or "float64", also as a dtype of NumPy, TensorFlow, JAX or PyTorch.

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
