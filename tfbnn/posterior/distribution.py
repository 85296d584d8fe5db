"""The predictive distribution at every row: density, distribution function, quantiles and samples.

Without calibration it is the mixture of the noise around all draws. Its density and distribution
function are sums over draws, and quantiles invert the latter by Newton's method. With calibration
the scores of `Calibration`, shifted and scaled by the prediction, replace the mixture. Outside the
training inputs the mixture stays if its error bars are wider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.frames import in_order_of, refuse_other_order
from tfbnn.data.labels import as_labels, class_numbers, label_array
from tfbnn.data.validation import as_float_array, check_flag, check_integer, check_number
from tfbnn.posterior.averages import crps, mean_difference
from tfbnn.posterior.calibration.calibration import Calibrated
from tfbnn.posterior.calibration.misfit_features import calibrated_at
from tfbnn.posterior.calibration.score_distribution import ScoreDistribution
from tfbnn.posterior.checks import check_bytes
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.forward import forward_pass
from tfbnn.posterior.mixture import LEVELS, Mixture, uniform
from tfbnn.posterior.prediction import Summary, mixture_of, predict, row_tiles
from tfbnn.posterior.prediction_frame import Prediction
from tfbnn.spec.habits import ExplainsAttributes
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores


class RowsDistribution(NamedTuple):
    """Distribution of the targets of n rows, on the scale the network sees.

    Attributes:
        mixture: Mixture of the rows that keep it; None if no row does.
        calibrated: Calibrated distribution, which replaces the mixture elsewhere, or None.
        kept: Numbers of the rows that keep the mixture for at least one target, ascending.
    """

    mixture: Mixture | None
    calibrated: Calibrated | None
    kept: Array

    @classmethod
    def of(
        cls, mixture_at: Callable[[Any], Mixture], calibrated: Calibrated | None, num_rows: int
    ) -> RowsDistribution:
        """Build the distribution, with `mixture_at` returning the mixture of given rows or a slice."""
        if calibrated is None:
            return cls(mixture_at(slice(None)), None, np.arange(num_rows))
        kept = np.flatnonzero(calibrated.is_left.any(axis=1))
        return cls(mixture_at(kept) if len(kept) else None, calibrated, kept)

    def at(self, rows: slice) -> RowsDistribution:
        """Return the part for a slice of rows."""
        calibrated = None if self.calibrated is None else self.calibrated.at(rows)
        first, last = np.searchsorted(self.kept, [rows.start, rows.stop])
        mixture = self.mixture
        mixture = None if mixture is None or first == last else mixture.at(slice(first, last))
        return RowsDistribution(mixture, calibrated, self.kept[first:last] - rows.start)

    def cdf(self, t: Array) -> Array:
        """Compute the probability of at most t [n, K]."""
        return self._either(lambda one, rows: one.cdf(t[rows]))

    def log_density(self, t: Array) -> Array:
        """Compute the log density of each target at t [n, K]."""
        return self._either(lambda one, rows: one.log_density(t[rows]))

    def quantiles(self, levels: Sequence[float]) -> Array:
        """Compute the quantiles t [Q, n, K] at probabilities `levels`."""
        return self._either(lambda one, _: one.quantiles(levels))

    def crps(self, y: Array, inverse: Callable[[Array], Array]) -> Array:
        """Compute the continuous ranked probability score of y [n, K], in the units of `inverse`."""
        return self._of_points(
            inverse, lambda points, weights, rows: crps(points, weights, y[rows])
        )

    def mean_difference(self, inverse: Callable[[Array], Array]) -> Array:
        """Compute E|X - X'| [n, K] of two independent targets, by the points of `crps`."""
        return self._of_points(inverse, lambda points, weights, _: mean_difference(points, weights))

    def _of_points(
        self, inverse: Callable[[Array], Array], function: Callable[..., Array]
    ) -> Array:
        """Apply a function of (points in the units of `inverse`, weights, rows) to either distribution."""

        def of_one(one: Any, rows: Any) -> Array:
            points, weights = one.points()
            return function(inverse(points), weights, rows)

        return self._either(of_one)

    def _either(self, function: Callable[[Any, Any], Array]) -> Array:
        """Return calibrated values [..., n, K], and those of the mixture where it is kept.

        The function takes one of the two distributions, and its rows.
        """
        one, mixture, kept = self.calibrated, self.mixture, self.kept
        if one is None:
            return function(mixture, kept)
        found = function(one, slice(None))
        if mixture is not None:
            plain = function(mixture, kept)
            found[..., kept, :] = np.where(one.is_left[kept], plain, found[..., kept, :])
        return found


