"""A scan of 100 000 SLHA points through thirty processes: time and memory, in one command and by MPI ranks.

    TFBNN_DATA=folder python benchmarks/studies/gauginos/scan.py --work FOLDER [--points 100000]

--work has the models of run.py (part "pairs"). Points are tree-level spectra of random M1, M2, mu and
tan(beta), as `tfbnn.datasets.neutralino` draws them, with charginos, in one tar. Times are of whole commands, of
Python in batches of 1000, and point by point as GAMBIT calls; the table is
benchmarks/results/gauginos_scan.md.
"""

import argparse
import io
import math
import os
import tarfile
from pathlib import Path

import numpy as np

import tfbnn
from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.studies.gauginos.pairs import CHARGINOS, NEUTRALINOS, pairs
from benchmarks.studies.scan.points import write_csv
from benchmarks.studies.scan.run import command, ranks, timed
from tfbnn.datasets._pair_production import COS2_W, Z_MASS_GEV
from tfbnn.datasets.cross_sections import symmetries
from tfbnn.datasets.neutralino import diagonalise, mass_matrix, sample_parameters
from tfbnn.hep import CrossSectionPredictor, Process, write_processes

BATCH, NUM_ALONE, RANKS = 1000, 200, (1, 2, 4)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--work", type=Path, required=True, help="folder of the models")
    parser.add_argument("--points", type=int, default=100_000)
    options = parser.parse_args(arguments)
    folder = options.work / "scan"
    folder.mkdir(exist_ok=True)
    num_points = 500 if options.quick else options.points
    points = spectra(num_points, np.random.default_rng(1))
    write_folder(options.work, folder / "gauginos")
    write_tar(folder / "points.tar", points)
    names, columns = zip(*((name_of(place), values) for place, values in points.items()))
    write_csv(folder / "points.csv", names, np.column_stack(columns)[:BATCH])
    keep(
        "gauginos_scan.md",
        "\n\n".join(tables(folder, points, options.quick)),
        output_folder(options),
    )


def write_folder(work, folder):
    """The processes whose models are there."""
    processes = []
    for pair in pairs():
        path = work / f"pairs_{pair[0]}_{pair[1]}.h5"
        if path.exists():
            model = tfbnn.load(path)
            processes.append(Process(pair, model, unit="fb", energy=13000, inputs=symmetries(pair)))
    write_processes(folder, processes)


def name_of(place):
    """A place as a table has it."""
    return ":".join(map(str, place))


def spectra(count, generator):
    """Tree-level masses and mixings, dict SLHA place -> [N]."""
    m1, m2, mu, tan_beta = sample_parameters(count, generator)
    masses, mixings = diagonalise(mass_matrix(m1, m2, mu, tan_beta))
    beta = np.arctan(tan_beta)
    w_mass = Z_MASS_GEV * math.sqrt(COS2_W)
    charginos = np.empty((count, 2, 2))  # U* X V^-1 is diagonal (Haber and Kane 1985, eq. C9)
    charginos[:, 0, 0], charginos[:, 1, 1] = m2, mu
    charginos[:, 0, 1] = math.sqrt(2) * w_mass * np.sin(beta)
    charginos[:, 1, 0] = math.sqrt(2) * w_mass * np.cos(beta)
    left, values, right = np.linalg.svd(charginos)
    places = {("MASS", code): masses[:, i] for i, code in enumerate(NEUTRALINOS)}
    # The lighter one first.
    places |= {("MASS", code): values[:, 1 - i] for i, code in enumerate(CHARGINOS)}
    for i in range(4):
        places |= {("NMIX", i + 1, j + 1): mixings[:, i, j] for j in range(4)}
    for i in range(2):
        places |= {("UMIX", i + 1, j + 1): left[:, j, 1 - i] for j in range(2)}
        places |= {("VMIX", i + 1, j + 1): right[:, 1 - i, j] for j in range(2)}
    return places


def write_tar(path, points):
    """All points as SLHA in one tar."""
    blocks = {}
    for place, values in points.items():
        blocks.setdefault(place[0], []).append((place[1:], values))
    with tarfile.open(path, "w") as archive:
        for number in range(len(next(iter(points.values())))):
            lines = []
            for block, entries in blocks.items():
                lines.append(f"BLOCK {block}")
                for indices, values in entries:
                    lines.append(f"  {' '.join(map(str, indices))}  {values[number]: .8E}")
            content = ("\n".join(lines) + "\n").encode()
            info = tarfile.TarInfo(f"{number:06}.slha")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def tables(folder, points, quick):
    """Yields the parts of the page."""
    predictor = CrossSectionPredictor(folder / "gauginos")
    num_points, num_processes = len(next(iter(points.values()))), len(predictor.processes)
    total = num_points * num_processes
    load = os.getloadavg()[0]
    output = ("-o", "scan.csv", "--trusted")
    lines = [("`tfbnn slha eval` of a tar to CSV", *command(folder, "slha", "eval", "gauginos", "points.tar", *output), num_points)]  # fmt: skip
    named = {name_of(place): values for place, values in points.items()}
    batch = {name: values[:BATCH] for name, values in named.items()}
    found = predictor.predict(batch)
    lines.append((f"Python, {BATCH} points at once", *timed(lambda: predictor.predict(batch)), min(BATCH, num_points)))  # fmt: skip
    rows = [
        (what, count, f"{seconds:.1f}", f"{cpu:.1f}", f"{1000 * seconds / count / num_processes:.3f}", f"{1000 * cpu / count / num_processes:.3f}")
        for what, seconds, cpu, count in lines
    ]  # fmt: skip
    yield "# A scan through thirty gaugino pairs"
    yield (
        f"The scan has {num_points} points and {num_processes} processes, {total} cross sections in all. The load average "
        f"of the machine was {load:.1f} at the beginning. For {BATCH} points and all processes, the share of "
        f"predictions with trust 1 (inside the training inputs) is {np.mean(found.trust == 1):.2f}, with trust 0 "
        f"(at the edge) {np.mean(found.trust == 0):.2f}, and with trust -1 (outside) {np.mean(found.trust == -1):.2f}."
    )
    header = ["method", "points", "wall-clock time, s", "CPU time, s", "wall-clock time per cross section, ms", "CPU time per cross section, ms"]  # fmt: skip
    yield markdown(header, rows)
    yield (
        "Ranks are processes on one host that read the same folder, with OMP_NUM_THREADS=1. Each loads all networks and "
        "predicts point by point, as GAMBIT does. RSS is the memory of a rank. PSS counts memory that n processes "
        "share as 1/n. The first row is a Python interpreter with NumPy and h5py, without networks."
    )
    measured = [ranks(folder, count, 5 if quick else NUM_ALONE) for count in (0, *RANKS)]
    yield markdown(
        ["ranks", "CPU time to load, s", "CPU time per cross section, ms", "RSS, MB", "PSS, MB"],
        [
            (
                row["ranks"] or "none",
                f"{row['load']:.2f}",
                f"{1000 * row['point'] / num_processes:.3f}",
                f"{row['rss']:.0f}",
                f"{row['pss']:.0f}",
            )
            for row in measured
        ],
    )


if __name__ == "__main__":
    main()
