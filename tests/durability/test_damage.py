"""Damaged run folders: a documented error, or the last good commit with a warning."""

import os
import shutil

import h5py
import numpy as np
import pytest

import tfbnn
from tests.support.durability import damage
from tests.support.marks import statistics_but
from tfbnn.storage import seal
from tfbnn.storage.format import schema
from tfbnn.storage.run.folder import RunFolder


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return damage.make(tmp_path_factory.mktemp("runs") / "sound")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return damage.make(tmp_path_factory.mktemp("runs") / "other", seed=1)


CHANGES = [damage.truncate, damage.flip_bit, damage.overwrite_block]


@pytest.fixture
def copy(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "run")


def test_a_sound_folder_gives_its_last_commit(copy):
    assert damage.outcome(copy) == "last commit"


@pytest.mark.parametrize("kind", damage.KINDS)
@pytest.mark.parametrize("change", statistics_but([damage.flip_bit], CHANGES))
def test_a_damaged_file_gives_no_wrong_number(sound, tmp_path, kind, change):
    allowed = {
        "run.h5": {"refused"},
        # The last one belongs to the last commit alone.
        "segment": {"refused", "commit before"},
        "newer checkpoint": {"commit before"},
        "older checkpoint": {"last commit"},
    }
    found = {
        damage.trial(sound, tmp_path / "run", change, damage.KINDS[kind], number)
        for number in range(5)
    }
    assert found == allowed[kind]


@pytest.mark.parametrize("name", damage.SUBSTITUTIONS)
def test_a_file_in_the_place_of_another(copy, other, name):
    damage.SUBSTITUTIONS[name](copy, other)
    assert damage.outcome(copy) == damage.EXPECTED[name]


def test_the_messages_name_file_and_cause(copy):
    newer = os.path.join(copy, damage.GROUP, damage.NEWER)
    damage.truncate(newer, np.random.default_rng(0))
    with pytest.warns(tfbnn.RunFolderWarning, match="commit 3 with 15 draws .*checkpoint-a.h5"):
        RunFolder.open(copy).read(0)
    os.unlink(os.path.join(copy, damage.GROUP, damage.OLDER))
    with pytest.raises(tfbnn.RunFolderError, match="no commit that can be used: .*checkpoint-a.h5"):
        RunFolder.open(copy).read(0)
    os.unlink(newer)
    with pytest.raises(tfbnn.RunFolderError, match="4 segments and no checkpoint"):
        RunFolder.open(copy).read(0)


def test_a_group_goes_on_from_the_commit_before(copy):
    damage.flip_bit(os.path.join(copy, damage.GROUP, damage.SEGMENTS[3]), np.random.default_rng(0))
    folder = RunFolder.open(copy)
    draws = damage.committed_draws(0, 20, 50)
    with pytest.warns(tfbnn.RunFolderWarning), folder.writer(0) as writer:
        assert writer.checkpoint.num_draws == 15
        writer.append(draws[15:], {"lp": draws[15:].sum(axis=2)})
        writer.commit({"state": draws[-1]}, {"done": 20})
    # Nothing reminds of the damage.
    assert damage.outcome(copy) == "last commit"


# Files made to deceive, with sound seals.


def external(file):
    del file["arrays/0"]
    file.create_dataset("arrays/0", (4,), "f8", external=[("/etc/hostname", 0, 32)])


def soft_link(file):
    del file["arrays/0"]
    file["arrays/0"] = h5py.SoftLink("/metadata")


def one_more_array(file):
    file["arrays/1000"] = np.zeros(1)


def one_more_group(file):
    file.create_group("elsewhere")


def no_arrays(file):
    del file["arrays"]


def objects(file):
    del file["arrays/0"]
    file.create_dataset("arrays/0", data=["text"], dtype=h5py.string_dtype())


def bomb(file):
    del file["arrays/0"]
    file.create_dataset("arrays/0", data=np.zeros(10**6), compression="gzip")


def other_shape(file):
    shape = file["arrays/0"].shape
    del file["arrays/0"]
    file["arrays/0"] = np.zeros((*shape, 2))


