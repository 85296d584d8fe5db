"""Clocks, languages, masks and links: no effect on what is written, nor on what is found."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import tfbnn
from tests.support.durability.fake_run import Segments, uninterrupted
from tests.support.marks import statistics_but
from tests.support.run_folders import created_run
from tfbnn.storage.run.folder import RunFolder

RUN = """
import sys
from tests.support.durability.fake_run import Segments
Segments(sys.argv[1]).run(lambda done: None)
"""
# Before the run, time is what it was 30 years ago.
CLOCK_BACK = """
import datetime, time
true_time, shift = time.time, 9.5e8
time.time = lambda: true_time() - shift
time.time_ns = lambda: int(1e9 * time.time())
class Past(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = Past
"""


def run_elsewhere(path, before="", **environment):
    """A run in a process with another environment, and what it has committed, here."""
    done = subprocess.run(
        [sys.executable, "-c", before + RUN, str(path)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return Segments(path).committed()


def run_here(path):
    """A run in this process, and what it has committed."""
    Segments(path).run(lambda done: None)
    return Segments(path).committed()


def is_the_uninterrupted_run(found):
    return [a.tobytes() for a in found[:2]] == [a.tobytes() for a in uninterrupted()]


def test_a_clock_that_was_set_back(tmp_path):
    folder = created_run(tmp_path / "run", {}, {}, 1)
    with folder.writer(0) as writer:
        writer.commit({"state": uninterrupted()[0][0] * 0.0}, {"done": 0})
    os.utime(os.path.join(folder.path, "lane-000", "checkpoint-b.h5"), (2e9, 2e9))
    assert is_the_uninterrupted_run(run_elsewhere(folder.path, before=CLOCK_BACK))
    assert b'"since": "199' in Path(folder.path, "lane-000", "lease").read_bytes()


@pytest.mark.parametrize("language", statistics_but(["tr_TR.UTF-8"], ["C", "tr_TR.UTF-8"]))
def test_the_language_of_the_system(tmp_path, language):
    path = tmp_path / "Läufe"
    assert is_the_uninterrupted_run(run_elsewhere(path, LC_ALL=language, PYTHONUTF8="0"))


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_follow_the_mask(tmp_path, mask):
    before = os.umask(mask)
    try:
        assert is_the_uninterrupted_run(run_here(tmp_path / "run"))
    finally:
        os.umask(before)
    for folder, folders, files in os.walk(tmp_path / "run"):
        for names, mode in ((folders, 0o777), (files, 0o666)):
            modes = {stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in names}
            assert modes <= {mode & ~mask}


def test_an_output_that_is_a_link(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "scratch")
    assert is_the_uninterrupted_run(run_here(tmp_path / "run"))
    assert RunFolder.open(tmp_path / "scratch").run_id == RunFolder.open(tmp_path / "run").run_id


# Links that somebody has planted, to have a file of the user overwritten.


@pytest.fixture
def precious(tmp_path):
    """A file that nobody may touch."""
    path = tmp_path / "precious"
    path.write_text("years of work")
    yield path
    assert path.read_text() == "years of work"


@pytest.fixture
def folder(tmp_path):
    folder = created_run(tmp_path / "run", {}, {}, 1)
    with folder.writer(0):
        pass
    return folder


@pytest.mark.parametrize(
    "name", [".tfbnn-12345678.tmp", "segment-000000.h5", "checkpoint-b.h5", "checkpoint-a.h5"]
)
@pytest.mark.parametrize("exists", [True, False])
def test_planted_links_are_not_followed(folder, precious, name, exists):
    target = precious if exists else precious.parent / "new"
    link = os.path.join(folder.path, "lane-000", name)
    os.symlink(target, link)
    try:
        with folder.writer(0) as writer:
            writer.append(uninterrupted()[0], {})
            for _ in range(2):
                writer.commit({}, {})
    except tfbnn.RunFolderError as error:
        assert name in str(error)  # a link instead of a checkpoint is refused
    assert not (precious.parent / "new").exists()


def test_a_planted_pipe_is_not_waited_for(folder):
    os.mkfifo(os.path.join(folder.path, "lane-000", ".tfbnn-12345678.tmp"))
    with folder.writer(0) as writer:
        writer.commit({}, {"number": 1})
    assert folder.read(0).counters == {"number": 1}
    os.mkfifo(os.path.join(folder.path, "lane-000", "checkpoint-a.h5"))
    with pytest.warns(tfbnn.RunFolderWarning, match="is not a file"):
        assert folder.read(0).counters == {"number": 1}


def test_a_planted_lease_is_not_followed(folder, precious):
    lease = os.path.join(folder.path, "lane-000", "lease")
    os.unlink(lease)
    os.symlink(precious, lease)
    with pytest.raises(OSError, match="lease"):
        folder.writer(0).__enter__()


def test_the_names_of_temporary_files_cannot_be_guessed(folder, monkeypatch):
    from tfbnn.system import atomic

    names = set()

    def look(point, path):
        if point == "writing":
            names.update(filter(atomic.is_temporary, os.listdir(os.path.dirname(path))))

    monkeypatch.setattr(atomic, "_reached", look)
    with folder.writer(0) as writer:
        for _ in range(5):
            writer.commit({}, {})
    assert len(names) == 5
