"""Files that are replaced once the new one is complete."""

import os

import pytest

from tfbnn.system.atomic import is_device, replacing, write_file


def test_pipes_are_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="is a pipe or a device"), replacing(path):
        pass
    assert os.listdir(tmp_path) == ["pipe"] and not path.is_file()


@pytest.mark.skipif(os.name == "nt", reason="needs permissions of POSIX")
def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "private.h5"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_file(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
def test_a_link_to_an_open_stream_is_written_to_and_not_replaced(tmp_path):
    with open(tmp_path / "out.csv", "w") as file:
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        assert is_device(str(link)) and not is_device(file.name)
