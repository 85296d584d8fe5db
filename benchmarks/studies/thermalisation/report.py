"""Table and figure of benchmarks/studies/thermalisation/run.py."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.lib.common import keep, markdown

__all__ = ["agrees", "publish"]

# What agreement is: log densities within so many standard errors, and R-hat of all four chains below
# this at 95 % of the reference inputs.
MOST_Z, MOST_RHAT = 3.0, 1.05
# Chains of the library.
NUM_CHAINS = 3

HEADER = [
    "rows",
    "width",
    "noise",
    "teacher",
    "chains agree",
    "difference of log densities, nats",
    "difference, standard errors",
    "default chains at the level",
    "rank of the teacher",
    "inputs with R-hat < 1.05, four chains",
    "R-hat, 95 %: four chains, default, teacher's",
    "RMSE: teacher's chain, default",
    "gradients per chain",
    "draws",
    "leapfrog steps",
    "acceptance: teacher's chain, default",
    "time, s",
]

LEGEND = f"""\
Every row of the table is one teacher network, which is drawn from the prior and generates the rows of data.
The teacher is an exact draw of the posterior. One chain starts at the teacher, and three at the starts of the
default search; all have the same kernel and number of transitions. During warm-up, step size and
preconditioner of the teacher's chain adapt. Apart from this adaptation, the kernel leaves the posterior
invariant, so every state of this chain is a draw of the posterior, even if the chain moves slowly.

The difference of log densities is the mean of the default chains minus that of the teacher's chain, in nats
and in Monte Carlo standard errors. These are too small if one chain hardly moves, and large if the default
chains disagree. A default chain is at the level of the teacher if its mean is within a standard deviation of
the log density in the teacher's chain. The rank is the share of draws of the default chains with a log
density below that of the teacher. Over many teachers it is uniform on [0, 1] if the default chains sample the
posterior. R-hat (rank-normalised split, the larger of the plain and the folded one) is of the predictions at
300 new inputs. RMSE is that of the mean prediction there, from the teacher's function. Draws are written as
warm-up + draws x transitions per draw; acceptances are those of the teacher's chain and of the default
chains.

The chains agree if all default chains are at the level of the teacher, if the means of the log density differ
by at most {MOST_Z:g} standard errors, and if R-hat of the four chains is below {MOST_RHAT} at 95 % of the
inputs. A disagreement may only mean that the run is short. R-hat of the teacher's chain alone, which does not
have to find anything, shows how far a chain gets with this number of gradients.

