"""Table and figure of benchmarks/studies/convergence/run.py."""

from benchmarks.lib.common import markdown
from tfbnn.plots.canvas import GREY, line_looks, styled_figure

__all__ = ["figure", "report"]

FINDINGS = """\
No row reaches R-hat < 1.05 on 95 % of the test rows.

Neutralino: R-hat stays above 2 whatever is spent. The chains are in modes of their own: the network
with three hidden units (`tiny`) stands still at R-hat 2.10 from 0.4 to 1.7 million gradients, with
two chains at one log density (11 915) and the others 750 and 3 900 below. That is a barrier, not
slow exploration, and neither longer trajectories, nor NUTS, nor whitening renewed for half of the
time, nor the best of 16 starts changes it. At
a noise scale of 0.002 the chains are narrow, and to leave a mode they would have to fit thousands
of rows worse on the way. What it costs is bounded: the four means differ by a quarter of the
predictive standard deviation (median row), and their average predicts better than each of them.
Whitening changes how fast a mode is explored, not how many are seen. A network with P = 1962 had no
time left after its start.

Airfoil, with more noise and as many parameters as rows, is different: under a wide prior chains do
move between each other's regions. In an hour on one core (16 million gradients) R-hat falls from
1.21 to 1.09 (median) and from 1.68 to 1.26 (95 % quantile), ESS grows to 34 and the scores become
RMSE .1145 and LPD .999, against .84 for bde's four members. From there it falls slowly: ESS no
longer doubles with the draws, and chains with a frozen step size accept less in narrower regions
(0.60 overall).

Rows of three to five minutes and the long one ran at the same time as other benchmarks on
the two cores, the long one pinned to one of them: judge them by gradients. The rows raw, diagonal, airfoil, airfoil_nuts, airfoil_small and airfoil_diagonal of the script are still to be
run."""

LEGEND = """\
Four chains, start by 1000 full-batch ADAM steps and at most the Levenberg-Marquardt (LM) iterations
that the setting names, per start; ntk parameterisation, kernel prior scale 1.5, bias 1, learned
noise scale; HMC and NUTS in coordinates whitened by the Gauss-Newton matrix unless the setting says
otherwise, target acceptance 0.8. Neutralino rows have the six invariant inputs unless the setting
says raw. The clock runs from raw rows to the last draw, compilation and pretraining included;
warm-up is planned, from a short pilot run that is not counted, to take a fifth of it. The library
renews the whitening at the ends of warm-up windows that double in length, so the only way to renew
it more often is a longer warm-up: the row `refresh` spends half the time there.

Kept: draws per chain, every how many transitions. Gradients: of warm-up and sampling, all chains,
in millions; those of pretraining are not in it. R-hat (rank-normalised split, the larger of the
plain and the folded one) and bulk ESS are of the predictions at up to 300 test rows: median and
95 % quantile of R-hat over rows, the share of rows below a limit, the median ESS over all chains.
Disagreement is the standard deviation of the four chain means over that of the whole predictive
distribution, noise included, median and 95 % quantile over rows: far below 1, chains that have not
mixed still predict alike. Log density is the mean of the last quarter of the draws, chain by chain.
RMSE and LPD (mean log predictive density of all draws) are of the test rows in standardised (log10)
units. Seconds are those of pretraining, warm-up, sampling and of everything."""

HEADER = [
    "row",
    "network, setting",
    "P",
    "warm-up",
    "kept",
    "gradients / 1e6",
    "R-hat median, 95 %",
    "rows < 1.05, < 1.01",
    "ESS",
    "ESS / 1e6 gradients",
    "disagreement median, 95 %",
    "log density of chains",
    "RMSE",
    "LPD",
    "acceptance",
    "step size",
    "seconds",
]


def report(rows):
    """The whole text: rows is a dict name -> what `convergence.measure` returned."""
    table = markdown(HEADER, [line(name, row) for name, row in rows.items()])
    return f"# How far convergence gets\n\n{table}\n\n{LEGEND}\n\n## Findings\n\n{FINDINGS}"


def line(name, row):
    """One line of the table, of the last checkpoint."""
    seconds = row["seconds"]
    phases = ("pretraining", "warmup", "sampling", "wall")
    head = [
        name,
        f"{'-'.join(map(str, row['layers']))}, LM {row['newton_iterations']}, {row['about']}",
        row["parameters"],
        row["num_burnin_steps"],
    ]
    tail = [
        f"{row['acceptance']:.2f}",
        f"{row['step_size']:.2g}",
        ", ".join(f"{seconds[phase]:.0f}" for phase in phases),
    ]
    if not row["checkpoints"]:
        return [*head, "too few draws", *[""] * 9, *tail]
    last = row["checkpoints"][-1]
    return [
        *head,
        f"{last['draws']}, every {row['stride']}",
        f"{last['gradients'] / 1e6:.2f}",
        f"{last['rhat']:.3f}, {last['rhat_q95']:.3f}",
        f"{last['below_1.05']:.0%}, {last['below_1.01']:.0%}",
        f"{last['ess']:.0f}",
        f"{1e6 * last['ess'] / last['gradients']:.1f}",
        f"{last['disagreement']:.2f}, {last['disagreement_q95']:.2f}",
        ", ".join(f"{value:.0f}" for value in sorted(last["log_prob"], reverse=True)),
        f"{row['rmse']:.4f}",
        f"{row['lpd']:.3f}",
        *tail,
    ]


# Of R-hat less one.
TICKS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def figure(rows, path):
    """R-hat against gradients, both logarithmic, one panel per data set."""
    with styled_figure(1, 2, (6.5, 4.6), sharey=True) as (canvas, panels):
        for axes, title in zip(panels[0], ("neutralino", "airfoil")):
            # Others had no time left after their start.
            drawn = {
                name: row
                for name, row in rows.items()
                if (row["problem"] == "airfoil") == (title == "airfoil") and row["checkpoints"]
            }
            axes.set(title=title, xlabel="gradients of warm-up and sampling, four chains")
            if drawn:
                _draw_panel(axes, drawn)
        canvas.savefig(path, dpi=120)


def _draw_panel(axes, rows):
    looks = line_looks(len(rows))
    for index, ((name, row), look) in enumerate(zip(rows.items(), looks)):
        gradients = [point["gradients"] for point in row["checkpoints"]]
        # R-hat of chains that agree may come out below 1.
        excess = [max(point["rhat_q95"] - 1.0, 1e-3) for point in row["checkpoints"]]
        style = look | {"marker": "os^vD"[index % 5], "markersize": 4}
        axes.plot(gradients, excess, label=name, **style)
    axes.axhline(0.05, color=GREY, linestyle=":", linewidth=1, label="R-hat 1.05")
    axes.set(xscale="log", yscale="log")
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_ylim(bottom=0.03)
    _label_rhat(axes)


def _label_rhat(axes):
    ticks = [tick for tick in TICKS if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]]
    axes.set_yticks(ticks, [f"{1.0 + tick:g}" for tick in ticks])
    axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
    axes.set_ylabel("R-hat of predictions, 95 % quantile over test rows")
