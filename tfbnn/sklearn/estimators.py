"""`BayesianMLPRegressor` and `BayesianMLPClassifier`: sampled networks as estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from tfbnn.data.validation import check_number
from tfbnn.posterior.distribution import PredictiveDistribution
from tfbnn.sklearn.base import SampledEstimator, explains_settings, named
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.likelihoods import Bernoulli, Categorical, ClassLikelihood, Gaussian, Regression
from tfbnn.spec.rows import as_argument
from tfbnn.system.arrays import Array, row_slices

# Rows whose distributions are kept together.
_ROWS_AT_ONCE = 1000


@explains_settings
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianMLPRegressor(RegressorMixin, SampledEstimator):  # type: ignore[misc]
    """Regression by a `tfbnn.BayesianMLP` whose posterior is sampled.

    Settings have the names and the meaning of `BayesianMLP` and `fit_posterior`, which explain them
    at length; those besides `hidden_layer_sizes` are keyword-only.

    Args:
        hidden_layer_sizes: Widths of the hidden layers, a number for one; () for a linear model. "auto"
            (default): chosen by held-out rows. Inputs and outputs follow from the rows.
        activation: A name, or one per hidden layer; default "tanh".
        prior: From `tfbnn.priors`; "auto" (default) samples scales, one per input.
        likelihood: From `tfbnn.likelihoods`, of numbers; "auto" (default): chosen with the
            layers; Gaussian("learned") where these are given.
        parameterization: "standard", "ntk" or "auto" (default).
        x_transform: Default "standardize": a StandardScaler before this estimator does no harm and
            is not needed.
        y_transform: "auto" (default), by the targets: "log10" before "standardize", or that alone.
        dtype: "float32" (default) or "float64".
        missing: Missing values in X: "refuse" (default), or "indicator", one more input for each column
            of numbers that has some, and one more category of text.
        kernel: A name, or settings from `tfbnn.kernels`; "auto" (default): HMC, NUTS for few
            parameters.
        num_chains: Independent chains, default 4.
        num_results: Draws kept per chain, at most; "auto" (default): what a fixed budget affords.
        until: When the draws are enough: "auto" (default) is `tfbnn.Until()`, an effective sample
            size of 400 and an R-hat of 1.01; None: num_results draws.
        max_seconds: Wall-clock seconds of a fit, compilation included; default None: no limit.
        num_burnin_steps, num_steps_between_results: Transitions of warm-up, and between kept draws;
            default "auto".
        pretraining: `tfbnn.Pretraining`, None, or "auto" (default).
        likelihood_power: Below 1 a coarsened posterior; default 1.
        effort: Share of the usual steps of pretraining and warm-up, and of the budget for draws,
            where these are "auto"; default 0.1, as searches make many fits. The one difference to
            the fit of a `BayesianMLP`: with effort=1 and the same seed the draws have the same bits.
            Draws are judged alike, and `fit` warns where they are too few.
        calibrate: Whether the fit ends with a calibration of its error bars; "auto" (default): from
            150 rows on, where the noise is learned.
        jit_compile: Compile with XLA, default True.
        random_state: Seed of the draws: an integer, which is the `seed` of `fit_posterior`, a
            RandomState, or None (default) for one drawn anew at each fit. The same integer on the
            same machine gives the same bits.
        verbose: 0 (default) for silence; 1 shows how far the run is.

    Attributes:
        model_: The fitted `BayesianMLP`: quantiles, calibration, plots, `save`, exports.
        run_: The `Run` of the fit: `report()`, timings, `diagnosis`.
        n_features_in_, feature_names_in_: Number of inputs, and their names where X had some.

    A fit whose draws are not usable for error bars yet issues one `UnconvergedWarning`, which is a
    ConvergenceWarning of scikit-learn, too. In a search that is one for each such fit, in the process
    where it was made; the means that scores compare suffer less than error bars. `cross_validate(...,
    return_estimator=True)` tells the verdicts afterwards, by `run_.verdict` of each.

    The first fit of a network on about so many rows compiles its programs, which takes seconds; other
    fits of it in the same process have them, with other rows, seeds and numbers of draws. A fit uses
    all cores, so leave `n_jobs=None` in searches: processes would compile for themselves, and compete.

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
            X: Inputs [N, D], two rows at least; names of a frame's columns are kept, if all are text.
            y: Targets [N] or [N, K].
            sample_weight: How often each row counts, whole numbers [N]; default None: once. Copies of a row
                stay together in what the fit holds out or leaves out.
            noise_scale: Known standard deviation of each row, [N] or [N, K], in the units of y. In
                searches it is metadata: `set_fit_request(noise_scale=True)`.
            offset: Of counts, logarithms of the exposures of the rows, [N] or [N, K]; metadata, too.
            groups: Labels [N] of rows that belong together, as in `fit_posterior`: they stay together
                in what the fit holds out or leaves out. In searches it is metadata, too:
                `set_fit_request(groups=True)`.

        Returns:
            The estimator.

        Raises:
            TypeError: For arguments that are not known.
            TypeError, ValueError: For unusable rows or settings, before anything is compiled.
        """
        beside = {"noise_scale": noise_scale, "offset": offset, "groups": groups}
        X, y, beside = self._counted(X, y, sample_weight, beside)
        likelihood: Any = self.likelihood
        if not (is_auto(likelihood) and is_auto(self.hidden_layer_sizes)):
            likelihood = self._settled(Gaussian("learned"), Regression)
        inputs, num_inputs, targets = self._rows(X, y, beside, y_numeric=True, multi_output=True)
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
        """Return the mean of a new target, E[y | x], and with `return_std` how far a target may be off.

        With a logarithm in the transform of the targets it is above the mean of the function, which
        `model_.predict(X)` gives. That is what it is where there is no such mean, with Student-t
        noise, and after a fit with `noise_scale`, whose noise has the mean zero in the units of y.

        Args:
            X: Inputs [N, D].
            return_std: Whether to return standard deviations, too; default False.
            include_noise: Of what they are. True (default): of a new target, noise included, as those
                of BayesianRidge and of a Gaussian process with a WhiteKernel are, and calibrated
                where the fit was. False: of the function alone, which more rows would narrow.
            noise_scale: Known standard deviations of these rows, as in `fit`; needed for the noise
                where the fit had some.
            offset: Of counts, logarithms of the exposures of these rows; needed where the fit had some.

        Returns:
            The mean, in the shape of the targets of the fit, or (mean, std).

        Raises:
            NotFittedError: That of scikit-learn, before a fit.
        """
        inputs, ensemble = self._checked(X), self.model_.posterior
        is_affine = ensemble.y_pipeline.is_affine
        with_noise = ensemble.has_mean_of_target and not (is_affine or ensemble.row_noise)
        # That of counts asks for an offset, and leaves the mean as it is.
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
        """Quantiles of a new target, or of the function; those of `predict_distribution` of the model.

        Args:
            X: Inputs [N, D].
            quantiles: Q probabilities in (0, 1); by default the median and the ends of the central 68 %.
            include_noise, noise_scale, offset: As in `predict`.

        Returns:
            [N, Q], or [N, Q, K] of targets [N, K].
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
        """Return ends of the central interval of a new target, or of the function.

        Args:
            X: Inputs [N, D].
            alpha: Probability outside the interval, in (0, 1); default 0.1.
            include_noise, noise_scale, offset: As in `predict`.

        Returns:
            [N, 2], or [N, 2, K] of targets [N, K].
        """
        alpha = check_number("alpha", alpha, above=0, below=1)
        settings: Any = {"noise_scale": noise_scale, "offset": offset}
        levels = 0.5 * alpha, 1.0 - 0.5 * alpha
        return self.predict_quantiles(X, levels, include_noise=include_noise, **settings)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """R2 of the means of `predict` (scikit-learn's), with the offset of counts."""
        mean = self.predict(X) if offset is None else self.predict(X, offset=offset)
        from sklearn.metrics import r2_score  # takes half a second, and nothing else needs it

        return float(r2_score(y, mean, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@explains_settings
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianMLPClassifier(ClassifierMixin, SampledEstimator):  # type: ignore[misc]
    """Classification by a `tfbnn.BayesianMLP` whose posterior is sampled.

    Settings are those of `BayesianMLPRegressor`, which explains them, but for `y_transform` and
    `calibrate`, which classes have no use for. What it says of warnings and of searches holds here.

    Args:
        likelihood: Bernoulli() or Categorical() from `tfbnn.likelihoods`. "auto" (default):
            Bernoulli() for two classes, else Categorical().

    Attributes:
        classes_: The labels, sorted: text, whole numbers or booleans, two of them or more.
        model_, run_, n_features_in_, feature_names_in_: As of `BayesianMLPRegressor`.

    Example:
        from tfbnn.sklearn import BayesianMLPClassifier

        classifier = BayesianMLPClassifier(random_state=0).fit(X, y)
        probabilities = classifier.predict_proba(X_new)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Sample the posterior given the rows (X, y).

        Args:
            X: Inputs [N, D]; names of a frame's columns are kept, if all are text.
            y: Labels [N] of two or more classes.
            sample_weight: How often each row counts, as of `BayesianMLPRegressor`.
            groups: Labels [N] of rows that belong together, as in `fit_posterior`: they stay together
                in what the fit holds out. In searches it is metadata: `set_fit_request(groups=True)`.

        Returns:
            The estimator.

        Raises:
            TypeError: For arguments that are not known.
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
        """Return the label of the largest mean probability, for inputs [N, D]: [N]."""
        places = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[places]

    def predict_proba(self, X: Any) -> Array:
        """Mean probabilities of the classes [N, M], columns in the order of `classes_`.

        Args:
            X: Inputs [N, D].

        Raises:
            NotFittedError: That of scikit-learn, before a fit.
        """
        inputs = self._checked(X)
        probabilities = self._in_double.predict(inputs).columns.mean
        return self.model_.spec.class_likelihood.class_probabilities(probabilities)[:, 0]

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`, minus infinity where that is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
