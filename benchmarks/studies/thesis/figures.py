"""Figures of run.py, beside what the thesis has."""

import numpy as np

from benchmarks.lib.problems import neutralino
from benchmarks.studies.thesis.published import PUBLISHED
from tfbnn.plots.canvas import styled_figure

__all__ = ["EDGES", "TARGET", "draw"]

TARGET = "nlo_pdf_unc_fb"
INPUTS = ("mass of the neutralino, GeV", "N11", "N12", "N13", "N14")
STYLES = {"HMC": "C0", "NUTS": "C1"}
SWEPT = ("warm-up", "pretraining", "width")
# Of residuals by the spread of predictions alone.
EDGES = np.linspace(-6.0, 6.0, 61)
POINTS = ("nearest", "farthest from")


def draw(rows, folder):
    """Writes thesis-data.png and, of what is there, thesis-sweeps.png and -points."""
    _draw_data(folder / "thesis-data.png")
    if any(row["study"] in SWEPT for row in rows):
        _draw_sweeps(rows, folder / "thesis-sweeps.png")
    for row in rows:
        if "points" in row:
            _draw_points(row, folder / "thesis-points.png")


def _draw_data(path):
    """The training rows along each input (Figs 7.1 and 7.2)."""
    x, y = neutralino("raw", TARGET).train
    with styled_figure(1, 5, (2.6, 2.6), sharey=True) as (figure, axes):
        for axis, values, name in zip(axes.flat, x.T, INPUTS):
            axis.plot(values, y, ".", color="C0", ms=1, alpha=0.3, rasterized=True)
            axis.set_xlabel(name)
        axes.flat[0].set_yscale("log")
        axes.flat[0].set_ylabel("PDF uncertainty, fb")
        figure.savefig(path)


def _draw_sweeps(rows, path):
    """R2 of log10 by warm-up, epochs and width, leapfrog steps of NUTS, and residuals: what there is."""
    wanted = (
        ("warm-up", "transitions of warm-up", "r2_log10"),
        ("pretraining", "epochs", "r2_log10"),
        ("width", "hidden units", "r2_log10"),
        ("warm-up", "transitions of warm-up", "leapfrog_steps"),
        ("warm-up", "standardised residual", "residuals"),
        ("pretraining", "standardised residual", "residuals"),
        ("width", "standardised residual", "residuals"),
    )
    panels = [(*panel, found) for panel in wanted if (found := _shown(rows, *panel))]
    columns = min(len(panels), 3)
    with styled_figure(-(-len(panels) // columns), columns, (4.0, 3.0)) as (figure, axes):
        for axis in axes.flat[len(panels) :]:
            axis.remove()
        for axis, (study, label, what, found) in zip(axes.flat, panels):
            if what == "residuals":
                _draw_residuals(axis, found)
            else:
                _draw_sweep(axis, found, study, what)
            axis.set_xlabel(label)
            axis.set_title(f"{study}: {NAMES[what]}")
        figure.savefig(path)


def _shown(rows, study, _, what):
    """The rows of a panel."""
    kernels = {"leapfrog_steps": ("NUTS",), "residuals": ("HMC",)}.get(what, tuple(STYLES))
    return [row for row in rows if row["study"] == study and row["kernel"] in kernels]


# Chains that have learnt nothing are at the lower edge: the others would be one line beside them.
LEAST_R2 = 0.96
NAMES = {
    "r2_log10": f"R2 of log10, test (at least {LEAST_R2})",
    "leapfrog_steps": "leapfrog steps of NUTS",
    "residuals": "residuals of HMC",
}


def _draw_sweep(axis, found, study, what):
    for kernel, colour in STYLES.items():
        theirs = PUBLISHED.get((study, kernel, what))
        if theirs:
            axis.plot(*zip(*sorted(theirs.items())), "--", color=colour, label=f"{kernel}, thesis")
        for again, marker in ((False, "o-"), (True, "o")):
            ours = sorted(
                (
                    row["value"],
                    max(row[what]["test"], LEAST_R2) if what == "r2_log10" else row[what],
                )
                for row in found
                if row["kernel"] == kernel and (row.get("seed", 0) > 0) == again
            )
            label = f"{kernel}, other seeds" if again else kernel
            look = {"fillstyle": "none"} if again else {}
            if ours:
                axis.plot(*zip(*ours), marker, color=colour, label=label, **look)
    axis.set_xscale("log")
    axis.legend(fontsize=7)


def _draw_residuals(axis, found):
    """Densities of what HMC leaves, and the standard normal one."""
    centres, width = (EDGES[1:] + EDGES[:-1]) / 2, EDGES[1] - EDGES[0]
    axis.plot(centres, np.exp(-(centres**2) / 2) / np.sqrt(2 * np.pi), "k:", label="normal")
    first = [row for row in found if not row.get("seed")]
    for row in sorted(first, key=lambda row: row["value"]):
        counts = np.array(row["residuals"])
        if row["spread"] == 0.0:
            continue  # of a chain that stood still
        axis.plot(centres, counts / counts.sum() / width, lw=1, label=row["value"])
    axis.legend(fontsize=6)


def _draw_points(row, path):
    """Predictions at two test rows (Fig 8.13)."""
    with styled_figure(1, 2, (4.0, 3.0)) as (figure, axes):
        for axis, point, relation in zip(axes.flat, row["points"], POINTS):
            axis.hist(point["draws"], 30, color="0.7")
            axis.axvline(np.mean(point["draws"]), color="k", label="mean")
            axis.axvline(point["target"], color="C3", label="target")
            axis.set_xlabel("log10 of the target")
            axis.set_title(f"the test row {relation} its mean")
            axis.legend()
        figure.savefig(path)
