"""The table of benchmarks/studies/basins/run.py."""

from benchmarks.lib.common import markdown

__all__ = ["report"]

_HEADER = [
    "row",
    "layers",
    "P",
    "draws per chain",
    "log density of the chains",
    "basin",
    "chains",
    "log weight, nats",
    "by",
    "R-hat within: median, 95 %",
    "below 1.01, 1.05",
    "R-hat of all: median, 95 %",
    "RMSE: all, best basin",
]
_TEXT = """\
Chains of rows of benchmarks/studies/convergence/run.py, grouped by the functions that they represent. Weights are
natural logarithms, of the basins that were found, with their standard errors; where bridge sampling
had too little overlap, "bounds", the error is half of the distance of two bounds. R-hat is of the
predictions at 300 test rows, of one chain that of its halves."""


def report(rows):
    """Markdown of rows, dict name -> what `measure` found."""
    lines = [line for name, row in rows.items() for line in _lines(name, row)]
    notes = [f"{name}: {note}" for name, row in rows.items() for note in row["notes"]]
    return "\n\n".join(["# Basins", markdown(_HEADER, lines), _TEXT, *notes])


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
