"""Makes what a scan starts from: tables of two processes, a description, and spectra to evaluate.

    python benchmarks/scan_points.py FOLDER [--rows 2000] [--points 10000]

Leading-order cross sections of pp -> chi10 chi10 and pp -> chi20 chi20 at 13 TeV out of
`tfbnn.datasets`, which serve to show how a scan works and nothing else. The points of the scan are
drawn as the rows of the tables are, from another seed.

    FOLDER/chi10chi10.csv, chi20chi20.csv    rows to fit networks to
    FOLDER/test10.csv, test20.csv            rows to test them on
    FOLDER/gauginos.toml                     what the columns mean, for `tfbnn slha make`
    FOLDER/points.csv, spectra/*.slha        the points of the scan, as a table and one by one
"""

import argparse
from pathlib import Path

import numpy as np

from tfbnn.datasets._pair_production import pair_cross_section_fb
from tfbnn.datasets.neutralino import (
    LIGHTEST_MASS_GEV,
    ROWS_PER_BLOCK,
    diagonalise,
    mass_matrix,
    sample_parameters,
)

TARGET = "lo_xsec_fb"
# Number of a neutralino -> its PDG code.
PIDS = {1: 1000022, 2: 1000023}
NUM_TEST = 500

DESCRIPTION = """\
energy = 13000
description = "pp -> chi0 chi0 at leading order, made up to show how a scan works"
citation = "nobody: these numbers are for demonstration"
unit = "fb"
xsection = {qcd_order = 0}
errors = {scale = 0.1}
"""

PROCESS = """
[[process]]
pids = [{pid}, {pid}]
model = "chi{k}0chi{k}0.h5"
inputs = {{m_chi{k}0_GeV = "MASS {pid}", N{k}1 = "NMIX {k} 1", N{k}2 = "NMIX {k} 2", \
N{k}3 = "NMIX {k} 3", N{k}4 = "NMIX {k} 4"}}
"""


def write_csv(path, columns, values):
    """Writes a table of numbers with every bit."""
    header = ",".join(columns)
    np.savetxt(path, values, fmt="%.17g", delimiter=",", header=header, comments="")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2000, help="of each table")
    parser.add_argument("--points", type=int, default=10_000, help="of the scan")
    options = parser.parse_args(arguments)
    make(options.folder, options.rows, options.points)


def make(folder, num_rows, num_points):
    """Writes all of it."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = neutralinos(num_rows + NUM_TEST, np.random.default_rng(0))
    for k in PIDS:
        table = table_of(rows, k)
        write_csv(folder / f"chi{k}0chi{k}0.csv", [*columns_of(k), TARGET], table[:num_rows])
        write_csv(folder / f"test{k}0.csv", [*columns_of(k), TARGET], table[num_rows:])
    text = DESCRIPTION + "".join(PROCESS.format(k=k, pid=pid) for k, pid in PIDS.items())
    (folder / "gauginos.toml").write_text(text)
    points = neutralinos(num_points, np.random.default_rng(1))
    names = [name for k in PIDS for name in columns_of(k)]
    inputs = np.hstack([inputs_of(points, k) for k in PIDS])
    write_csv(folder / "points.csv", names, inputs)
    write_spectra(folder, *points)


def write_spectra(folder, masses, mixings):
    """Writes FOLDER/spectra/*.slha of points: masses [n, m] and mixings [n, m, 4]."""
    (folder / "spectra").mkdir(exist_ok=True)
    for number, point in enumerate(zip(masses, mixings)):
        (folder / "spectra" / f"{number:05}.slha").write_text(spectrum(*point))


def neutralinos(count, generator):
    """Signed masses [n, 4] in GeV and mixings [n, 4, 4] of random points with heavy neutralinos."""
    masses, mixings = [], []
    while sum(map(len, masses)) < count:
        found = diagonalise(mass_matrix(*sample_parameters(ROWS_PER_BLOCK, generator)))
        heavy = np.abs(found[0][:, 0]) >= LIGHTEST_MASS_GEV
        masses.append(found[0][heavy])
        mixings.append(found[1][heavy])
    return np.concatenate(masses)[:count], np.concatenate(mixings)[:count]


def columns_of(k):
    """Names of the inputs of a neutralino."""
    return [f"m_chi{k}0_GeV", *(f"N{k}{j}" for j in range(1, 5))]


def inputs_of(points, k):
    """Signed mass and mixings of a neutralino [n, 5]."""
    masses, mixings = points
    return np.column_stack([masses[:, k - 1], mixings[:, k - 1]])


def table_of(points, k):
    """Inputs and cross section of a neutralino [n, 6]."""
    inputs = inputs_of(points, k)
    return np.column_stack([inputs, pair_cross_section_fb(inputs[:, 0], inputs[:, 1:])])


def spectrum(masses, mixings):
    """SLHA text of the neutralinos of one point."""
    codes = (1000022, 1000023, 1000025, 1000035)
    lines = ["Block MASS  # GeV, signed"]
    lines += [f"   {code}   {mass: .8E}" for code, mass in zip(codes, masses)]
    lines += ["Block NMIX  # bino, wino, higgsinos"]
    lines += [
        f"  {i}  {j}   {value: .8E}"
        for i, row in enumerate(mixings, 1)
        for j, value in enumerate(row, 1)
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
