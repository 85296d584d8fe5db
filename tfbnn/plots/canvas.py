"""Common parts of all figures: style, colours, names, and checks of rows as in `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING, Any

from tfbnn.diagnostics.wording import shown
from tfbnn.posterior import checks
from tfbnn.posterior.metrics import RowScores, row_scores
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import NetworkRows, Rows
from tfbnn.system.arrays import Array
from tfbnn.system.words import required

# Matplotlib is imported only when a figure is drawn.
if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PINK, AMBER, SKY = "#CC79A7", "#E69F00", "#56B4E9"
GREY, LIGHT = "#555555", "#BBBBBB"
_CYCLE = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
_LINES = ("-", "--", ":", "-.")
# With more rows, points are rasterised in vector graphics, which would otherwise be too large.
MOST_VECTORS = 300
# Longer names are cut in the middle, and labels of more letters are broken.
_MOST_CHARACTERS, _X_LABEL, _Y_LABEL = 26, 38, 28
# A large panel above a small one, with a common horizontal axis.
DOUBLE: dict[str, Any] = {"height_ratios": [3, 1], "sharex": "col"}
_STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "font.size": 10,
    "legend.frameon": False,
    "text.usetex": False,  # names of columns are not LaTeX
    # In a page, text uses the reader's fonts, and equal figures give equal SVG texts.
    "svg.fonttype": "none",
    "svg.hashsalt": "tfbnn",
}


def colors(count: int) -> list[str]:
    """Return `count` colours; they repeat after six."""
    return [_CYCLE[index % len(_CYCLE)] for index in range(count)]


def line_looks(count: int) -> list[dict[str, Any]]:
    """Return colours and line styles of `count` lines; lines of one colour differ in style."""
    return [
        {"color": color, "linestyle": _LINES[index % len(_LINES)]}
        for index, color in enumerate(colors(count))
    ]


def plain(name: str, most: int = _MOST_CHARACTERS) -> str:
    """Escape a name so that Matplotlib draws it literally, and cut out the middle of a long one.

    Long names often differ only at their end. In Matplotlib a dollar begins a formula, and a label
    that begins with an underscore is left out of legends.
    """
    name = shown(name)
    if len(name) > most:
        name = f"{name[: most // 2]}…{name[most // 2 + 1 - most :]}"
    return f"{' ' if name.startswith('_') else ''}{name}".replace("$", r"\$")


def add_labels(axis: Axes, x: str, y: str) -> None:
    """Label the axes, in several lines where one would reach beyond the figure."""
    # A break within a name could divide an escaped dollar.
    whole: dict[str, Any] = {"break_long_words": False}
    axis.set(xlabel=fill(x, _X_LABEL, **whole), ylabel=fill(y, _Y_LABEL, **whole))


@contextmanager
def styled_figure(
    num_rows: int, num_columns: int, panel: tuple[float, float], **options: Any
) -> Iterator[tuple[Figure, Array]]:
    """Yield a Figure without a window, and its axes [num_rows, num_columns], in the common style.

    Args:
        num_rows, num_columns: Numbers of rows and columns of panels.
        panel: (width, height) of one panel in inches.
        **options: Options of `Figure.subplots`, such as sharex or height_ratios.
    """
    matplotlib = required("matplotlib", "Plots need Matplotlib", "plots")
    from matplotlib.figure import Figure

    size = (panel[0] * num_columns, panel[1] * num_rows)
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained", dpi=110)
        yield figure, figure.subplots(num_rows, num_columns, squeeze=False, **options)
        # Ticks are created when drawn, as copies of the first, which is created here in this style.
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            axis.get_major_ticks(1)
            axis.get_minor_ticks(1)


def add_legend(axis: Axes) -> None:
    """Add a legend above the axes, where it covers nothing."""
    anchor: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    axis.legend(**anchor, borderaxespad=0.2, fontsize="small", handlelength=1.5)


def checked_rows(model: SampledModel, x: Any, y: Any, noise_scale: Any) -> tuple[Rows, NetworkRows]:
    """Check rows for a figure of numeric targets; return (Rows, NetworkRows)."""
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
    """Check rows, and score them by the predictive distribution."""
    rows, transformed = checked_rows(model, x, y, noise_scale)
    return row_scores(
        model.posterior, rows.y, transformed, include_noise=include_noise, pulls_alone=True
    )
