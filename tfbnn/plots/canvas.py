"""Common parts of all figures: style, colours, names, and rows that are checked as in `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tfbnn.diagnostics.wording import shown
from tfbnn.posterior import checks
from tfbnn.posterior.metrics import RowScores, row_scores
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import NetworkRows, Rows
from tfbnn.system.arrays import Array
from tfbnn.system.words import required

# Matplotlib is imported when a figure is drawn.
if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PINK, AMBER, SKY = "#CC79A7", "#E69F00", "#56B4E9"
GREY, LIGHT = "#555555", "#BBBBBB"
_CYCLE = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
_LINES = ("-", "--", ":", "-.")
# Points of more rows are drawn as an image in vector graphics, which would be too large.
MOST_VECTORS = 300
_MOST_CHARACTERS = 40
# A large panel above a small one, with one horizontal axis.
DOUBLE: dict[str, Any] = {"height_ratios": [3, 1], "sharex": "col"}
_STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "font.size": 10,
    "legend.frameon": False,
    "text.usetex": False,  # names of columns are no LaTeX
    # In a page text is drawn by the fonts of its reader, and equal figures are equal texts.
    "svg.fonttype": "none",
    "svg.hashsalt": "tfbnn",
}


def colors(count: int) -> list[str]:
    """`count` colours, repeated where there are more than six."""
    return [_CYCLE[index % len(_CYCLE)] for index in range(count)]


def line_looks(count: int) -> list[dict[str, Any]]:
    """Colours and styles of `count` lines; by their styles those of one colour can be told apart."""
    return [
        {"color": color, "linestyle": _LINES[index % len(_LINES)]}
        for index, color in enumerate(colors(count))
    ]


def plain(name: str, most: int = _MOST_CHARACTERS) -> str:
    """Return a name of the user's or of a file's as Matplotlib draws it letter by letter, cut where long.

    A dollar begins a formula there, and a label that begins with an underscore is left out of legends.
    """
    name = shown(name)
    if len(name) > most:
        name = f"{name[: most - 1]}…"
    return f"{' ' if name.startswith('_') else ''}{name}".replace("$", r"\$")


@contextmanager
def styled_figure(
    num_rows: int, num_columns: int, panel: tuple[float, float], **options: Any
) -> Iterator[tuple[Figure, Array]]:
    """Yield a Figure of no window with axes [num_rows, num_columns], drawn in the common style.

    Args:
        num_rows, num_columns: The grid.
        panel: (width, height) of one panel in inches.
        **options: Further ones of `Figure.subplots`, such as sharex or height_ratios.
    """
    matplotlib = required("matplotlib", "Plots need Matplotlib", "plots")
    from matplotlib.figure import Figure

    size = (panel[0] * num_columns, panel[1] * num_rows)
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained", dpi=110)
        yield figure, figure.subplots(num_rows, num_columns, squeeze=False, **options)
        # Ticks are made when they are drawn, each like the first, which is made here in this style.
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            axis.get_major_ticks(1)
            axis.get_minor_ticks(1)


def add_legend(axis: Axes, num_columns: int = 1) -> None:
    """Return a legend above the axes, where it covers nothing."""
    axis.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        fontsize="small",
        ncols=num_columns,
        columnspacing=0.8,
        handlelength=1.5,
    )


def checked_rows(model: SampledModel, x: Any, y: Any, noise_scale: Any) -> tuple[Rows, NetworkRows]:
    """(Rows, NetworkRows), refused where they do not fit."""
    ensemble = model.posterior
    if ensemble.spec.has_classes:
        raise ValueError(
            "plot_truth, plot_pulls and plot_coverage are for targets that are numbers; this model "
            f"has the likelihood {ensemble.spec.likelihood_name}. Use plot_reliability."
        )
    return checks.checked_rows(ensemble, x, y, noise_scale, "this figure")


def scored_rows(
    model: SampledModel, x: Any, y: Any, noise_scale: Any, include_noise: bool = True
) -> RowScores:
    """Score rows by the predictive distribution; refuse them where they do not fit."""
    rows, transformed = checked_rows(model, x, y, noise_scale)
    return row_scores(
        model.posterior, rows.y, transformed, include_noise=include_noise, pulls_alone=True
    )
