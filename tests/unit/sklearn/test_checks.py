"""scikit-learn's own checks of estimators, around fits that sample nothing.

With real fits some are in tests/integration/test_estimators.py.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tfbnn.sklearn import BayesianMLPClassifier, BayesianMLPRegressor

# These ask for good predictions; networks out of the prior make none.
_LEARNS = "the fits of this test learn nothing"
NEEDS_FITS = {"check_regressors_train": _LEARNS, "check_classifiers_train": _LEARNS}


@pytest.mark.filterwarnings("ignore:.*of the rows repeat another row")
@pytest.mark.usefixtures("fits")
@parametrize_with_checks(
    [BayesianMLPRegressor(), BayesianMLPClassifier()], expected_failed_checks=lambda _: NEEDS_FITS
)
def test_is_an_estimator(estimator, check):
    check(estimator)
