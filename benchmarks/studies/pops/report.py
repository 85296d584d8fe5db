"""The table of benchmarks/studies/pops/run.py."""

import numpy as np

from benchmarks.lib.common import commits_of, keep, markdown

__all__ = ["report"]


TEXT = """\
A calibration multiplies the predicted standard deviation of a row (stddev) by a scale that depends on the
row, or replaces it. The table compares such scales, which are computed from the training rows. The shift of a
training row is the change of the prediction if the network is made exact at this row. The data set wave is
sin 2x + 0.3x at 40 points without noise.

- POPS is the root mean square of the shifts of all training rows (arXiv:2402.01810), or of those with a
  leverage above the median. It replaces the stddev, as sandwich does. POPS x stddev is the product of both.
- Sandwich is the root of the sum of squared shifts, each times the squared leverage of its row.
- Misfit multiplies the stddev. It is the root of a weighted mean, over training rows, of the squared
  leave-one-out residual divided by its variance. The weight of a row is its squared shift divided by the
  squared residual of the fit ("POPS's weights"), times its leverage (this is `calibrate(scale="misfit")`).

Shifts and leverages are computed from derivatives of networks by their weights, which the tables call
features. They are derivatives by the weights of the last layer (readout) or by all weights, of one network for
each chain or of 16 networks.

The rank correlation is Spearman's, between absolute errors and error bars of held-out rows. "loo" is
calibrated by the rows of the fit, each left out, and "split" by held-out rows (ten partitions). Coverage is
the share of held-out rows within 1 and 2 sigma (.683 and .954 are right). The thirds are the rows with short,
medium and long error bars, at 1 sigma. Density is the mean log predictive density per row of transformed
targets. Grid is a function of two inputs on 13 x 13 points, without noise, and wine is red wine."""


def report(rows, folder):
    """Prints and keeps the table of all rows."""
    lines = [line for row in rows for line in _lines(row)]
    header = ["data set, seed", "scale; features", "rank correlation", "loo: coverage of 1, 2 sigma",
              "loo: coverage of thirds", "loo: density", "split: coverage of 1, 2 sigma",
              "split: coverage of thirds", "split: density"]  # fmt: skip
    text = f"# Scales of calibrated error bars\n\n{TEXT}\n\n{_means(rows)}\n\n{markdown(header, lines)}\n\n"
    text += f"Rows were measured at {commits_of(rows)}."
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
    header = ["scale; features", "rank correlation", "data sets where it rises by .1 or more", "loo: density",
              "split: density", "loo: error of thirds", "split: error of thirds"]  # fmt: skip
    return (
        "The first table has means over the data sets. Densities are differences from `stddev`. The error of thirds is "
        "the mean distance of their coverage from .6827.\n\n" + markdown(header, lines)
    )


def _listed(values, digits):
    return ", ".join(f"{value:.{digits}f}" for value in values)
