"""Draw paper/pairs.png from the rows of the study of thirty gaugino pairs.

python paper/figure.py
"""

import json
from pathlib import Path

from tfbnn.plots.canvas import styled_figure

HERE = Path(__file__).parent
ROWS = HERE.parent / "benchmarks" / "results" / "gauginos.jsonl"
BANDS = ((0.66, 0.71), (0.94, 0.97))


def main():
    """Draw median errors and coverage of all pairs, in the order of their errors."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    rows = sorted((row for row in rows if row["part"] == "pairs"), key=lambda row: row["errors"][0])
    order = range(1, len(rows) + 1)
    with styled_figure(1, 2, (4.2, 2.8)) as (figure, axes):
        errors, coverage = axes.flat
        errors.plot(order, [100 * row["errors"][0] for row in rows], "o", label="median")
        errors.plot(order, [100 * row["errors"][1] for row in rows], "^", label="95 % are below")
        errors.set_yscale("log")
        errors.set_ylabel("relative error, %")
        errors.legend()
        for number, (band, marker) in enumerate(zip(BANDS, "o^")):
            coverage.axhspan(*band, color="0.85")
            shares = [row["coverage"][number] for row in rows]
            label = ("one standard deviation", "two standard deviations")[number]
            coverage.plot(order, shares, marker, label=label)
        coverage.set_ylabel("share of new points within")
        coverage.legend(loc="center right")
        for axis in (errors, coverage):
            axis.set_xlabel("pair, by its median error")
        figure.savefig(HERE / "pairs.png")


if __name__ == "__main__":
    main()
