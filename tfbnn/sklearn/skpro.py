"""Regressor for skpro (the extra `skpro`), a wrapper of `tfbnn.sklearn.BayesianMLPRegressor`.

skpro is a library of probabilistic regressors, their distributions, scores and pipelines
(Gressmann, Kiraly, Mateen and Oberhauser 2018, arXiv:1801.00753).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tfbnn.sklearn.estimators import BayesianMLPRegressor
from tfbnn.system.arrays import Array
from tfbnn.system.words import required

required("skpro", "tfbnn.sklearn.skpro needs skpro", "skpro")
pandas = required("pandas", "skpro needs pandas", "skpro")

from sklearn.base import clone  # noqa: E402
from skpro.distributions.base import BaseDistribution  # noqa: E402
from skpro.regression.base import BaseProbaRegressor  # noqa: E402

__all__ = ["BayesianMLPProbaRegressor", "SampledDistribution"]


class SampledDistribution(BaseDistribution):  # type: ignore[misc]  # skpro has no types
    """Predictive distribution of a model as a skpro distribution, with one row per row of a frame.

    Args:
        model: A fitted `BayesianMLP` or `BayesianModel` with numeric targets.
        x: Inputs, a frame [N, D].
        targets: Indices of the targets that form the columns.
        index, columns: Index and columns of the distribution.
    """

    _tags = {  # noqa: RUF012 - the form that skpro expects
        "capabilities:approx": [],
        "capabilities:exact": ["mean", "var", "pdf", "log_pdf", "cdf", "ppf", "energy"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "nonparametric",
    }

    def __init__(
        self,
        model: Any,
        x: Any,
        targets: Sequence[int] = (0,),
        index: Any = None,
        columns: Any = None,
    ) -> None:
        self.model, self.x, self.targets = model, x, targets
        super().__init__(index=index, columns=columns)

    @cached_property
    def _distribution(self) -> Any:
        return self.model.predict_distribution(self.x)

    def _picked(self, values: Array) -> Array:
        """Select the columns [..., N, columns] from all targets, [..., N] or [..., N, K]."""
        if self.model.posterior.vector_target:
            values = values[..., None]
        return values[..., list(self.targets)]

    def _shaped(self, values: Array) -> Array:
        """Return values [N, columns] in the shape of the distribution, [] for a scalar one."""
        return np.reshape(values, self.shape)[()]

    def _at_all(self, method: str, values: Array) -> Array:
        """Evaluate a method of the predictive distribution at values [N, columns], or one number."""
        values = np.reshape(values, (len(self.x), len(self.targets)))
        given = np.zeros((len(self.x), self.model.spec.num_targets))
        given += values[:, :1]  # placeholders for other targets, whose results are not used
        given[:, list(self.targets)] = values
        if self.model.posterior.vector_target:
            given = given[:, 0]
        return self._shaped(self._picked(getattr(self._distribution, method)(given)))

    def _mean(self) -> Array:
        return self._shaped(self._picked(self._distribution.mean()))

    def _var(self) -> Array:
        return self._shaped(self._picked(self._distribution.var()))

    def _pdf(self, x: Array) -> Array:
        return self._at_all("pdf", x)

    def _log_pdf(self, x: Array) -> Array:
        return self._at_all("log_prob", x)

    def _cdf(self, x: Array) -> Array:
        return self._at_all("cdf", x)

    def _ppf(self, p: Array) -> Array:
        levels, indices = np.unique(p, return_inverse=True)
        found = self._picked(self._distribution.quantile(levels))
        indices = indices.reshape(1, len(self.x), len(self.targets))
        return self._shaped(np.take_along_axis(found, indices, axis=0)[0])

    def _energy_self(self) -> Array:
        energy = self._shaped(self._picked(self._distribution.mean_difference()))
        return energy.sum(axis=1) if energy.ndim else energy

    def _energy_x(self, x: Array) -> Array:
        scores = self._at_all("crps", x)
        return (scores.sum(axis=1) if scores.ndim else scores) + 0.5 * self._energy_self()

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> SampledDistribution:
        return SampledDistribution(self.model, self.x.iloc[[rowidx]], [self.targets[colidx]])

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> SampledDistribution:
        if rowidx is not None and colidx is not None and np.ndim(rowidx) == np.ndim(colidx) == 0:
            return self._iat(rowidx, colidx)
        rows = slice(None) if rowidx is None else np.atleast_1d(rowidx)
        columns = slice(None) if colidx is None else np.atleast_1d(colidx)
        targets = np.asarray(self.targets)[columns].tolist()
        index, names = self.index[rows], self.columns[columns]
        return SampledDistribution(self.model, self.x.iloc[rows], targets, index, names)

    def _sample(self, n_samples: int | None = None) -> Any:
        seed = int(np.random.randint(np.iinfo(np.int32).max))  # noqa: NPY002 - skpro's seed is NumPy's
        draws = self._picked(self._distribution.sample(n_samples or 1, seed=seed))
        if self.ndim == 0:
            return draws.ravel()[0] if n_samples is None else pandas.DataFrame(draws[:, 0])
        frames = [pandas.DataFrame(one, self.index, self.columns) for one in draws]
        return frames[0] if n_samples is None else pandas.concat(frames, keys=range(n_samples))


class BayesianMLPProbaRegressor(BaseProbaRegressor):  # type: ignore[misc]
    """Skpro regressor based on a `tfbnn.BayesianMLP` whose posterior is sampled by MCMC.

    Args:
        regressor: `tfbnn.sklearn.BayesianMLPRegressor` with the settings; default None: one with
            default settings.

    Attributes:
        regressor_: The fitted regressor, with the model `regressor_.model_` and its run
            `regressor_.run_`.

    Column names that are not text are converted to text.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from tfbnn.sklearn.skpro import BayesianMLPProbaRegressor
        >>> from tfbnn.sklearn import BayesianMLPRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> regressor = BayesianMLPProbaRegressor(BayesianMLPRegressor(random_state=0))
        >>> regressor = regressor.fit(X, y)
        >>> distribution = regressor.predict_proba(X)
        >>> probability = distribution.cdf(200.0)
    """

    _tags = {  # noqa: RUF012
        "capability:multioutput": True,
        "capability:missing": False,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, regressor: BayesianMLPRegressor | None = None) -> None:
        self.regressor = regressor
        super().__init__()

    def _fit(self, X: Any, y: Any, C: Any = None) -> BayesianMLPProbaRegressor:
        default = BayesianMLPRegressor() if self.regressor is None else self.regressor
        if getattr(default.likelihood, "has_counts", False):
            raise ValueError(
                "BayesianMLPProbaRegressor is for numbers with a density, received "
                f"{default.likelihood!r}. Use BayesianMLPRegressor for counts."
            )
        self.regressor_ = clone(default).fit(_named(X), y)
        self._names = y.columns
        return self

    def _predict(self, X: Any) -> Any:
        mean = np.reshape(self.regressor_.predict(_named(X)), (len(X), -1))
        return pandas.DataFrame(mean, X.index, self._names)

    def _predict_proba(self, X: Any) -> SampledDistribution:
        targets = range(len(self._names))
        model, columns = self.regressor_.model_, self._names
        return SampledDistribution(model, _named(X), targets, X.index, columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return settings of short fits, for skpro's own tests."""
        regressor = BayesianMLPRegressor(
            3, num_chains=2, num_results=20, num_burnin_steps=20, until=None, pretraining=None
        )
        return [
            {"regressor": regressor},
            {"regressor": clone(regressor).set_params(dtype="float64")},
        ]


def _named(X: Any) -> Any:
    """Return a copy of a frame with its column names converted to text."""
    return X.set_axis(X.columns.astype(str), axis=1)
