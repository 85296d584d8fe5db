"""The thirty gaugino pairs of the shared table: parameters of its points, cross sections, PDF errors.

TFBNN_DATA/nlo_neutralino/all_processes_16890.npz, from the repository of R. A. Ask's thesis (Oslo 2022):
Prospino at 13 TeV, 16 890 points, of which 12 100 have all masses. The cross section is the column with alpha_s
one standard deviation up, about 1 % above the central one; -1 and NaN are failed calculations.
"""

import functools
from typing import NamedTuple

import numpy as np

from benchmarks.lib.common import data_folder
from tfbnn.datasets.cross_sections import symmetries
from tfbnn.hep.inputs import check_inputs, features_among, input_values, places_of

NEUTRALINOS, CHARGINOS = (1000022, 1000023, 1000025, 1000035), (1000024, 1000037)


class Points(NamedTuple):
    """Points that have all masses.

    Attributes:
        places: Dict SLHA place -> [N].
        cross_section: Dict pair -> [N] in fb, as the generator gave them.
        pdf_error: The same of the error of the parton densities, in fb.
    """

    places: dict
    cross_section: dict
    pdf_error: dict


@functools.cache
def points():
    """The Points."""
    file = np.load(data_folder() / "nlo_neutralino" / "all_processes_16890.npz")
    whole = np.isfinite(file["mass_GeV"]).all(axis=1)
    masses, mixings = file["mass_GeV"][whole], file["mix"][whole]
    places = {("MASS", int(code)): values for code, values in zip(file["mass_names"], masses.T)}
    for name, values in zip(file["mix_names"], mixings.T):
        code, entry = name.split(",")
        code, block = int(code), f"{entry[0]}MIX"
        row = (NEUTRALINOS if block == "NMIX" else CHARGINOS).index(code) + 1
        places[block, row, int(entry[1:])] = values
    pairs = [tuple(map(int, name.strip("()").split(","))) for name in file["process"]]
    targets = (dict(zip(pairs, file[key][whole].T)) for key in ("alphas_up_fb", "pdf_unc_fb"))
    return Points(places, *targets)


def pairs():
    """PDG codes of the pairs, in the order of the file."""
    return list(points().cross_section)


class Rows(NamedTuple):
    """Rows of a pair that have a cross section, in a random order that is always the same.

    Attributes:
        inputs: Dict name -> text, as a process takes them.
        names: Names of the features.
        x: [N, D].
        y: Cross section [N] in fb.
        pdf: Relative error of the parton densities [N], NaN where it failed.
        num_failed: Points without a cross section.
    """

    inputs: dict
    names: tuple
    x: np.ndarray
    y: np.ndarray
    pdf: np.ndarray
    num_failed: int


def rows_of(pair):
    """The Rows of a pair, with the inputs that `symmetries` proposes."""
    given = symmetries(pair)
    inputs = check_inputs(given)
    parameters = {name: points().places[place] for name, place in places_of(inputs.items()).items()}
    values, names = input_values(inputs, parameters), features_among(inputs)
    x, y = np.column_stack([values[name] for name in names]), points().cross_section[pair]
    kept = np.flatnonzero(np.isfinite(y) & (y > 0))
    kept = np.random.default_rng(0).permutation(kept)
    pdf = points().pdf_error[pair][kept] / y[kept]
    pdf = np.where(pdf > 0, pdf, np.nan)
    return Rows(given, names, x[kept], y[kept], pdf, len(y) - len(kept))
