"""Lets fake runs meet a full disk, or a limit on the size of files.

    python -m tests.support.durability.filling "full disk" 50 0 FOLDER

A trial: the run has to end with an OSError that names a file and its bytes; what was committed must
be there; once there is space again, it goes on to the end. See `killing.py` for what is checked.
"""

import contextlib
import functools
import json
import os
import resource
import shutil
import subprocess
import sys

import numpy as np

from tests.support.durability.fake_run import Segments
from tests.support.durability.killing import faults_after_kill, faults_at_end, run_and_kill

FULL = 3  # exit code of a run that said what it must
FULL_DISK, SIZE_LIMIT = "full disk", "limit on the size of files"
_DISK_BYTES, _PAGE = 2**20, 4096


class Explaining(Segments):
    """Ends with its own exit code when the error says which file had how many bytes."""

    def run(self, report):
        try:
            super().run(report)
        except OSError as error:
            named = os.fspath(error.filename).startswith(os.path.realpath(self._path))
            sys.exit(FULL if named and "bytes were to be written" in str(error) else 1)


def limit_size(num_bytes):
    """Lets this process write no larger files."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))


@contextlib.contextmanager
def small_disk(path):
    """A file system of its own, of 1 MiB; an error where one may not be mounted."""
    os.mkdir(path)
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tfbnn-test", path]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def may_mount(path):
    """Return whether `small_disk` works here."""
    try:
        with small_disk(path):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def disk_trial(folder, generator):
    """Return what is wrong with a run on a disk that has become full, None where nothing is."""
    disk = os.path.join(folder, "disk")
    with small_disk(disk):
        store = Explaining(os.path.join(disk, "run"))
        ballast = os.path.join(disk, "ballast")
        # From the description of the run to almost the last page of its model file.
        free = _PAGE * int(generator.integers(4, 16))
        with open(ballast, "wb") as file:
            file.write(bytes(_DISK_BYTES - free))
        fault = fault_of(store, lambda: None)
        os.unlink(ballast)
        fault = fault or faults_at_end(store)
    os.rmdir(disk)
    return fault


def size_trial(folder, generator):
    """Return what is wrong with a run that may write small files only, None where nothing is."""
    store = Explaining(os.path.join(folder, "run"))
    # The smallest file of a run has 1.3 kB, the largest 21 kB.
    fault = fault_of(store, functools.partial(limit_size, int(generator.integers(400, 12_000))))
    fault = fault or faults_at_end(store)
    shutil.rmtree(os.path.join(folder, "run"))
    return fault


def fault_of(store, prepare):
    code, reported = run_and_kill(store, prepare)
    if code != FULL:
        return f"the run ended with {code}"
    return faults_after_kill(store, reported)


def main(what, trials, seed, folder):
    """Makes the trials and prints what came of them."""
    one = {FULL_DISK: disk_trial, SIZE_LIMIT: size_trial}[what]
    faults = []
    for number in range(int(trials)):
        fault = one(folder, np.random.default_rng([int(seed), number]))
        if fault:
            faults.append(f"{what} {number}: {fault}")
    print(json.dumps({"faults": faults}))


if __name__ == "__main__":
    main(*sys.argv[1:])
