"""Figure of benchmarks/studies/relu_inefficiency/run.py."""

import numpy as np

from benchmarks.studies.relu_inefficiency.published import OPTIMUM
from benchmarks.studies.relu_inefficiency.report import (
    efficiency_curve,
    mean_acceptance,
    start_name,
)
from tfbnn.plots.canvas import BLUE, GREEN, ORANGE, styled_figure

__all__ = ["figure"]

COLOURS = {"sigmoid": BLUE, "relu": ORANGE, "leaky_relu": GREEN}
MARKS = {"sigmoid": "o", "relu": "s", "leaky_relu": "^"}


def figure(found, path):
    """Four panels: acceptance, efficiency, size, local error."""
    with styled_figure(2, 2, (6.0, 4.25)) as (canvas, panels):
        for axes, (name, draw) in zip(panels.ravel(), PANELS.items()):
            if found[name]:
                draw(axes, found[name])
                axes.grid(alpha=0.3)
                axes.legend(fontsize="small")
        canvas.savefig(path, dpi=120)


def _acceptance(axes, rows):
    lengths = sorted({row["num_leapfrog_steps"] for row in rows})
    for name, colour in COLOURS.items():
        for length, style in zip(dict.fromkeys((lengths[0], lengths[-1])), ("-", "--")):
            chosen = [
                row
                for row in rows
                if row["activation"] == name and row["num_leapfrog_steps"] == length
            ]
            rates = [mean_acceptance(row) for row in chosen]
            steps = [row["step_size"] for row in chosen]
            look = {"marker": MARKS[name], "color": colour, "label": f"{name}, L = {length}"}
            axes.plot(steps, rates, style, **look)
    axes.set(title="acceptance", xlabel="step size", ylim=(0.0, 1.02))
    axes.set_xticks(sorted({row["step_size"] for row in rows}))


def _efficiency(axes, rows):
    for name, colour in COLOURS.items():
        axes.axvline(OPTIMUM[name], color=colour, linestyle=":")
        starts = dict.fromkeys(row["start"] for row in rows)
        for start, style in zip(starts, ("--", ":", "-")):
            chosen = [row for row in rows if row["activation"] == name and row["start"] == start]
            if not chosen:
                continue
            steps, rates = efficiency_curve(chosen)
            look = {"marker": MARKS[name], "color": colour, "label": f"{name}, {start_name(start)}"}
            axes.plot(rates, steps * rates, style, **look)
    axes.set(
        title="efficiency at eps L = 0.1, dotted: published optima",
        xlabel="acceptance",
        ylabel="eps * acceptance",
    )


def _architecture(axes, rows):
    for name, colour in COLOURS.items():
        chosen = [row for row in rows if row["activation"] == name]
        for deep, style in ((False, "-"), (True, "--")):
            family = [row for row in chosen if (set(row["hidden"]) == {20}) == deep]
            if not family:
                continue
            sizes = [row["parameters"] for row in family]
            rates = [mean_acceptance(row) for row in family]
            label = f"{name}, {'1 to 4 layers of 20' if deep else 'one hidden layer'}"
            axes.plot(sizes, rates, style, marker=MARKS[name], color=colour, label=label)
    axes.set(title="acceptance", xlabel="parameters", xscale="log")
    ticks = (30, 100, 300, 1000)
    axes.set_xticks(ticks, ticks)
    axes.tick_params(axis="x", which="minor", labelbottom=False)


def _local_error(axes, rows):
    for row in rows:
        steps, name = np.array(row["step_size"]), row["activation"]
        look = {"marker": MARKS[name], "color": COLOURS[name]}
        axes.loglog(steps, row["mean"], "-", **look, label=f"{name}, all steps")
        if name != "sigmoid":
            errors = np.array(row["mean_crossing"], float)
            label = f"{name}, steps that cross a kink"
            axes.loglog(steps, errors, "--", **look, label=label)
    axes.set(title="one leapfrog step", xlabel="step size", ylabel="mean |error of the energy|")


PANELS = {
    "acceptance": _acceptance,
    "efficiency": _efficiency,
    "architecture": _architecture,
    "local_error": _local_error,
}
