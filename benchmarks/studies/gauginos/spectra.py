"""Writes what `tfbnn slha table` reads: spectra, lines of results, a description, out of the shared table.

TFBNN_DATA=folder python benchmarks/studies/gauginos/spectra.py FOLDER [--points 12100] [--pairs 1]

FOLDER/spectra/00000.slha ..    MASS, NMIX, UMIX, VMIX of points that have all masses
FOLDER/prospino.dat             a line for each point and pair: PDG codes, cross section and PDF error in fb,
                                -1 or NaN where the calculation failed
FOLDER/gauginos.toml            a description with the inputs of `datasets.cross_sections.symmetries`
FOLDER/points/                  the last tenth of the spectra, which are not among the others
"""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

from benchmarks.studies.gauginos.pairs import CHARGINOS, NEUTRALINOS, pairs, points
from tfbnn.datasets.cross_sections import symmetries

HEAD = """energy = 13000
unit = "fb"
description = "pp -> gauginos at 13 TeV, Prospino, next to leading order with alpha_s one sigma up"
citation = "R. A. Ask, master's thesis, University of Oslo, 2022"
xsection = {qcd_order = 1}

[results]
file = "prospino.dat"
columns = ["pid1", "pid2", "xsec", "pdf"]
"""
PROCESS = """
[[process]]
pids = [{0}, {1}]
rows = {{pid1 = {0}, pid2 = {1}}}
target = "xsec"
errors = {{pdf = {{relative = "pdf / xsec", model = "{0}_{1}_pdf.h5"}}}}
model = "{0}_{1}.h5"
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=12100)
    parser.add_argument("--pairs", type=int, default=1, help="so many of the thirty")
    options = parser.parse_args(arguments)
    write(options.folder, options.points, pairs()[: options.pairs])


def write(folder, num_points, chosen):
    """Writes all files."""
    (folder / "spectra").mkdir(parents=True, exist_ok=True)
    (folder / "points").mkdir(exist_ok=True)
    order = np.random.default_rng(0).permutation(len(next(iter(points().places.values()))))
    order = order[:num_points]
    num_fitted = len(order) - len(order) // 10
    for number, point in enumerate(order):
        part = "spectra" if number < num_fitted else "points"
        (folder / part / f"{number:05}.slha").write_text(spectrum(point))
    lines = [
        f"{first} {second} {values[point]:.5g} {errors[point]:.5g}"
        for point in order[:num_fitted]
        for (first, second), values, errors in (
            (pair, points().cross_section[pair], points().pdf_error[pair]) for pair in chosen
        )
    ]
    (folder / "prospino.dat").write_text("\n".join(lines) + "\n")
    parts = [PROCESS.format(*pair) + inputs_of(pair) for pair in chosen]
    (folder / "gauginos.toml").write_text(HEAD + "".join(parts))


def inputs_of(pair):
    """The inputs of a pair, a line each."""
    lines = [f'inputs.{name} = "{text}"' for name, text in symmetries(pair).items()]
    return "\n".join(lines) + "\n"


def spectrum(point):
    """SLHA text of a point."""
    places, lines = points().places, ["BLOCK MASS   # GeV"]
    codes = [place[1] for place in places if place[0] == "MASS"]
    lines += [f"  {code:9d}  {places['MASS', code][point]: .8E}" for code in codes]
    for block, particles in (("NMIX", NEUTRALINOS), ("UMIX", CHARGINOS), ("VMIX", CHARGINOS)):
        lines.append(f"BLOCK {block}")
        for i in range(1, len(particles) + 1):
            for j in range(1, len(particles) + 1):
                lines.append(f"  {i}  {j}  {places[block, i, j][point]: .8E}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
