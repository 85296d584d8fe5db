"""The container that every data set of this package is returned in."""

from dataclasses import dataclass

import numpy as np

from tfbnn.system.arrays import Array

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
        self._check_shapes()
        self._check_split()

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

    def _check_shapes(self) -> None:
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

    def _check_split(self) -> None:
        if not np.issubdtype(self.split.dtype, np.integer):
            raise ValueError(
                f"split must hold integers, got dtype {self.split.dtype}; "
                "use 0 for train, 1 for validation, 2 for test."
            )
        unknown = np.setdiff1d(self.split, SPLIT_CODES)
        if unknown.size:
            raise ValueError(
                f"split holds unknown codes {unknown.tolist()}; "
                "use 0 for train, 1 for validation, 2 for test."
            )
