"""Table and figure of benchmarks/studies/geometry/run.py."""

import numpy as np

from benchmarks.lib.common import markdown
from tfbnn.plots.canvas import BLUE, GREY, ORANGE, styled_figure

__all__ = ["figure", "report"]

COLOURS = {"identity": GREY, "diagonal": BLUE, "gauss_newton": ORANGE}
STYLES = {"ADAM": ":", "ADAM + LM": "-"}
# Log densities closer than this to the best of a panel are shown on a linear scale.
LINEAR = 100.0
TICKS = (300, 100, 50, 0, -50, -100, -300, -1000, -3000, -10_000, -30_000, -100_000)

LEGEND = """\
Two chains of HMC with 32 leapfrog steps each, ntk parameterisation, kernel prior scale 1.5, bias 1,
learned noise scale, target log10 and standardised (neutralino, raw inputs) or standardised. Start:
1000 full-batch ADAM steps, then as many Levenberg-Marquardt (LM) iterations per chain as the table
says, at most; they are few where one takes seconds. Step size is the median of the chains, in
preconditioned coordinates, so it compares within a preconditioner only. Log density is the mean of
the chains, at the start and over the first and the last quarter of the draws: chains that still
climb have not reached the posterior, and a start near a mode falls first, because draws lie below
the mode by about half the number of parameters that the data determine. RMSE of the test rows is in
log10 (neutralino), dB (airfoil) or original units (yacht); LPD is their mean log predictive density
in transformed units. R-hat (rank-normalised split, the larger of the plain and the folded one) and
bulk ESS are of the predictions at up to 300 test rows, ESS per 1000 gradients of the sampling
phase, both chains counted. An ESS of a few says that chains disagree, whatever their number of
gradients. Whitening is part of the start-up and of the warm-up. The runs are short: they compare
geometries, they do not converge.

What is seen: on the neutralino rows the start decides (thousands of units of log density, RMSE
.056 to .017), and only whitened chains go on climbing from there; unwhitened ones stand still at
the level where Levenberg-Marquardt left them. On airfoil and yacht, with as many parameters as rows,
polished starts lie far above the level to which all chains fall, and on yacht they predict worse:
hence "auto" keeps a polished start only where it gained more than P. Whitened chains accept less
than they were tuned to (target 0.651): they leave the point that they were whitened at. HMC in
whitened coordinates has aimed at 0.8 since. Rows were measured while two or three other processes
shared the two cores: seconds are up to three times those of a quiet machine."""

HEADER = [
    "problem",
    "preconditioner",
    "start",
    "warm-up + draws",
    "step size",
    "acceptance",
    "log density: start, first, last quarter",
    "test RMSE",
    "LPD",
    "ESS",
    "ESS / 1000 gradients",
    "R-hat median, 95 %",
    "seconds: start-up, compile, pretraining, warm-up, sampling",
]


def report(rows):
    """The whole text, of the rows that `geometry.measure` returned."""
    return f"# Start and geometry\n\n{markdown(HEADER, map(line, rows))}\n\n{LEGEND}"


def line(row):
    """One line of the table."""
    phases = ("startup", "compile", "pretraining", "warmup", "sampling")
    iterations = row["newton_iterations"]
    return [
        f"{row['problem']}, P = {row['parameters']}",
        row["preconditioner"],
        f"{row['start']} {iterations}" if iterations else row["start"],
        f"{row['num_burnin_steps']} + {row['num_results']}",
        f"{row['step_size']:.2g}",
        f"{row['acceptance']:.2f}",
        ", ".join(f"{row[f'log_prob_{part}']:.0f}" for part in ("start", "first", "last")),
        f"{row['rmse']:.3g}",
        f"{row['lpd']:.3f}",
        f"{row['ess']:.1f}",
        f"{1e3 * row['ess'] / row['gradients']:.2f}",
        f"{row['rhat']:.2f}, {row['rhat_q95']:.2f}",
        ", ".join(f"{row['seconds'][phase]:.1f}" for phase in phases),
    ]


def figure(rows, path):
    """Log density traces, one panel per problem, as distances below the best of the panel."""
    names = list(dict.fromkeys(row["problem"] for row in rows))
    with styled_figure(2, 3, (4.3, 3.7)) as (canvas, grid):
        panels = grid.ravel()
        for axes, name in zip(panels, names):
            _draw_panel(axes, name, [row for row in rows if row["problem"] == name])
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        panels[-1].legend(handles, labels, loc="center", title="preconditioner, start")
        canvas.savefig(path, dpi=120)


def _draw_panel(axes, name, rows):
    best = max(max(row["trace"]) for row in rows)
    for row in rows:
        first = row["num_burnin_steps"]
        steps = first + row["trace_every"] * np.arange(len(row["trace"]))
        colour = COLOURS[row["preconditioner"]]
        axes.plot(
            [0, *steps],
            [value - best for value in (row["log_prob_start"], *row["trace"])],
            STYLES[row["start"]],
            color=colour,
            linewidth=1.5,
            label=f"{row['preconditioner']}, {row['start']}",
        )
    axes.axvline(first, color=GREY, linewidth=0.8, linestyle="--", label="end of warm-up")
    axes.set_yscale("symlog", linthresh=LINEAR)
    low, high = axes.get_ylim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.grid(axis="y", alpha=0.3)
    axes.set(title=name, xlabel="transition", ylabel="log density - best draw of the panel")
