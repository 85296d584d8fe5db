"""The learning problems that benchmarks share: rows, inputs of the network, model and start."""

import functools
from typing import NamedTuple

import numpy as np

import tfbnn
from benchmarks.lib.common import data_folder
from tfbnn.priors import Normal

__all__ = [
    "LOG_TARGET",
    "NTK",
    "Problem",
    "adam",
    "airfoil",
    "bikes",
    "invariant_inputs",
    "load",
    "neutralino",
    "uci",
]

LOG_TARGET = ["log10", "standardize"]
NTK = {
    "parameterization": "ntk",
    "prior": {"kernel": Normal(1.5), "bias": Normal(1.0)},
    "y_transform": LOG_TARGET,
}


def adam(epochs, newton_iterations=0):
    """Full-batch ADAM, then so many Levenberg-Marquardt iterations."""
    return tfbnn.Pretraining(
        epochs=epochs,
        batch_size=None,
        learning_rate=0.02,
        learning_rate_schedule="cosine",
        newton_iterations=newton_iterations,
    )


class Problem(NamedTuple):
    """Rows of one problem in original units, each part (x [N, D], y [N]) or None."""

    train: tuple
    validation: tuple | None
    test: tuple


def neutralino(inputs="raw", target="nlo_alphas_up_fb"):
    """pp -> chi10 chi10; inputs "raw" (mass, N11..N14) or "invariant" (`invariant_inputs`)."""
    path = data_folder() / "nlo_neutralino" / "chi10chi10.csv"
    table = np.genfromtxt(path, delimiter=",", names=True)
    x = np.column_stack([table[name] for name in tfbnn.datasets.neutralino.FEATURE_NAMES])
    x = {"raw": np.asarray, "invariant": invariant_inputs}[inputs](x)
    parts = (table["split"] == code for code in range(3))
    return Problem(*((x[part], table[target][part]) for part in parts))


def invariant_inputs(x):
    """Inputs that carry the symmetries of the cross section: [N, 5] -> [N, 6].

    With massless quarks the lightest neutralino couples to quark and squark through N11 and N12
    and to the Z through N13^2 - N14^2 (Haber and Kane 1985, Phys. Rept. 117, 75), always in pairs:
    the cross section changes neither with the signs of (N11, N12), N13 and N14 nor with that of
    the mass. Masses enter by their logarithm. The last input resolves the region N11, N12 = 0,
    where the squark exchange cancels and the cross section falls by orders of magnitude.
    """
    mass, bino, wino, down, up = np.asarray(x, float).T
    gaugino = bino**2 + wino**2
    return np.stack(
        [
            np.log(np.abs(mass)),
            bino**2,
            bino * wino,
            wino**2,
            down**2 - up**2,
            np.log10(1e-3 + gaugino),
        ],
        axis=1,
    )


def airfoil(validation_share=0.0, split=0):
    """NASA airfoil self-noise, 1503 rows, of which a share of the training rows may validate."""
    table = np.loadtxt(data_folder() / "airfoil_bikes" / "airfoil.csv", delimiter=",", skiprows=1)
    return _held_out(table, validation_share, split)


def bikes(split=0):
    """Hourly bikes, 17 379 rows: season to windspeed; no date, no counts of the two kinds of user."""
    path = data_folder() / "airfoil_bikes" / "bike_sharing_dataset_hour.csv"
    table = np.loadtxt(path, delimiter=",", skiprows=1, usecols=[*range(2, 14), 16])
    return _held_out(table, 0.0, split)


def _held_out(table, validation_share, split):
    """Rows [N, D + 1] with the target last, a fifth of them for the test.

    The test rows are those of scikit-learn's `train_test_split(test_size=0.2, random_state=split)`,
    which permutes with NumPy's legacy generator and tests on the first fifth.
    """
    x, y = table[:, :-1], table[:, -1]
    order = np.random.RandomState(split).permutation(len(x))
    test, rest = np.split(order, [int(np.ceil(0.2 * len(x)))])
    validation, train = np.split(rest, [round(validation_share * len(rest))])
    held_out = (x[validation], y[validation]) if len(validation) else None
    return Problem((x[train], y[train]), held_out, (x[test], y[test]))


def uci(name, split=0):
    """One of the 20 customary splits of yacht, concrete, kin8nm or wine-quality-red (UCI)."""
    folder = data_folder() / "uci" / name
    table = np.loadtxt(folder / "data.txt")
    train, test = (
        np.loadtxt(folder / f"index_{part}_{split}.txt").astype(int) for part in ("train", "test")
    )
    return Problem((table[train, :-1], table[train, -1]), None, (table[test, :-1], table[test, -1]))


@functools.cache
def load(name):
    """(Problem, keyword arguments of its BayesianMLP); name: raw, invariant, airfoil or yacht.

    raw and invariant are the two sets of neutralino inputs.
    """
    if name in ("raw", "invariant"):
        return neutralino(name), NTK
    return {"airfoil": airfoil, "yacht": functools.partial(uci, "yacht")}[name](), NTK | {
        "y_transform": "standardize"
    }
