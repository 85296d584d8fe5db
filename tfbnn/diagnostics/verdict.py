"""Two verdicts on a run, on its chains and on its predictions, and one word for both.

Chains that disagree leave the posterior unknown. Error bars may still hold on rows like those seen,
which rows that calibrated nothing can show.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tfbnn.diagnostics.problem import Severity
from tfbnn.diagnostics.ranks import rank_correlation
from tfbnn.diagnostics.wording import counted, shown
from tfbnn.spec.distributions import normal_cdf
from tfbnn.system.arrays import Array
from tfbnn.system.words import plain

USABLE = "usable for error bars"
CALIBRATED = "calibrated predictions"
FOR_MEANS = "usable for means"
NOT_YET = "not yet"
NOT_SAMPLED = "not sampled"
MEANINGS = {
    USABLE: "Means and error bars of the predictions can be used.",
    CALIBRATED: "Error bars hold on rows like those seen: use them there. Do not read the posterior of "
    "single functions or weights. Nothing is promised outside the training inputs.",
    FOR_MEANS: "Mean predictions can be used. Do not rely on their error bars yet.",
    NOT_YET: "Do not use the predictions yet.",
    NOT_SAMPLED: "There are no draws of the posterior.",
}
VERDICTS = tuple(MEANINGS)
# Verdicts of earlier releases, as their files hold them.
EARLIER = {"usable for means, not yet for error bars": FOR_MEANS}

# Numbers of standard deviations, and the largest error of the share of rows within them.
_SLACK = {1: 0.04, 2: 0.02}
_PIT_SLACK = 0.03
# Allowance for chance with N rows: two binomial standard deviations, the 5 % point of Kolmogorov's law.
_DEVIATIONS, _KOLMOGOROV = 2.0, 1.36
# With 3, 5 and 10 groups of correlated rows, 11, 4 and 1 % of right error bars are called wrong.
_FEWEST_GROUPS = 5
# Chance moves shares of fewer rows so far that nearly all error bars would pass.
FEWEST_ROWS = 50


def rounded(values: dict[Any, Any]) -> dict[str, Any]:
    """Return plain values for JSON, with numbers rounded to six digits."""
    return json.loads(
        json.dumps(plain(values)), parse_float=lambda text: float(f"{float(text):.6g}")
    )


def nominal(k: int) -> float:
    """Return the probability of a normal distribution within k standard deviations."""
    return float(2.0 * normal_cdf(np.array([float(k)]))[0] - 1.0)


class Chains(NamedTuple):
    """Verdict on the chains: whether they agree and are long enough.

    Attributes:
        ok: Whether they do.
        text: The same in words, with the reason.
    """

    ok: bool
    text: str

    @classmethod
    def from_json(cls, entry: dict[str, Any] | None) -> Chains | None:
        """Read the dict that `_asdict` returned; None for None.

        Raises:
            KeyError, TypeError, ValueError: For anything else.
        """
        if entry is None:
            return None
        if not isinstance(entry["ok"], bool) or not isinstance(entry["text"], str):
            raise ValueError("chains must have a flag ok and a text")
        return cls(entry["ok"], entry["text"])


NO_CHAINS = Chains(False, "There are no chains")


@dataclass(frozen=True)
class Predictions:
    """Verdict on error bars, by rows that calibrated nothing.

    Error bars hold if the shares of rows within 1 and 2 sigma are within .04 and .02 of .683 and
    .954, and if the Kolmogorov-Smirnov distance of the predictive probabilities from a uniform
    distribution is at most .03. Each limit has an allowance for chance with N rows: two binomial
    standard deviations, and 1.36 / sqrt(N). For rows in groups, N is `num_effective`. Among several
    targets the worst decides.

    Attributes:
        coverage: Dict {1: share, 2: share} of rows inside the central intervals of 68.3 and 95.4 %;
            empty if nothing was checked.
        pull_width: Standard deviation of the pulls.
        pit_ks: Kolmogorov-Smirnov distance.
        rank_correlation: Rank correlation of error bars and errors, which decides nothing: 1 if the
            widest bars have the largest errors; NaN if all bars have one width.
        num_rows: N.
        source: Name of the rows, such as "held-out rows".
        is_calibrated: Whether the error bars are calibrated ones.
        target: Name of the target that decides; "" for a single one.
        why: Reason why nothing was checked.
        num_effective: Number of independent rows that say as much as rows in groups; None: N.
    """

    coverage: dict[int, float] = field(default_factory=dict)
    pull_width: float = np.nan
    pit_ks: float = np.nan
    rank_correlation: float = np.nan
    num_rows: int = 0
    source: str = ""
    is_calibrated: bool = False
    target: str = ""
    why: str = "there were no rows to check them on"
    num_effective: float | None = None

    @property
    def ok(self) -> bool | None:
        """True if error bars hold, False if not; None if nothing was checked."""
        return self._excess <= 1.0 if self.coverage else None

    @property
    def in_short(self) -> str:
        """The verdict in plain words."""
        if not self.coverage:
            return f"Not checked: {self.why}"
        of_target = f" of {shown(self.target)}" if self.target else ""
        inner, outer = (f"{100 * self.coverage[k]:.1f}" for k in _SLACK)
        return (
            f"Error bars{of_target} {'hold' if self.ok else 'do not hold'} on "
            f"{self.num_rows} {self.source}: {inner} and {outer} % lie within 1 and 2 sigma (68.3 and "
            "95.4 are right)"
            f"{', but targets are skewed or shifted' if not self.ok and self.shares_hold else ''}"
        )

    @property
    def text(self) -> str:
        """The verdict in words, with all numbers."""
        numbers = f", pull width {self.pull_width:.2f}, PIT-KS {self.pit_ks:.3f}"
        if np.isfinite(self.rank_correlation):
            numbers += f", rank correlation with errors {self.rank_correlation:.2f}"
        return f"{self.in_short}{numbers if self.coverage else ''}"

    @property
    def _num_independent(self) -> float:
        return self.num_effective or self.num_rows

    @property
    def _excess(self) -> float:
        """The largest ratio of a number to its limit."""
        pit = self.pit_ks / (_PIT_SLACK + _KOLMOGOROV / np.sqrt(self._num_independent))
        return float(max(pit, *map(abs, self._deviations)))

    @property
    def _deviations(self) -> list[float]:
        """Deviations of the shares from their levels, in units of their limits."""
        parts = []
        for k, slack in _SLACK.items():
            level = nominal(k)
            chance = _DEVIATIONS * np.sqrt(level * (1.0 - level) / self._num_independent)
            parts.append(float((self.coverage[k] - level) / (slack + chance)))
        return parts

    @property
    def is_wide(self) -> bool:
        """True if the share that is farthest off is too large."""
        return max(self._deviations, key=abs) > 0

    @property
    def shares_hold(self) -> bool:
        """True if the shares within 1 and 2 sigma hold, whatever the probabilities between them say."""
        return max(map(abs, self._deviations)) <= 1.0

    @classmethod
    def judge(
        cls,
        pit: Array,
        pull: Array,
        stddev: Array,
        error: Array,
        source: str,
        is_calibrated: bool,
        names: Sequence[str] = (),
        groups: Array | None = None,
    ) -> Predictions:
        """Judge error bars by rows that calibrated nothing.

        Args:
            pit: Predictive probabilities of a smaller target [N, K]; rows with NaN are left out.
            pull: Pulls [N, K].
            stddev, error: Predicted standard deviations, and distances of targets from the means [N, K].
            source, is_calibrated: As in the attributes.
            names: Names of the targets.
            groups: Groups of rows that depend on each other [N], numbered from 0; None: each row by itself.
        """
        found = []
        for index, (levels, pulls) in enumerate(zip(pit.T, pull.T)):
            known = np.isfinite(levels)
            effective = None
            num_groups = known.sum() if groups is None else len(np.unique(groups[known]))
            if num_groups < min(_FEWEST_GROUPS, known.sum()):
                few = f"only {num_groups} groups of rows, at least {_FEWEST_GROUPS} are needed"
                return cls(why=few)
            if groups is not None and num_groups < known.sum():
                inside = np.abs(levels[known] - 0.5) < nominal(1) / 2
                effective = min(
                    _num_effective(one, groups[known]) for one in (inside, levels[known])
                )
            levels, count = np.sort(levels[known]), int(known.sum())
            if count < FEWEST_ROWS:
                return cls(why=f"only {counted(count, 'row')}, at least {FEWEST_ROWS} are needed")
            steps = np.arange(count + 1) / count
            distance = max((steps[1:] - levels).max(), (levels - steps[:-1]).max())
            shares = {k: float(np.mean(np.abs(levels - 0.5) < nominal(k) / 2)) for k in _SLACK}
            name = names[index] if len(names) > 1 else ""
            width = float(np.std(pulls[known]))
            rank = float(rank_correlation(stddev[known, index], error[known, index]))
            numbers = shares, width, float(distance), rank, count
            found.append(cls(*numbers, source, is_calibrated, name, num_effective=effective))
        return max(found, key=lambda one: one._excess)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, with those of `ok` and `text`."""
        return {"ok": self.ok, "text": self.text} | rounded(asdict(self))

    @classmethod
    def from_json(cls, entry: dict[str, Any] | None) -> Predictions:
        """Read the dict that `to_json` returned; None is from a file without it.

        Raises:
            KeyError, TypeError, ValueError: For anything else.
        """
        if entry is None:
            return cls(why="the file does not say")
        texts = {name: entry[name] for name in ("source", "target", "why")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ValueError("predictions must have the texts source, target and why")
        if not entry["coverage"]:
            return cls(why=entry["why"])
        numbers: dict[str, Any] = {name: float(entry[name]) for name in ("pull_width", "pit_ks")}
        coverage = {k: float(entry["coverage"][str(k)]) for k in _SLACK}
        ranks = entry.get("rank_correlation")  # which earlier files lack
        count = int(entry["num_rows"])
        if count < 1 or not np.isfinite([*numbers.values(), *coverage.values()]).all():
            raise ValueError("predictions must have rows and finite numbers")
        is_calibrated = bool(entry["is_calibrated"])
        numbers["rank_correlation"] = np.nan if ranks is None else float(ranks)
        if (effective := entry.get("num_effective")) is not None:
            numbers["num_effective"] = effective = float(effective)
            if not effective > 0:
                raise ValueError("predictions must have a positive number of effective rows")
        return cls(coverage, num_rows=count, is_calibrated=is_calibrated, **texts, **numbers)


def _num_effective(values: Array, groups: Array) -> float:
    """Compute the number of independent values [N] whose mean has the error of the mean of these.

    Its variance is that of sums over groups (Liang and Zeger 1986, Biometrika 73, 13).
    """
    numbers, groups = np.unique(groups, return_inverse=True)
    rest = values - values.mean()
    squares = float(np.sum(np.bincount(groups, rest) ** 2)) * len(numbers) / (len(numbers) - 1)
    share = float(np.sum(rest**2)) / squares if squares > 0 else 1.0
    return len(values) * min(1.0, share)


def answer_lines(chains: Chains, predictions: Predictions) -> list[tuple[str, str]]:
    """Return the two verdicts as labelled lines."""
    answers = {True: "yes. ", False: "no. ", None: ""}
    return [
        ("Chains", f"{answers[chains.ok]}{chains.text}"),
        ("Predictions", f"{answers[predictions.ok]}{predictions.text}"),
    ]


def verdict_on(chains: Severity, model: Severity, predictions_ok: bool | None) -> str:
    """Return one word for both verdicts.

    Error bars that were not checked count as good: chains that agree on the posterior of a model
    that follows its rows are the basis of error bars.

    Args:
        chains: Severity of the problems of the chains.
        model: Severity of the problems between model and data.
        predictions_ok: `Predictions.ok`.
    """
    error_bars = Severity.ERROR_BARS if predictions_ok is False else Severity.NOTHING
    worst = max(chains, model, error_bars)
    if worst == Severity.NOTHING:
        return USABLE
    if predictions_ok and model != Severity.MEANS and chains != Severity.DRAWS:
        return CALIBRATED
    return FOR_MEANS if worst == Severity.ERROR_BARS else NOT_YET
