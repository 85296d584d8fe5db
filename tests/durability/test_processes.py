"""Several processes at one run folder."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tfbnn
from tests.support.durability import readers
from tests.support.run_folders import created_run
from tfbnn.storage.run.folder import RunFolder
from tfbnn.system.atomic import remove_abandoned, replacing, write_file

pytestmark = pytest.mark.processes

HOLD = """
import sys, time
from tfbnn.storage.run.folder import RunFolder
with RunFolder.open(sys.argv[1]).writer(0) as writer:
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path):
    return created_run(tmp_path / "run", {}, {}, 2)


@pytest.fixture
def start_writer(folder):
    """Function () -> a process that holds the lease of group 0 until its input ends."""
    started = []

    def start():
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, folder.path], stdin=pipe, stdout=pipe, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def lease_of(folder):
    return Path(folder.path, "lane-000", "lease")


def test_four_readers_never_disturb_a_writer_nor_see_anything_wrong(tmp_path):
    complaints, found = readers.observe(str(tmp_path / "run"), 150)
    assert complaints == ""
    assert [one["faults"] for one in found] == [[]] * 4
    for one in found:
        assert one["draws"] == 150 and one["changes"] >= 3 and one["models"] >= 3


def test_a_second_writer_is_refused_and_told_who_the_first_is(folder, start_writer):
    process, before = start_writer(), time.monotonic()
    message = f"written by process {process.pid} on host '{socket.gethostname()}'"
    with pytest.raises(tfbnn.RunLockedError, match=message), folder.writer(0):
        pass
    assert time.monotonic() - before < 2.0  # a promise of the lease, not a speed
    with folder.writer(1):
        pass  # another group is free
    process.communicate("")
    with folder.writer(0):
        pass


def test_the_lease_of_a_killed_writer_is_free(folder, start_writer):
    process = start_writer()
    process.send_signal(signal.SIGKILL)
    process.wait()
    record = json.loads(lease_of(folder).read_bytes())
    assert record["pid"] == process.pid and record["host"] == socket.gethostname()
    assert "since" in record
    with folder.writer(0):
        assert json.loads(lease_of(folder).read_bytes())["pid"] == os.getpid()


def test_whether_a_folder_is_in_use_is_seen_and_not_touched(folder, start_writer):
    assert not RunFolder.in_use(folder.path)
    process = start_writer()
    before = lease_of(folder).read_bytes()
    assert RunFolder.in_use(folder.path) and lease_of(folder).read_bytes() == before
    process.kill()
    process.wait()
    assert not RunFolder.in_use(folder.path) and lease_of(folder).read_bytes() == before
    with RunFolder.reserved(folder.path + "-2"):
        assert RunFolder.in_use(folder.path + "-2")


def test_one_who_asks_whether_a_lease_is_held_refuses_no_writer(folder, monkeypatch):
    with folder.writer(0):
        pass
    with open(lease_of(folder), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        monkeypatch.setattr("tfbnn.storage.run.lease.time.sleep", lambda seconds: file.close())
        with folder.writer(0) as writer:
            writer.commit({}, {})


def test_a_process_forked_by_a_writer_keeps_no_lock(folder):
    """A worker of a data loader, say, which lives longer than the run."""
    with folder.writer(0):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
    try:
        with folder.writer(0) as writer:
            writer.commit({}, {})
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)


def test_two_writers_in_one_process_are_refused_too(folder):
    with folder.writer(0), pytest.raises(tfbnn.RunLockedError, match=f"process {os.getpid()}"):
        with folder.writer(0):
            pass


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"pid": "x", "host": 3}', b"\xff" * 10_000, b"[" * 4096]
)
def test_a_lease_that_says_nonsense_is_harmless(folder, content):
    with folder.writer(0):
        lease_of(folder).write_bytes(content)
        with pytest.raises(tfbnn.RunLockedError, match="written by another process"):
            folder.writer(0).__enter__()
    with folder.writer(0) as writer:
        writer.commit({}, {})


def take_over(folder):
    """Let another write itself in the lease, as on a file system that does not share its locks."""
    lease_of(folder).write_bytes(b'{"pid": 17, "host": "elsewhere", "token": "other"}')


def test_a_writer_that_lost_its_lease_writes_nothing_more(folder):
    with folder.writer(0) as writer:
        writer.commit({}, {"number": 1})
        take_over(folder)
        writer.append(np.zeros((1, 1, 3)), {})
        with pytest.raises(tfbnn.RunLockedError, match="lost to process 17 on host 'elsewhere'"):
            writer.commit({}, {"number": 2})
    assert folder.read(0).counters == {"number": 1}


def test_a_lease_file_that_was_removed_is_noticed(folder):
    with folder.writer(0) as first:
        lease_of(folder).unlink()
        with folder.writer(0) as second:
            second.commit({}, {"writer": "second"})
            with pytest.raises(tfbnn.RunLockedError, match="lost"):
                first.commit({}, {"writer": "first"})
    assert folder.read(0).counters == {"writer": "second"}


def test_a_writer_is_of_no_use_after_its_end(folder):
    with folder.writer(0) as writer:
        pass
    with pytest.raises(tfbnn.RunLockedError, match="released"):
        writer.commit({}, {})


def test_where_there_are_no_locks_this_is_said(folder, monkeypatch):
    def unsupported(handle, wait=False):
        raise OSError(95, "Operation not supported")

    for name in ("lock", "unlock"):
        monkeypatch.setattr(f"tfbnn.storage.run.lease.{name}", unsupported)
    with pytest.raises(tfbnn.RunFolderError, match="cannot be locked .Operation not supported"):
        folder.writer(0).__enter__()


def test_two_processes_cannot_make_the_same_run(tmp_path):
    """One of many that try at the same moment makes the run, and it is the run that is there."""
    code = """
import sys, tfbnn
from tfbnn.storage.run.folder import RunFolder
try:
    with RunFolder.reserved(sys.argv[1]) as make:
        print(make({}, {}, 1).run_id)
except tfbnn.RunFolderError:
    print("refused")
"""
    path = str(tmp_path / "run")
    command = [sys.executable, "-c", code, path]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    found = [process.communicate()[0].strip() for process in started]
    assert found.count("refused") == 3
    assert RunFolder.open(path).run_id in found


def test_many_may_write_in_one_folder(tmp_path, monkeypatch):
    """Nobody takes the temporary file of another for an abandoned one."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)

    def write(writer):
        for number in range(100):
            write_file(tmp_path / f"{writer}", bytes([number]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert {path.name: path.read_bytes()[0] for path in tmp_path.iterdir()} == {
        str(writer): 99 for writer in range(4)
    }


def test_a_temporary_file_that_is_being_written_is_left_alone(tmp_path):
    """Two programs may save into one folder at a time."""
    with replacing(tmp_path / "first") as temporary:
        abandoned = tmp_path / ".tfbnn-old.tmp"
        abandoned.touch()
        remove_abandoned(tmp_path)
        assert os.path.exists(temporary) and not abandoned.exists()
        with replacing(tmp_path / "second"):
            pass
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]
