"""Figures of predicted class probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.plots import canvas
from tfbnn.plots.canvas import BLUE, GREY, LIGHT, Axes, Figure, plain, styled_figure
from tfbnn.plots.predictions import wilson_interval
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.system.arrays import Array

_NUM_BINS = 10
# Shares of fewer rows carry almost no information.
_FEW_ROWS = 5


class Forecasts(NamedTuple):
    """Predicted probabilities of an event for N rows, and its observed outcomes.

    Attributes:
        of: Description of the event.
        probability: Predicted probabilities [N].
        came_true: Whether the event came true [N].
        accuracy: Share of rows whose most probable class is the true one.
    """

    of: str
    probability: Array
    came_true: Array
    accuracy: float


def plot_reliability(model: SampledModel, x: ArrayLike, y: ArrayLike) -> Figure:
    """Plot a reliability diagram of a classifier: observed shares against predicted probabilities.

    With two classes, the probability is that of the second class. With more classes, it is that of
    the predicted class, whichever it is (Guo et al. 2017, arXiv:1706.04599). Rows are sorted into
    ten bins of equal width, whose counts are shown below. A point is at the mean probability of its
    bin, with the 68 % interval of the share (Wilson); it is light grey if the bin has fewer than
    five rows. There is one column of panels per target.

    Args:
        model: A fitted `BayesianMLP` with the likelihood Bernoulli or Categorical.
        x: Inputs [N, D].
        y: Labels [N], or [N, K] of several Bernoulli targets.

    Returns:
        Figure.

    Raises:
        ValueError: For numeric targets, and unusable rows.
    """
    found = find_forecasts(model, x, y)
    with styled_figure(2, len(found), (4.6, 2.8), **canvas.DOUBLE) as (figure, axes):
        for column, forecasts in enumerate(found):
            draw_reliability(axes[0, column], forecasts)
            draw_counts(axes[1, column], forecasts)
            axes[0, column].set_xlabel("")
    return figure


def find_forecasts(model: SampledModel, x: ArrayLike, y: ArrayLike) -> list[Forecasts]:
    """Compute the Forecasts of each target."""
    ensemble = model.posterior
    if not ensemble.spec.has_classes:
        raise ValueError(
            "plot_reliability is for classes; this model has the likelihood "
            f"{ensemble.spec.likelihood_name}. Use plot_pulls and plot_coverage."
        )
    rows, _ = checked_rows(ensemble, x, y, None, "this figure")
    mean = model.predict(rows.x).columns.mean
    probabilities = ensemble.spec.class_likelihood.class_probabilities(mean)  # [N, K, M]
    classes, truth = ensemble.classes or (), rows.y.astype(int)
    return [
        _forecasts(given, true, name, classes)
        for given, true, name in zip(
            np.moveaxis(probabilities, 1, 0), truth.T, map(plain, ensemble.target_names)
        )
    ]


def _forecasts(given: Array, true: Array, name: str, classes: Sequence[object]) -> Forecasts:
    """Make the Forecasts of a target from class probabilities [N, M] and true class numbers [N]."""
    best = given.argmax(axis=1)
    accuracy = float(np.mean(best == true))
    if given.shape[1] == 2:
        of = f"probability of {name} = {plain(str(classes[1]))}"
        return Forecasts(of, given[:, 1], true == 1, accuracy)
    of = f"probability of the predicted {name}"
    return Forecasts(of, given.max(axis=1), best == true, accuracy)


def draw_reliability(axis: Axes, found: Forecasts) -> None:
    """Draw observed shares against probabilities."""
    bins = np.clip((found.probability * _NUM_BINS).astype(int), 0, _NUM_BINS - 1)
    counts = np.bincount(bins, minlength=_NUM_BINS)
    some = counts > 0
    given = np.bincount(bins, found.probability, _NUM_BINS)[some] / counts[some]
    share = np.bincount(bins, found.came_true, _NUM_BINS)[some] / counts[some]
    low, high = wilson_interval(share, counts[some])
    # By rounding, a share of one may exceed its upper end.
    bars = np.maximum([share - low, high - share], 0.0)
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, label="probabilities that are right")
    few, label = counts[some] < _FEW_ROWS, "rows of a bin, 68 % interval"
    for shown, fmt, color, size, text in [
        (few, "o", LIGHT, 2, f"fewer than {_FEW_ROWS} rows"),
        (~few, "o-", BLUE, 5, label),
    ]:
        if shown.any():
            look: Any = {"fmt": fmt, "color": color, "markersize": size, "linewidth": size / 5}
            axis.errorbar(given[shown], share[shown], bars[:, shown], **look, label=text)
    axis.set(xlim=(0, 1), ylim=(-0.02, 1.02))
    axis.set_title(f"accuracy {found.accuracy:.3g}, {len(bins)} rows")
    canvas.add_labels(axis, found.of, "observed share")
    axis.legend(loc="best", fontsize="small")


def draw_counts(axis: Axes, found: Forecasts) -> None:
    """Draw a histogram of the probabilities."""
    axis.hist(found.probability, _NUM_BINS, range=(0.0, 1.0), color=BLUE, alpha=0.75)
    canvas.add_labels(axis, found.of, "rows")
    axis.locator_params(axis="y", integer=True)
