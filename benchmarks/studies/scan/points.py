"""Makes what a scan starts from: spectra with results to fit to, a description, and spectra to evaluate.

    python benchmarks/studies/scan/points.py FOLDER [--rows 2000] [--points 10000]

Leading-order cross sections of pp -> chi10 chi10 and pp -> chi20 chi20 at 13 TeV out of
`tfbnn.datasets`, which serve to show how a scan works and nothing else. One calculation in twenty "failed", and
stands as -1. The points of the scan are drawn as the others are, from another seed.

    FOLDER/fitted/*.slha         spectra to fit to
    FOLDER/results.dat           a line for each of them and process: PDG codes, cross section in fb, and those
                                 with masses 2 % larger and smaller, which stand in for a change of scale
    FOLDER/gauginos.toml         what all of it means, for `tfbnn slha table` and `tfbnn slha make`
    FOLDER/with_errors.toml      the first process, with networks of the error of scale
    FOLDER/test.csv              parameters and cross sections of points to test on
    FOLDER/points.csv, spectra/*.slha    the points of the scan, as a table and one by one
"""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

from tfbnn.datasets._pair_production import pair_cross_section_fb
from tfbnn.datasets.cross_sections import symmetries
from tfbnn.datasets.neutralino import (
    LIGHTEST_MASS_GEV,
    ROWS_PER_BLOCK,
    diagonalise,
    mass_matrix,
    sample_parameters,
)

# Number of a neutralino -> its PDG code.
PIDS = {1: 1000022, 2: 1000023}
NUM_TEST, FAILED_EVERY = 500, 20

DESCRIPTION = """\
energy = 13000
description = "pp -> chi0 chi0 at leading order, made up to show how a scan works"
citation = "nobody: these numbers are for demonstration"
unit = "fb"
xsection = {qcd_order = 0}
errors = {scale = 0.1}

[results]
file = "results.dat"
columns = ["pid1", "pid2", "xsec", "low", "high"]
"""
SCALE = """\
errors.scale = {relative = ["1 - low / xsec", "high / xsec - 1"], model = ["scale_down.h5", "scale_up.h5"]}
"""
# Masses of "low" and "high", over those of the point.
VARIATIONS = (1.02, 0.98)


def process_text(pid, target="xsec"):
    """The part of a description about a pair of one neutralino."""
    inputs = [f'inputs.{name} = "{text}"' for name, text in symmetries((pid, pid)).items()]
    lines = [
        "",
        "[[process]]",
        f"pids = [{pid}, {pid}]",
        f"rows = {{pid1 = {pid}, pid2 = {pid}}}",
        f'target = "{target}"',
        f'model = "{pid}_{pid}.h5"',
        *inputs,
    ]
    return "\n".join(lines) + "\n"


def write_csv(path, columns, values):
    """Writes a table of numbers with every bit."""
    header = ",".join(columns)
    np.savetxt(path, values, fmt="%.17g", delimiter=",", header=header, comments="")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2000, help="spectra to fit to")
    parser.add_argument("--points", type=int, default=10_000, help="of the scan")
    options = parser.parse_args(arguments)
    make(options.folder, options.rows, options.points)


def make(folder, num_rows, num_points):
    """Writes all of it."""
    masses, mixings = neutralinos(num_rows + NUM_TEST, np.random.default_rng(0))

    def cross_sections(k, factor=1.0):
        return pair_cross_section_fb(factor * masses[:, k - 1], mixings[:, k - 1])

    values = {k: cross_sections(k) for k in PIDS}
    others = {k: [cross_sections(k, factor) for factor in VARIATIONS] for k in PIDS}
    write_spectra(folder / "fitted", masses[:num_rows], mixings[:num_rows])
    lines = [
        f"{pid} {pid} {-1 if (number + k) % FAILED_EVERY == 0 else values[k][number]:.6g}"
        f" {others[k][0][number]:.6g} {others[k][1][number]:.6g}"
        for number in range(num_rows)
        for k, pid in PIDS.items()
    ]
    (folder / "results.dat").write_text("\n".join(lines) + "\n")
    (folder / "gauginos.toml").write_text(DESCRIPTION + "".join(map(process_text, PIDS.values())))
    text = DESCRIPTION.replace("errors = {scale = 0.1}\n", "") + process_text(PIDS[1]) + SCALE
    (folder / "with_errors.toml").write_text(text)
    names = [name for k in PIDS for name in columns_of(k)]
    tests = [inputs_of(masses, mixings, k) for k in PIDS] + [np.stack([*values.values()], axis=1)]
    columns = [*names, *(f"xsec_{pid}" for pid in PIDS.values())]
    write_csv(folder / "test.csv", columns, np.hstack(tests)[num_rows:])
    points = neutralinos(num_points, np.random.default_rng(1))
    write_csv(folder / "points.csv", names, np.hstack([inputs_of(*points, k) for k in PIDS]))
    write_spectra(folder / "spectra", *points)


def write_spectra(folder, masses, mixings):
    """Writes FOLDER/00000.slha and so on of points: masses [n, m] and mixings [n, m, 4]."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, point in enumerate(zip(masses, mixings)):
        (folder / f"{number:05}.slha").write_text(spectrum(*point))


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
    """Names of the parameters of a neutralino."""
    return [f"m_chi{k}0_GeV", *(f"N{k}{j}" for j in range(1, 5))]


def inputs_of(masses, mixings, k):
    """Signed mass and mixings of a neutralino [n, 5]."""
    return np.column_stack([masses[:, k - 1], mixings[:, k - 1]])


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
