"""Distribution of the distances of targets from their predictions, in predicted standard deviations.

Among n scores and a new one that may change places with them, the new one is below the k-th smallest
with probability k / (n + 1), whatever the distribution (Vovk, Gammerman and Shafer 2022,
Algorithmic Learning in a Random World, chapter 7): that is the body. It ends with the ranks; beyond
them goes on, on either side of the median, the Student's t that fits the scores of that side.
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

# The rank from either end where the body ends: the outermost scores say where the next ones lie, and
# nothing of where those beyond do.
_LAST_RANK = 2
FEWEST_SCORES = 20
# More scores than these are kept as so many of their quantiles.
MOST_SCORES = 10_000
# Degrees of freedom that are tried: where tails are heavier no fit is to be trusted, and those at the
# end are normal within a percent out to three standard deviations.
DF_RANGE = (1.0, 300.0)
_NUM_DF, _STEPS_OF_SCALE = 60, 100
# Relative to the largest distance from the median.
_LEAST_SCALE = 1e-6


class Side(NamedTuple):
    """Student's t of the scores on one side of the median.

    Attributes:
        scale: Of the same unit as scores.
        df: Degrees of freedom.
    """

    scale: float
    df: float

    @classmethod
    def of(cls, distances: Array, least: float) -> Side:
        """Return that of largest likelihood among 60 degrees of freedom, of distances [n] from the median.

        The scale of each follows by iteration of its own equation (Dempster, Laird and Rubin 1980,
        in Multivariate Analysis V, 35: scale mixtures of normals). It is `least` at least, where many
        scores are one and the same.
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
        """Return that of the whole Student's t, at either side of its middle."""
        scale, df = self
        constant = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * np.log(df * pi) - np.log(scale)
        return constant - 0.5 * (df + 1) * np.log1p(np.square(distances / scale) / df)


@dataclass(frozen=True, eq=False)
class ScoreDistribution(ReadOnlyArrays):
    """The distribution of a new score.

    Attributes:
        scores: Ascending [n], at least 20.
        sides: Below and above the median.
    """

    scores: Array
    sides: tuple[Side, Side]

    @classmethod
    def of(cls, scores: Array) -> ScoreDistribution:
        """Make it of at least 20 scores [n] in any order; of very many their quantiles are kept."""
        ordered, count = np.sort(scores), len(scores)
        if count > MOST_SCORES:
            places = np.arange(1, MOST_SCORES + 1) * (count + 1) / (MOST_SCORES + 1) - 1
            ordered = np.interp(places, np.arange(count), ordered)
            count = MOST_SCORES
        distances = np.abs(ordered - np.median(ordered))
        least = _LEAST_SCALE * (float(distances.max()) or 1.0)
        below, above = distances[: -(-count // 2)], distances[count // 2 :]
        return cls(ordered, (Side.of(below, least), Side.of(above, least)))

    @cached_property
    def _body(self) -> tuple[Array, Array]:
        """(Levels, scores) of the ranks from the second to the last but one."""
        count = len(self.scores)
        ranks = np.arange(_LAST_RANK, count - _LAST_RANK + 2)
        return ranks / (count + 1), self.scores[ranks - 1]

    def quantile(self, levels: Array) -> Array:
        """Scores at probabilities in (0, 1), of the same shape."""
        places, scores = self._body
        found = np.interp(levels, places, scores)
        for side, end, is_tail, start in self._tails(levels, places):
            beyond = student_t_quantile(levels[is_tail], side.df)
            found[is_tail] = scores[end] + side.scale * (beyond - start)
        return found

    def probability(self, scores: Array) -> Array:
        """Probability that a new score is smaller: the inverse of `quantile`, of the same shape."""
        places, body = self._body
        found = np.interp(scores, body, places)
        for side, end, is_tail, start in self._tails(scores, body):
            beyond = start + (scores[is_tail] - body[end]) / side.scale
            found[is_tail] = student_t_cdf(beyond, side.df)
        return found

    def log_density(self, scores: Array) -> Array:
        """Log density of a new score, that of the Student's t: ranks have none. The same shape."""
        median = np.median(self.scores)
        below, above = (side.log_density(scores - median) for side in self.sides)
        return np.where(scores < median, below, above)

    def _tails(self, values: Array, body: Array) -> Iterator[tuple[Side, int, Array, Array]]:
        """Yield (side, index of its end, mask of the values beyond, t quantile there) of each side with any."""
        for side, end, is_tail in zip(self.sides, (0, -1), (values < body[0], values > body[-1])):
            if is_tail.any():
                yield side, end, is_tail, student_t_quantile(self._body[0][[end]], side.df)
