"""Disks that are full, must not be written, or fail."""

import errno
import os
import shutil
import stat
import subprocess

import numpy as np
import pytest

from tests.support.durability import filling
from tests.support.durability.trials import trials
from tests.support.run_folders import created_run
from tfbnn.storage import write_model
from tfbnn.storage.run.folder import RunFolder
from tfbnn.system import atomic


def test_limit_on_the_size_of_files(tmp_path):
    assert trials(filling, filling.SIZE_LIMIT, 2, tmp_path)["faults"] == []


def test_full_disk(tmp_path):
    if not filling.may_mount(tmp_path / "probe"):
        pytest.skip("needs the right to mount a small file system")
    assert trials(filling, filling.FULL_DISK, 2, tmp_path)["faults"] == []


def fail(number):
    def failing(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return failing


def commit(writer, value):
    writer.append(np.full((2, 1, 3), value, np.float32), {})
    writer.commit({"state": np.array(value)}, {})


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_commit_that_fails_can_be_repeated(tmp_path, monkeypatch, call, number):
    folder = created_run(tmp_path / "run", {}, {}, 1)
    with folder.writer(0) as writer:
        commit(writer, 1.0)
        with monkeypatch.context() as patched:
            patched.setattr(os, call, fail(number))
            with pytest.raises(OSError, match="bytes were to be written.*lane-000") as caught:
                commit(writer, 2.0)
        assert caught.value.errno == number
        assert folder.read(0).draws[:, 0, 0].tolist() == [1, 1]
        writer.commit({"state": np.array(2.0)}, {})
    assert folder.read(0).draws[:, 0, 0].tolist() == [1, 1, 2, 2]
    assert [name for name in os.listdir(tmp_path / "run/lane-000") if ".tmp" in name] == []


def test_a_checkpoint_that_fails_after_its_segment_can_be_repeated(tmp_path, monkeypatch):
    folder = created_run(tmp_path / "run", {}, {}, 1)
    with folder.writer(0) as writer:
        commit(writer, 1.0)
        with monkeypatch.context() as patched:
            patched.setattr("tfbnn.storage.run.group_files.write_checkpoint", fail(errno.ENOSPC))
            with pytest.raises(OSError):
                commit(writer, 2.0)
        assert len(folder.read(0).draws) == 2
        commit(writer, 3.0)
    assert folder.read(0).draws[:, 0, 0].tolist() == [1, 1, 2, 2, 3, 3]


# Folders that cannot be written. To root, permissions mean nothing: other ways to say no.


@pytest.fixture
def unchangeable(tmp_path):
    """A run with one commit in which nothing can be changed, nor in its group."""
    folder = created_run(tmp_path / "run", {}, {}, 1)
    with folder.writer(0) as writer:
        commit(writer, 1.0)
    group = os.path.join(folder.path, "lane-000")
    if os.geteuid() != 0:
        for path in (group, folder.path):
            os.chmod(path, stat.S_IRUSR | stat.S_IXUSR)
        yield folder
        for path in (folder.path, group):
            os.chmod(path, stat.S_IRWXU)
        return
    if shutil.which("chattr") is None:
        pytest.skip("needs chattr, or another user than root")
    paths = [folder.path, group, os.path.join(group, "lease"), os.path.join(folder.path, "lease")]
    done = subprocess.run(["chattr", "+i", *paths], capture_output=True)
    try:
        if done.returncode:
            pytest.skip("this file system has no files that root cannot change")
        yield folder
    finally:
        subprocess.run(["chattr", "-i", *paths], capture_output=True)


def test_a_folder_that_cannot_be_written_can_be_read(unchangeable):
    assert RunFolder.open(unchangeable.path).read(0).draws[:, 0, 0].tolist() == [1, 1]


def test_a_folder_that_cannot_be_written_is_refused_before_the_first_draw(unchangeable):
    with pytest.raises(OSError, match="run"), unchangeable.writer(0) as writer:
        commit(writer, 2.0)
    with pytest.raises(OSError, match="run"):
        unchangeable.replace_description({"more": 1})


def test_a_new_run_where_nothing_can_be_written(unchangeable):
    with pytest.raises(OSError, match="new"):
        created_run(os.path.join(unchangeable.path, "new"), {}, {}, 1)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder of .*nowhere/run.* does not exist"):
        created_run(tmp_path / "nowhere" / "run", {}, {}, 1)
    assert os.listdir(tmp_path) == []


def test_a_path_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(OSError, match="File name too long") as caught:
        created_run(tmp_path / ("long" * 100), {}, {}, 1)
    assert caught.value.errno == errno.ENAMETOOLONG


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(FileExistsError, match="run"):
        created_run(tmp_path / "run", {}, {}, 1)
    folder = created_run(tmp_path / "other", {}, {}, 1)
    (tmp_path / "other" / "lane-000").write_text("mine")
    with pytest.raises(FileExistsError, match="lane-000"), folder.writer(0):
        pass
    assert (tmp_path / "run").read_text() == (tmp_path / "other/lane-000").read_text() == "mine"


# The order in which things reach the disk.


def test_each_file_is_on_the_disk_before_its_name_and_the_checkpoint_is_last(tmp_path, monkeypatch):
    folder = created_run(tmp_path / "run", {}, {}, 1)
    calls, sync, replace = [], os.fsync, os.replace

    def record_sync(handle):
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        calls.append("folder" if is_folder else "content")
        sync(handle)

    def record_replace(source, target):
        calls.append(os.path.basename(target))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_replace)
    with folder.writer(0) as writer:
        assert calls == ["folder"]  # that of the group has its name
        calls.clear()
        commit(writer, 1.0)
    files = ["segment-000000.h5", "checkpoint-b.h5"]
    assert calls == [step for name in files for step in ("content", name, "folder")]


def test_a_model_file_on_a_full_disk_leaves_the_older_one(
    synthetic_ensemble, tmp_path, monkeypatch
):
    path = tmp_path / "model.h5"
    write_model(synthetic_ensemble(), path)
    before = path.read_bytes()

    def full(point, path):
        if point == "writing":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic, "_reached", full)
    with pytest.raises(OSError, match=r"No space left.* bytes were to be written.*model\.h5"):
        write_model(synthetic_ensemble((3, 4, 1)), path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.h5"]
