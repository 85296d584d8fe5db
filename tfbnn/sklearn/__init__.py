"""Estimators for scikit-learn (the extra `sklearn`); see `tfbnn.sklearn.estimator`."""

from tfbnn.system.words import required

required("sklearn", "tfbnn.sklearn needs scikit-learn", "sklearn")

from tfbnn.sklearn.estimator import UnconvergedWarning  # noqa: E402 - only where there is scikit-learn
from tfbnn.sklearn.estimators import BayesianMLPClassifier, BayesianMLPRegressor  # noqa: E402

__all__ = ["BayesianMLPClassifier", "BayesianMLPRegressor", "UnconvergedWarning"]
