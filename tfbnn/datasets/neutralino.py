"""A generated data set: pp -> chi10 chi10 at 13 TeV, leading order.

It uses a simple luminosity and is for demonstrations and tests, nothing more: do not quote these
cross sections. The structure of the set is realistic, though. The target is a known function of the
signed mass and the mixings of the lightest neutralino, it spans many orders of magnitude, and it
drops steeply where couplings cancel (a nearly pure higgsino has N13^2 = N14^2 and decouples from
the Z).

The set is made in three steps:

1. Sample M1, M2, mu and tan(beta), all independent. |M1|, |M2| and |mu| are uniform between
   50 GeV and 1000 GeV, each with a random sign; tan(beta) is uniform between 2 and 50. Points
   whose lightest neutralino is lighter than 50 GeV are dropped.
2. Diagonalise the tree-level neutralino mass matrix with a real orthogonal N, keeping the
   sign of the mass.
3. Integrate the leading-order cross section (see ``_pair_production``).

References:
    H. E. Haber and G. L. Kane, Phys. Rept. 117 (1985) 75.
    S. P. Martin, A Supersymmetry Primer, hep-ph/9709356.
    S. Dawson, E. Eichten and C. Quigg, Phys. Rev. D 31 (1985) 1581.
    W. Beenakker et al., Phys. Rev. Lett. 83 (1999) 3780, hep-ph/9906298.
"""

import math
from dataclasses import dataclass

import numpy as np

from tfbnn.datasets._pair_production import COS2_W, SIN2_W, Z_MASS_GEV, pair_cross_section_fb
from tfbnn.system.arrays import Array

FEATURE_NAMES, TARGET_NAME = ("m_chi10_GeV", "N11", "N12", "N13", "N14"), "lo_xsec_fb"

MASS_RANGE_GEV = (50.0, 1000.0)
TAN_BETA_RANGE = (2.0, 50.0)
LIGHTEST_MASS_GEV = 50.0

# Share of the rows up to the end of the training part, and up to the end of the validation part.
_SHARES = (0.80, 0.80 + 0.05)

# Parameters are drawn in blocks of a fixed size, so that the first rows of a set do not depend
# on the requested number of rows.
ROWS_PER_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of features and one target, with its split into three parts.

    Attributes:
        x: Features, float64 array of shape [N, D]. The unit of a column, where it has one,
            is the end of its name.
        y: Target, float64 array of shape [N]. Its unit is the end of ``target_name``.
        feature_names: The D column names of ``x``, in order.
        target_name: The name of ``y``.
    """

    x: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str

    @property
    def train(self) -> tuple[Array, Array]:
        """Training rows as ``(x, y)`` with shapes [n, D] and [n]."""
        return self._part(0.0, _SHARES[0])

    @property
    def validation(self) -> tuple[Array, Array]:
        """Validation rows as ``(x, y)`` with shapes [n, D] and [n]."""
        return self._part(*_SHARES)

    @property
    def test(self) -> tuple[Array, Array]:
        """Test rows as ``(x, y)`` with shapes [n, D] and [n]."""
        return self._part(_SHARES[1], 1.0)

    def __len__(self) -> int:
        return len(self.x)

    def _part(self, begin: float, end: float) -> tuple[Array, Array]:
        rows = slice(round(begin * len(self)), round(end * len(self)))
        return self.x[rows].copy(), self.y[rows].copy()


def neutralino_pairs(num_rows: int = 2000, seed: int = 0) -> Dataset:
    """Generate a table of leading-order pp -> chi10 chi10 cross sections at 13 TeV.

    The features, in this order, are ``m_chi10_GeV`` (signed, GeV), ``N11``, ``N12``, ``N13``
    and ``N14`` (no unit). The sign of the row N1j is fixed by making its entry of largest
    magnitude positive. The target is ``lo_xsec_fb``, in fb.

    The first 80 per cent of the rows are for training, the next 5 per cent for validation and
    the last 15 per cent for testing. The rows are independent draws, so this is as good as a
    random split. The same seed gives the same rows, and a smaller set is the beginning of a
    larger one.

    Args:
        num_rows: Number of rows N, at least 1.
        seed: Seed of the generator, an integer of 0 or more.

    Returns:
        A Dataset with x of shape [N, 5] and y of shape [N].

    Raises:
        ValueError: If ``num_rows`` is not a whole number of at least 1.
    """
    if num_rows != int(num_rows) or num_rows < 1:
        raise ValueError(f"num_rows must be a whole number of at least 1, got {num_rows!r}.")
    num_rows = int(num_rows)
    mass, mixing = sample_lightest(num_rows, np.random.default_rng(seed))
    x, y = np.column_stack([mass, mixing]), pair_cross_section_fb(mass, mixing)
    return Dataset(x, y, FEATURE_NAMES, TARGET_NAME)


def sample_lightest(num_rows: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Draw parameter points until enough have a lightest neutralino that is heavy enough.

    Args:
        num_rows: Number of rows N.
        generator: A numpy.random.Generator.

    Returns:
        Signed masses in GeV, shape [N], and mixings N11..N14, shape [N, 4].
    """
    masses, mixings, found = [], [], 0
    while found < num_rows:
        every_mass, rotation = diagonalise(
            mass_matrix(*sample_parameters(ROWS_PER_BLOCK, generator))
        )
        mass, mixing = every_mass[:, 0], rotation[:, 0]
        keep = np.abs(mass) >= LIGHTEST_MASS_GEV
        masses.append(mass[keep])
        mixings.append(mixing[keep])
        found += int(keep.sum())
    return np.concatenate(masses)[:num_rows], np.concatenate(mixings)[:num_rows]


