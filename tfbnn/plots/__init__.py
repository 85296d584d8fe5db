"""Figures that judge a fitted model. They need Matplotlib, the extra `plots`.

Every function returns a `matplotlib.figure.Figure` that belongs to no window: save it with
`figure.savefig("name.png")`. A notebook shows it when it is the last line of a cell.
"""

from typing import Any

from tfbnn.plots.chains import plot_convergence, plot_traces
from tfbnn.plots.classes import plot_reliability
from tfbnn.plots.coverage import plot_coverage
from tfbnn.plots.inputs import plot_relevance
from tfbnn.plots.mixing import plot_autocorrelation, plot_running_means
from tfbnn.plots.predictions import plot_pulls, plot_truth
from tfbnn.plots.slices import plot_slices
from tfbnn.spec.habits import absent

__all__ = [
    "plot_autocorrelation",
    "plot_convergence",
    "plot_coverage",
    "plot_pulls",
    "plot_relevance",
    "plot_reliability",
    "plot_running_means",
    "plot_slices",
    "plot_traces",
    "plot_truth",
]


def __getattr__(name: str) -> Any:
    raise absent("tfbnn.plots", name, __all__)
