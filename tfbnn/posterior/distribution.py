"""The predictive distribution itself: density, distribution function, quantiles and draws at every row.

Without calibration it is the mixture of the noise around all draws. Its density and distribution function are
sums over draws, and quantiles invert the latter by Newton's method. With calibration the scores of
`Calibration` take its place, shifted and stretched by the prediction, but outside the training inputs, where bars
of the mixture are wider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.data.labels import as_labels, class_numbers, label_array
from tfbnn.data.training_inputs import trust_levels
from tfbnn.data.validation import as_float_array, check_flag, check_integer, check_number
from tfbnn.posterior.averages import crps, log_mean_exp, moments, weighted_quantiles
from tfbnn.posterior.calibration.misfit_features import scale_factors
from tfbnn.posterior.calibration.record import Calibrated, Calibration
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.forward import forward_pass
from tfbnn.posterior.function_moments import noise_spread, sample_noisy
from tfbnn.posterior.prediction import Summary, predict, row_tiles, scale_at
from tfbnn.posterior.prediction_frame import Prediction
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.likelihoods import Regression
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores

# Locations and scales of all draws that are kept, at most.
_MOST_BYTES, _BYTES = 4e9, 8
# Newton's method for quantiles: error of the probability at which it ends, share of the tail after which one step
# more has that, and steps, most of them bisections.
_TOLERANCE, _CLOSE, _MOST_STEPS = 1e-10, 1e-5, 100
# Uniform numbers inside (0, 1) are made of integers below this.
_LEVELS = 2**52


class Mixture(NamedTuple):
    """Mixture over draws of noise around locations, on the scale the network sees.

    Attributes:
        noise: The likelihood.
        weights: Of the draws [M].
        location: [M, n, K].
        scale: Standard deviations of the noise, broadcastable to `location`; None for the locations alone.
    """

    noise: Regression
    weights: Array
    location: Array
    scale: Array | None

    def at(self, rows: Any) -> Mixture:
        """Return the part of some rows."""
        scale = self.scale
        if scale is not None:
            scale = np.broadcast_to(scale, self.location.shape)[:, rows]
        return self._replace(location=self.location[:, rows], scale=scale)

    def cdf(self, t: Array) -> Array:
        """Probability of at most t [n, K]."""
        if self.scale is None:
            below: Array = self.location <= t
        else:
            below = self.noise.noise_cdf((t - self.location) / self.scale)
        # Rounded weights may add up to more than 1.
        return np.minimum(np.einsum("m,mnk->nk", self.weights, below), 1.0)

    def log_density(self, t: Array) -> Array:
        """Log density of each target at t [n, K]."""
        return log_mean_exp(
            self.noise.log_noise_density(t - self.location, self.scale), self.weights
        )

    def sample(self, size: int, joint: bool, generator: np.random.Generator) -> Array:
        """Draw t [size, n, K]: joint ones of one network at all rows."""
        num_rows = self.location.shape[1]
        network = generator.choice(
            len(self.weights), size=(size, 1 if joint else num_rows), p=self.weights
        )
        t: Array = self.location[network, np.arange(num_rows)]
        if self.scale is None:
            return t
        noise = self.noise.noise_quantile(_inside(generator, t.shape))
        return t + noise * self.scale[network, np.arange(num_rows)]

    def quantiles(self, levels: Sequence[float]) -> Array:
        """The t [Q, n, K] with these probabilities below."""
        if self.scale is None:
            return weighted_quantiles(self.location, self.weights, levels)
        centre, spread = moments(self.location, self.weights)
        spread = np.hypot(spread, noise_spread(self.scale, self.weights))
        return np.stack([self._quantile(level, centre, spread) for level in levels])

    def _quantile(self, level: float, centre: Array, spread: Array) -> Array:
        score = self.noise.noise_quantile(np.array(level))
        each = self.location + self.scale * score
        # Between those of the draws; Newton's method, and the middle where it leaves what is left.
        low, high = each.min(axis=0), each.max(axis=0)
        t = np.clip(centre + spread * score, low, high)
        rows, part, close = np.arange(len(t)), self, _CLOSE * min(level, 1.0 - level)
        for _ in range(_MOST_STEPS):
            here = t[rows]
            excess = part.cdf(here) - level
            low[rows] = np.where(excess < 0, here, low[rows])
            high[rows] = np.where(excess > 0, here, high[rows])
            left = np.any((np.abs(excess) > _TOLERANCE) & (low < high)[rows], axis=1)
            if not left.any():
                break
            if not left.all():
                rows, part, here, excess = rows[left], part.at(left), here[left], excess[left]
            densities = np.exp(self.noise.log_noise_density(here - part.location, part.scale))
            with np.errstate(divide="ignore", invalid="ignore"):
                new = here - excess / np.einsum("m,mnk->nk", self.weights, densities)
            inside = (new > low[rows]) & (new < high[rows])
            t[rows] = np.where(inside, new, 0.5 * (low[rows] + high[rows]))
            # The error of the step is that of its square.
            left = np.any(~inside | (np.abs(excess) > close), axis=1)
            if not left.any():
                break
            rows, part = rows[left], part.at(left)
        return t


def _inside(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Uniform random numbers strictly between 0 and 1."""
    return (generator.integers(_LEVELS, size=shape) + 0.5) / _LEVELS


