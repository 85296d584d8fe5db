"""The table of benchmarks/studies/basins/run.py."""

from benchmarks.lib.common import markdown

__all__ = ["report"]

_HEADER = [
    "setting",
    "layers",
    "P",
    "draws per chain",
    "log density of each chain, nats",
    "basin",
    "chains in the basin",
    "log weight, nats",
    "method",
    "R-hat in the basin: median, 95 %",
    "rows with R-hat below 1.01, 1.05",
    "R-hat of all chains: median, 95 %",
    "RMSE: all, best basin",
]
_TEXT = """\
Settings are those of `convergence.md`; those of "restarted" are of its run `long_trajectories`. The four chains
(0 to 3) of a setting are grouped by the functions that they represent. P is the number of parameters. The log
density of a chain is its mean over the last quarter of the draws. The log weight of a basin is the natural
logarithm of its share of the posterior mass of all basins found, with its standard error. Bridge sampling
estimates it ("bridge"). If the draws overlap too little for bridge sampling, the cell says "bounds". Then the
error is infinite; up to version 0.2 it was half of the distance between two bounds. R-hat is of predictions at
300 test rows: median and 95 % quantile over rows, and the share of rows below a limit. In a basin with one
chain, the two halves of this chain are compared. RMSE is of the test rows, for the average of all chains and of
those in the best basin, in standard
deviations of log10 of the target."""


def report(rows):
    """Markdown of rows, dict name -> what `measure` found."""
    lines = [line for name, row in rows.items() for line in _lines(name, row)]
    notes = [f"{name}: {note}" for name, row in rows.items() for note in row["notes"]]
    return "\n\n".join(
        [
            "# Basins: chains that represent the same functions",
            markdown(_HEADER, lines),
            _TEXT,
            *notes,
        ]
    )


def _lines(name, row):
    """One line per basin; what is of all of them stands in the first."""
    for basin, within in enumerate(row["within"]):
        chains = [chain for chain, label in enumerate(row["labels"]) if label == basin]
        weight = f"{row['log_weights'][basin]:.4g} +- {row['log_weight_stderr'][basin]:.2g}"
        of_all = [
            name,
            "-".join(map(str, row["layers"])),
            row["parameters"],
            row["draws"],
            ", ".join(f"{value:.0f}" for value in row["log_prob"]),
        ]
        outcome = [
            f"{row['all']['rhat']:.3f}, {row['all']['rhat_q95']:.3f}",
            f"{row['rmse']:.4f}, {row['rmse_best']:.4f}",
        ]
        yield [
            *(of_all if not basin else [""] * len(of_all)),
            basin + 1,
            ", ".join(map(str, chains)),
            weight if len(row["within"]) > 1 else "",
            "bridge" if row["is_bridged"][basin] else "bounds",
            f"{within['rhat']:.3f}, {within['rhat_q95']:.3f}",
            f"{within['below_1.01']:.0%}, {within['below_1.05']:.0%}",
            *(outcome if not basin else [""] * len(outcome)),
        ]
