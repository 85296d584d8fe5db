"""`SampledModel`: predictions, scores, diagnosis and exports of sampled networks, without the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.bad_rows import BadRowError
from tfbnn.data.frames import rows_of
from tfbnn.data.labels import Classes
from tfbnn.data.validation import check_choice, check_flag, check_integer, check_number
from tfbnn.exceptions import NotFittedError
from tfbnn.posterior.arviz_data import Posterior
from tfbnn.posterior.checks import (
    checked_inputs,
    checked_points,
    checked_rows,
    require_noise,
)
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import (
    Summary,
    functions_together,
    predict,
)
from tfbnn.posterior.prediction_frame import Prediction, value_names
from tfbnn.posterior.provenance import Compression, Provenance
from tfbnn.spec.habits import ExplainsAttributes, explains_keywords
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import config_of, perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.open_spec import OpenSpec, known, spec_of_config
from tfbnn.spec.rows import NetworkRows, Rows, as_argument, known_beside, known_of_rows, num_known
from tfbnn.spec.summary import describe_model
from tfbnn.system.arrays import Array, give_back, row_slices
from tfbnn.system.atomic import StrPath
from tfbnn.system.words import folded, warn

if TYPE_CHECKING:
    from tfbnn.diagnostics.diagnosis import Diagnosis
    from tfbnn.posterior.basins.basins import Basins
    from tfbnn.posterior.calibration.calibration import Calibration
    from tfbnn.posterior.distribution import ClassDistribution, PredictiveDistribution
    from tfbnn.posterior.gradient import Gradient
    from tfbnn.posterior.prior_predictive import PriorDraws
    from tfbnn.posterior.relevance import Importance, Relevance
    from tfbnn.posterior.stacking import Stacking


class SampledModel(ExplainsAttributes):
    """A model and, after a fit, its posterior draws: predictions, scores, diagnosis and exports.

    It needs NumPy alone, so that a saved network predicts where TensorFlow is not installed.
    Sampling and reading files are in `tfbnn.fit.model`.
    """

    def __init__(self, spec: NetworkSpec | OpenSpec):
        self.asked = spec  # each fit chooses its open settings anew
        self._ensemble: Posterior | None = None
        self._training_rows: Rows | None = None
        self._earlier: Ensemble | None = None
        self._warned_of: Provenance | None = None

    @classmethod
    def from_spec(cls, spec: NetworkSpec | OpenSpec) -> Self:
        """Return an unfitted model for a spec."""
        model = cls.__new__(cls)
        SampledModel.__init__(model, spec)
        return model

    @classmethod
    def from_ensemble(cls, ensemble: Ensemble) -> Self:
        """Return the fitted model that an `Ensemble` describes."""
        model = cls.from_spec(ensemble.spec)
        model._ensemble = Posterior.of(ensemble)
        return model

    def __repr__(self) -> str:
        from tfbnn.posterior.facts import line_of

        return line_of(type(self).__name__, self._described, self._ensemble)

    def _repr_html_(self) -> str:
        """Return the repr for a notebook, with the table of layers on request."""
        return folded(repr(self), self._table)

    @property
    def _table(self) -> str:
        """The table of layers, with the choices that were made."""
        spec = self._described
        if isinstance(spec, OpenSpec):
            return spec.table
        choices = spec.choices
        if self._ensemble is not None:
            choices = self._ensemble.provenance.choices or ()
        return describe_model(spec, choices)

    def count_params(self) -> int:
        """Return the number of sampled parameters P: weights, and scales of noise and priors.

        A draw has P entries: `model.posterior.draws` has the shape [C, S, P]. `summary` gives the
        number of weights and that of scales.
        """
        return self.spec.layout.num_parameters

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the model as a JSON-able dict for `from_config`, without its fit.

        Arguments that were "auto" stay "auto", so that a copy chooses by its own rows. For a loaded
        model they are the choices of its fit, as a file holds no others.
        """
        if isinstance(self.asked, OpenSpec):
            return self.asked.to_config()
        if isinstance(self.asked, InfiniteSpec):
            return config_of(self.asked)
        return config_of(perceptron(self.asked, "get_config"))

    @classmethod
    def from_config(cls, config: dict[str, Any], custom: Sequence[type] = ()) -> Self:
        """Return an unfitted model from the dict that `get_config` returns.

        Args:
            config: All entries that `get_config` gives. Priors and likelihoods are found by the
                names of their classes.
            custom: User-defined classes that the model may have, as in `tfbnn.load`.

        Raises:
            TypeError, ValueError: For any other config.

        Example:
            copy = tfbnn.BayesianMLP.from_config(model.get_config())
        """
        return cls.from_spec(spec_of_config(config, custom))

    @property
    def spec(self) -> NetworkSpec:
        """The `NetworkSpec` of the fit, or the requested one before a fit.

        Before a fit, a `y_transform` of ("auto",) is not chosen yet, as it depends on the targets.

        Raises:
            NotFittedError: Before a fit that chooses the layers.
        """
        return known(self._described)

    @property
    def _described(self) -> NetworkSpec | OpenSpec:
        return self.asked if self._ensemble is None else self._ensemble.spec

    @property
    def earlier(self) -> Ensemble | None:
        """The networks whose posterior serves as the prior; for a loaded model its own networks."""
        of_file = self._earlier is None and self._described.earlier
        return self._ensemble if of_file else self._earlier

    @property
    def posterior(self) -> Posterior:
        """The sampled networks: draws [C, S, P], sample_stats, chain_weights [C], to_arviz()."""
        return self._fitted()

    @property
    def classes(self) -> Classes | None:
        """The class labels in the order of the columns of Categorical; None for other targets."""
        return self._fitted().classes

    @property
    def compression(self) -> Compression | None:
        """The `Compression` record of a model that `compress` returned, or None for other models."""
        return self._fitted().provenance.compression

    @explains_keywords
    def predict(
        self,
        x: ArrayLike,
        *,
        include_noise: bool = False,
        quantiles: ArrayLike | None = None,
        space: str = "original",
        noise_scale: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        return_trust: bool = False,
        calibrated: bool | str = "auto",
        allow_unsampled: bool = False,
        batch_size: int | None = None,
    ) -> Prediction:
        """Compute mean and standard deviation of the predictive distribution.

        The shape of a prediction is that of the fitted target, [N] or [N, K], so that predictions
        compare directly with targets. Files of format 1 do not record the shape: their models
        predict [N, K].

        The mean is that of the function over the draws, in original units. With `include_noise` it
        is that of a new observation, E[y | x]. The two differ under "log10": by a factor
        exp(s^2 / 2) for normal noise of standard deviation s in ln y.

        Every draw is transformed to original units before any average is taken. For classes, mean,
        standard deviation over draws and quantiles are those of the class probabilities. With
        Categorical they are [N, M], with columns in the order of `classes`. With Bernoulli they are
        [N] or [N, K], for label 1 or the second label.

        NumPy computes the outputs of the networks, as fast as XLA does on a CPU. Large batches go
        to TensorFlow if it is already imported and sees a GPU. The two agree to 1e-5.

        Args:
            x: Inputs [N, D]. Columns of a data frame are selected by the names of the fit. After a
                fit to columns of text, a data frame with these columns, or the numbers of
                `code_inputs`.
            include_noise: False (default): the spread of the function (epistemic). True: that of a
                new observation. With Student-t noise under "log10" a mean and standard deviation in
                original units do not exist and are infinite; quantiles do. Refused for classes:
                their mean probability is already that of a new observation.
            quantiles: Probabilities in (0, 1), or None.
            space: "original" units (default), or "transformed", the scale the network sees. For
                classes these are the logits, with Categorical after subtracting their mean over
                classes.
            noise_scale: Known standard deviations of the rows, [N] or [N, K], in the units of y;
                required with `include_noise` after a fit that had them.
            offset: For counts, logarithms of the exposures of these rows, [N] or [N, K]. Default
                None: rates, for an exposure of 1.
            return_trust: Whether to return the trust level of every row: 1 inside the training
                inputs, 0 at their edge, -1 outside (`tfbnn.trust`).
            calibrated: Whether error bars are those of `calibrate`, with `include_noise` only.
                "auto" (default): if the model is calibrated. stddev is then half of the calibrated
                central 68.27 % interval, taken on the scale the network sees and transformed to the
                requested units. The mean is that of the posterior with and without calibration.
            allow_unsampled: Whether to predict with the networks of a run that ended before its
                first draw, default False: their spread is no error bar.
            batch_size: Number of rows that are read and checked at a time, so that x may be larger
                than memory, such as a memory-mapped array or an h5py dataset. None (default): all
                at once.

        Returns:
            `Prediction` with mean and stddev [N] or [N, K], quantiles [Q, N] or [Q, N, K] or None,
            trust [N] or None; it unpacks as `mean, stddev = model.predict(x)`. Its `columns` always
            has the shape [N, K]; `to_frame()` gives a pandas data frame.

        Raises:
            NotFittedError: Before a fit, and without draws unless `allow_unsampled`.
            TypeError, ValueError: For unusable inputs.
        """
        if batch_size is not None:
            settings: Any = dict(
                include_noise=include_noise,
                quantiles=quantiles,
                space=space,
                return_trust=return_trust,
                calibrated=calibrated,
                allow_unsampled=allow_unsampled,
            )
            return self._in_batches(x, noise_scale, offset, batch_size, settings)
        check_flag("allow_unsampled", allow_unsampled)
        ensemble, given = self._fitted(allow_unsampled=allow_unsampled), x
        x = checked_inputs(ensemble, x)
        check_flag("include_noise", include_noise)
        check_flag("return_trust", return_trust)
        noise = self._known_of(given, noise_scale, offset, len(x))
        if include_noise and self.spec.has_classes:
            raise ValueError(
                f"include_noise=True does not go with {type(self.spec.likelihood).__name__}: the "
                "probability of a class is that of a new observation. Leave it False."
            )
        if include_noise:
            require_noise(ensemble, noise, "include_noise=True")
        calibrated = _is_calibrated(ensemble, calibrated, include_noise)
        check_choice("space", space, {"original", "transformed"})
        if quantiles is not None:
            quantiles = [
                check_number("quantiles", q, above=0, below=1)
                for q in np.atleast_1d(quantiles).tolist()
            ]
        wanted = Summary(include_noise, quantiles, space, calibrated)
        return replace(
            predict(ensemble, x, wanted, noise).shaped(ensemble.as_fitted),
            trust=ensemble.trust(x) if return_trust else None,
            names=value_names(ensemble, quantiles or (), space),
            index=_index_of(given),
        )

    def _in_batches(
        self, x: Any, noise_scale: Any, offset: Any, batch_size: int, settings: dict[str, Any]
    ) -> Prediction:
        """Predict `batch_size` rows at a time."""
        size, found = check_integer("batch_size", batch_size, minimum=1), None
        known = self._known_of(x, noise_scale, offset, len(x))
        for rows in row_slices(max(1, len(x)), size):
            settings |= as_argument(self.spec, None if known is None else known[rows])
            try:
                part = self.predict(rows_of(x, rows), **settings)
            except BadRowError as error:
                error.row += rows.start
                raise
            found = found or part.with_room(len(x), _index_of(x))
            found.put(rows, part)
            if isinstance(x, np.ndarray):
                give_back(x)
        return cast(Prediction, found)

    @explains_keywords
    def predict_distribution(
        self,
        x: ArrayLike,
        *,
        include_noise: bool = True,
        noise_scale: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        calibrated: bool | str = "auto",
    ) -> PredictiveDistribution | ClassDistribution:
        """Compute the predictive distribution at every row: density, CDF, quantiles and samples.

        Args:
            x: Inputs [N, D], as in `predict`.
            include_noise: True (default): of a new observation. False: of the function alone, which
                has no density. Class labels accept True only.
            noise_scale, offset, calibrated: As in `predict`.

        Returns:
            `PredictiveDistribution` with mean(), std(), var(), quantile(q), interval(level),
            cdf(y), pdf(y), log_prob(y), crps(y) and sample(size, seed=0, joint=False), in the units
            and the shape of the targets; for class labels `ClassDistribution` with probs,
            entropy(), log_prob(labels) and sample(size, seed=0).

        Raises:
            NotFittedError: Before a fit, and without draws.
            TypeError, ValueError: For unusable inputs, and if all draws at all rows take 4 GB.

        Example:
            d = model.predict_distribution(x)
            low, high = d.interval(0.9)
            chance = 1.0 - d.cdf(limit)
        """
        from tfbnn.posterior.distribution import ClassDistribution, PredictiveDistribution

        ensemble, given = self._fitted(allow_unsampled=False), x
        x = checked_inputs(ensemble, x)
        check_flag("include_noise", include_noise)
        noise = self._known_of(given, noise_scale, offset, len(x))
        calibrated = _is_calibrated(ensemble, calibrated, include_noise)
        if self.spec.has_classes:
            if not include_noise:
                raise ValueError(
                    "include_noise=False cannot be used with classes, whose probabilities are those of a new "
                    "observation. Leave it out."
                )
            return ClassDistribution(ensemble, x, _index_of(given))
        if include_noise:
            require_noise(ensemble, noise, "predict_distribution")
        return PredictiveDistribution(
            ensemble,
            x,
            noise,
            include_noise=include_noise,
            calibrated=calibrated,
            index=_index_of(given),
        )

    def _known_of(self, x: Any, noise_scale: Any, offset: Any, num_rows: int) -> Array | None:
        """Return the noise scales or offsets [N, K] of the rows of x in their order, or None."""
        known = known_of_rows(self.spec, noise_scale, offset)
        return known_beside(self.spec, x, known, self.posterior.known.target_names, num_rows)

    def code_inputs(self, x: ArrayLike) -> Array:
        """Return inputs as numbers, with columns of text and flags coded.

        Exports and programs without data frames take these numbers. So does each method of this
        class that takes inputs. Their names are in `posterior.input_names`, such as "colour=red".

        Args:
            x: Inputs, as in `predict`.

        Returns:
            Array [N, D], float64, in original units, before any transform.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable inputs, among them values that the fit has not seen.
        """
        return checked_points(self._fitted(), x)[0]

    def predict_classes(self, x: ArrayLike) -> Array:
        """Return the class labels with the largest mean probability, for Bernoulli the one above 1/2.

        Args:
            x: Inputs [N, D].

        Returns:
            Labels, text, integers or booleans as in the fit: [N] for one target, whatever its shape
            was; [N, K] for K > 1 Bernoulli targets.

        Raises:
            NotFittedError: Before a fit.
            ValueError: For a likelihood without classes.
        """
        if not self.spec.has_classes:
            raise ValueError(
                f"predict_classes needs classes, received {type(self.spec.likelihood).__name__}."
            )
        labels = self._sampled().most_probable(self.predict(x).columns.mean)
        return labels[:, 0] if labels.shape[1] == 1 else labels

    def predict_draws(self, x: ArrayLike, *, space: str = "original") -> Array:
        """Return noise-free predictions of every network, chain by chain: [C * S, N] or [C * S, N, K].

        The shape of the target is that of the fit, as in `predict`. For classes the predictions are
        probabilities, [C * S, N, M] with Categorical.

        All draws of all chains are included, whatever the weights of the chains. Averages have to
        weight them with `posterior.draw_weights` [C * S], as `predict` does.

        Args:
            x: Inputs [N, D].
            space: "original" units (default) or "transformed", as in `predict`.

        Raises:
            NotFittedError: Before a fit.
            ValueError: For unusable inputs, and for arrays of more than 4 GB.
        """
        ensemble = self._fitted(allow_unsampled=False)
        x = checked_inputs(ensemble, x)
        check_choice("space", space, {"original", "transformed"})
        return ensemble.as_fitted(functions_together(ensemble, x, space))

    def predict_gradient(self, x: ArrayLike) -> Gradient:
        """Compute the derivatives of the mean prediction with respect to the inputs.

        Every network is differentiated in closed form, its transforms included, and averaged like
        the prediction: mean is the gradient of `predict(x).mean`, stddev the spread of the
        gradients over the draws. For classes the gradients are those of the probabilities.

        Args:
            x: Inputs [N, D], as in `predict`. After a fit to columns of text, derivatives are with
                respect to the numbers of `code_inputs`. For a category they are steps rather than
                slopes.

        Returns:
            `Gradient`: mean and stddev [N, K, D], or [N, D] if the target was fitted as [N], in
            units of the targets per unit of the inputs, both original.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable inputs, and after `fit_laplace`, whose draws are not
                networks.

        Example:
            slope, error = model.predict_gradient(x)
        """
        from tfbnn.posterior.gradient import gradient_of_model

        ensemble = self._fitted("predict_gradient", allow_unsampled=False)
        return gradient_of_model(ensemble, checked_inputs(ensemble, x))

    @explains_keywords
    def evaluate(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        noise_scale: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        include_noise: bool = True,
        calibrated: bool | str = "auto",
    ) -> dict[str, Any]:
        """Compute scores of the predictive distribution on rows (x, y).

        Args:
            x: Inputs [N, D].
            y: Targets [N, K] or [N], original units. A single target may have either shape,
                whatever its shape in the fit.
            noise_scale: Known standard deviations of the rows in the units of y, or None.
            offset: For counts, logarithms of the exposures of the rows, or None.
            include_noise: True (default): score the distribution of a new observation. False: score
                the function alone, as if the targets were its values. There is no density then.
            calibrated: Whether to use the calibration of `calibrate`, with noise only. "auto"
                (default): if the model has one.

        Returns:
            Dict of floats (arrays [K] per target where there are several targets): rmse, r2 of the
            mean of a new observation, E[y | x], in original units (of the function with
            include_noise=False, with noise_scale, or where noise has no mean under "log10"). If all
            targets are positive, relative_error_median, relative_error_mean and relative_error_q90
            of `|mean / y - 1|` over the rows, for the mean of the function; rmse_transformed,
            r2_transformed; rmse_log10, r2_log10 where "log10" is used; log_predictive_density of
            the mixture of all draws, mean per row, in original units (Jacobian included), and
            log_predictive_density_transformed; log_predictive_density_moment_matched of the normal
            with the same mean and standard deviation, transformed; crps in original units;
            interval_score of the central 90 % interval in original units (Gneiting and Raftery
            2007, equation 43); rank_correlation of standard deviations and errors, transformed: 1
            where the widest bars have the largest errors, NaN where all are alike;
            coverage_by_thirds {"smallest": {1: share, 2: share}, "middle": .., "largest": ..} of
            the rows by their standard deviations; coverage {k: share of targets within k standard
            deviations, noise included, transformed}, k = 1..5; central_coverage {p: share of targets
            in the central interval of probability p}, p = 0.5, 0.683, 0.9, 0.954; pull_width, the
            standard deviation of those standardised residuals; n_effective, the median effective
            number of draws behind the predictions (of all chains with a weight, as if the weights were equal;
            for infinite width, at the reference inputs);
            num_rows. With a calibration, standardised residuals are normal quantiles of the
            probability of a smaller target, and densities are those of the Student's t that fits
            the scores. Under a transform that is not affine, such as "log10", all scores but the
            density take a known `noise_scale` at the prediction, as `predict` does. The density is
            that of the likelihood.

            For classes: accuracy of the most probable class; brier, the squared distance of
            probabilities and truth summed over all classes, two for a Bernoulli target, 0 to 2
            (Brier 1950); ece, the expected calibration error of the most probable class in 15
            bins of equal width (Guo et al. 2017, arXiv:1706.04599); log_predictive_density, mean
            per row of the log of the averaged probability of the true class (of the true
            combination of classes for several targets); n_effective, of the logits; num_rows.
        """
        from tfbnn.posterior.metrics import evaluate, evaluate_classes

        ensemble = self._fitted(allow_unsampled=False)
        check_flag("include_noise", include_noise)
        known = known_of_rows(self.spec, noise_scale, offset)
        rows, transformed = checked_rows(ensemble, x, y, known, "evaluate")
        calibrated = _is_calibrated(ensemble, calibrated, include_noise)
        if self.spec.has_classes:
            return evaluate_classes(ensemble, transformed)
        return evaluate(
            ensemble, rows.y, transformed, include_noise=include_noise, calibrated=calibrated
        )

    @property
    def calibration(self) -> Calibration | None:
        """The `Calibration` of the predictions with noise, or None without one."""
        return self._fitted().calibration

    @explains_keywords
    def calibrate(
        self,
        x_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
        *,
        noise_scale: ArrayLike | None = None,
        by: str | None = None,
        method: str = "split",
        scale: str = "stddev",
        groups: Any = None,
    ) -> Calibration:
        """Calibrate the error bars by rows that the fit has not seen or that are left out of it.

        The scores of these rows are targets less predicted means over predicted standard
        deviations. They determine how wide an interval has to be on either side: a conformal
        predictive system (Vovk, Gammerman and Shafer 2022, Algorithmic Learning in a Random World,
        chapter 7). For new rows like these, intervals then hold with their probability on average
        over rows, whatever the noise and however wrong the model. Beyond the outermost ranks, a
        Student's t that is fitted to the scores takes over. Means do not change. Every later
        `predict(include_noise=True)`, score, plot and saved file uses the calibration;
        `calibrated=False` requests the predictions of the posterior.

        Outside the training inputs no row shows the errors. Error bars there are the wider of the
        calibrated and the uncalibrated ones (`predict(return_trust=True)` returns the trust
        levels). Stacking and compression remove the calibration, as it belongs to the draws before:
        calibrate after them.

        Args:
            x_calibration: Inputs [N, D] of rows that the fit has not seen. At least 20 are needed;
                150 determine 1 and 2 standard deviations, 700 or more the third. Rows that stopped
                ADAM early may be used, those that `stack_chains` was given may not.
            y_calibration: Their targets [N, K] or [N], original units.
            noise_scale: Known standard deviations of these rows, in the units of y; required after
                a fit that had them.
            by: None (default): one distribution of scores for all rows. "stddev": up to three, of
                rows with small, middle and large predicted standard deviations. "trust": two,
                inside the training inputs and at their edge. Each group is then calibrated by
                itself and needs at least 150 rows.
            method: "split" (default): by the given rows. "loo" takes no rows: it uses the rows of
                the fit, each left out in turn by its leverage, the variance of the function there
                over that of the noise. It is exact for Gaussian noise and a Gaussian posterior in
                each group of chains that represent the same functions. If chains have hardly moved,
                the derivatives with respect to up to 1000 weights give the leverage. "loo" needs
                the model as it was fitted, or of a run folder.
            scale: The quantity that error bars are proportional to. "stddev" (default): the
                predicted standard deviations. "misfit": these times the root mean square of the
                scores of the rows of the fit around each input, so that error bars grow where the
                networks fit badly. Rows count by how far a network that becomes exact there moves
                its prediction at the input, after Swinburne and Perez 2025, Mach. Learn.: Sci.
                Technol. (POPS, arXiv:2402.01810). For nearly noise-free targets "misfit" tells
                which errors are large, for plain noise it tells nothing
                (benchmarks/results/pops.md). It needs the rows of the fit with either method, and
                at most 1000 weights per output in the last layer. Files grow by four matrices of up
                to 1000 x 1000 numbers for each target, and exports to ONNX and SavedModel have no
                calibrated bars.
            groups: Labels [N] of rows that belong together, such as those of one subject; text or
                integers. With "loo" the rows of a label are left out together, so that error bars
                hold for new subjects. By default these are the groups that the fit was given. With
                "split" the rows of a label stay together in the estimate of `coverage_after`. Not
                with "loo" and "misfit".

        Returns:
            `Calibration`: num_rows, bars, coverage_before, coverage_after, `summary()`.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable rows, for too few rows, and if more than half of
                them are rows of the fit, unless many of those equal each other, which gives a
                warning; for class likelihoods; for "loo" and "misfit" without the rows of the fit,
                if most rows dominate their own prediction, and if chains hardly moved, so that
                their draws do not give the leverage; for "loo" with networks that are not sampled,
                except those of `fit_laplace`.

        Warns:
            UserWarning: If some of the rows have the values of rows of the fit.

        Example:
            model.fit_posterior(x, y)
            print(model.calibrate(x_held_out, y_held_out).summary())
            low, high = model.predict(x_new, include_noise=True, quantiles=[0.16, 0.84]).quantiles
        """
        from tfbnn.posterior.calibration.calibrating import calibration_of_model
        from tfbnn.posterior.fit_checking import diagnose_ensemble

        ensemble = self._fitted()
        found = calibration_of_model(
            ensemble,
            self._training_rows,
            x_calibration,
            y_calibration,
            noise_scale,
            by,
            method,
            scale,
            groups,
        )
        self._ensemble = ensemble = replace(ensemble, calibration=found)
        known, row_groups = self._unseen_rows()
        if ensemble.no_chains is None and (known is not None or ensemble.diagnostics is not None):
            told = diagnose_ensemble(ensemble, None, known, found.checked, row_groups).to_dict()
            self._ensemble = replace(ensemble, diagnostics=told)
        return found

    def diagnose(self, x_reference: ArrayLike | None = None) -> Diagnosis:
        """Compute R-hat and effective sample sizes of the predictions, the log density and the weights.

        Args:
            x_reference: Inputs [R, D] at which predictions are compared, for classes their logits
                (`space="transformed"`). Default: up to 200 validation rows, or training rows, saved
                with the model.

        Returns:
            `Diagnosis` with rhat_function, ess_function [R, K], rhat_parameters, ess_parameters
            [P], verdict, warnings, `summary()` and more. The numbers describe the chains as they
            were sampled. If `stack_chains` has weighted them, the summary says so. The comparison
            with the training rows is that of the fit.

        Raises:
            NotFittedError: Before a fit.
            ValueError: For unusable inputs, and for a model without chains: a compressed one, or
                one of a run that was stopped before its first draw.
        """
        from tfbnn.posterior.fit_checking import diagnose_ensemble
        from tfbnn.posterior.stacking import weighting_note

        if self._sampled().no_chains is not None:
            raise ValueError(
                "R-hat and effective sample sizes need chains, and this model has none. "
                f"{self._sampled().no_chains}. Diagnose the model of a run that sampled."
            )
        ensemble = self._fitted()
        reference = None if x_reference is None else checked_inputs(ensemble, x_reference)
        rows, row_groups = self._unseen_rows()
        return replace(
            diagnose_ensemble(ensemble, reference, rows, row_groups=row_groups),
            chain_weights=ensemble.chain_weights,
            weighting=weighting_note(ensemble),
        )

    def basins(
        self,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        noise_scale: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Basins:
        """Group the chains by the functions that they represent, and compute the mass of each group.

        Chains that do not agree may be in basins of very unequal mass, and their average then is
        not the posterior. Chains are in one basin if their mean predictions at the reference inputs
        saved with the model are nearer to each other than two of their standard deviations, root
        mean square, or if other chains connect them. The mass of a basin is computed by bridge
        sampling (Meng and Wong 1996, Statistica Sinica 6, 831) between up to 800 draws of each
        chain and a normal distribution. The latter is made of half of the draws and the
        Gauss-Newton matrix at the best of them, or at their mean if its density is larger. Its
        error is the relative mean square error (Fruehwirth-Schnatter 2004, Econometrics Journal 7,
        143). If the two hardly overlap, as with hundreds of parameters, the mass is not known and
        its error is infinite.

        A network has H! 2^H copies that are the same function (units in another order, signs turned
        where the activation is odd). Every basin has the same number of copies, so they cancel in
        the weights. Weights are relative to the basins that were found. Basins that no chain found
        do not count.

        The result is kept with the model and in its file.

        Args:
            x, y, noise_scale, offset: All rows of the fit, as in `fit_posterior`. Default: the rows
                that this model was fitted to in this process, or those of the run folder it was
                loaded from.

        Returns:
            `Basins`: labels [C], log_weights and log_weight_stderr [B] in nats, rhat_within
            [B, N_ref, K], `report()`.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable rows, for another number of rows than in the fit,
                for a model without chains, for fewer than eight draws per chain, and with several
                basins for more than 8000 parameters.

        Warns:
            UserWarning: If the rows are not those of the fit.

        Example:
            print(model.basins().report())
        """
        from tfbnn.posterior.basins.finding import basins_of_model

        ensemble = self._fitted()
        known = known_of_rows(self.spec, noise_scale, offset)
        found = basins_of_model(ensemble, self._training_rows, x, y, known)
        self._ensemble = replace(ensemble, basins=found)
        return found

    def importance(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        noise_scale: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        num_repeats: int = 5,
        seed: int = 0,
    ) -> Importance:
        """Compute the importance of each column: the loss of log score if its values are permuted.

        The values of one column are permuted among the rows. The loss is the decrease of the mean
        log predictive density of the posterior, without calibration (permutation importance:
        Breiman 2001, Machine Learning 45, 5). If several columns hold the same information, each
        can be spared, and none of them loses much. `relevance` needs no rows, and measures by how
        much the function changes with an input.

        Args:
            x, y, noise_scale, offset: Rows that the fit has not seen, as in `evaluate`.
            num_repeats: Number of permutations, default 5.
            seed: Seed of the permutations.

        Returns:
            `Importance` with names, loss and stddev [D], for each column of the fit; printed, a
            table.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable rows.

        Example:
            print(model.importance(x_held_out, y_held_out))
        """
        from tfbnn.posterior.relevance import importance_of

        ensemble = self._fitted(allow_unsampled=False)
        known = known_of_rows(self.spec, noise_scale, offset)
        _, rows = checked_rows(ensemble, x, y, known, "importance")
        num_repeats = check_integer("num_repeats", num_repeats, minimum=1)
        return importance_of(ensemble, rows, num_repeats, check_integer("seed", seed, minimum=0))

    def relevance(self) -> Relevance:
        """Compute the relevance of each input from the prior scales that `tfbnn.priors.ARD` samples.

        The default prior has these scales. Any other prior needs ARD on the first kernel.

        The scale s_i of input i is the prior standard deviation of its weights in the first layer,
        per standard deviation of the input where `x_transform` standardises (as it does by
        default). In the standard parameterisation it is that of the weights themselves. In ntk the
        network multiplies the kernel by s_i / sqrt(D) for D inputs, so that the effective weights
        have the standard deviation s_i / sqrt(D). Scales of one fit compare with each other. Scales
        of the two parameterisations compare only after this division.

        A column of text with three values or more has a scale for each value, "colour=red". As the
        inputs of one column are standardised alike, their scales compare with each other
        (`tfbnn.data.coding`).

        An input whose scale is far below the others' has little influence on the targets. The
        reverse does not hold for every small difference: an input that acts linearly needs smaller
        weights than one that bends, and if two inputs hold the same information, either may carry
        it. A handful of weights determines each scale, so look at the quantiles, too.

        Returns:
            `Relevance` with names, median, lower and upper [D], quantiles at 50, 16 and 84 % over
            all draws under the weights of their chains; printed, a table.

        Raises:
            NotFittedError: Before a fit.
            ValueError: For a model without ARD.

        Example:
            model = tfbnn.BayesianMLP([8, 50, 1])
            model.fit_posterior(x, y)
            print(model.relevance())
        """
        from tfbnn.posterior.relevance import relevance_of

        return relevance_of(self._fitted())

    def stack_chains(
        self,
        x_validation: ArrayLike,
        y_validation: ArrayLike,
        *,
        noise_scale: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Stacking:
        """Weight the chains by stacking: by how well their mixture predicts held-out rows.

        For chains that do not mix. The weights maximise the mean log score of the mixture of the
        chains' predictive densities on the held-out rows (Yao, Vehtari and Gelman 2022, JMLR 23,
        arXiv:2006.12335), and every later prediction, score and saved file uses them. The mixture
        is **not the posterior**, and reports say so. Chains can end up without any weight. The
        draws do not change, so that stacking again starts from scratch.

        Args:
            x_validation: Inputs [N, D] of rows that the fit has not seen.
            y_validation: Their targets [N, K] or [N], original units.
            noise_scale: Known standard deviations of the validation rows, [N] or [N, K], in the
                units of y; required after a fit that had them.
            offset: For counts, logarithms of their exposures.

        Returns:
            `Stacking`: weights [C], method, log_score_uniform, log_score_stacked, num_rows,
            `summary()`. The scores are those of the rows that the weights were fitted
            to: score the mixture with `evaluate` on other rows.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable rows, for a row to which every chain gives density
                zero, and after `fit_laplace`, which has no chains.
        """
        from tfbnn.posterior.stacking import stack

        ensemble = self._fitted("stack_chains")
        known = known_of_rows(self.spec, noise_scale, offset)
        rows, transformed = checked_rows(
            ensemble, x_validation, y_validation, known, "stack_chains", "validation "
        )
        num_seen = num_known(ensemble.row_digests, rows) or 0
        if num_seen > 0.01 * len(rows.x):  # rows of few settings may be alike by chance
            warn(
                f"{num_seen} of the {len(rows.x)} validation rows have the values of rows of the fit, which "
                "favour chains that follow their noise. Hold rows out."
            )
        stacking = stack(ensemble, transformed)
        _warn_of_calibration(ensemble, "stack_chains weighs the draws anew")
        self._ensemble = replace(
            ensemble.with_chain_weights(stacking.weights),
            provenance=ensemble.provenance.stating(chain_weights=stacking.provenance()),
        )
        return stacking

    def compress(
        self,
        num_draws: int = 100,
        method: str = "kernel_thinning",
        *,
        x_reference: ArrayLike | None = None,
    ) -> Self:
        """Return a model with fewer draws that predicts about the same, with a record of the change.

        Files become smaller and predictions faster. The chosen draws have equal weights and form
        one chain. The choice takes account of weights that `stack_chains` gave to chains. The draws
        are no longer a Markov chain: `diagnose` refuses them, and `n_effective` of `evaluate` is
        NaN.

        Args:
            num_draws: Number of draws to choose out of all chains with a weight, default 100.
            method: "kernel_thinning" (default) keeps mean, standard deviation and quantiles of the
                predictions at reference inputs (Dwivedi and Mackey 2024, arXiv:2105.05842), out
                of up to 4000 equally spaced draws. "stride" takes equally spaced draws.
            x_reference: Inputs [R, D] at which predictions are to be kept. Targets are not needed.
                1000 inputs like those to come keep predictions better than the default. The change
                is measured at the reference inputs saved with the model, so pass other ones.
                Default: three quarters of those saved, and the change is measured at the last
                quarter.

        Returns:
            BayesianMLP with `posterior.draws` [1, num_draws, P] and the record `compression`. A
            draw is repeated if a chain has more weight than draws.

        Raises:
            NotFittedError: Before a fit.
            ImportError: If SciPy is not installed, except for "stride".
            TypeError, ValueError: For unusable inputs or settings, for more draws than there are,
                for a model that is already compressed, and for one of `fit_laplace`, whose
                num_results may be smaller instead.

        Example:
            small = model.compress(num_draws=100, x_reference=x_train[:1000])
            print(small.compression.summary())
            small.save("small.h5")
        """
        from tfbnn.posterior.compression import METHODS, compress

        ensemble = self._fitted("compress")
        check_choice("method", method, METHODS)
        small = compress(
            ensemble,
            check_integer("num_draws", num_draws, minimum=1),
            method,
            x_reference=None if x_reference is None else checked_inputs(ensemble, x_reference),
        )
        _warn_of_calibration(ensemble, "compress chose some of the draws")
        return type(self).from_ensemble(small)

    def sample_prior(
        self,
        x: Any,
        *,
        noise_scale: Any = None,
        offset: Any = None,
        num_results: int = 100,
        seed: int = 0,
    ) -> PriorDraws:
        """Draw networks from the prior, and rows from the prior predictive distribution.

        The draws show what a prior means: functions that are all flat, or rows far outside the
        possible range, speak against it. Learned noise is drawn from its prior as well.

        Args:
            x: Inputs [N, D], as in `predict`.
            noise_scale: Known standard deviations of the rows, as in `predict`; required after a
                fit that had them.
            offset: For counts, as in `predict`.
            num_results: Number of draws S, default 100.
            seed: Integer.

        Returns:
            `PriorDraws` (theta, f, y). After a fit inputs and targets are in original units, by the
            transforms of the fit. Before a fit, "standardize" of the inputs is learned from x, and
            targets are on the scale the network sees, unless their transform learns nothing.
            Settings that are "auto" may be chosen differently by the rows of a fit.

        Raises:
            TypeError, ValueError: For unusable inputs, for more than 4 GB of draws, and for a model
                whose prior is `FromPosterior`.

        Example:
            draws = model.sample_prior(np.linspace(-2, 2, 100)[:, None])
            plt.plot(draws.f[:, :, 0].T)
        """
        from tfbnn.posterior.prior_predictive import prior_draws

        known = known_of_rows(self.spec, noise_scale, offset)
        return prior_draws(self.spec, self._ensemble, x, known, num_results, seed)

    def to_onnx(self, path: StrPath) -> None:
        """Write mean and standard deviation of the function as an ONNX file; needs the extra `onnx`.

        The input is "x" [N, D], numbers as of `code_inputs`. The outputs are "mean" and "stddev"
        [N, K], for a calibrated model also "lower", "median" and "upper". They are those of
        `to_savedmodel`. The names of inputs, the codes of text and the classes are in the metadata
        of the file, as JSON. Operations are of operator set 17. A call computes all draws of all
        its rows at once, so memory grows with draws x widest layer x N: pass large tables in
        pieces. "gelu" and "erf" of a float64 network are exact to 1e-7, as runtimes have the error
        function for float32 alone.

        Args:
            path: File to write; by custom it ends in .onnx.

        Raises:
            NotFittedError: Before a fit.
            ImportError: If the package onnx is not installed.
            ValueError: If the draws take more than the 2 GiB that such a file can hold, after
                `fit_laplace`, whose draws are not networks, and for a Keras model that is no plain stack
                of Dense layers.
        """
        from tfbnn.posterior.onnx import write_onnx

        write_onnx(self._fitted("to_onnx", allow_unsampled=False), path)

    def _fitted(self, needs_networks: str | None = None, allow_unsampled: bool = True) -> Posterior:
        """Return the ensemble, and warn once if it is not what was requested.

        Args:
            needs_networks: Name of a caller that needs draws that are networks. Other draws are
                refused.
            allow_unsampled: Whether to accept the networks of a run without draws.
        """
        ensemble = self._sampled()
        if ensemble.provenance.is_unfinished and not allow_unsampled:
            raise NotFittedError(
                f"The run ended before its first draw ({ensemble.provenance.not_sampled}). Fit with "
                "more time, or use its networks: predict(allow_unsampled=True), tfbnn predict --unsampled."
            )
        if needs_networks is not None:
            ensemble.require_networks(needs_networks)
        origin = ensemble.provenance
        requested = origin.num_results_requested or 0
        said = None
        if origin.not_sampled is not None:
            said = f"{ensemble.no_chains}. Their error bars are not those of the posterior."
        elif ensemble.num_results < requested and origin.ended is None:
            there = f"{ensemble.num_results} of {requested} draws per chain are there"
            said = f"The run was stopped early: {there}."
        if said is not None and origin is not self._warned_of:
            self._warned_of = origin
            warn(said)
        return ensemble

    def _sampled(self) -> Posterior:
        """Return the ensemble as `_fitted` does, without its warning."""
        if self._ensemble is None:
            raise NotFittedError(
                f"This {type(self).__name__} has no draws yet. Call fit_posterior first, or tfbnn.load."
            )
        return self._ensemble

    def _keep(self, rows: Rows, ensemble: Ensemble, in_any_case: bool = False) -> None:
        """Store a fitted ensemble and its rows, which leave-one-out needs and a file does not hold.

        Networks that are not sampled replace an earlier posterior only with `in_any_case`: the
        networks of a run that was stopped before its first draw are worth less.
        """
        if not in_any_case and ensemble.provenance.not_sampled and self._ensemble is not None:
            if self._ensemble.provenance.not_sampled is None:
                return
        self._ensemble, self._training_rows = Posterior.of(ensemble), rows

    def _unseen_rows(self) -> tuple[NetworkRows | None, Array | None]:
        """Return the training rows, transformed, and their groups; (None, None) after a diagnosis."""
        rows, ensemble = self._training_rows, self._sampled()
        if rows is None or ensemble.diagnostics is not None:
            return None, None
        return ensemble.transform(rows), rows.groups


def _index_of(x: Any) -> Any:
    """Return the index of a data frame, or None."""
    index = getattr(x, "index", None)
    return None if callable(index) else index  # a method of lists


def _is_calibrated(ensemble: Ensemble, calibrated: bool | str, include_noise: bool) -> bool:
    """Return whether error bars are those of the ensemble's calibration."""
    if isinstance(calibrated, str):
        check_choice("calibrated", calibrated, {"auto"})
        return include_noise and ensemble.calibration is not None
    check_flag("calibrated", calibrated)
    if calibrated and (not include_noise or ensemble.calibration is None):
        missing = "a calibration: call calibrate" if include_noise else "include_noise=True"
        raise ValueError(f"calibrated=True needs {missing}.")
    return calibrated


def _warn_of_calibration(ensemble: Ensemble, what: str) -> None:
    if ensemble.calibration is not None:
        warn(
            f"{what}, so the calibration is no longer valid and is removed. Call calibrate again.",
        )


def networks_of(value: Any) -> Any:
    """Return the ensemble of a fitted model, sampled or not; return any other value as it is."""
    return value._sampled() if isinstance(value, SampledModel) else value
