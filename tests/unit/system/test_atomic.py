"""Files that are replaced once the new one is complete."""

import os

import pytest

from tfbnn.system.atomic import replacing, write_file


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
