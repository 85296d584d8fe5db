"""Figures that judge a fitted model. They need Matplotlib, the extra `plots`.

Every function returns a `matplotlib.figure.Figure` that belongs to no window: save it with
`figure.savefig("name.png")`. A notebook shows it when it is the last line of a cell.
"""

from tfbnn.plots.chains import plot_convergence, plot_traces
from tfbnn.plots.predictions import plot_coverage, plot_pulls, plot_truth

__all__ = ["plot_convergence", "plot_coverage", "plot_pulls", "plot_traces", "plot_truth"]
