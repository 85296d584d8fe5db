"""Every check that scikit-learn has of a classifier, with real default fits; a file for each kind, as
those of a file run one after the other."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tfbnn.sklearn import BayesianMLPClassifier


@pytest.mark.statistics
@parametrize_with_checks([BayesianMLPClassifier()])
def test_the_default_fit_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
