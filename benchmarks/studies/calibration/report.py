"""The table of benchmarks/studies/calibration/run.py."""

import numpy as np

from benchmarks.lib.common import commits_of, keep, markdown

__all__ = ["report"]

WAYS = {
    "plain": "posterior",
    "loo": "loo",
    "loo by stddev": "loo, by stddev",
    "split": "split",
    "split by stddev": "split, by stddev",
}
NOISY = ("concrete", "wine", "airfoil", "kin8nm", "bikes", "demo")
NOMINAL = (0.6827, 0.9545, 0.9973)


def report(rows, folder):
    """Prints and keeps the table of all rows."""
    lines = [line for row in rows for line in _lines(row)]
    header = ["data set, seed", "error bars", "within 1 sigma", "within 2 sigma", "within 3 sigma",
              "within 1 sigma: short, medium, long bars", "LPD", "standardised LPD", "relative length",
              "rows", "relative time"]  # fmt: skip
    text = "# Coverage of error bars, from the posterior and calibrated\n\n"
    text += f"{markdown(header, lines)}\n\n{_means(rows)}{_medians(rows)}\n\n"
    text += (
        'A sigma is a predicted standard deviation, noise included. A cell "within" has the share of held-out rows '
        "within 1, 2 or 3 sigma of the prediction; 68.3, 95.4 and 99.7 % are right. The thirds are the rows with "
        "the shortest, medium and longest error bars.\n\n"
        "Error bars: `posterior` has no calibration; its rows are all held-out rows. `loo` is calibrated by the rows of the fit, each left out; its "
        "rows are those that could be judged. `split` is calibrated by held-out rows (their number is in the column "
        'rows) and judged by the others, averaged over 50 partitions. "By stddev" calibrates short and long error bars '
        "separately. A calibration that the package refuses has the reason in the column rows.\n\n"
        "LPD is the mean log predictive density per row, in the units of the target; standardised LPD is of the "
        "targets that the network sees. Relative length is the median ratio of a sigma to that of the posterior. "
        "Relative time is that of predictions with three quantiles, with calibration divided by without.\n\n"
        "Fits are default fits with one hidden layer of 50 units, or 20-20 for the neutralinos. Those "
        '"by hand" have the settings of the rows newton (raw inputs) and best (invariant inputs) of `neutralino.md`. '
        "The wave is sin 2x + 0.3x at 40 points without noise; demo and grid are tables of `default.md`. "
        f"Rows were measured at {commits_of(rows)}."
    )
    keep("calibration.md", text, folder)


def _lines(row):
    for key, name in WAYS.items():
        found = row[key]
        label = f"{row['table']}, {row['seed']}" if key == "plain" else ""
        if "refused" in found:
            yield [label, name, *[""] * 7, found["refused"].split(":")[0].split(",")[0], ""]
            continue
        count = found.get("num_rows", row["num_calibrating"])
        yield [
            label,
            name,
            *(f"{share:.3f}" for share in found["coverage"]),
            ", ".join(f"{share:.2f}" for share in found["thirds"]),
            f"{found['lpd']:.3f}",
            f"{found['lpd_standard']:.3f}",
            f"{found['bars']:.2f}",
            row["num_held_out"] if key == "plain" else count,
            f"{row['time_ratio']:.2f}" if key == "plain" else "",
        ]


def _means(rows):
    noisy = [row for row in rows if row["table"] in NOISY]
    lines = []
    for key, name in WAYS.items():
        found = [row[key]["coverage"] for row in noisy if "coverage" in row[key]]
        if found:
            one, two, _ = np.mean(found, axis=0)
            lines.append(f"- {name}: {one:.3f} and {two:.3f} ({len(found)} data sets)")
    title = f"Mean shares within 1 and 2 sigma, over data sets with noise ({', '.join(NOISY)}):"
    return "\n".join([title, "", *lines])


def _medians(rows):
    """Lines on tables of several seeds: medians over them."""
    lines = []
    for table in dict.fromkeys(row["table"] for row in rows):
        seeds = [row for row in rows if row["table"] == table]
        if len(seeds) < 2:
            continue
        rmse = np.median([row["rmse_log10"] for row in seeds])
        for key, name in WAYS.items():
            found = [row[key] for row in seeds if "coverage" in row[key]]
            one, two, _ = np.median([one["coverage"] for one in found], axis=0)
            lpd, bars = (
                np.median([one[name] for one in found]) for name in ("lpd_standard", "bars")
            )
            lines.append(
                f"- {table}, {name} ({len(found)} seeds): {one:.3f} and {two:.3f}, standardised LPD "
                f"{lpd:.2f}, relative length {bars:.2f}, RMSE of log10 {rmse:.4f}"
            )
    title = "Medians over seeds: shares within 1 and 2 sigma, LPD, relative length, RMSE."
    return "\n".join(["", "", title, "", *lines]) if lines else ""
