"""Table and figure of benchmarks/studies/geometry/run.py."""

import numpy as np

from benchmarks.lib.common import commits_of, markdown
from tfbnn.plots.canvas import BLUE, GREY, ORANGE, styled_figure

__all__ = ["figure", "report"]

COLOURS = {"identity": GREY, "diagonal": BLUE, "gauss_newton": ORANGE}
STYLES = {"ADAM": ":", "ADAM + LM": "-"}
# Log densities closer than this to the best of a panel are shown on a linear scale.
LINEAR = 100.0
TICKS = (300, 100, 50, 0, -50, -100, -300, -1000, -3000, -10_000, -30_000, -100_000)

LEGEND = """\
Each row is a run of two chains of HMC with 32 leapfrog steps. Networks are in the ntk parameterisation, with
prior scale 1.5 for kernels and 1 for biases, and a learned noise scale. P is the number of parameters. Inputs
of the neutralinos are raw. Targets are standardised, those of the neutralinos after log10. Chains start from
1000 full-batch steps of ADAM, followed by at most as many iterations of Levenberg-Marquardt (LM) as the start
says; the number is small if an iteration takes seconds. The preconditioner gauss_newton is whitening by the
Gauss-Newton matrix.

Step size is the median of the chains, in preconditioned coordinates. Compare it only between rows with the same
preconditioner. Log density is the mean of the chains, at the start and over the first and the last quarter of
the draws. Chains whose log density still rises have not reached the posterior. From a start near a mode the log
density falls first, because draws lie below the mode by about half the number of parameters that the data
determine. RMSE of the test rows is in log10 (neutralinos), dB (airfoil) or original units (yacht). R-hat
(rank-normalised split, the larger of the plain and the folded one) and bulk ESS are of the predictions at up to
300 test rows. ESS is given in all, and per 1000 gradients of sampling of both chains. An ESS of a few means
that the chains disagree, whatever the number of gradients. Whitening is part of the start-up and of the
warm-up. The runs are too short to converge; they compare geometries.

Results: on neutralinos the start decides: it changes the log density by thousands, and with 5-20-20-1 the RMSE
from .06 to .016. After LM has converged (5-20-20-1 and 5-50-1) no preconditioner changes the RMSE. With
5-50-50-1, where LM made 12 iterations only, and after ADAM alone, whitened chains gain most in the same number
of gradients. Airfoil and yacht have as many parameters as rows. There, starts by LM lie above the level to
which the chains fall, and on yacht they predict worse. Therefore "auto" keeps a start by LM only if it predicts
held-out rows better, or, without such rows, if it gained more than P. Whitened chains have a target acceptance
of 0.8, others of 0.651. Where they leave the point at which they were whitened, they accept less: .30 and .57
after ADAM on neutralinos, and .46 on yacht."""

HEADER = [
    "data and network",
    "preconditioner",
    "start",
    "warm-up + draws",
    "step size",
    "acceptance",
    "log density, nats: start, first, last quarter",
    "test RMSE",
    "ESS: median",
    "ESS per 1000 gradients",
    "R-hat: median, 95 %",
    "seconds: start-up, compilation, pretraining, warm-up, sampling",
]


def report(rows):
    """The whole text, of the rows that `geometry.measure` returned."""
    made = f"Rows were measured at {commits_of(rows)}."
    return (
        f"# Starts and preconditioners\n\n{markdown(HEADER, map(line, rows))}\n\n{LEGEND}\n\n{made}"
    )


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