Results, for one teacher in each case and runs of one to four minutes beside other processes: all default
chains are at the level of the teacher in 22 of 24 cases. In the nine cases with at least two rows per weight
and noise of at most .03, they start from two cooled populations. Eight of these are at the level; in the
ninth (32 units, noise .003) one of three chains is 34 nats below. From ADAM and Levenberg-Marquardt, the
earlier default, four of the nine were at the level, and chains at noise .003 were up to 3494 nats below. The
other case below the level has 128 units, 1.3 rows per weight and noise .003, where no population is used.
Starts are 230 to 350 nats above the teacher, near maxima, and chains end 134 nats below it. Cases at the
level that do not agree have too few gradients, as R-hat of the teacher's chain shows. An exception has 8
units, 1000 rows and noise .03: the step size that suits the start diverges later, also from the teacher.
R-hat of the default chains alone shows every failure."""


def agrees(row):
    """The verdict on one row."""
    return is_level(row) and row["all"]["rhat_q95"] < MOST_RHAT


def is_level(row):
    """Return whether the log densities agree.

    Chains that stand apart have a large standard error together, which would excuse them.
    """
    return abs(row["log_prob"]["z"]) <= MOST_Z and num_at_level(row) == NUM_CHAINS


def num_at_level(row):
    """Return how many of the library's chains have the mean log density of the teacher's chain."""
    taught, *own = row["log_prob"]["means"]
    return sum(abs(mean - taught) < row["log_prob"]["stddev"] for mean in own)


def publish(rows, missing, folder):
    """Writes table and figure of the rows there are, and names those that are missing."""
    if not rows:
        return
    rows = sorted(rows, key=lambda row: (*_setting(row), row["teacher"]))
    rates = _rates(rows)
    if missing:
        rates += f"\n- not measured yet: {'; '.join(missing)}"
    parts = [
        "# Thermalisation: chains from default starts and from a teacher",
        markdown(HEADER, map(_line, rows)),
        rates,
        LEGEND,
    ]
    keep("thermalisation.md", "\n\n".join(parts), folder)
    figure(rows, folder / "thermalisation.png")


def _setting(row):
    return row["num_rows"], row["width"], -row["noise"]


def _line(row):
    level, everyone = row["log_prob"], row["all"]
    return [
        row["num_rows"],
        row["width"],
        f"{row['noise']:g}",
        row["teacher"],
        "yes" if agrees(row) else "no",
        f"{level['difference']:+.1f}",
        f"{level['z']:+.1f}",
        f"{num_at_level(row)} of {NUM_CHAINS}",
        f"{level['rank']:.2f}",
        f"{100 * everyone['below_1.05']:.0f} %",
        ", ".join(f"{row[name]['rhat_q95']:.2f}" for name in ("all", "library", "taught")),
        ", ".join(f"{rmse:.4f}" for rmse in row["rmse"]),
        row["gradients"],
        f"{row['num_burnin_steps']} + {row['num_results']} x {row['stride']}",
        row["num_leapfrog_steps"],
        ", ".join(f"{rate:.2f}" for rate in row["acceptance"]),
        f"{row['wall']:.0f}",
    ]


def _rates(rows):
    """Return a text on how many cases agree, in all and by each setting that makes a cell."""
    lines = [f"- in all: {_rate(rows)}"]
    for name in ("num_rows", "width", "noise"):
        values = sorted({row[name] for row in rows})
        told = (f"{v:g}: {_rate([row for row in rows if row[name] == v])}" for v in values)
        lines.append(f"- by {name.replace('num_', '')}: {'; '.join(told)}")
    apart = [row for row in rows if not agrees(row)]
    level = list(filter(is_level, apart))
    silent = [row for row in apart if row["library"]["rhat_q95"] < MOST_RHAT]
    lines += [
        f"- by log density alone: {_rate(rows, is_level)}",
        f"- among the {len(apart)} cases that do not agree, all default chains are at the level of the teacher in "
        f"{len(level)}, where the runs are too short to tell more; in {len(apart) - len(level)} some chains are not",
        f"- R-hat of the default chains alone does not show the disagreement in {len(silent)} of these {len(apart)}",
        f"- estimated time of a case on one core: {_listed({row['seconds'] for row in rows})} s; commits "
        f"{_listed({row['commit'] for row in rows})}",
    ]
    return "Cases in which the chains agree:\n\n" + "\n".join(lines)


def _rate(rows, verdict=agrees):
    return f"{sum(map(verdict, rows))} of {len(rows)}"


def _listed(values):
    return ", ".join(
        f"{value:g}" if isinstance(value, float) else value for value in sorted(values)
    )


def figure(rows, path):
    """R-hat, and the difference of the log densities: a map of noise and width for each N."""
    from matplotlib.figure import Figure

    counts, widths, noises = (
        sorted({row[name] for row in rows}) for name in ("num_rows", "width", "noise")
    )
    canvas = Figure(figsize=(3.0 + 4.2 * len(counts), 8.5), layout="constrained")
    panels = canvas.subplots(len(MAPS), len(counts), squeeze=False)
    for line, one in zip(panels, MAPS):
        for axes, count in zip(line, counts):
            image = _panel(
                axes, one, [row for row in rows if row["num_rows"] == count], widths, noises[::-1]
            )
            axes.set_title(f"{one.title}, {count} rows", fontsize="medium")
        bar = canvas.colorbar(image, ax=list(line), shrink=0.8)
        ticks = np.arange(np.ceil(one.low), one.high + 0.5)
        bar.set_ticks(ticks, labels=[f"{10.0**tick:g}" for tick in ticks])
        bar.set_label(one.scale)
    canvas.suptitle("Chains from the library's starts and one from the teacher\nblue: the same")
    canvas.savefig(path, dpi=120)


def _panel(axes, one, rows, widths, noises):
    """Draws a Map of one number of rows, medians over teachers; returns the image."""
    from matplotlib.colors import TwoSlopeNorm

    norm = TwoSlopeNorm(one.change, one.low, one.high)
    shown = np.full((len(noises), len(widths)), np.nan)
    for row in rows:
        index = noises.index(row["noise"]), widths.index(row["width"])
        cell = [other for other in rows if _setting(other) == _setting(row)]
        shown[index] = np.log10(np.median([one.value(other) for other in cell]))
        is_dark = abs(norm(shown[index]) - 0.5) > 0.3  # ends of the scale
        axes.text(
            *index[::-1],
            f"{one.told(cell)}\n{_rate(cell)} agree",
            ha="center",
            va="center",
            fontsize="small",
            color="white" if is_dark else "black",
        )
    axes.set_xticks(range(len(widths)), widths)
    axes.set_yticks(range(len(noises)), noises)
    axes.set(xlabel="width", ylabel="noise")
    shown = np.clip(shown, one.low, one.high)
    return axes.imshow(shown, cmap="RdBu_r", norm=norm, aspect="auto")


class Map(NamedTuple):
    """One line of the figure.

    Attributes:
        title: Of its panels.
        scale: What the colours are.
        value: Of a row, positive; colours go by its logarithm.
        change: Of that, where the colour changes.
        low, high: Ends of the scale.
        told: What is written into a cell, given its rows.
    """

    title: str
    scale: str
    value: Callable
    change: float
    low: float
    high: float
    told: Callable


def _excess(row):
    # R-hat may fall below one by chance.
    return max(row["all"]["rhat_q95"] - 1.0, 1e-3)


def _distance(row):
    return max(abs(row["log_prob"]["difference"]) / row["log_prob"]["stddev"], 1e-2)


def _rhat_of(cell):
    rhat = np.median([row["all"]["rhat_q95"] for row in cell])
    return f"R-hat {rhat:.{3 if rhat < 2 else 1}f}"


def _nats_of(cell):
    nats = np.median([row["log_prob"]["difference"] for row in cell])
    return f"{nats:+.{1 if abs(nats) < 100 else 0}f} nats"


MAPS = (
    Map(
        "Predictions of the four chains",
        "R-hat - 1 at 95 % of the inputs",
        _excess,
        np.log10(MOST_RHAT - 1.0),
        -2.5,
        1.0,
        _rhat_of,
    ),
    Map(
        "Log density, library - teacher",
        "its size / standard deviation in the posterior",
        _distance,
        0.0,
        -1.5,
        2.5,
        _nats_of,
    ),
)
