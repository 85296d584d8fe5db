"""Table and figure of benchmarks/studies/convergence/run.py."""

from benchmarks.lib.common import commits_of, markdown
from tfbnn.plots.canvas import GREY, line_looks, styled_figure

__all__ = ["figure", "report"]

FINDINGS = """\
No run reaches R-hat < 1.05 on 95 % of the test rows.

Neutralinos: the median R-hat stays above 1.69 in all runs. Each chain is in a mode of its own. With three
hidden units (run `tiny`) R-hat is 2.10 from 0.9 to 5.5 million gradients. Two chains have nearly the same log
density (11 915), and the others are 750 and 3 890 below. Barriers separate the modes: longer trajectories and
NUTS explore a mode faster, so that R-hat is 1.7 where it is 1.8 to 2.1 with 32 steps, but the log densities of
the chains stay 500 apart. The best of 16 starts, each with a shorter start, are worse. With a noise scale of
0.002 the modes are narrow, and a chain that leaves one has to fit thousands of rows worse on the way. The
effect on predictions is limited: the four chain means differ by a fifth to a quarter of the predictive standard
deviation (median row). Run `refresh` renewed the whitening until its time was over.

Airfoil has more noise, and as many parameters as rows. Under a wide prior, chains move between each other's
regions. In twenty minutes (10 million gradients) R-hat falls from 1.22 to 1.08 (median) and from 1.57 to 1.28
(95 % quantile). ESS grows to 34, RMSE is .1163, and LPD is .999; LPD of four members of bde is .84. From there
R-hat falls slowly. ESS no longer doubles with the draws, and chains with a frozen step size accept less in
narrower regions (0.65 overall).

Tests of this package ran with low priority beside some runs. Compare runs by gradients, not by seconds."""

LEGEND = """\
Each run has four chains. A chain starts from 1000 full-batch steps of ADAM (5000 in run `long`), followed by
at most as many iterations of Levenberg-Marquardt (LM) as the setting names. Networks are in the ntk
parameterisation, with prior scale 1.5 for kernels and 1 for biases, and a learned noise scale. The number
after HMC is that of leapfrog steps, and the depth after NUTS that of the largest tree. HMC and NUTS move in
coordinates whitened by the Gauss-Newton matrix unless the setting says otherwise, with a target acceptance of
0.8. Runs on neutralinos have the six invariant inputs unless the setting says raw. The wall-clock time is
from raw rows to the last draw, compilation and pretraining included. A short pilot run, which is not counted,
plans warm-up to take a fifth of the wall-clock time. The whitening is renewed at the ends of warm-up windows
that double in length, so a longer warm-up renews it more often: run `refresh` spends half the time in
warm-up.

P is the number of parameters. Warm-up is in transitions. Kept: draws per chain, and the number of transitions
per draw. Gradients are those of warm-up and sampling of all chains; those of pretraining are not counted.
R-hat (rank-normalised split, the larger of the plain and the folded one) and bulk ESS are of the predictions
at up to 300 test rows: median and 95 % quantile of R-hat over rows, the share of rows below a limit, and the
median ESS over all chains. Disagreement is the standard deviation of the four chain means divided by that of
the predictive distribution, noise included: median and 95 % quantile over rows. If it is far below 1, chains
that have not mixed predict alike. The log density of a chain is its mean over the last quarter of the draws.
RMSE and LPD (mean log predictive density per row, of all draws) are of the test rows, with standardised
targets (neutralinos: their log10). Seconds are those of pretraining, warm-up, sampling, and the whole run."""

HEADER = [
    "run",
    "data, network, setting",
    "P",
    "warm-up",
    "kept",
    "gradients, millions",
    "R-hat: median, 95 %",
    "rows with R-hat < 1.05, < 1.01",
    "ESS: median",
    "ESS per million gradients",
    "disagreement: median, 95 %",
    "log density of each chain, nats",
    "RMSE",
    "LPD",
    "acceptance",
    "step size",
    "seconds: pretraining, warm-up, sampling, all",
]


def report(rows):
    """The whole text: rows is a dict name -> what `convergence.measure` returned."""
    table = markdown(HEADER, [line(name, row) for name, row in rows.items()])
    made = f"Rows were measured at {commits_of(rows.values())}."
    return (
        f"# How far convergence gets\n\n{table}\n\n{LEGEND}\n\n## Findings\n\n{FINDINGS}\n\n{made}"
    )


def line(name, row):
    """One line of the table, of the last checkpoint."""
    seconds = row["seconds"]
    phases = ("pretraining", "warmup", "sampling", "wall")
    data = "airfoil" if row["problem"] == "airfoil" else "neutralinos"
    head = [
        name,
        f"{data}, {'-'.join(map(str, row['layers']))}, LM {row['newton_iterations']}, {row['about']}",
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
