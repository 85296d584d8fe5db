"""Reader for CIFAR-10 in its binary version, as its authors distribute it.

Reference: Krizhevsky 2009, "Learning multiple layers of features from tiny images".
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfbnn.system.arrays import Array
from tfbnn.system.paths import StrPath

_SIDE, _CHANNELS, _NUM_CLASSES = 32, 3, 10
# A label, then the red, the green and the blue plane, each by rows.
_BYTES = 1 + _CHANNELS * _SIDE**2
_TRAIN, _TEST = tuple(f"data_batch_{number}.bin" for number in range(1, 6)), ("test_batch.bin",)
_NAMES = "batches.meta.txt"


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images and what is on them.

    Attributes:
        images: uint8 [N, 32, 32, 3], rows, columns and colours (red, green, blue).
        labels: int64 [N], places in `label_names`.
        label_names: The ten classes.
    """

    images: Array
    labels: Array
    label_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.images)


def read_cifar10(folder: StrPath) -> tuple[LabelledImages, LabelledImages]:
    """Read the training and the test images of CIFAR-10 from a folder that you have downloaded.

    It is `cifar-10-batches-bin` of `cifar-10-binary.tar.gz`. The version "for Python" is of pickles,
    which may run any code, and is not read.

    Args:
        folder: With `data_batch_1.bin` to `data_batch_5.bin`, `test_batch.bin` and
            `batches.meta.txt`. A batch may have any number of images; those of the authors have 10 000.

    Returns:
        (training images, test images) in the order of the files.

    Raises:
        FileNotFoundError: If one of the files is missing.
        ValueError: If a file is no whole number of images of 3073 bytes, or has other labels than 0
            to 9, or if there are not ten names.
    """
    folder = Path(folder)
    absent = [name for name in (*_TRAIN, *_TEST, _NAMES) if not (folder / name).is_file()]
    if absent:
        raise FileNotFoundError(
            f"{folder} has no {', '.join(absent)}; expected the folder cifar-10-batches-bin, unpacked "
            "from cifar-10-binary.tar.gz."
        )
    names = tuple((folder / _NAMES).read_text(encoding="utf-8").split())
    if len(names) != _NUM_CLASSES:
        raise ValueError(f"{folder / _NAMES} has {len(names)} names; expected {_NUM_CLASSES}.")
    return _read(folder, _TRAIN, names), _read(folder, _TEST, names)


def _read(folder: Path, files: tuple[str, ...], names: tuple[str, ...]) -> LabelledImages:
    rows = np.concatenate([_batch(folder / name) for name in files])
    planes = rows[:, 1:].reshape(-1, _CHANNELS, _SIDE, _SIDE)
    images = np.ascontiguousarray(np.moveaxis(planes, 1, -1))
    return LabelledImages(images, rows[:, 0].astype(np.int64), names)


def _batch(path: Path) -> Array:
    """Rows [n, 3073] of one file, checked."""
    found: Array = np.fromfile(path, dtype=np.uint8)
    if not found.size or found.size % _BYTES:
        raise ValueError(
            f"{path} has {found.size} bytes; expected a multiple of {_BYTES}, a label and 3 x 32 x 32 "
            "pixels for each image. Download it again."
        )
    rows = found.reshape(-1, _BYTES)
    if rows[:, 0].max() >= _NUM_CLASSES:
        raise ValueError(
            f"{path} has the label {rows[:, 0].max()}; expected 0 to {_NUM_CLASSES - 1}. CIFAR-100 has "
            "two labels for each image, and is not read."
        )
    return rows
