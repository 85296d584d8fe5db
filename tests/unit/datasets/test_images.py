"""Readers of CIFAR-10 and UTKFace, on stand-ins that are written here in their layouts."""

import numpy as np
import pytest

from tfbnn.datasets import read_cifar10, read_utkface

NAMES = "airplane automobile bird cat deer dog frog horse ship truck".split()
BATCHES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]


@pytest.fixture
def cifar(tmp_path):
    """(folder, images [6, 3, 32, 32, 3], labels [6, 3]) with three images in each file."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (6, 3, 32, 32, 3), dtype=np.uint8)
    labels = generator.integers(0, 10, (6, 3))
    for name, batch, classes in zip(BATCHES, images, labels):
        content = b""
        for image, label in zip(batch, classes):
            content += bytes([label]) + b"".join(
                image[..., colour].tobytes() for colour in range(3)
            )
        (tmp_path / name).write_bytes(content)
    (tmp_path / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    return tmp_path, images, labels


def test_cifar10(cifar):
    folder, images, labels = cifar
    train, test = read_cifar10(folder)
    np.testing.assert_array_equal(train.images, images[:5].reshape(15, 32, 32, 3))
    np.testing.assert_array_equal(train.labels, labels[:5].ravel())
    np.testing.assert_array_equal(test.images, images[5])
    assert len(train) == 15 and list(test.label_names) == NAMES
    assert train.images.dtype == np.uint8 and train.labels.dtype == np.int64


def test_what_is_no_cifar10(cifar):
    folder, *_ = cifar
    (folder / "test_batch.bin").write_bytes(bytes(3072))
    with pytest.raises(ValueError, match=r"3072 bytes; expected a multiple of 3073"):
        read_cifar10(folder)
    (folder / "test_batch.bin").write_bytes(bytes([11]) + bytes(3072))
    with pytest.raises(ValueError, match="the label 11; expected 0 to 9"):
        read_cifar10(folder)
    (folder / "batches.meta.txt").write_text("cat dog")
    with pytest.raises(ValueError, match="has 2 names; expected 10"):
        read_cifar10(folder)
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no data_batch_3\.bin; expected"):
        read_cifar10(folder)


def test_utkface(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    shades = {"6_0_2_201701.jpg.chip.jpg": 40, "92_1_4_201702.jpg": 200, "39_1_201703.jpg": 0}
    for name, shade in shades.items():
        pixels = np.full((50, 50, 3), shade, np.uint8)
        pixels[:25] //= 2
        pillow.fromarray(pixels).save(tmp_path / name)
    (tmp_path / "readme.txt").write_text("not an image")
    faces = read_utkface(tmp_path, side=8)
    assert faces.images.shape == (2, 8, 8) and faces.images.dtype == np.uint8
    # JPEG is exact but for a shade or two where a colour goes on.
    np.testing.assert_allclose(faces.images[:, 7, 4], [40, 200], atol=3)
    np.testing.assert_allclose(faces.images[:, 0, 4], [20, 100], atol=3)
    assert [faces.age.tolist(), faces.gender.tolist(), faces.race.tolist()] == [
        [6, 92],
        [0, 1],
        [2, 4],
    ]
    assert faces.left_out == ("39_1_201703.jpg",) and len(faces) == 2


def test_what_is_no_utkface(tmp_path):
    pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match=r"has 0 files \.jpg, and none with a name such as"):
        read_utkface(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        read_utkface(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="side must be at least 1"):
        read_utkface(tmp_path, side=0)
