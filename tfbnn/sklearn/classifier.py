"""`BayesianMLPClassifier`: sampled networks of class labels as an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from tfbnn.sklearn.base import SampledEstimator, explains_settings, named, refuse_more
from tfbnn.spec.choices import is_auto
from tfbnn.spec.likelihoods import Bernoulli, Categorical, ClassLikelihood
from tfbnn.spec.network_spec import check_likelihood
from tfbnn.system.arrays import Array


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

    def fit(self, X: Any, y: Any, *, groups: Any = None, **unsupported: Any) -> Self:
        """Samples the posterior given the rows (X, y).

        Args:
            X: Inputs [N, D]; names of a frame's columns are kept, if all are text.
            y: Labels [N] of two or more classes.
            groups: Labels [N] of rows that belong together, as in `fit_posterior`: they stay together
                in what the fit holds out. In searches it is metadata: `set_fit_request(groups=True)`.
            unsupported: Refused; see Raises.

        Returns:
            The estimator.

        Raises:
            TypeError: For `sample_weight`, and arguments that are not known.
            TypeError, ValueError: For unusable rows or settings, before anything is compiled.
        """
        beside = {"groups": groups}
        refuse_more("BayesianMLPClassifier.fit", [*beside], unsupported)
        inputs, num_inputs, labels = self._rows(X, y, beside)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        num_classes = len(self.classes_)
        if num_classes < 2:
            raise ValueError(
                "y must have labels of two classes at least, received one class: "
                f"{self.classes_[0]!r}. Take rows of others, too."
            )
        likelihood = self._likelihood(num_classes)
        num_outputs = likelihood.num_outputs(1, num_classes)
        self._sample(inputs, num_inputs, named(y, labels), likelihood, num_outputs, beside)
        return self

    def predict(self, X: Any) -> Array:
        """The label of the largest mean probability, for inputs [N, D]: [N]."""
        places = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[places]

    def predict_proba(self, X: Any) -> Array:
        """Mean probabilities of the classes [N, M], columns in the order of `classes_`.

        Args:
            X: Inputs [N, D].

        Raises:
            NotFittedError: Of scikit-learn, before a fit.
        """
        inputs = self._checked(X)
        probabilities = self._in_double.predict(inputs).columns.mean
        return self.model_.spec.class_likelihood.class_probabilities(probabilities)[:, 0]

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`, minus infinity where that is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _likelihood(self, num_classes: int) -> ClassLikelihood:
        if is_auto(self.likelihood):
            return Bernoulli() if num_classes == 2 else Categorical()
        check_likelihood(self.likelihood)
        if not isinstance(self.likelihood, ClassLikelihood):
            raise TypeError(
                "likelihood must be 'auto', Bernoulli() or Categorical() from tfbnn.likelihoods, "
                f"received {self.likelihood!r}. For numbers use BayesianMLPRegressor."
            )
        if num_classes > 2 and isinstance(self.likelihood, Bernoulli):
            raise ValueError(
                f"Bernoulli() is for two classes, received labels of {num_classes}. Use "
                "likelihood='auto' or Categorical()."
            )
        return self.likelihood
