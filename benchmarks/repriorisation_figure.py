"""Figure of benchmarks/repriorisation.py."""

import numpy as np
from repriorisation_chains import METHODS
from repriorisation_report import per_step

__all__ = ["figure"]

COLOURS = dict(zip(METHODS, ("C3", "C0", "C2")))
STUDIES = {"widths": ("width", "width"), "rows": ("num_rows", "number of rows N")}
KINDS = {"weights": "100 projections of theta", "outputs": "outputs at 100 test inputs"}


def figure(rows, plan, path):
    """ESS per step against width and number of rows: of theta above, of outputs below."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(11, 8), layout="constrained")
    panels = canvas.subplots(len(KINDS), len(STUDIES), sharey="row", squeeze=False)
    for line, (kind, title) in zip(panels, KINDS.items()):
        for axes, (name, (field, label)) in zip(line, STUDIES.items()):
            for method, colour in COLOURS.items():
                keys = [f"{case.key}, {method}" for case in plan[name]]
                found = [rows[key] for key in keys if key in rows]
                if found:
                    _curve(axes, sorted(found, key=lambda row: row[field]), field, kind, colour)
            axes.set(xscale="log", yscale="log", xlabel=label, title=title)
            axes.grid(alpha=0.3)
            ticks = sorted({getattr(case, field) for case in plan[name]})
            axes.set_xticks(ticks, ticks)
            axes.tick_params(axis="x", which="minor", bottom=False)
        line[0].set_ylabel("ESS per leapfrog step: mean, min to max")
    for method, colour in COLOURS.items():
        panels[0, 0].plot([], [], "-o", color=colour, label=method)
    panels[0, 0].plot([], [], "v", color="grey", label="upper bound (fewer than 10 draws)")
    panels[0, 0].legend(fontsize="small")
    canvas.savefig(path, dpi=120)


def _curve(axes, rows, field, kind, colour):
    """Mean with the range from minimum to maximum; triangles where the mean is a bound."""
    places = np.array([row[field] for row in rows])
    values, bounds = zip(*(per_step(row, kind) for row in rows))
    smallest, mean, largest = np.array(values).T
    bounded = np.array([bound[1] for bound in bounds])
    axes.fill_between(places, smallest, largest, color=colour, alpha=0.15)
    axes.plot(places, mean, "-", color=colour)
    axes.plot(places[~bounded], mean[~bounded], "o", color=colour)
    axes.plot(places[bounded], mean[bounded], "v", color=colour)
