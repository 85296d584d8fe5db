"""Numbers on the agreement of a model with its training rows; a model file keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from tfbnn.diagnostics.verdict import Predictions

# Central intervals whose coverage is judged: those of one and two standard deviations.
LEVELS = (0.683, 0.954)
# A standard deviation below this share of the mean is rounding, and the column is constant.
ROUNDING = 1e-12
# Known for every row, fixed for all, or learned, at least in part.
NOISE_ORIGINS = ("rows", "fixed", "learned", "counts")


@dataclass(frozen=True)
class TargetCheck:
    """Agreement with one target on training rows, all on the scale that the network sees.

    Attributes:
        name: Name of its column.
        mean, stddev: Mean and standard deviation of the targets.
        r2: Share of their variance that the mean prediction explains; NaN for a constant target.
        residual: Root mean square of target less mean prediction.
        noise: Root mean square of the noise scale over draws and rows.
        spread: Root mean square over rows of the standard deviation of the function.
        chance: For counts the standard error of the squared pull width under the model, else NaN.
        pull_width: Standard deviation of the residuals over the predictive standard deviation,
            noise included, of each row as if it had been left out of the fit, by its leverage.
        coverage: Share of rows inside the central predictive intervals of LEVELS, left out
            likewise. Both are NaN if most rows have too much leverage to be judged.
    """

    name: str
    mean: float
    stddev: float
    r2: float
    residual: float
    noise: float
    spread: float
    chance: float
    pull_width: float
    coverage: tuple[float, ...]

    @property
    def coverage_error(self) -> float:
        """The largest distance of a coverage from its level."""
        return max(abs(share - level) for share, level in zip(self.coverage, LEVELS))


def pulled(target: TargetCheck) -> str:
    """Return the pull width in brackets, where it is known."""
    return "" if np.isnan(target.pull_width) else f" (pull width {target.pull_width:.2g})"


@dataclass(frozen=True)
class NumbersCheck:
    """Agreement with targets that are numbers.

    Attributes:
        num_rows: Number of training rows that were compared.
        noise: Origin of the noise scale, one of NOISE_ORIGINS.
        targets: A TargetCheck for each target; of many targets the worst.
    """

    num_rows: int
    noise: str
    targets: tuple[TargetCheck, ...]

    @property
    def explains(self) -> bool:
        """True if the predictions explain at least half of the variance of every target that varies."""
        return not any(target.r2 < 0.5 for target in self.targets)


@dataclass(frozen=True)
class ClassesCheck:
    """Agreement with targets that are class labels.

    Attributes:
        num_rows: Number of training rows that were compared.
        accuracy: Share of labels that the most probable class hits.
        majority: Share of the most frequent label: the accuracy of always predicting it. For
            several targets both are means.
        calibration_error: The expected calibration error, as in `evaluate`.
    """

    num_rows: int
    accuracy: float
    majority: float
    calibration_error: float

    @property
    def explains(self) -> bool:
        """True if the predictions are better than the most frequent label."""
        return self.accuracy > self.majority


RowsCheck = NumbersCheck | ClassesCheck
_OF_TARGET = [one.name for one in fields(TargetCheck)][1:-1]
_OF_CLASSES = [one.name for one in fields(ClassesCheck)][1:]


def rows_check_from_json(entry: dict[str, Any] | None) -> RowsCheck | None:
    """Read the training rows of the dict that `Diagnosis.to_dict` returned; None for None.

    Raises:
        KeyError, TypeError, ValueError: For anything else.
    """
    if entry is None:
        return None
    count = int(entry["num_rows"])
    if "targets" not in entry:
        return ClassesCheck(count, *(_number(entry[name]) for name in _OF_CLASSES))
    targets = []
    for target in entry["targets"]:
        target = {"chance": None} | target
        if entry["noise"] == "counts" and target["chance"] is None:  # as if all counts had one mean
            target["chance"] = np.sqrt((2.0 + 1.0 / _number(target["noise"]) ** 2) / count)
        numbers: dict[str, Any] = {name: _number(target[name]) for name in _OF_TARGET}
        coverage = tuple(map(_number, target["coverage"]))
        targets.append(TargetCheck(name=str(target["name"]), coverage=coverage, **numbers))
    has_levels = all(len(target.coverage) == len(LEVELS) for target in targets)
    if not (targets and has_levels and entry["noise"] in NOISE_ORIGINS):
        raise ValueError(
            f"there must be targets with {len(LEVELS)} coverages each, and a known origin of their noise"
        )
    return NumbersCheck(count, entry["noise"], tuple(targets))


@dataclass(frozen=True)
class PriorCheck:
    """Position of the weights under their prior.

    Attributes:
        at_edge: Share of the weights with a bounded prior in the outermost hundredth of its range
            on either side, where the prior itself has two hundredths; NaN without such a prior.
        in_tail: Share of the other weights in the tail that has a thousandth of the prior; NaN
            without.
        spread: Standard deviation over the reference inputs of the function of networks drawn from
            the prior: the median over networks, and the smallest over targets.
    """

    at_edge: float = np.nan
    in_tail: float = np.nan
    spread: float = np.nan


@dataclass(frozen=True)
class InputCheck:
    """The training input furthest from mean 0 and standard deviation 1, as the network sees it.

    Attributes:
        name: Name of its column.
        mean, stddev: Mean and standard deviation of its values.
    """

    name: str
    mean: float
    stddev: float


@dataclass(frozen=True)
class FitCheck:
    """Comparison of a model with its data.

    Attributes:
        rows: RowsCheck, or None if the training rows are not available.
        prior: PriorCheck.
        inputs: InputCheck, or None if the network scales them itself.
        is_calibrated: Whether error bars are calibrated, so that those of the draws do not matter.
        predictions: Predictions, by rows that calibrated nothing.
    """

    rows: RowsCheck | None
    prior: PriorCheck
    inputs: InputCheck | None
    is_calibrated: bool = False
    predictions: Predictions = field(default_factory=Predictions)


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)
