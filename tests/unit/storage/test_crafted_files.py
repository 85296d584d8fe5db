"""Crafted model files: each is sealed, so that what it says is judged, and each is refused."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import tfbnn
from tests.support.crafted_files import CANARY, FILES, HARD, PLAIN
from tests.support.model_file_edits import (
    THETA,
    craft,
    refused_after,
    replace,
    rewrite,
    store,
)
from tfbnn.storage import seal, write_model


@pytest.fixture(scope="module")
def originals(tmp_path_factory, synthetic_ensemble):
    folder = tmp_path_factory.mktemp("originals")
    with h5py.File(folder / "canary", "w") as file:
        file["theta"] = np.zeros((2, 15, 22), "<f4")
        file["note"] = np.bytes_(CANARY)
    write_model(synthetic_ensemble(dtype="float32"), folder / "model.h5")
    return folder


@pytest.fixture
def saved(tmp_path, originals):
    """The path of a sound model file, with another file beside it that nobody may read."""
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    return tmp_path / "model.h5"


SOUND = {
    "theta written anew": replace(THETA, lambda values: values),
    "another boolean": rewrite("row_noise", value=True),
    "gzip, shuffle, fletcher32": store(
        THETA, chunks=(1, 5, 22), compression="gzip", shuffle=True, fletcher32=True
    ),
    "chunks that do not divide": store(THETA, chunks=(2, 4, 7)),
    "variances alone": replace("constant_data/x_covariance", lambda v: np.diag(v)[:, None]),
}


@pytest.mark.parametrize("edit", SOUND.values(), ids=SOUND)
def test_edits_that_leave_a_sound_file(saved, edit):
    """The edits of this module break a file by what they change, not by editing."""
    expected = tfbnn.load(saved).posterior.draws
    craft(saved, edit)
    found = tfbnn.load(saved).posterior.draws
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("edit", "message"), FILES.values(), ids=FILES)
def test_a_crafted_file_is_refused(saved, edit, message):
    refused_after(edit, saved, rf"(?s)model\.h5.*{message}")


def prepend(path, size):
    path.write_bytes(bytes(size) + path.read_bytes())


def overwrite(start, content):
    def edit(path):
        data = bytearray(path.read_bytes())
        data[start : start + len(content)] = content
        path.write_bytes(data)

    return edit


def cut(share):
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


# Files that are no longer what HDF5 wrote.
BYTES = {
    "a user block": (lambda path: prepend(path, 512), "signature of HDF5 at byte 0"),
    "half of the file": (cut(0.5), "HDF5 part must reach from byte 0 to"),
    "all but the last byte": (
        lambda path: path.write_bytes(path.read_bytes()[:-41]), "HDF5 part must reach",
    ),
    "no superblock": (overwrite(8, b"\xff" * 40), "superblock of version 2 or 3"),
    "an end of file beyond the file": (
        overwrite(28, (10**9).to_bytes(8, "little")), "it says from 0 to 1000000000",
    ),
    "another base address": (overwrite(12, b"\x08"), "it says from 8 to"),
    "bytes behind the end": (
        lambda path: path.write_bytes(path.read_bytes()[:-40] + b"PK" * 99), "HDF5 part must reach",
    ),
    "nothing": (lambda path: path.write_bytes(b""), "signature of HDF5"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "message"), BYTES.values(), ids=BYTES)
def test_a_file_with_other_bytes_is_refused(saved, edit, message):
    edit(saved)
    seal(saved)
    with pytest.raises(tfbnn.ModelFileError, match=rf"(?s)model\.h5.*{message}"):
        tfbnn.load(saved)


# The seal.


def test_the_seal_is_the_hash_of_everything_before_it(saved):
    content = saved.read_bytes()
    assert content[-32:] == hashlib.sha256(content[:-40]).digest()


def test_the_seal_is_checked_before_hdf5_opens_the_file(saved, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("HDF5 has seen the file")

    overwrite(3000, b"?")(saved)
    with monkeypatch.context() as patched:
        patched.setattr(h5py, "File", fail)
        with pytest.raises(tfbnn.ModelFileError, match="does not match its seal"):
            tfbnn.load(saved)


def test_a_file_larger_than_allowed_is_refused(saved):
    size = saved.stat().st_size
    assert tfbnn.load(saved, max_bytes=size).posterior.num_draws == 30
    with pytest.raises(
        tfbnn.ModelFileError, match=f"has {size} bytes, expected at most {size - 1}"
    ):
        tfbnn.load(saved, max_bytes=size - 1)
    with open(saved, "r+b") as file:
        file.truncate(2**31 + 1)
    with pytest.raises(tfbnn.ModelFileError, match="expected at most 2147483648"):
        tfbnn.load(saved)


def test_arrays_larger_than_allowed_are_refused(saved):
    craft(saved, bomb_below_the_ratio)
    with pytest.raises(tfbnn.ModelFileError, match="arrays take .* expected at most 9000000"):
        tfbnn.load(saved, max_bytes=9_000_000)


def bomb_below_the_ratio(file):
    """10 MB out of 10 kB, which is allowed for so small an array."""
    del file[THETA]
    file.create_dataset(THETA, data=np.zeros((2, 60_000, 22), "<f4"), compression="gzip")


def test_nothing_that_runs_code_is_called_by_the_reader():
    forbidden = "pickle joblib dill marshal yaml eval( exec( __import__ shell".split()
    for path in Path(tfbnn.storage.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8").replace('".joblib"', "")  # an ending it refuses
        assert [word for word in forbidden if word in text] == [], path


# Other files.


def test_a_fifo_is_refused(tmp_path):
    os.mkfifo(tmp_path / "model.h5")
    with pytest.raises(tfbnn.ModelFileError, match="not a file"):
        tfbnn.load(tmp_path / "model.h5")


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_no_other_file_is_opened(saved, tmp_path):
    """Files that point at another one, loaded under strace, in this process and in a child."""
    names = [name for name, (_, message) in FILES.items() if message in (HARD, PLAIN)]
    paths = []
    for number, name in enumerate(names):
        path = tmp_path / f"{number}.h5"
        shutil.copy(saved, path)
        craft(path, FILES[name][0])
        paths.append(str(path))
    code = """
import sys, tfbnn
for untrusted in (False, True):
    for path in sys.argv[1:] if not untrusted else sys.argv[1:3]:
        try:
            tfbnn.load(path, untrusted=untrusted)
        except tfbnn.ModelFileError:
            print("refused")
"""
    log = tmp_path / "log"
    command = ["strace", "-f", "-e", "trace=%file,%network", "-o", str(log)]
    done = subprocess.run(
        [*command, sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["refused"] * (len(paths) + 2), done.stderr
    calls = log.read_text()
    assert "0.h5" in calls and "canary" not in calls
    assert "socket(" not in calls
