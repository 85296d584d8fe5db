"""`Calibration`: the map from predicted to calibrated error bars that a model holds.

`Misfit`: the size of scores around each input, from the rows of the fit.

A row i becomes exact by delta_i = A^-1 phi_i r_i / h_i, the smallest change of the weights in the
norm of A. Here phi_i are the derivatives of the network's output in its weights, A their
Gauss-Newton precision and h_i = phi_i' A^-1 phi_i the row's leverage: pointwise optimal parameter
sets, POPS (Swinburne and Perez 2025, Mach. Learn.: Sci. Technol., arXiv:2402.01810). At an input x
this change moves the prediction by phi(x)' delta_i, far where the features of a badly fitted row
are active. The mean over rows of those squares grows with the leverage of x, which a posterior's
standard deviation contains already. So it is divided by its value if all rows missed by one
standard deviation:

    m(x)^2 = sum_i h_i (phi(x)' delta_i)^2 / sum_i h_i (phi(x)' delta_i / z_i)^2

Here residuals are replaced by scores z_i, each of a row left out. Rows are weighted by leverage, as
those with little leverage would take absurd changes to become exact. The remaining weights,
(phi(x)' A^-1 phi_i)^2 / h_i, are the squared correlation under the posterior of the function at x
and at the row, up to a factor of x. benchmarks/results/pops.md compares this with other forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.frames import numbered_targets
from tfbnn.data.training_inputs import INSIDE, OUTSIDE
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.diagnostics.wording import labelled
from tfbnn.posterior.calibration.score_distribution import (
    DF_RANGE,
    FEWEST_SCORES,
    ScoreDistribution,
    Side,
)
from tfbnn.posterior.record_kinds import NUMBER, POSITIVE, Kind, check_entries, list_of
from tfbnn.spec.distributions import normal_cdf
from tfbnn.system.arrays import Array, ReadOnlyArrays, read_only

# Weight of the mean over all rows, as a share of the weight that all rows have together at a typical
# input, so that nothing is divided by zero if no row is near.
_LEAST_WEIGHT = 1e-3
# Quantiles that represent a calibrated distribution in its CRPS.
_NUM_LEVELS = 1000
METHODS = ("split", "loo")
BY = (None, "stddev", "trust")
SCALES = ("stddev", "misfit")
# Numbers of standard deviations to either side of the mean for which coverage is reported.
LEVELS = (1, 2, 3)
MOST_GROUPS = 3

_NUMBERS = list_of(NUMBER, "a list of finite numbers")
_ROWS_OF_NUMBERS = list_of(_NUMBERS, "a list of lists of finite numbers")
_KINDS: Mapping[str, Kind] = {
    "method": Kind("'split' or 'loo'", lambda value: value in METHODS),
    "by": Kind("null, 'stddev' or 'trust'", lambda value: value in BY),
    "scale": Kind("'stddev' or 'misfit'", lambda value: value in SCALES),
    "num_rows": POSITIVE,
    "sizes": list_of(POSITIVE, "a list of counts"),
    "edges": _ROWS_OF_NUMBERS,
    "tails": list_of(
        list_of(_ROWS_OF_NUMBERS, "a list per target"), "scales and degrees of freedom of each side"
    ),
    "coverage_before": _ROWS_OF_NUMBERS,
    "coverage_after": _ROWS_OF_NUMBERS,
}
# Only if rows were left out, or judged, in groups.
_OF_GROUPS: Mapping[str, Kind] = {"num_groups": POSITIVE}


@dataclass(frozen=True, eq=False)
class Misfit(ReadOnlyArrays):
    """Both sums of m(x)^2 as quadratic forms of the features of x on common axes.

    There are two forms for each network and target.

    Attributes:
        directions: Columns are the axes: [M, K, P, P] in the dtype of the model, for M networks and
            P features. Squared components of features along them add up to the denominator, 1 at a
            typical input.
        squares: Mean squared scores along each axis [M, K, P], the weights of these components in
            the numerator.
    """

    directions: Array
    squares: Array

    def mean_square(
        self, features: Array, network: int, target: int, own: Sequence[Array] = ()
    ) -> Array:
        """Compute the mean squared score around inputs [n], above 0.

        Args:
            features: Features of the inputs for one network and target [P, n].
            network, target: Their numbers.
            own: For rows of the fit, their own terms in numerator and denominator [n], to be left
                out.
        """
        directions, squares = self.directions[network, target], self.squares[network, target]
        # In C order as in `with_ones`, and for the same reason.
        features = features.astype(directions.dtype, order="C")
        components = np.square(directions.T @ features).astype(np.float64)
        above, below = squares @ components, components.sum(axis=0)
        if own:
            above, below = np.maximum(above - own[0], 0.0), np.maximum(below - own[1], 0.0)
        usual = max(float(squares.mean()), np.finfo(np.float64).tiny)
        return (above + _LEAST_WEIGHT * usual) / (below + _LEAST_WEIGHT)


def central_levels(k: float) -> tuple[float, float]:
    """Return the probabilities of a normal distribution below -k and below k standard deviations."""
    low = float(normal_cdf(np.array([-float(k)]))[0])
    return low, 1.0 - low


def groups_of(by: str | None, edges: Array, stddev: Array, trust: Array) -> Array:
    """Return the group of each prediction [n, K], from the fields of a `Calibration`."""
    if by == "trust":
        return np.repeat((trust < INSIDE).astype(int)[:, None], stddev.shape[1], axis=1)
    return np.sum(stddev > edges[:, None], axis=0)


class Calibrated(NamedTuple):
    """Calibrated predictions of some rows, on the scale the network sees.

    Attributes:
        calibration: Calibration.
        centre, spread: Shift and scale of the scores [n, K].
        groups: Groups of the calibration [n, K].
        is_left: Mask of the predictions that keep their uncalibrated error bars [n, K].
    """

    calibration: Calibration
    centre: Array
    spread: Array
    groups: Array
    is_left: Array

    def at(self, rows: Any) -> Calibrated:
        """Return the predictions of some rows."""
        return Calibrated(self.calibration, *(array[rows] for array in self[1:]))

    def quantiles(self, levels: Sequence[float] | Array) -> Array:
        """Compute the quantiles t [Q, n, K] at probabilities `levels`."""
        return self.centre + self.spread * self.calibration.quantiles(levels, self.groups)

    def points(self) -> tuple[Array, Array]:
        """Return quantiles [M, n, K] that represent the distribution in its CRPS, and weights [M]."""
        levels = (np.arange(_NUM_LEVELS) + 0.5) / _NUM_LEVELS
        return self.quantiles(levels), np.full(_NUM_LEVELS, 1.0 / _NUM_LEVELS)

    def cdf(self, t: Array) -> Array:
        """Compute the probability of less than t [n, K]."""
        score = (t - self.centre) / self.spread
        return self.calibration.each(ScoreDistribution.probability, score, self.groups)

    def log_density(self, t: Array) -> Array:
        """Compute the log density of each target at t [n, K]."""
        score = (t - self.centre) / self.spread
        density = self.calibration.each(ScoreDistribution.log_density, score, self.groups)
        return density - np.log(self.spread)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration of a model, the result of `BayesianMLP.calibrate`.

    Scores are targets less predicted means over predicted standard deviations, noise included, on
    the scale the network sees. With a misfit the standard deviations are multiplied by its factors.
    For each of K targets and B groups the distribution of scores determines how wide intervals have
    to be on either side.

    Attributes:
        method: "split", by rows that the fit has not seen, or "loo", by leaving out its own rows.
        by: Grouping of the rows: None, "stddev" or "trust".
        num_rows: Number of rows that calibrated.
        edges: For `by="stddev"` the standard deviations between the groups [B - 1, K]; else [0, K].
        groups: Per group, per target the `ScoreDistribution`.
        coverage_before: Share of the rows within 1, 2 and 3 predicted standard deviations [3, K].
        coverage_after: The same for calibrated intervals. Each row is judged by a calibration with
            four fifths of the rows, without the row itself.
        misfit: The `Misfit` whose factors multiply predicted standard deviations, or None.
        checked: `Predictions` by the rows that calibrated, in two halves, each judged by the
            calibration of the other; None if read from a file, whose diagnostics hold it.
        num_groups: Number of groups of rows that belong together; None if each row is by itself.
    """

    method: str
    by: str | None
    num_rows: int
    edges: Array
    groups: tuple[tuple[ScoreDistribution, ...], ...]
    coverage_before: Array
    coverage_after: Array
    misfit: Misfit | None = None
    checked: Predictions | None = None
    num_groups: int | None = None

    def __repr__(self) -> str:
        return f"<Calibration: {self.in_short}>"

    @classmethod
    def from_json(cls, entries: Any, scores: Array, misfit: Misfit | None = None) -> Calibration:
        """Read the record from what `to_json`, `scores` and `misfit` returned.

        Raises:
            TypeError: For entries that are no such record.
            ValueError: For numbers that contradict each other.
        """
        is_grouped = isinstance(entries, dict) and "num_groups" in entries
        check_entries("calibration", entries, {**_KINDS, **(_OF_GROUPS if is_grouped else {})})
        sizes, tails = entries["sizes"], entries["tails"]
        num_targets = scores.shape[1]
        edges = np.array(entries["edges"], dtype=float).reshape(-1, num_targets)
        before, after = (
            _of_shape(name, entries[name], (len(LEVELS), num_targets))
            for name in ("coverage_before", "coverage_after")
        )
        _require(
            "scale", (entries["scale"] == "misfit") == (misfit is not None), "that of the file"
        )
        _require("sizes", 1 <= len(sizes) <= MOST_GROUPS, f"of 1 to {MOST_GROUPS} groups")
        _require("sizes", min(sizes) >= FEWEST_SCORES, f"at least {FEWEST_SCORES} each")
        _require("sizes", sum(sizes) == len(scores), f"of {len(scores)} scores")
        fixed = {None: 1, "trust": 2}.get(entries["by"], len(sizes))
        _require("sizes", len(sizes) == fixed, f"of {fixed} groups with by={entries['by']!r}")
        wanted = len(sizes) - 1 if entries["by"] == "stddev" else 0
        _require("edges", len(edges) == wanted, f"{wanted} between {len(sizes)} groups")
        _require("edges", bool(np.all(np.diff(edges, axis=0) >= 0)), "ascending")
        tails = _of_shape("tails", tails, (len(sizes), num_targets, 2, 2))
        scales, df = tails[..., 0], tails[..., 1]
        known = (scales > 0) & (df >= 0.999 * DF_RANGE[0]) & (df <= 1.001 * DF_RANGE[1])
        _require("tails", bool(known.all()), "scales and degrees of freedom")
        parts = np.split(scores, np.cumsum(sizes)[:-1])
        for part in parts:
            _require("scores", bool(np.all(np.diff(part, axis=0) >= 0)), "ascending")
        groups = tuple(
            tuple(
                ScoreDistribution(column, (Side(*below), Side(*above)))
                for column, (below, above) in zip(part.T, tail.tolist())
            )
            for part, tail in zip(parts, tails)
        )
        method, by, count = (entries[name] for name in ("method", "by", "num_rows"))
        num_groups = entries.get("num_groups")
        return cls(method, by, count, edges, groups, before, after, misfit, num_groups=num_groups)

    def to_json(self) -> dict[str, Any]:
        """Return the entries that JSON can hold, all but `scores` and `misfit`."""
        return {
            "method": self.method,
            "by": self.by,
            "scale": self.scale,
            "num_rows": self.num_rows,
            "sizes": [len(group[0].scores) for group in self.groups],
            "edges": self.edges.tolist(),
            "tails": [[list(map(list, one.sides)) for one in group] for group in self.groups],
            "coverage_before": self.coverage_before.tolist(),
            "coverage_after": self.coverage_after.tolist(),
            **({} if self.num_groups is None else {"num_groups": self.num_groups}),
        }

    @property
    def scale(self) -> str:
        """The divisor of scores: "stddev", or "misfit" with the factors of a misfit."""
        return "stddev" if self.misfit is None else "misfit"

    @property
    def scores(self) -> Array:
        """Scores of all groups [n, K], ascending in each group."""
        columns = [np.stack([one.scores for one in group], axis=1) for group in self.groups]
        return np.concatenate(columns)

    def of(self, centre: Array, stddev: Array, trust: Array, factors: Array) -> Calibrated:
        """Calibrate predictions with these means and standard deviations, noise included, transformed.

        Args:
            centre, stddev: [n, K].
            trust: Trust levels [n].
            factors: Factors of the misfit, else ones [n, K].
        """
        spread = stddev * factors
        groups = self.groups_of(spread, trust)
        # Outside the training inputs there are no scores, and without this rule bars would shrink there.
        narrower = self.bars[..., 0][groups, np.arange(groups.shape[1])] * factors < 1.0
        is_left = narrower & (trust == OUTSIDE)[:, None]
        return Calibrated(self, centre, spread, groups, is_left)

    def groups_of(self, stddev: Array, trust: Array) -> Array:
        """Return the group of each prediction [n, K].

        Args:
            stddev: Divisors of the scores [n, K]: predicted standard deviations, noise included,
                transformed, times the factors of a misfit.
            trust: Trust levels [n].
        """
        return groups_of(self.by, self.edges, stddev, trust)

    def quantiles(self, levels: Sequence[float] | Array, groups: Array) -> Array:
        """Return scores at probabilities [Q] for predictions of these groups [n, K]: [Q, n, K]."""
        table = _quantile_table(self, tuple(levels))
        return np.moveaxis(table[groups, np.arange(groups.shape[1])], 2, 0)

    @cached_property
    def bars(self) -> Array:
        """Half the calibrated intervals over 1, 2 and 3 predicted standard deviations [B, K, 3]."""
        ends = np.array([central_levels(k) for k in LEVELS])
        intervals = self.table(lambda one: one.quantile(ends))
        return 0.5 * (intervals[..., 1] - intervals[..., 0]) / LEVELS

    def summary(self, names: Sequence[str] = ()) -> str:
        """Return the calibration and its effect in a few aligned lines.

        Args:
            names: Names of the targets, if there are several.
        """
        lines = labelled("calibration", self.lines(names))
        return "\n".join(f"{label:<13}{text}" for label, text in lines)

    def lines(self, names: Sequence[str] = ()) -> list[str]:
        """Return the lines of `summary`."""
        lines = [self.text]
        unit = "" if self.misfit is None else " beside the local misfit"
        count = self.edges.shape[1]
        names = names or numbered_targets(count)
        for target in range(count):
            name = f"{names[target]}: " if count > 1 else ""
            for number, group in enumerate(self.bars[:, target]):
                changes = ", ".join(f"{100 * (factor - 1):+.0f}" for factor in group)
                whose = self._group_text(number)
                lines.append(
                    f"{name}{whose} changed in length by {changes} % at 1, 2, 3 sigma{unit}"
                )
            for told, shares in (
                ("without", self.coverage_before[:, target]),
                ("with", self.coverage_after[:, target]),
            ):
                cells = ", ".join(f"{100 * share:.1f}" for share in shares)
                lines.append(f"{name}they hold for {cells} % of these rows {told} calibration")
        return [*lines, "68.3, 95.4, 99.7 % are right"]

    @property
    def text(self) -> str:
        """One line on the method and the rows of the calibration."""
        each = "each" if self.num_groups is None else f"each of {self.num_groups} groups"
        how = {"split": "held-out rows", "loo": f"rows of the fit, {each} left out in turn"}
        grouped = "" if self.by is None else f", in {len(self.groups)} groups by {self.by}"
        scaled = "" if self.misfit is None else ", scaled by the local misfit"
        return f"by {self.num_rows} {how[self.method]}{grouped}{scaled}"

    @property
    def in_short(self) -> str:
        """`text`, and the coverage of one standard deviation before and after, averaged over targets."""
        before, after = (
            100 * np.mean(shares[0]) for shares in (self.coverage_before, self.coverage_after)
        )
        return f"{self.text}; bars of 68.3 % held for {before:.1f} % of them, now for {after:.1f} %"

    def _group_text(self, number: int) -> str:
        if self.by == "trust":
            return f"error bars {('inside the training inputs', 'at their edge')[number]}"
        parts = {2: ("shorter half", "longer half"), 3: ("shortest", "middle", "longest")}
        if len(self.groups) == 1:
            return "error bars"
        part = parts[len(self.groups)][number]
        return f"the {part}{' third' * (len(self.groups) == 3)} of the error bars"

    def table(self, function: Callable[[ScoreDistribution], Any]) -> Array:
        """Return the values of a function for each distribution [B, K, ...]."""
        return np.array([[function(one) for one in group] for group in self.groups])

    def each(
        self, function: Callable[[ScoreDistribution, Array], Array], values: Array, groups: Array
    ) -> Array:
        """Apply a function of a distribution and its values to values [n, K] of these groups."""
        found = np.empty(values.shape)
        for number, group in enumerate(self.groups):
            for target, one in enumerate(group):
                taken = groups[:, target] == number
                found[taken, target] = function(one, values[taken, target])
        return found


@lru_cache(maxsize=8)  # the same for every tile of rows
def _quantile_table(calibration: Calibration, levels: tuple[float, ...]) -> Array:
    """Return scores at probabilities [Q] of each distribution [B, K, Q]."""
    probabilities = np.array(levels, dtype=float)
    return read_only(calibration.table(lambda one: one.quantile(probabilities)))


def _of_shape(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    try:
        return np.array(values, dtype=float).reshape(shape)
    except ValueError as error:
        raise ValueError(f"calibration.{name} must have the shape {list(shape)}.") from error


def _require(name: str, holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"calibration.{name} must be {what}.")
