"""Figures to assess a fitted model. They need Matplotlib, the extra `plots`.

Every function returns a `matplotlib.figure.Figure` without a window. Save it with
`figure.savefig("name.png")`. A notebook shows it if it is the last line of a cell. ArviZ has
figures of chains, such as traces: `az.plot_trace(model.posterior.to_arviz())`.
"""

from tfbnn.plots.chains import plot_convergence
from tfbnn.plots.classes import plot_reliability
from tfbnn.plots.predictions import plot_coverage, plot_pulls, plot_truth
from tfbnn.plots.slices import plot_relevance, plot_slices

__all__ = [
    "plot_convergence",
    "plot_coverage",
    "plot_pulls",
    "plot_relevance",
    "plot_reliability",
    "plot_slices",
    "plot_truth",
]