class PredictiveDistribution(ExplainsAttributes):
    """Distribution of the targets at N rows, in original units; returned by `predict_distribution`.

    Values y broadcast against the rows as in SciPy's distributions: shapes [], [N] or [Q, 1] for
    targets that were fitted as [N], and [], [K], [N, K] or [Q, 1, 1] for those fitted as [N, K]. A
    single target may have one value for each row in either shape, [N] or [N, 1]. The targets of a
    row are treated one by one.

    Attributes:
        index: The index of x if it is a frame of pandas, else None.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        x: Array,
        row_noise: Array | None,
        *,
        include_noise: bool,
        calibrated: bool,
        index: Any = None,
    ) -> None:
        self.index = index
        self._fitted, self._x, self._row_noise = ensemble, x, row_noise
        self._wanted = Summary(include_noise, None, "original", calibrated)
        self._ensemble = averaged = ensemble.for_averages
        spec = averaged.spec
        self._shape = len(x), spec.num_targets
        self._has_noise = include_noise or isinstance(spec, InfiniteSpec)
        self._calibrated = one = self._calibrate() if calibrated else None
        self._check_size(len(x) if one is None else int(one.is_left.any(axis=1).sum()))

    def _check_size(self, num_rows: int) -> None:
        """Refuse a mixture of too many rows before it is computed."""
        num_values = float(self._ensemble.num_draws) * num_rows * self._shape[1]
        what = f"The distribution of {self._ensemble.num_draws} draws at {num_rows} rows takes"
        check_bytes(what, (16 if self._has_noise else 8) * num_values, "Pass some of the rows.")

    @cached_property
    def _mixture(self) -> Mixture:
        """The Mixture of all rows."""
        return self._mixture_at(slice(None))

    @cached_property
    def _rows(self) -> RowsDistribution:
        """The RowsDistribution of all rows."""
        one = self._calibrated
        mixture_at = self._mixture_at if one is not None else lambda _: self._mixture
        return RowsDistribution.of(mixture_at, one, len(self._x))

    def _mixture_at(self, indices: Any) -> Mixture:
        indices = np.arange(len(self._x))[indices]
        self._check_size(len(indices))
        ensemble, x, row_noise = self._ensemble, self._x[indices], self._row_noise
        forward = forward_pass(ensemble, len(x))
        location = np.empty((ensemble.num_draws, len(x), self._shape[1]))
        scale = np.empty_like(location) if self._has_noise else None

        def fill(rows: slice) -> None:
            noise = None if row_noise is None else row_noise[indices[rows]]
            part = mixture_of(ensemble, forward(x[rows]), noise, self._wanted.include_noise)
            location[:, rows] = part.location
            if scale is not None:
                scale[:, rows] = part.scale

        on_all_cores(fill, row_tiles(ensemble, len(x)))
        return Mixture.of(ensemble, location, scale)

    def _calibrate(self) -> Calibrated:
        ensemble, x = self._fitted, self._x
        mean, stddev = predict(ensemble, x, Summary(True, space="transformed"), self._row_noise)
        return calibrated_at(ensemble, x, mean, stddev)

    def __repr__(self) -> str:
        num_rows, num_targets = self._shape
        kind = "" if self._calibrated is None else ", calibrated"
        return f"<PredictiveDistribution of {num_targets} target(s) at {num_rows} rows{kind}>"

    @cached_property
    def _prediction(self) -> Prediction:
        return predict(self._fitted, self._x, self._wanted, self._row_noise)

    def mean(self) -> Array:
        """Return the mean of each target, as `predict` does."""
        return self._fitted.as_fitted(self._prediction.mean)

    def std(self) -> Array:
        """Return the standard deviation, as `predict` does.

        With calibration it is half of the calibrated central 68.27 % interval.
        """
        return self._fitted.as_fitted(self._prediction.stddev)

    def var(self) -> Array:
        """Return the square of `std`."""
        return np.square(self.std())

    def cdf(self, y: ArrayLike) -> Array:
        """Compute the probability of a target of at most y.

        Without noise it rises by a step at each draw.
        """
        return self._at(y, lambda rows, t, _: rows.cdf(t))

    def pdf(self, y: ArrayLike) -> Array:
        """Compute the density at y, per unit of the target; see `log_prob`."""
        return np.exp(self.log_prob(y))

    def log_prob(self, y: ArrayLike) -> Array:
        """Compute the log density at y.

        With calibration it is that of the Student's t distributions that fit the scores.

        Raises:
            ValueError: For the function alone, which has no density.
        """
        if not self._has_noise:
            raise ValueError(
                "The function has no density, as its values are those of the draws. Call "
                "predict_distribution(x, include_noise=True), or d.cdf(y)."
            )

        def log_density(rows: RowsDistribution, t: Array, y: Array) -> Array:
            found, slope = rows.log_density(t), np.abs(self._fitted.y_pipeline.derivative(y))
            if self._ensemble.spec.has_counts:
                found = np.where((y == np.floor(y)) & (y >= 0), found, -np.inf)
            return np.where(np.isneginf(found), found, found + np.log(slope))

        return self._at(y, log_density)

    def quantile(self, q: ArrayLike) -> Array:
        """Compute quantiles at probabilities q in (0, 1): [N] or [N, K], for q [Q] with Q in front."""
        levels = [check_number("q", level, above=0, below=1) for level in np.ravel(q).tolist()]
        if not levels:
            raise ValueError("q must hold at least one probability, received none.")
        found = np.empty((len(levels), *self._shape))

        def fill(rows: slice) -> None:
            found[:, rows] = self._rows.at(rows).quantiles(levels)

        self._for_tiles(fill)
        values = self._fitted.as_fitted(self._fitted.y_pipeline.inverse(found))
        return values.reshape(np.shape(q) + values.shape[1:])

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval with probability `level`."""
        level = check_number("level", level, above=0, below=1)
        low, high = self.quantile([0.5 * (1.0 - level), 0.5 * (1.0 + level)])
        return low, high

    def crps(self, y: ArrayLike) -> Array:
        """Compute the continuous ranked probability score of targets y, in their units.

        Smaller is better. It uses the same weighted points as `evaluate`.
        """
        inverse = self._fitted.y_pipeline.inverse
        return self._at(y, lambda rows, _, y: rows.crps(y, inverse))

    def mean_difference(self) -> Array:
        """Compute E|X - X'| of two independent targets of each row, the spread in the CRPS."""
        found, inverse = np.empty(self._shape), self._fitted.y_pipeline.inverse

        def fill(rows: slice) -> None:
            found[rows] = self._rows.at(rows).mean_difference(inverse)

        self._for_tiles(fill)
        return self._fitted.as_fitted(found)

    def sample(self, size: int, seed: int = 0, joint: bool = False) -> Array:
        """Draw new targets: [size, N] or [size, N, K].

        Args:
            size: Number of draws for every row.
            seed: Integer, 0 or more. The same seed gives the same draws.
            joint: False (default): rows are independent. True: each draw is that of one network at
                all rows, for integrals over rows and for optimisation. Noise is independent in
                either case, and calibration keeps the ranks.

        Raises:
            ValueError: For joint draws of infinite width; use `predict_draws` instead.
        """
        generator = np.random.default_rng(check_integer("seed", seed, minimum=0))
        size, one = check_integer("size", size, minimum=1), self._calibrated
        check_flag("joint", joint)
        if joint and isinstance(self._ensemble.spec, InfiniteSpec):
            raise ValueError(
                "joint=True does not go with infinite width, as each draw is a distribution of functions. "
                "Use model.predict_draws(x)."
            )
        t = np.empty((size, *self._shape))
        what = f"{size} draws at {self._shape[0]} rows take"
        check_bytes(what, t.nbytes, "Draw in parts, each with another seed.")
        mixture, _, indices = self._rows
        if joint:
            mixture, indices = self._mixture, np.arange(len(self._x))
        if mixture is not None:
            t[:, indices] = mixture.sample(size, joint, generator)
        if one is not None:
            levels = self._ranks(t) if joint else uniform(generator, t.shape)
            groups = np.broadcast_to(one.groups, t.shape).reshape(-1, self._shape[1])
            scores = one.calibration.each(
                ScoreDistribution.quantile, levels.reshape(groups.shape), groups
            )
            t = np.where(one.is_left, t, one.centre + one.spread * scores.reshape(t.shape))
        return self._fitted.as_fitted(self._fitted.y_pipeline.inverse(t))

    def _ranks(self, t: Array) -> Array:
        """Return probabilities below t [size, N, K] in the mixture, clipped to the inside of (0, 1)."""
        found = np.empty_like(t)

        def fill(rows: slice) -> None:
            part = self._mixture.at(rows)
            found[:, rows] = [part.cdf(values) for values in t[:, rows]]

        self._for_tiles(fill)
        return np.clip(found, 0.5 / LEVELS, 1.0 - 0.5 / LEVELS)

    def _at(
        self, y: ArrayLike, function: Callable[[RowsDistribution, Array, Array], Array]
    ) -> Array:
        """Apply a function of (distribution of n rows, t [n, K], y [n, K]) to values y."""
        shape, y = self._broadcast(y)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self._fitted.y_pipeline.forward(y)
        # No target lies below the range of a logarithm.
        t = np.where(np.isnan(t), -np.inf, t)
        found = np.empty_like(t)

        def fill(rows: slice) -> None:
            part = self._rows.at(rows)
            for number in range(len(t)):
                found[number, rows] = function(part, t[number, rows], y[number, rows])

        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self._for_tiles(fill)
        return found.reshape(shape)[()]

    def _broadcast(self, y: ArrayLike) -> tuple[tuple[int, ...], Array]:
        """Return the shape of the results for values y, and y broadcast to [L, N, K]."""
        refuse_other_order(self, y, "y", "x")
        y = in_order_of(y, self._fitted.known.target_names, "y")
        y, (num_rows, num_targets) = as_float_array(y, "y"), self._shape
        shape = (num_rows,) if self._fitted.vector_target else self._shape
        if np.isnan(y).any():
            raise ValueError("y must not be NaN. Drop these rows.")
        if num_targets == 1 and y.shape in ((num_rows,), (num_rows, 1)):
            y = y.reshape(shape)
        try:
            full = np.broadcast_shapes(y.shape, shape)
        except ValueError:
            full = ()
        if full[len(full) - len(shape) :] != shape:
            raise ValueError(
                f"y must broadcast to {list(shape)}, or to that with more dimensions in front, received "
                f"{list(y.shape)}. Pass one value, one for each row, or values [Q{', 1' * len(shape)}]."
            )
        return full, np.broadcast_to(y, full).reshape(-1, *self._shape)

    def _for_tiles(self, fill: Callable[[slice], None]) -> None:
        _ = self._rows  # computed on all cores now, before the threads share it
        on_all_cores(fill, row_tiles(self._ensemble, len(self._x)))


