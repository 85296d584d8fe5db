"""The container of every data set of this package, and a reader for tables of cross sections."""

from dataclasses import dataclass

import numpy as np

from tfbnn.data.tables import read_table
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

TRAIN = 0
VALIDATION = 1
TEST = 2


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
        rows, columns = np.shape(self.x)[:1], len(self.feature_names)
        wanted = {"x": (*rows, columns), "y": rows, "split": rows}
        for name, shape in wanted.items():
            if np.shape(getattr(self, name)) != shape or not rows:
                raise ValueError(
                    f"{name} must have shape {list(shape)}, for {columns} feature_names and as many rows "
                    f"as x has, received {list(np.shape(getattr(self, name)))}."
                )
        codes = np.unique(self.split)
        if codes.dtype.kind not in "iu" or not np.isin(codes, (TRAIN, VALIDATION, TEST)).all():
            raise ValueError(
                "split must hold the integers 0 for train, 1 for validation and 2 for test, received "
                f"{codes}."
            )

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


FEATURE_NAMES = ("m_chi10_GeV", "N11", "N12", "N13", "N14")
SPLIT_NAME = "split"


def read_cross_sections(path: StrPath, target: str = "nlo_alphas_up_fb") -> Dataset:
    """Read features, one target and the split from a table.

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
    wanted = (*FEATURE_NAMES, target)
    table = read_table(path, lambda names: [*wanted, *({SPLIT_NAME} & {*names})])
    split = np.full(len(table), TRAIN)
    if SPLIT_NAME in table.columns:
        codes = table.column(SPLIT_NAME)
        split = codes.astype(int) if (codes == np.floor(codes)).all() else codes
    numbers = table.numbers(wanted)
    return Dataset(numbers[:, :-1], numbers[:, -1], FEATURE_NAMES, target, split)
