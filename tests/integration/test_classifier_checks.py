"""Every check that scikit-learn has of a classifier, with real default fits; a file for each kind, as
those of a file run one after the other. Those that are around a fit are slow."""

import pytest

from tests.support.estimators import checks_of_fits
from tfbnn.sklearn import BayesianMLPClassifier


@pytest.mark.statistics
@pytest.mark.parametrize(("estimator", "check"), checks_of_fits(BayesianMLPClassifier()))
def test_the_default_fit_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