class ClassDistribution:
    """Distribution of class labels at N rows; returned by `predict_distribution`.

    Attributes:
        probs: Mean probabilities as in `predict`: [N, M] for M classes, [N] or [N, K] for the
            second of two classes.
        classes: The labels [M].
        index: The index of x if it is a frame of pandas, else None.
    """

    def __init__(self, ensemble: Ensemble, x: Array, index: Any = None) -> None:
        self._ensemble, self.index = ensemble, index
        mean = predict(ensemble, x, Summary()).mean
        self.probs = ensemble.as_fitted(mean)
        self.classes = label_array(ensemble.classes or ())
        # Probabilities for every target [N, K, classes].
        self._all = ensemble.spec.class_likelihood.class_probabilities(mean)

    def __repr__(self) -> str:
        return f"<ClassDistribution of {len(self.classes)} classes at {len(self._all)} rows>"

    def entropy(self) -> Array:
        """Compute the entropy of the mean probabilities in nats, [N] or [N, K]."""
        logs = np.log(np.where(self._all > 0, self._all, 1.0))
        return self._shaped(-np.sum(self._all * logs, axis=-1))

    def log_prob(self, labels: Any) -> Array:
        """Compute the log of the mean probability of labels [N] or [N, K], for each target."""
        refuse_other_order(self, labels, "labels", "x")
        labels = in_order_of(labels, self._ensemble.known.target_names, "labels")
        given = as_labels(labels, "labels", num_targets=self._all.shape[1])
        if len(given) != len(self._all):
            raise ValueError(
                f"labels must have one line for each of the {len(self._all)} rows, received {len(given)}."
            )
        numbers = class_numbers(given, self._ensemble.classes or (), "labels").astype(int)
        with np.errstate(divide="ignore"):
            found = np.log(np.take_along_axis(self._all, numbers[..., None], axis=-1))
        return self._shaped(found[..., 0])

    def sample(self, size: int, seed: int = 0) -> Array:
        """Draw labels for every row: [size, N] or [size, N, K]."""
        generator = np.random.default_rng(check_integer("seed", seed, minimum=0))
        shape = (check_integer("size", size, minimum=1), *self._all.shape[:2], 1)
        below = np.cumsum(self._all, axis=-1)[..., :-1]
        return self._shaped(self.classes[np.sum(generator.random(shape) > below, axis=-1)])

    def _shaped(self, values: Array) -> Array:
        return values[..., 0] if self._ensemble.vector_target else values
