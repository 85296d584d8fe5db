"""tfbnn in ScoringBench, the leaderboard of proper scores of Landsgesell and others (arXiv:2603.29928).

ScoringBench (github.com/jonaslandsgesell/ScoringBench) is a checkout, not a package to install. Put it and this
folder on the path, and enter the wrapper in its table of univariate models:

    PYTHONPATH=ScoringBench:. python -c "import benchmarks.studies.scoringbench.wrapper"

A wrapper has `fit(X, y)`, `predict(X)` and `predict_distribution(X)`. The distribution is handed over as quantiles
of `model.predict_distribution(X)`, which are exact.
"""

import numpy as np
from scoringbench.univariate.wrappers.base import DistributionPrediction, ProbabilisticWrapper

import tfbnn

# Dense in between, and far enough out for log scores of the tails.
LEVELS = np.concatenate([[1e-4, 1e-3], np.linspace(0.005, 0.995, 199), [1 - 1e-3, 1 - 1e-4]])
ROWS_AT_ONCE = 1000


class TfbnnWrapper(ProbabilisticWrapper):
    """A fit of tfbnn to numbers, whose rows choose layers and noise.

    Args:
        **settings: Arguments of `fit_posterior`; by default there are none, and a fit takes a minute or two.
    """

    def __init__(self, **settings):
        self.settings = {"verbose": 0, **settings}

    def fit(self, X, y):
        """Fit rows whose target is finite; missing inputs have an indicator."""
        y = np.asarray(y, float).reshape(-1)
        known = np.isfinite(y)
        rows = X[known] if not hasattr(X, "iloc") else X.iloc[known]
        self._set_train_range(y)
        self._model = tfbnn.BayesianMLP()
        self._model.fit_posterior(rows, y[known], missing="indicator", **self.settings)
        return self

    def predict(self, X):
        """Means of new targets [N]."""
        return self._model.predict(X, include_noise=True).mean

    def predict_distribution(self, X):
        """A DistributionPrediction out of quantiles."""
        quantiles = [
            self._model.predict_distribution(X[start : start + ROWS_AT_ONCE]).quantile(LEVELS)
            for start in range(0, len(X), ROWS_AT_ONCE)
        ]
        return DistributionPrediction.from_multi_quantile(
            np.concatenate(quantiles, axis=1).T,
            LEVELS,
            mean=self.predict(X),
            train_range=self._y_train_range,
        )