def _as_it_is(found: Array, y: Array) -> Array:
    return found


class PredictiveDistribution:
    """Distribution of the targets at N rows, in original units, as `predict_distribution` returns it.

    Values y broadcast against the rows as SciPy's distributions do: of shape [], [N] or [Q, 1] for targets
    that were fitted as [N], and [], [K], [N, K] or [Q, 1, 1] for those fitted as [N, K]. A single target
    has one value for each row in either shape, [N] or [N, 1]. Targets of a row are looked at one by one.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        x: Array,
        row_noise: Array | None,
        *,
        include_noise: bool,
        calibrated: bool,
    ) -> None:
        self._fitted, self._x, self._row_noise = ensemble, x, row_noise
        self._wanted = Summary(include_noise, None, "original", calibrated)
        self._ensemble = averaged = ensemble.for_averages
        spec = averaged.spec
        self._shape = len(x), spec.num_targets
        self._has_noise = include_noise or isinstance(spec, InfiniteSpec)
        self._calibrated = one = self._calibrate() if calibrated else None
        self._check_size(len(x) if one is None else int(one.is_left.any(axis=1).sum()))

    def _check_size(self, num_rows: int) -> None:
        """Refuse a mixture of too many rows before any is computed."""
        num_values = float(self._ensemble.num_draws) * num_rows * self._shape[1]
        size = _BYTES * num_values * (2 if self._has_noise else 1)
        if size > _MOST_BYTES:
            raise ValueError(
                f"The distribution of {self._ensemble.num_draws} draws at {num_rows} rows takes "
                f"{size / 1e9:.1f} GB, more than {_MOST_BYTES / 1e9:.0f}. Pass some of the rows."
            )

    @cached_property
    def _mixture(self) -> Mixture:
        """The Mixture of all rows."""
        return self._mixture_at(np.arange(len(self._x)))

    @cached_property
    def _kept(self) -> tuple[Array, Mixture | None]:
        """Which rows have the mixture for a target at least, ascending, and that of these."""
        one = self._calibrated
        if one is None:
            return np.arange(len(self._x)), self._mixture
        places = np.flatnonzero(one.is_left.any(axis=1))
        return places, self._mixture_at(places) if len(places) else None

    def _mixture_at(self, places: Array) -> Mixture:
        self._check_size(len(places))
        ensemble, x, row_noise = self._ensemble, self._x[places], self._row_noise
        forward = forward_pass(ensemble, len(x))
        likelihood = ensemble.spec.regression_likelihood
        location = np.empty((ensemble.num_draws, len(x), self._shape[1]))
        scale = np.empty_like(location) if self._has_noise else None

        def fill(rows: slice) -> None:
            outputs = forward(x[rows]).swapaxes(1, 2).astype(np.float64)
            location[:, rows] = likelihood.location(outputs)
            if scale is None:
                return
            noise = None if row_noise is None else row_noise[places[rows]]
            if self._wanted.include_noise:
                scale[:, rows] = scale_at(ensemble, outputs, location[:, rows], noise)
            else:
                scale[:, rows] = likelihood.spread(outputs)

        on_all_cores(fill, row_tiles(ensemble, len(x)))
        return Mixture(likelihood, ensemble.draw_weights, location, scale)

    def _calibrate(self) -> Calibrated:
        ensemble, x = self._fitted, self._x
        calibration = cast(Calibration, ensemble.calibration)
        summary = predict(ensemble, x, Summary(True, space="transformed"), self._row_noise)
        trust, factors = trust_levels(ensemble.training_inputs, x), scale_factors(ensemble, x)
        return calibration.of(summary.mean, summary.stddev, trust, factors)

    def __repr__(self) -> str:
        num_rows, num_targets = self._shape
        kind = "" if self._calibrated is None else ", calibrated"
        return f"<PredictiveDistribution of {num_targets} target(s) at {num_rows} rows{kind}>"

    @cached_property
    def _prediction(self) -> Prediction:
        return predict(self._fitted, self._x, self._wanted, self._row_noise)

    def mean(self) -> Array:
        """Mean of each target, as of `predict`."""
        return self._fitted.as_fitted(self._prediction.mean)

    def std(self) -> Array:
        """Standard deviation as of `predict`: half of the calibrated central 68.27 % interval where there is one."""
        return self._fitted.as_fitted(self._prediction.stddev)

    def var(self) -> Array:
        """Square of `std`."""
        return np.square(self.std())

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of a target of at most y. Without noise it rises by a step at each draw."""

        def calibrated(one: Calibrated, t: Array, y: Array) -> Array:
            return one.cdf(t)

        return self._at(y, _as_it_is, lambda one, t, _: one.cdf(t), calibrated)

    def pdf(self, y: ArrayLike) -> Array:
        """Density at y, per unit of the target; see `log_prob`."""
        return np.exp(self.log_prob(y))

    def log_prob(self, y: ArrayLike) -> Array:
        """Log density at y; calibrated that of the Student's t distributions that fit the scores.

        Raises:
            ValueError: For the function alone, which has no density.
        """
        if not self._has_noise:
            raise ValueError(
                "The function has no density, as its values are those of the draws. Call "
                "predict_distribution(x, include_noise=True), or d.cdf(y)."
            )

        def calibrated(one: Calibrated, t: Array, y: Array) -> Array:
            return one.log_density(t)

        def in_units(log_density: Array, y: Array) -> Array:
            slope = np.abs(self._fitted.y_pipeline.derivative(y))
            return np.where(np.isneginf(log_density), log_density, log_density + np.log(slope))

        return self._at(y, in_units, lambda one, t, _: one.log_density(t), calibrated)

    def quantile(self, q: ArrayLike) -> Array:
        """Values with probability q in (0, 1) below: [N], or with q [Q] the same with Q in front."""
        levels = [check_number("q", level, above=0, below=1) for level in np.ravel(q).tolist()]
        if not levels:
            raise ValueError("q must hold at least one probability, received none.")
        found = np.empty((len(levels), *self._shape))
        places, mixture = self._kept

        def fill(rows: slice) -> None:
            one = None if self._calibrated is None else self._calibrated.at(rows)
            if one is not None:
                found[:, rows] = one.quantiles(levels)
            first, last = np.searchsorted(places, [rows.start, rows.stop])
            if mixture is not None and first < last:
                plain, here = mixture.at(slice(first, last)).quantiles(levels), places[first:last]
                found[:, here] = self._where_kept(here, plain, found[:, here])

        self._for_tiles(fill)
        values = self._fitted.as_fitted(self._fitted.y_pipeline.inverse(found))
        return values.reshape(np.shape(q) + values.shape[1:])

    def interval(self, level: float) -> tuple[Array, Array]:
        """Ends of the central interval that has this probability."""
        level = check_number("level", level, above=0, below=1)
        low, high = self.quantile([0.5 * (1.0 - level), 0.5 * (1.0 + level)])
        return low, high

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score of targets y, in their units; small is good.

        By the weighted points that `evaluate` has.
        """
        ensemble, inverse = self._ensemble, self._fitted.y_pipeline.inverse

        def plain(mixture: Mixture, t: Array, y: Array) -> Array:
            points, weights = mixture.location, mixture.weights
            if mixture.scale is not None:
                points, weights = sample_noisy(ensemble, points, mixture.scale)
            return crps(inverse(points), weights, y)

        def calibrated(one: Calibrated, t: Array, y: Array) -> Array:
            points = inverse(one.points())
            return crps(points, np.full(len(points), 1.0 / len(points)), y)

        return self._at(y, _as_it_is, plain, calibrated)

    def sample(self, size: int, seed: int = 0, joint: bool = False) -> Array:
        """Draw new targets: [size, N] or [size, N, K].

        Args:
            size: Number of draws of every row.
            seed: An integer, 0 or more; the same draws for the same seed.
            joint: False (default): rows are independent. True: each draw is that of one network at all
                rows, for integrals over rows and for optimisation; noise is independent in any case, and
                calibration keeps the ranks.

        Raises:
            ValueError: For joint draws of infinite width, which `predict_draws` has.
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
        if t.nbytes > _MOST_BYTES:
            raise ValueError(
                f"{size} draws at {self._shape[0]} rows take {t.nbytes / 1e9:.1f} GB, more than "
                f"{_MOST_BYTES / 1e9:.0f}. Draw in parts, each with another seed."
            )
        places, mixture = self._kept
        if joint:
            places, mixture = np.arange(len(self._x)), self._mixture
        if mixture is not None:
            t[:, places] = mixture.sample(size, joint, generator)
        if one is not None:
            levels = self._ranks(t) if joint else _inside(generator, t.shape)
            groups = np.broadcast_to(one.groups, t.shape).reshape(-1, self._shape[1])
            scores = one.calibration.score_at(levels.reshape(groups.shape), groups)
            t = np.where(one.is_left, t, one.centre + one.spread * scores.reshape(t.shape))
        return self._fitted.as_fitted(self._fitted.y_pipeline.inverse(t))

    def _ranks(self, t: Array) -> Array:
        """Probabilities below t [size, N, K] in the mixture, inside (0, 1)."""
        found = np.empty_like(t)

        def fill(rows: slice) -> None:
            part = self._mixture.at(rows)
            found[:, rows] = [part.cdf(values) for values in t[:, rows]]

        self._for_tiles(fill)
        return np.clip(found, 0.5 / _LEVELS, 1.0 - 0.5 / _LEVELS)

    def _at(
        self,
        y: ArrayLike,
        in_units: Callable[[Array, Array], Array],
        plain: Callable[[Mixture, Array, Array], Array],
        calibrated: Callable[[Calibrated, Array, Array], Array],
    ) -> Array:
        """Return what one of the functions of (distribution of n rows, t [n, K], y [n, K]) says of values y."""
        shape, y = self._broadcast(y)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self._fitted.y_pipeline.forward(y)
        # Below the least that a logarithm takes lies nothing.
        t = np.where(np.isnan(t), -np.inf, t)
        found = np.empty_like(t)
        places, mixture = self._kept

        def fill(rows: slice) -> None:
            one = None if self._calibrated is None else self._calibrated.at(rows)
            first, last = np.searchsorted(places, [rows.start, rows.stop])
            here = places[first:last]
            part = None if mixture is None else mixture.at(slice(first, last))
            for number, (values, targets) in enumerate(zip(t, y)):
                if one is not None:
                    found[number, rows] = calibrated(one, values[rows], targets[rows])
                if part is not None and len(here):
                    new = plain(part, values[here], targets[here])
                    found[number, here] = self._where_kept(here, new, found[number, here])

        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self._for_tiles(fill)
            found = in_units(found, y)
        return found.reshape(shape)[()]

    def _broadcast(self, y: ArrayLike) -> tuple[tuple[int, ...], Array]:
        """Return the shape of what is said of values y, and these as [L, N, K]."""
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

    def _where_kept(self, places: Array, plain: Array, calibrated: Array) -> Array:
        """Return values of the mixture [..., n, K] at some rows, but where the calibration holds."""
        one = self._calibrated
        return plain if one is None else np.where(one.is_left[places], plain, calibrated)

    def _for_tiles(self, fill: Callable[[slice], None]) -> None:
        on_all_cores(fill, row_tiles(self._ensemble, len(self._x)))


