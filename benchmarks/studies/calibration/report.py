"""The table of benchmarks/studies/calibration/run.py."""

import numpy as np

from benchmarks.lib.common import keep, markdown

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
    header = ["table, seed", "bars", "1 sigma", "2 sigma", "3 sigma", "1 sigma by thirds of the bars",
              "LPD", "standardised", "bars over the posterior's", "rows", "time"]  # fmt: skip
    text = f"# Error bars\n\n{markdown(header, lines)}\n\n{_means(rows)}{_medians(rows)}\n\n"
    text += (
        "Share of held-out rows within 1, 2 and 3 sigma (68.3, 95.4 and 99.7 % are right), bars with "
        "noise. `loo` is calibrated by the rows of the fit (rows: those that could be judged), "
        "`split` by held-out rows (rows: how many), averaged over 50 partitions of all held-out rows. "
        "LPD: mean log predictive density, in original units and on the scale the network sees. Bars: "
        "median ratio of one sigma. By hand: settings of benchmarks/studies/neutralino/run.py. Time: of predictions with three quantiles, calibrated over "
        f"not. Rows were measured at {', '.join(sorted({row['commit'] for row in rows}))}."
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
            lines.append(f"- {name}: {one:.3f} and {two:.3f} over {len(found)} tables with noise")
    return "\n".join(lines)


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
                f"- {table}, {name}, median of {len(found)} seeds: {one:.3f} and {two:.3f}, log density "
                f"{lpd:.2f} standardised, bars {bars:.2f} times as long; RMSE(log10) {rmse:.4f}"
            )
    return "".join(f"\n{line}" for line in lines)
