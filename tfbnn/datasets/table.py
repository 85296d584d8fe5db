"""The container of every data set of this package, and a reader for tables of cross sections."""

from dataclasses import dataclass

import numpy as np

from tfbnn.data.csv_tables import CsvRows, Lines, column_places, open_csv
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

TRAIN = 0
VALIDATION = 1
TEST = 2

SPLIT_CODES = (TRAIN, VALIDATION, TEST)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of features and one target, with its split into three parts.

    Inputs are converted to the types below and checked, so a data set that exists has
    matching lengths and known split codes.

    Attributes:
        x: Features, float64 array of shape [N, D]. The unit of a column, where it has one,
            is the end of its name.
        y: Target, float64 array of shape [N]. Its unit is the end of ``target_name``.
        feature_names: The D column names of ``x``, in order.
        target_name: The name of ``y``.
        split: Integer array of shape [N]: 0 train, 1 validation, 2 test.

    Raises:
        ValueError: If shapes do not match or a split code is not 0, 1 or 2.
    """

    x: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str
    split: Array

    def __post_init__(self) -> None:
        # object.__setattr__ is the only way to store the converted arrays in a frozen class.
        object.__setattr__(self, "x", np.asarray(self.x, dtype=np.float64))
        object.__setattr__(self, "y", np.asarray(self.y, dtype=np.float64))
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        object.__setattr__(self, "split", np.asarray(self.split))
        self._check()

    @property
    def train(self) -> tuple[Array, Array]:
        """Training rows as ``(x, y)`` with shapes [n, D] and [n]."""
        return self._part(TRAIN)

    @property
    def validation(self) -> tuple[Array, Array]:
        """Validation rows as ``(x, y)`` with shapes [n, D] and [n]."""
        return self._part(VALIDATION)

    @property
    def test(self) -> tuple[Array, Array]:
        """Test rows as ``(x, y)`` with shapes [n, D] and [n]."""
        return self._part(TEST)

    def __len__(self) -> int:
        return len(self.x)

    def _part(self, code: int) -> tuple[Array, Array]:
        rows = self.split == code
        return self.x[rows], self.y[rows]

    def _check(self) -> None:
        if self.x.ndim != 2:
            raise ValueError(
                f"x must have shape [rows, features], got shape {self.x.shape}; "
                "reshape a single feature to [rows, 1]."
            )
        num_rows, num_features = self.x.shape
        for name in ("y", "split"):
            shape = getattr(self, name).shape
            if shape != (num_rows,):
                raise ValueError(
                    f"{name} must have shape ({num_rows},) to match the rows of x, got {shape}."
                )
        if len(self.feature_names) != num_features:
            raise ValueError(
                f"x has {num_features} columns but feature_names has "
                f"{len(self.feature_names)} entries; give one name per column."
            )
        codes = np.issubdtype(self.split.dtype, np.integer) and np.isin(self.split, SPLIT_CODES)
        if not np.all(codes):
            raise ValueError(
                "split must hold the integers 0 for train, 1 for validation and 2 for test, got "
                f"{np.unique(self.split)}."
            )


FEATURE_NAMES = ("m_chi10_GeV", "N11", "N12", "N13", "N14")
SPLIT_NAME = "split"


def read_cross_sections(path: StrPath, target: str = "nlo_alphas_up_fb") -> Dataset:
    """Read features, one target and the split from a comma-separated table.

    The first line names the columns. Needed are ``m_chi10_GeV`` (signed mass, GeV), ``N11``,
    ``N12``, ``N13``, ``N14`` (mixings, no unit) and the target. A column ``split`` holds
    0 (train), 1 (validation) or 2 (test); without it every row is a training row. Other
    columns are ignored, and so are blank lines. The target is returned in the unit of the
    table, which its name should end with (``_fb`` for femtobarn).

    Args:
        path: File to read.
        target: Name of the target column.

    Returns:
        A Dataset with x of shape [N, 5] and y of shape [N].

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a column is missing or named twice, a line has the wrong number of
            cells, a number cannot be read or is not finite, a split code is unknown, or there
            are no rows.
    """
    with open_csv(path) as table:
        rows = list(table)
        numbers = table.numbers(rows, (*FEATURE_NAMES, target))
        split = _split_codes(table, rows)
    if not rows:
        raise ValueError(f"{path} has a header but no rows; expected at least one row.")
    return Dataset(numbers[:, :-1], numbers[:, -1], FEATURE_NAMES, target, split)


def _split_codes(table: CsvRows, rows: Lines) -> Array:
    """Return the split column as integers, shape [N]; all TRAIN if there is none."""
    if SPLIT_NAME not in table.columns:
        return np.full(len(rows), TRAIN)
    (column,) = column_places([SPLIT_NAME], table.columns, table.source)
    known = {str(code): code for code in SPLIT_CODES}
    codes = []
    for line, cells in rows:
        text = cells[column].strip()
        if text not in known:
            raise ValueError(
                f"{table.source}, line {line}, column {SPLIT_NAME}: expected 0 (train), "
                f"1 (validation) or 2 (test), got {text!r}; correct the code."
            )
        codes.append(known[text])
    return np.array(codes, dtype=int)
