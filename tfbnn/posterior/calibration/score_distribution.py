"""Distribution of scores: distances of targets from predictions, in predicted standard deviations.

If a new score is exchangeable with n scores, it is below the k-th smallest with probability
k / (n + 1), whatever the distribution (Vovk, Gammerman and Shafer 2022, Algorithmic Learning in a
Random World, chapter 7). This is the body, which ends with the ranks. Beyond them, on either side
of the median, continues the Student's t that fits the scores of that side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import lgamma, pi
from typing import NamedTuple

import numpy as np

from tfbnn.spec.distributions import student_t_cdf, student_t_quantile
from tfbnn.system.arrays import Array, ReadOnlyArrays

# Rank from either end at which the body ends: the outermost scores show where the next ones lie, but
# not where those beyond them do.
_LAST_RANK = 2
FEWEST_SCORES = 20
# If there are more scores, this many of their quantiles are kept instead.
MOST_SCORES = 10_000
# Range of degrees of freedom. With heavier tails no fit can be trusted, and the largest is normal
# within a percent out to three standard deviations.
DF_RANGE = (1.0, 300.0)
_NUM_DF, _STEPS_OF_SCALE = 60, 100
# Least scale, relative to the largest distance from the median.
_LEAST_SCALE = 1e-6


class Side(NamedTuple):
    """Student's t of the scores on one side of the median.

    Attributes:
        scale: Scale, in the unit of scores.
        df: Degrees of freedom.
    """

    scale: float
    df: float

    @classmethod
    def of(cls, distances: Array, least: float) -> Side:
        """Fit the Student's t with the largest likelihood to distances from the median.

        The fit tries 60 degrees of freedom. For each the scale follows by iteration of its own
        equation (Dempster, Laird and Rubin 1980, in Multivariate Analysis V, 35: scale mixtures of
        normals). It is at least `least`, for the case that many scores are equal.

        Args:
            distances: [n].
            least: The least scale.
        """
        df = np.geomspace(*DF_RANGE, _NUM_DF)[:, None]
        squares = np.square(distances)
        variance = np.full((_NUM_DF, 1), max(float(squares.mean()), least**2))
        for _ in range(_STEPS_OF_SCALE):
            weights = (df + 1.0) / (df + squares / variance)
            variance = np.maximum(np.mean(weights * squares, axis=1, keepdims=True), least**2)
        sides = [cls(*pair) for pair in zip(np.sqrt(variance[:, 0]).tolist(), df[:, 0].tolist())]
        return max(sides, key=lambda side: float(np.mean(side.log_density(distances))))

    def log_density(self, distances: Array) -> Array:
        """Compute the log density of the whole Student's t, on either side of its middle."""
        scale, df = self
        constant = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * np.log(df * pi) - np.log(scale)
        return constant - 0.5 * (df + 1) * np.log1p(np.square(distances / scale) / df)


@dataclass(frozen=True, eq=False)
class ScoreDistribution(ReadOnlyArrays):
    """Distribution of a new score.

    Attributes:
        scores: Ascending [n], at least 20.
        sides: Sides below and above the median.
    """

    scores: Array
    sides: tuple[Side, Side]

    @classmethod
    def of(cls, scores: Array) -> ScoreDistribution:
        """Build the distribution from at least 20 scores [n] in any order.

        If there are very many scores, their quantiles are kept instead.
        """
        ordered, count = np.sort(scores), len(scores)
        if count > MOST_SCORES:
            positions = np.arange(1, MOST_SCORES + 1) * (count + 1) / (MOST_SCORES + 1) - 1
            ordered = np.interp(positions, np.arange(count), ordered)
            count = MOST_SCORES
        distances = np.abs(ordered - np.median(ordered))
        least = _LEAST_SCALE * (float(distances.max()) or 1.0)
        below, above = distances[: -(-count // 2)], distances[count // 2 :]
        return cls(ordered, (Side.of(below, least), Side.of(above, least)))

    @cached_property
    def _body(self) -> tuple[Array, Array]:
        """Levels and scores of the ranks from the second to the last but one."""
        count = len(self.scores)
        ranks = np.arange(_LAST_RANK, count - _LAST_RANK + 2)
        return ranks / (count + 1), self.scores[ranks - 1]

    def quantile(self, levels: Array) -> Array:
        """Compute scores at probabilities in (0, 1), in the same shape."""
        body_levels, scores = self._body
        found = np.interp(levels, body_levels, scores)
        for side, end, is_tail, start in self._tails(levels, body_levels):
            beyond = student_t_quantile(levels[is_tail], side.df)
            found[is_tail] = scores[end] + side.scale * (beyond - start)
        return found

    def probability(self, scores: Array) -> Array:
        """Compute the probability that a new score is smaller, in the same shape.

        It is the inverse of `quantile`.
        """
        body_levels, body = self._body
        found = np.interp(scores, body, body_levels)
        for side, end, is_tail, start in self._tails(scores, body):
            beyond = start + (scores[is_tail] - body[end]) / side.scale
            found[is_tail] = student_t_cdf(beyond, side.df)
        return found

    def log_density(self, scores: Array) -> Array:
        """Compute the log density of a new score, in the same shape.

        It is that of the Student's t, as ranks have no density.
        """
        median = np.median(self.scores)
        below, above = (side.log_density(scores - median) for side in self.sides)
        return np.where(scores < median, below, above)

    def _tails(self, values: Array, body: Array) -> Iterator[tuple[Side, int, Array, Array]]:
        """Yield each tail with values: (side, index of its end, mask of the values, t quantile there)."""
        for side, end, is_tail in zip(self.sides, (0, -1), (values < body[0], values > body[-1])):
            if is_tail.any():
                yield side, end, is_tail, student_t_quantile(self._body[0][[end]], side.df)