def sample_parameters(
    count: int, generator: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Draw (M1, M2, mu, tan(beta)) as the module docstring describes.

    Args:
        count: Number of points n.
        generator: A numpy.random.Generator.

    Returns:
        Four arrays of shape [n]: M1, M2 and mu in GeV, and tan(beta).
    """
    size = generator.uniform(*MASS_RANGE_GEV, size=(3, count))
    sign = generator.choice([-1.0, 1.0], size=(3, count))
    bino, wino, higgsino = size * sign
    return bino, wino, higgsino, generator.uniform(*TAN_BETA_RANGE, size=count)


def mass_matrix(m1: Array, m2: Array, mu: Array, tan_beta: Array) -> Array:
    """Compute the tree-level mass matrix in the basis (bino, wino, higgsino 1, higgsino 2).

    Higgsino 1 belongs to the Higgs doublet that gives mass to the down-type quarks.

    Args:
        m1: Bino mass parameter, GeV, shape [n].
        m2: Wino mass parameter, GeV, shape [n].
        mu: Higgsino mass parameter, GeV, shape [n].
        tan_beta: Ratio of the two vacuum expectation values, shape [n].

    Returns:
        Real symmetric matrices, GeV, shape [n, 4, 4].
    """
    beta = np.arctan(tan_beta)
    z_sine, z_cosine = Z_MASS_GEV * math.sqrt(SIN2_W), Z_MASS_GEV * math.sqrt(COS2_W)
    upper = np.zeros(np.shape(beta) + (4, 4))
    upper[..., 0, 2] = -z_sine * np.cos(beta)
    upper[..., 0, 3] = z_sine * np.sin(beta)
    upper[..., 1, 2] = z_cosine * np.cos(beta)
    upper[..., 1, 3] = -z_cosine * np.sin(beta)
    upper[..., 2, 3] = -mu
    matrix = upper + np.swapaxes(upper, -1, -2)
    matrix[..., 0, 0] = m1
    matrix[..., 1, 1] = m2
    return matrix


def diagonalise(matrix: Array) -> tuple[Array, Array]:
    """Diagonalise N M N^T = diag(m1, ..., m4) with N real orthogonal and |m| ascending.

    Args:
        matrix: Real symmetric matrices M, GeV, shape [n, 4, 4].

    Returns:
        Signed masses, GeV, shape [n, 4], and N, shape [n, 4, 4]. In every row of N the entry
        of largest magnitude is positive.
    """
    values, columns = np.linalg.eigh(matrix)
    order = np.argsort(np.abs(values), axis=-1)
    masses = np.take_along_axis(values, order, axis=-1)
    rows = np.take_along_axis(np.swapaxes(columns, -1, -2), order[..., None], axis=-2)
    largest = np.argmax(np.abs(rows), axis=-1)[..., None]
    return masses, rows * np.sign(np.take_along_axis(rows, largest, axis=-1))
