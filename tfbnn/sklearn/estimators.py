"""Scikit-learn estimators of sampled networks: `BayesianMLPRegressor`, `BayesianMLPClassifier`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from tfbnn.data.frames import in_order_of, refuse_other_order
from tfbnn.data.validation import as_float_array, check_number
from tfbnn.posterior.distribution import PredictiveDistribution
from tfbnn.sklearn.estimator import SampledEstimator, explains_settings, named
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.likelihoods import Bernoulli, Categorical, ClassLikelihood, Gaussian, Regression
from tfbnn.spec.rows import as_argument
from tfbnn.system.arrays import Array, row_slices

# Number of rows whose predictive distributions are in memory at the same time.
_ROWS_AT_ONCE = 1000


@explains_settings
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianMLPRegressor(RegressorMixin, SampledEstimator):  # type: ignore[misc]
    """Regressor based on a `tfbnn.BayesianMLP` whose posterior is sampled by MCMC.

    The settings have the names and the meaning that they have in `BayesianMLP` and `fit_posterior`,
    where they are explained in detail. All but `hidden_layer_sizes` are keyword-only.

    Args:
        hidden_layer_sizes: Widths of the hidden layers; an integer for one layer, () for a linear
            model. "auto" (default): chosen by held-out rows. The numbers of inputs and outputs
            follow from the rows.
        activation: A name, or one name per hidden layer; default "tanh".
        prior: A prior from `tfbnn.priors`; "auto" (default) samples scales, one per input.
        likelihood: A likelihood for numbers from `tfbnn.likelihoods`. "auto" (default): chosen
            with the layers, or Gaussian("learned") where the layers are given.
        parameterization: "standard", "ntk" or "auto" (default).
        x_transform: Transform of the inputs; default "standardize". A StandardScaler before this
            estimator does no harm and is not needed.
        y_transform: Transform of the targets. "auto" (default) chooses by the targets: "log10"
            followed by "standardize", or "standardize" alone.
        dtype: "float32" (default) or "float64".
        missing: Treatment of missing values in X: "refuse" (default), or "indicator", which adds
            one input for each numeric column with missing values, and one category for a text
            column.
        kernel: A name, or settings from `tfbnn.kernels`. "auto" (default): HMC, or NUTS for few
            parameters.
        num_chains: Number of independent chains; default 4.
        num_results: Maximum number of draws kept per chain; "auto" (default): what a fixed budget
            affords.
        until: Stopping rule: a `tfbnn.Until`; "converged" for R-hat 1.01 and an effective sample
            size of 400; None to stop after num_results draws. "auto" (default): stop when more
            draws no longer change the predictions, or when the chains agree; None if num_results
            is given.
        max_seconds: Wall-clock limit of a fit in seconds, compilation included; default None: no
            limit.
        num_burnin_steps, num_steps_between_results: Transitions of warm-up, and between kept draws;
            default "auto".
        pretraining: `tfbnn.Pretraining`, None, or "auto" (default).
        likelihood_power: Power of the likelihood; a value below 1 gives a coarsened posterior;
            default 1.
        effort: Share of the usual pretraining steps, warm-up steps and budget for draws, where
            these are "auto"; default 0.1, as searches make many fits. This is the only difference
            from the fit of a `BayesianMLP`: with effort=1 and the same seed the draws have the same
            bits.
            The draws are judged by the same limits, and `fit` warns where they are too few.
        calibrate: Whether the fit ends with a calibration of its error bars; "auto" (default): from
            150 rows on, where the noise is learned.
        jit_compile: Whether to compile with XLA; default True.
        random_state: Seed of the draws: an integer, used as the `seed` of `fit_posterior`; a
            RandomState; or None (default) for a new seed at each fit. The same integer on the same
            machine gives the same bits.
        verbose: 0 (default) for no output; 1 shows the progress of the run.

    Attributes:
        model_: The fitted `BayesianMLP`: quantiles, calibration, plots, `save`, exports.
        run_: The `Run` of the fit: `report()`, timings, `diagnosis`.
        n_features_in_, feature_names_in_: Number of inputs, and their names where X had names.

    A fit whose draws are not usable for error bars yet issues one `UnconvergedWarning`, which is
    also a ConvergenceWarning of scikit-learn. In a search each such fit issues one, in the process
    that made the fit. Means, which scores compare, suffer less than error bars. To see the verdicts
    afterwards, call `cross_validate(..., return_estimator=True)` and read `run_.verdict` of each
    estimator.

    The first fit of a network on about this number of rows compiles its programs, which takes
    seconds. Later fits of the same network in the same process reuse them, also with other rows,
    seeds and numbers of draws. A fit uses all cores, so leave `n_jobs=None` in searches: several
    processes would each compile the programs and compete for the cores.

    Example:
        from tfbnn.sklearn import BayesianMLPRegressor

        regressor = BayesianMLPRegressor(random_state=0).fit(X, y)
        mean, std = regressor.predict(X_new, return_std=True)
        print(regressor.run_.report())
    """

    y_transform: str | Sequence[str] | None = AUTO
    calibrate: bool | str = AUTO

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        noise_scale: Any = None,
        offset: Any = None,
        groups: Any = None,
    ) -> Self:
        """Sample the posterior given the rows (X, y).

        Args:
            X: Inputs [N, D], at least two rows. Column names of a frame are kept if all are text.
            y: Targets [N] or [N, K].
            sample_weight: Number of times that each row counts, whole numbers [N]; default None:
                once. Copies of a row stay together when the fit holds out or leaves out rows.
            noise_scale: Known standard deviation of each row, [N] or [N, K], in the units of y. In
                searches it is metadata: `set_fit_request(noise_scale=True)`.
            offset: For counts: logarithms of the exposures of the rows, [N] or [N, K]. In searches
                it is metadata, too.
            groups: Group labels [N] of the rows, as in `fit_posterior`. Rows of a group stay
                together when the fit holds out or leaves out rows. In searches it is metadata, too:
                `set_fit_request(groups=True)`.

        Returns:
            The estimator.

        Raises:
            TypeError: For unknown arguments.
            TypeError, ValueError: For unusable rows or settings, before anything is compiled.
        """
        beside = {"noise_scale": noise_scale, "offset": offset, "groups": groups}
        X, y, beside = self._counted(X, y, sample_weight, beside)
        likelihood: Any = self.likelihood
        if not (is_auto(likelihood) and is_auto(self.hidden_layer_sizes)):
            likelihood = self._settled(Gaussian("learned"), Regression)
        inputs, num_inputs, targets = self._rows(X, y, beside, y_numeric=True, multi_output=True)
        targets = as_float_array(targets, "y")
        num_targets = 1 if targets.ndim == 1 else targets.shape[1]
        num_outputs = num_targets if is_auto(likelihood) else likelihood.num_outputs(num_targets)
        self._sample(inputs, num_inputs, named(y, targets), likelihood, num_outputs, beside)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        *,
        include_noise: bool = True,
        noise_scale: Any = None,
        offset: Any = None,
    ) -> Array | tuple[Array, Array]:
        """Compute the mean of a new target, E[y | x], and with `return_std` its standard deviation.

        With a logarithm in the transform of the targets, this mean is above the mean of the
        function, which `model_.predict(X)` gives. The mean of the function is returned in two
        cases: with Student-t noise, where a new target has no such mean; and after a fit with
        `noise_scale`, whose noise has mean zero in the units of y.

        Args:
            X: Inputs [N, D].
            return_std: Whether to return standard deviations, too; default False.
            include_noise: Meaning of the standard deviations. True (default): those of a new
                target, noise included, as for BayesianRidge and a Gaussian process with a
                WhiteKernel, and calibrated where the fit was. False: those of the function alone,
                which shrink with more rows.
            noise_scale: Known standard deviations of these rows, as in `fit`; needed for the noise
                if the fit had them.
            offset: For counts: logarithms of the exposures of these rows; needed if the fit had
                them.

        Returns:
            The mean, in the shape of the targets of the fit, or (mean, std).

        Raises:
            NotFittedError: That of scikit-learn, before a fit.
        """
        for name, value in (("noise_scale", noise_scale), ("offset", offset)):
            refuse_other_order(X, value, name, "X")
        inputs, ensemble = self._checked(X), self.model_.posterior
        is_affine = ensemble.y_pipeline.is_affine
        with_noise = ensemble.has_mean_of_target and not (is_affine or ensemble.row_noise)
        # With noise, a model of counts requires the offset, and its mean stays the same.
        with_noise |= ensemble.spec.has_counts
        mean: Array = self._in_double.predict(inputs, include_noise=with_noise, offset=offset).mean
        if not return_std:
            return mean
        told = self.model_.predict(
            inputs, include_noise=include_noise, noise_scale=noise_scale, offset=offset
        )
        return mean, told.stddev

    def predict_quantiles(
        self,
        X: Any,
        quantiles: ArrayLike = (0.16, 0.5, 0.84),
        *,
        include_noise: bool = True,
        noise_scale: Any = None,
        offset: Any = None,
    ) -> Array:
        """Compute quantiles of a new target, or of the function, by `predict_distribution`.

        Args:
            X: Inputs [N, D].
            quantiles: Q probabilities in (0, 1); by default the median and the ends of the central 68 %.
            include_noise, noise_scale, offset: As in `predict`.

        Returns:
            Array [N, Q], or [N, Q, K] for targets [N, K].
        """
        inputs, levels = self._checked(X), np.ravel(quantiles)
        model = self.model_
        known = model._known_of(X, noise_scale, offset, len(inputs))

        def of_rows(rows: slice) -> Array:
            beside = as_argument(model.spec, None if known is None else known[rows])
            d = model.predict_distribution(inputs[rows], include_noise=include_noise, **beside)
            return cast(PredictiveDistribution, d).quantile(levels)

        found = [of_rows(rows) for rows in row_slices(len(inputs), _ROWS_AT_ONCE)]
        return np.moveaxis(np.concatenate(found, axis=1), 0, 1)

    def predict_interval(
        self,
        X: Any,
        alpha: float = 0.1,
        *,
        include_noise: bool = True,
        noise_scale: Any = None,
        offset: Any = None,
    ) -> Array:
        """Compute the ends of the central interval of a new target, or of the function.

        Args:
            X: Inputs [N, D].
            alpha: Probability outside the interval, in (0, 1); default 0.1.
            include_noise, noise_scale, offset: As in `predict`.

        Returns:
            Array [N, 2], or [N, 2, K] for targets [N, K].
        """
        alpha = check_number("alpha", alpha, above=0, below=1)
        settings: Any = {"noise_scale": noise_scale, "offset": offset}
        levels = 0.5 * alpha, 1.0 - 0.5 * alpha
        return self.predict_quantiles(X, levels, include_noise=include_noise, **settings)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Compute R2 of the means of `predict` with scikit-learn's `r2_score`.

        Models of counts take an offset, as in `predict`.
        """
        refuse_other_order(X, y, "y", "X")
        mean = self.predict(X) if offset is None else self.predict(X, offset=offset)
        if hasattr(y, "columns"):
            y = in_order_of(y, self.model_.posterior.known.target_names, "y")
        from sklearn.metrics import r2_score  # the import takes half a second; only score needs it

        return float(r2_score(y, mean, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@explains_settings
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianMLPClassifier(ClassifierMixin, SampledEstimator):  # type: ignore[misc]
    """Classifier based on a `tfbnn.BayesianMLP` whose posterior is sampled by MCMC.

    The settings are those of `BayesianMLPRegressor`, without `y_transform` and `calibrate`, which
    do not apply to classes. Its remarks on warnings and on searches hold here, too.

    Args:
        likelihood: Bernoulli() or Categorical() from `tfbnn.likelihoods`. "auto" (default):
            Bernoulli() for two classes, else Categorical().

    Attributes:
        classes_: The sorted labels, at least two: text, whole numbers or booleans.
        model_, run_, n_features_in_, feature_names_in_: As in `BayesianMLPRegressor`.

    Example:
        from tfbnn.sklearn import BayesianMLPClassifier

        classifier = BayesianMLPClassifier(random_state=0).fit(X, y)
        probabilities = classifier.predict_proba(X_new)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Sample the posterior given the rows (X, y).

        Args:
            X: Inputs [N, D]. Column names of a frame are kept if all are text.
            y: Labels [N] of two or more classes.
            sample_weight: Number of times that each row counts, as in `BayesianMLPRegressor`.
            groups: Group labels [N] of the rows, as in `fit_posterior`. Rows of a group stay
                together when the fit holds out rows. In searches it is metadata:
                `set_fit_request(groups=True)`.

        Returns:
            The estimator.

        Raises:
            TypeError: For unknown arguments.
            TypeError, ValueError: For unusable rows or settings, before anything is compiled.
        """
        X, y, beside = self._counted(X, y, sample_weight, {"groups": groups})
        inputs, num_inputs, labels = self._rows(X, y, beside)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        num_classes = len(self.classes_)
        if num_classes < 2:
            raise ValueError(
                "y must have labels of two classes at least, received one class: "
                f"{self.classes_[0]!r}. Take rows of others, too."
            )
        default = Bernoulli() if num_classes == 2 else Categorical()
        likelihood: ClassLikelihood = self._settled(default, ClassLikelihood)
        if num_classes > 2 and isinstance(likelihood, Bernoulli):
            raise ValueError(
                f"Bernoulli() is for two classes, received labels of {num_classes}. Use "
                "likelihood='auto' or Categorical()."
            )
        num_outputs = likelihood.num_outputs(1, num_classes)
        self._sample(inputs, num_inputs, named(y, labels), likelihood, num_outputs, beside)
        return self

    def predict(self, X: Any) -> Array:
        """Return the labels [N] with the largest mean probability at inputs [N, D]."""
        indices = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[indices]

    def predict_proba(self, X: Any) -> Array:
        """Compute mean probabilities of the classes [N, M], columns in the order of `classes_`.

        Args:
            X: Inputs [N, D].

        Raises:
            NotFittedError: That of scikit-learn, before a fit.
        """
        inputs = self._checked(X)
        probabilities = self._in_double.predict(inputs).columns.mean
        return self.model_.spec.class_likelihood.class_probabilities(probabilities)[:, 0]

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`, minus infinity where a probability is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
