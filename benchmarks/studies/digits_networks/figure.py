"""Figure of benchmarks/studies/digits_networks/run.py."""

from benchmarks.studies.repriorisation.chains import METHODS
from benchmarks.studies.repriorisation.figure import LOOKS
from tfbnn.plots.canvas import styled_figure

__all__ = ["figure"]


def figure(rows, cases, path):
    """R-hat squared of the outputs against gradients, a panel for each network.

    Lines are the median over the outputs, bands reach from there to their 95 % quantile.
    """
    with styled_figure(1, len(cases), (4.0, 3.6), sharey=True) as (canvas, panels):
        for axes, case in zip(panels[0], cases):
            for method in METHODS:
                row = rows.get(f"{case.key}, {method}")
                if row is None:
                    continue
                gradients, median, high = zip(*row["rhat2"])
                colour, dashes = LOOKS[method]
                axes.plot(gradients, median, dashes, color=colour, label=method)
                axes.fill_between(gradients, median, high, color=colour, alpha=0.15)
            axes.set(xscale="log", yscale="log", title=case.key)
            axes.set_xlabel("gradients per chain, after the warm-up")
            axes.grid(alpha=0.3)
        panels[0, 0].set_ylabel("R-hat squared of outputs: median to 95 %")
        panels[0, 0].legend(fontsize="small")
        canvas.savefig(path, dpi=120)
