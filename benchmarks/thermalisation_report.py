"""Table and figure of benchmarks/thermalisation.py."""

import numpy as np
from common import keep, markdown

__all__ = ["agrees", "publish"]

# What agreement is: log densities within so many standard errors, and R-hat of all four chains below
# this at 95 % of the reference inputs.
MOST_Z, MOST_RHAT = 3.0, 1.05

HEADER = [
    "rows",
    "width",
    "noise",
    "teacher",
    "agree",
    "log density, library - teacher: nats",
    "its standard errors",
    "teacher's rank",
    "R-hat < 1.05, four chains",
    "R-hat 95 %: four, library's three, teacher's",
    "RMSE to the teacher: its chain, library",
    "gradients per chain",
    "draws",
    "leapfrog steps",
    "acceptance",
    "wall s",
]

LEGEND = f"""\
Every line is one teacher, drawn from the prior, with rows that it made. One chain starts at the
teacher, which is an exact draw of the posterior, three where the library's default search ends; same
kernel, same number of transitions. Warm-up of the teacher's chain adapts step size and
preconditioner; the kernel leaves the posterior invariant but for this adaptation, so that every draw
of the chain is one of the posterior, however slowly it moves. Log density: the mean of the library's
draws less that of the teacher's chain, in nats and in Monte Carlo standard errors of both, which are
too small where chains hardly move. Rank: the share of the library's draws below the teacher itself;
over many teachers it is uniform on [0, 1] where the library samples the posterior. R-hat
(rank-normalised split, the larger of the plain and the folded one) is of the predictions at 300 fresh
inputs. RMSE is that of the mean prediction there. They agree where log densities differ by at most
{MOST_Z:g} standard errors and R-hat of the four chains is below {MOST_RHAT} at 95 % of the inputs.
A short run that disagrees may only be short: R-hat of the teacher's chain alone, which needs to find
nothing, shows how far it gets within its gradients."""


def agrees(row):
    """The verdict on one row."""
    return is_level(row) and row["all"]["rhat_q95"] < MOST_RHAT


def is_level(row):
    """Whether the log densities agree."""
    return abs(row["log_prob"]["z"]) <= MOST_Z


def publish(rows, folder):
    """Writes table and figure of the rows there are."""
    if not rows:
        return
    rows = sorted(rows, key=lambda row: (*_place(row), row["teacher"]))
    parts = ["# Thermalisation", markdown(HEADER, map(_line, rows)), _rates(rows), LEGEND]
    keep("thermalisation.md", "\n\n".join(parts), folder)
    figure(rows, folder / "thermalisation.png")


def _place(row):
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
    """How many agree, in all and by each of what makes a cell."""
    lines = [f"- in all: {_rate(rows)}"]
    for name in ("num_rows", "width", "noise"):
        values = sorted({row[name] for row in rows})
        told = (f"{v:g}: {_rate([row for row in rows if row[name] == v])}" for v in values)
        lines.append(f"- by {name.replace('num_', '')}: {'; '.join(told)}")
    silent = [row for row in rows if row["library"]["rhat_q95"] < MOST_RHAT and not agrees(row)]
    lines += [
        f"- log densities alone agree: {_rate(rows, is_level)}",
        f"- R-hat of the library's three chains finds nothing where they do not agree with the "
        f"teacher's: {len(silent)} of {len(rows)}",
        f"- budget: {_listed({row['seconds'] for row in rows})} s of one core as estimated, for each "
        f"line; commits {_listed({row['commit'] for row in rows})}",
    ]
    return "Agreement:\n\n" + "\n".join(lines)


def _rate(rows, verdict=agrees):
    return f"{sum(map(verdict, rows))} of {len(rows)}"


def _listed(values):
    return ", ".join(
        f"{value:g}" if isinstance(value, float) else value for value in sorted(values)
    )


def figure(rows, path):
    """R-hat, and the difference of the log densities: a map of noise and width for each N."""
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure

    counts = sorted({row["num_rows"] for row in rows})
    widths = sorted({row["width"] for row in rows})
    noises = sorted({row["noise"] for row in rows}, reverse=True)
    # Logarithms, with white where the verdict changes.
    maps = {
        "R-hat - 1, 95 % of inputs": (_excess, np.log10(MOST_RHAT - 1.0), (-2.5, 1.0)),
        "|log density, library - teacher|, standard errors": (_z, np.log10(MOST_Z), (-1.0, 2.0)),
    }
    canvas = Figure(figsize=(2.0 + 3.6 * len(counts), 7.5), layout="constrained")
    panels = canvas.subplots(len(maps), len(counts), squeeze=False)
    for line, (title, (value, change, (low, high))) in zip(panels, maps.items()):
        for axes, count in zip(line, counts):
            shown = np.full((len(noises), len(widths)), np.nan)
            for i, noise in enumerate(noises):
                for j, width in enumerate(widths):
                    cell = [r for r in rows if (r["num_rows"], *_key(r)) == (count, noise, width)]
                    if cell:
                        shown[i, j] = np.log10(np.median([value(row) for row in cell]))
                        _annotate(axes, i, j, 10 ** shown[i, j], cell)
            norm = TwoSlopeNorm(change, low, high)
            image = axes.imshow(np.clip(shown, low, high), cmap="RdBu_r", norm=norm, aspect="auto")
            axes.set_xticks(range(len(widths)), widths)
            axes.set_yticks(range(len(noises)), noises)
            axes.set(xlabel="width", ylabel="noise", title=f"{title}\n{count} rows")
            axes.title.set_fontsize("medium")
        bar = canvas.colorbar(image, ax=list(line), shrink=0.8)
        ticks = np.arange(np.ceil(low), high + 0.5)
        bar.set_ticks(ticks, labels=[f"{10.0**tick:g}" for tick in ticks])
    canvas.suptitle("Chains from the library's starts against one from the teacher: blue agrees")
    canvas.savefig(path, dpi=120)


def _key(row):
    return row["noise"], row["width"]


def _excess(row):
    # R-hat may fall below one by chance.
    return max(row["all"]["rhat_q95"] - 1.0, 1e-3)


def _z(row):
    return max(abs(row["log_prob"]["z"]), 1e-2)


def _annotate(axes, i, j, value, cell):
    text = f"{value:.2g}\n{_rate(cell)} agree"
    axes.text(j, i, text, ha="center", va="center", fontsize="small")
