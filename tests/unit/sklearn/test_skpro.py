"""skpro's own checks of its regressor, and the distribution that it gives."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skpro")

from tests.support.builders import synthetic_ensemble
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Gaussian
from tfbnn.sklearn import BayesianMLPRegressor
from tfbnn.sklearn.skpro import BayesianMLPProbaRegressor, SampledDistribution

pytestmark = pytest.mark.usefixtures("fits")
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(GENERATOR.normal(size=(40, 2)), columns=["a", "b"]).set_index(np.arange(40) + 7)
Y = pd.DataFrame({"y": X["a"], "z": X["b"] ** 2}, index=X.index)


@pytest.mark.statistics
def test_it_passes_the_checks_of_skpro():
    from skpro.utils import check_estimator

    found = check_estimator(BayesianMLPProbaRegressor, raise_exceptions=False, verbose=False)
    failed = {name: result for name, result in found.items() if result != "PASSED"}
    assert len(found) > 30 and not failed


def test_the_distribution_is_that_of_the_model():
    from skpro.metrics import CRPS

    regressor = BayesianMLPProbaRegressor(BayesianMLPRegressor(random_state=1)).fit(X, Y)
    found, d = regressor.predict_proba(X), regressor.regressor_.model_.predict_distribution(X)
    given = Y + 0.1
    for of_skpro, own in (("pdf", d.pdf), ("log_pdf", d.log_prob), ("cdf", d.cdf)):
        expected = pd.DataFrame(own(given), X.index, Y.columns)
        pd.testing.assert_frame_equal(getattr(found, of_skpro)(given), expected)
    levels = pd.DataFrame(GENERATOR.uniform(0.01, 0.99, Y.shape), X.index, Y.columns)
    np.testing.assert_allclose(found.cdf(found.ppf(levels)), levels, atol=1e-9)
    np.testing.assert_array_equal(found.var(), d.var())
    # Part of the rows and targets are those of all; here other rows are not even asked for.
    part = found.iloc[[3, 5], [1]]
    assert part.shape == (2, 1) and list(part.index) == [10, 12] and list(part.columns) == ["z"]
    np.testing.assert_allclose(part.cdf(given.iloc[[3, 5], [1]]), d.cdf(given)[[3, 5], 1:])
    score = np.mean(d.crps(given))
    assert CRPS()(given, found) == pytest.approx(score, rel=1e-6)


def test_scores_of_calibrated_targets_with_heavy_tails_are_those_of_the_model():
    from skpro.metrics import CRPS

    ensemble = synthetic_ensemble(y_transform=["log10", "standardize"], likelihood=Gaussian(0.3))
    model = BayesianMLP.from_ensemble(ensemble)
    x = GENERATOR.normal(size=(300, 2))
    y = model.predict(x).mean[:, 0] * 10.0 ** (0.3 * GENERATOR.standard_t(3, size=300))
    model.calibrate(x, y)
    frame = pd.DataFrame(x[:50])
    found = SampledDistribution(model, frame, index=frame.index, columns=["y"])
    expected = np.mean(model.predict_distribution(x[:50]).crps(y[:50, None]))
    assert CRPS()(pd.DataFrame({"y": y[:50]}), found) == pytest.approx(expected, rel=1e-6)


def test_draws_follow_the_seed_of_numpy_and_come_in_its_frames():
    regressor = BayesianMLPProbaRegressor(BayesianMLPRegressor(random_state=1))
    found = regressor.fit(X, Y[["y"]]).predict_proba(X[:3])
    np.random.seed(4)
    draws = found.sample(2000)
    assert draws.index.nlevels == 2 and list(draws.columns) == ["y"]
    levels = found.cdf(draws.loc[0])
    assert levels.shape == (3, 1)
    spread = draws.groupby(level=1).std().to_numpy()
    np.testing.assert_allclose(spread, np.sqrt(found.var()), rtol=0.1)
    np.random.seed(4)
    pd.testing.assert_frame_equal(found.sample(2000), draws)


def test_a_scalar_of_it_is_a_distribution_and_it_is_plotted():
    regressor = BayesianMLPProbaRegressor(BayesianMLPRegressor(random_state=1)).fit(X, Y)
    found = regressor.predict_proba(X[:3])
    one = found.iat[1, 1]
    assert one.shape == () and found.iloc[1, 1].shape == ()
    values = dict(mean=(), var=(), cdf=(0.3,), ppf=(0.3,), log_pdf=(0.3,))
    for method, arguments in values.items():
        expected = getattr(found, method)(*arguments).iloc[1, 1]
        assert getattr(one, method)(*arguments) == pytest.approx(expected, rel=1e-5)
    assert one.energy(0.2) > 0 and np.ndim(one.sample()) == 0 and one.sample(5).shape == (5, 1)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert found.plot()[1].shape == (3, 2)


def test_columns_may_be_numbers():
    plain = pd.DataFrame(X.to_numpy())
    found = BayesianMLPProbaRegressor().fit(plain, Y["y"].to_numpy()).predict_proba(plain[:4])
    assert found.cdf(0.0).shape == (4, 1)
