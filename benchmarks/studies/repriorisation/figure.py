"""Figure of benchmarks/studies/repriorisation/run.py."""

import numpy as np

from benchmarks.studies.repriorisation.chains import METHODS
from benchmarks.studies.repriorisation.report import per_step
from tfbnn.plots.canvas import BLUE, GREEN, GREY, ORANGE, styled_figure

__all__ = ["LOOKS", "figure"]

# A colour and a line for each method.
LOOKS = dict(zip(METHODS, ((ORANGE, ":"), (BLUE, "-"), (GREEN, "--"))))
STUDIES = {"widths": ("width", "width"), "rows": ("num_rows", "number of rows N")}
KINDS = {"weights": "100 projections of theta", "outputs": "outputs at 100 test inputs"}


def figure(rows, plan, path):
    """ESS per step against width and number of rows: of theta above, of outputs below."""
    with styled_figure(len(KINDS), len(STUDIES), (5.5, 4.0), sharey="row") as (canvas, panels):
        for line, (kind, title) in zip(panels, KINDS.items()):
            for axes, (name, (field, label)) in zip(line, STUDIES.items()):
                for method in LOOKS:
                    keys = [f"{case.key}, {method}" for case in plan[name]]
                    found = [rows[key] for key in keys if key in rows]
                    if found:
                        found = sorted(found, key=lambda row: row[field])
                        _curve(axes, found, field, kind, *LOOKS[method])
                axes.set(xscale="log", yscale="log", xlabel=label, title=title)
                axes.grid(alpha=0.3)
                ticks = sorted({getattr(case, field) for case in plan[name]})
                axes.set_xticks(ticks, ticks)
                axes.tick_params(axis="x", which="minor", bottom=False)
            line[0].set_ylabel("ESS per leapfrog step: mean, min to max")
        _legend(panels[0, 0])
        canvas.savefig(path, dpi=120)


def _legend(axes):
    for method, (colour, dashes) in LOOKS.items():
        axes.plot([], [], marker="o", linestyle=dashes, color=colour, label=method)
    axes.plot([], [], "v", color=GREY, label="upper bound (fewer than 10 draws)")
    axes.legend(fontsize="small")


def _curve(axes, rows, field, kind, colour, dashes):
    """Mean with the range from minimum to maximum; triangles where the mean is a bound."""
    positions = np.array([row[field] for row in rows])
    values, bounds = zip(*(per_step(row, kind) for row in rows))
    smallest, mean, largest = np.array(values).T
    bounded = np.array([bound[1] for bound in bounds])
    axes.fill_between(positions, smallest, largest, color=colour, alpha=0.15)
    axes.plot(positions, mean, dashes, color=colour)
    axes.plot(positions[~bounded], mean[~bounded], "o", color=colour)
    axes.plot(positions[bounded], mean[bounded], "v", color=colour)
