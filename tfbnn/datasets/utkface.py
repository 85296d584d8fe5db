"""Reader for UTKFace: faces whose age, gender and race are in the names of their files.

Reference: Zhang, Song and Qi 2017, arXiv:1702.08423.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfbnn.data.validation import check_integer
from tfbnn.system.arrays import Array
from tfbnn.system.extras import required
from tfbnn.system.paths import StrPath

# [age]_[gender]_[race]_[date and time].jpg; of the aligned set .jpg.chip.jpg.
_NAME = re.compile(r"(\d+)_([01])_([0-4])_\d+(\.jpg)?(\.chip)?\.jpg", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Faces:
    """Grey images of faces, and whose they are.

    Attributes:
        images: uint8 [N, side, side].
        age: Years, int64 [N].
        gender: int64 [N]: 0 male, 1 female.
        race: int64 [N]: 0 White, 1 Black, 2 Asian, 3 Indian, 4 others.
        left_out: Names of the files whose names do not tell all three; the published set has a few.
    """

    images: Array
    age: Array
    gender: Array
    race: Array
    left_out: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.images)


def read_utkface(folder: StrPath, side: int = 32) -> Faces:
    """Read all faces of a folder that you have downloaded, grey and of one size.

    As Dinh, Ho and Nguyen 2024 (arXiv:2410.22065, A.6) use them: they take the faces with gender 0, race
    2 and age 6 to 92, flatten the images and divide ages by 100.

    Args:
        folder: With files such as `25_0_2_20170116174525125.jpg.chip.jpg`, of any size.
        side: Pixels of a side of the images that are returned. Default 32, as there.

    Returns:
        Faces, in the order of the names of their files.

    Raises:
        ImportError: Without Pillow, which reads JPEG and comes with Matplotlib.
        FileNotFoundError: If there is no such folder.
        ValueError: If no file has a name of that form, or a side is below one pixel.
        OSError: If a file is no image.
    """
    side, folder = check_integer("side", side, minimum=1), Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder; expected that of the images of UTKFace.")
    pillow = required("PIL.Image", "Images of UTKFace need Pillow", "plots")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".jpg")
    known = [(path, found) for path in paths if (found := _NAME.fullmatch(path.name))]
    if not known:
        raise ValueError(
            f"{folder} has {len(paths)} files .jpg, and none with a name such as "
            "25_0_2_20170116174525125.jpg, which tells age, gender and race."
        )
    images = []
    for path, _ in known:
        with pillow.open(path) as image:
            images.append(np.asarray(image.convert("L").resize((side, side))))
    labels = np.array([[int(number) for number in found.groups()[:3]] for _, found in known])
    left_out = tuple(path.name for path in paths if not _NAME.fullmatch(path.name))
    return Faces(np.stack(images), labels[:, 0], labels[:, 1], labels[:, 2], left_out)