class ClassDistribution:
    """Distribution of class labels at N rows, as `predict_distribution` returns it.

    Attributes:
        probs: Mean probabilities as of `predict`: [N, M] of M classes, [N] or [N, K] of the second of two.
        classes: The labels [M].
    """

    def __init__(self, ensemble: Ensemble, x: Array) -> None:
        self._ensemble = ensemble
        mean = predict(ensemble, x, Summary()).mean
        self.probs = ensemble.as_fitted(mean)
        self.classes = label_array(ensemble.classes or ())
        # Of every target [N, K, classes].
        self._all = ensemble.spec.class_likelihood.class_probabilities(mean)

    def __repr__(self) -> str:
        return f"<ClassDistribution of {len(self.classes)} classes at {len(self._all)} rows>"

    def entropy(self) -> Array:
        """Entropy of the mean probabilities in nats, [N] or [N, K]: how undecided a prediction is."""
        logs = np.log(np.where(self._all > 0, self._all, 1.0))
        return self._shaped(-np.sum(self._all * logs, axis=-1))

    def log_prob(self, labels: Any) -> Array:
        """Log of the mean probability of labels [N] or [N, K], of each target."""
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
        """Draw labels of every row: [size, N] or [size, N, K]."""
        generator = np.random.default_rng(check_integer("seed", seed, minimum=0))
        shape = (check_integer("size", size, minimum=1), *self._all.shape[:2], 1)
        below = np.cumsum(self._all, axis=-1)[..., :-1]
        return self._shaped(self.classes[np.sum(generator.random(shape) > below, axis=-1)])

    def _shaped(self, values: Array) -> Array:
        return values[..., 0] if self._ensemble.vector_target else values
