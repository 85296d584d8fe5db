"""Files that are replaced once the new one is complete."""

import os

import pytest

from tfbnn.system.atomic import replacing


def test_pipes_are_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="is a pipe or a device"), replacing(path):
        pass
    assert os.listdir(tmp_path) == ["pipe"] and not path.is_file()
