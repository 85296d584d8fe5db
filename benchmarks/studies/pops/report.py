"""The table of benchmarks/studies/pops/run.py."""

import numpy as np

from benchmarks.lib.common import keep, markdown

__all__ = ["report"]


def report(rows, folder):
    """Prints and keeps the table of all rows."""
    lines = [line for row in rows for line in _lines(row)]
    header = ["table, seed", "scale; features", "rank correlation", "loo: 1, 2 sigma", "by thirds",
              "density", "split: 1, 2 sigma", "by thirds", "density"]  # fmt: skip
    text = f"# Scales of calibrated bars\n\n{_means(rows)}\n\n{markdown(header, lines)}\n\n"
    text += (
        "Rank correlation of absolute errors and bars on held-out rows (Spearman). Coverage of one and "
        "two sigma (.683, .954 are right), that of one by thirds of the bars, and mean log density of "
        "transformed targets, calibrated by the rows of the fit (loo) and by held-out rows (split, ten "
        'partitions). `misfit` is `calibrate(scale="misfit")`. Of the readout alone, or of all '
        f"weights. Rows were measured at {', '.join(sorted({row['commit'] for row in rows}))}."
    )
    keep("pops.md", text, folder)


def _lines(row):
    for name, found in row["scales"].items():
        cells = [f"{row['table']}, {row['seed']}" if name == "stddev" else "", name]
        cells.append(f"{found['rank']:.3f}")
        for way in ("loo", "split"):
            cells += [_listed(found[way]["coverage"], 3), _listed(found[way]["thirds"], 2)]
            cells.append(f"{found[way]['density']:.3f}")
        yield cells


def _means(rows):
    lines = []
    for name in rows[0]["scales"]:
        found = [(row["scales"][name], row["scales"]["stddev"]) for row in rows]
        rank = np.mean([one["rank"] for one, _ in found])
        more = [np.mean([one[way]["density"] - base[way]["density"] for one, base in found])
                for way in ("loo", "split")]  # fmt: skip
        off = [np.mean([np.abs(np.subtract(one[way]["thirds"], 0.6827)).mean() for one, _ in found])
               for way in ("loo", "split")]  # fmt: skip
        gained = sum(one["rank"] - base["rank"] >= 0.1 for one, base in found)
        lines.append([name, f"{rank:.3f}", f"{gained} of {len(found)}",
                      *(f"{value:+.3f}" for value in more), *(f"{value:.3f}" for value in off)])  # fmt: skip
    header = ["scale; features", "rank correlation", "up by .1 or more", "density, loo", "density, split",
              "thirds off by, loo", "split"]  # fmt: skip
    return "Means over the tables; densities over those with `stddev`.\n\n" + markdown(
        header, lines
    )


def _listed(values, digits):
    return ", ".join(f"{value:.{digits}f}" for value in values)