def too_many(file):
    for index in range(schema.MAX_ARRAYS):
        file[f"arrays/more{index}"] = np.zeros(1)


def other_json(text):
    def edit(file):
        del file["metadata"]
        file["metadata"] = np.frombuffer(text, np.uint8)

    return edit


CRAFTED = {
    "external storage": (external, "plain dataset"),
    "soft link": (soft_link, "hard link"),
    "one more array": (one_more_array, "entries of /arrays must be"),
    "one more group": (one_more_group, "entries of / must be"),
    "no arrays": (no_arrays, "entries of / must be"),
    "objects": (objects, "dtype"),
    "bomb": (bomb, "take .* bytes, expected at most"),
    "other shape": (other_shape, "must be '.*' of shape"),
    "too many arrays": (too_many, "at most 1000 entries"),
    "no JSON": (other_json(b"not json"), "not a readable"),
    "a list": (other_json(b"[1]"), "must be an object with the keys"),
    "NaN": (other_json(b'{"arrays": [], "content": {"a": NaN}}'), "finite"),
    "unhashable name": (other_json(b'{"arrays": [[[], "<f8", [1]]], "content": {}}'), "names"),
    "no content": (other_json(b'{"arrays": [], "content": 3}'), "content must be an object"),
    "other arrays": (other_json(b'{"arrays": [], "content": {}}'), "expected 0 arrays, found"),
    "deep": (
        other_json(b'{"arrays": [], "content": {"a": ' + b"[" * 20 + b"]" * 20 + b"}}"),
        "deep",
    ),
}


@pytest.mark.parametrize("kind", ["run.h5", "newer checkpoint"])
@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused(copy, kind, name):
    change, message = CRAFTED[name]
    os.unlink(os.path.join(copy, damage.GROUP, damage.OLDER))
    path = os.path.join(copy, damage.KINDS[kind][0])
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        change(file)
    seal(path)
    with pytest.raises(tfbnn.RunFolderError, match=message):
        RunFolder.open(copy).read(0)


def edit_content(path, old, new):
    """Replaces text of the JSON by text of the same length."""
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        text = file["metadata"][()].tobytes()
        assert old in text and len(old) == len(new)
        file["metadata"][:] = np.frombuffer(text.replace(old, new), np.uint8)
    seal(path)


@pytest.mark.parametrize(
    "kind, old, new",
    [
        ("run.h5", b'"num_lanes": 1', b'"num_lanes": "'),
        ("run.h5", b'"num_lanes": 1', b'"num_lanes": 0'),
        ("run.h5", b'"num_lanes"', b'"num_Lanes"'),
        ("newer checkpoint", b'"generation": 4', b'"generation": {}'[:15]),
        ("newer checkpoint", b'"generation"', b'"Generation"'),
        ("newer checkpoint", b'"lane": 0', b'"lane": 1'),
        ("newer checkpoint", b"segments/sha256", b"segments/SHA256"),
        ("newer checkpoint", b"segments/length", b"state/lengths12"),
    ],
)
def test_crafted_entries_are_refused(copy, kind, old, new):
    os.unlink(os.path.join(copy, damage.GROUP, damage.OLDER))
    edit_content(os.path.join(copy, damage.KINDS[kind][0]), old, new)
    with pytest.raises(tfbnn.RunFolderError):
        RunFolder.open(copy).read(0)


@pytest.mark.parametrize("lengths", [[5, 5, 5, 10**12], [5, 5, 5, -5], [5, 5, 5, 6], [5, 5, 6, 4]])
def test_a_crafted_number_of_draws_is_refused(copy, lengths):
    os.unlink(os.path.join(copy, damage.GROUP, damage.OLDER))
    path = os.path.join(copy, damage.GROUP, damage.NEWER)
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        assert file["arrays/1"].dtype == np.int64
        file["arrays/1"][:] = lengths
    seal(path)
    with pytest.raises(tfbnn.RunFolderError):
        RunFolder.open(copy).read(0)
