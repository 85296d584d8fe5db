"""Kills fake runs with SIGKILL and says what is wrong afterwards.

    python -m tests.support.durability.killing random 60 0 FOLDER [in-place]

makes trials of one kind and prints them as JSON. It is a program of its own because it forks, which
a process with TensorFlow must not. A trial: runs are killed one after another; after each, what was
committed must be readable, be the beginning of the uninterrupted run bit by bit, be all that the run
had reported, and at most one temporary file may lie about. A last run then goes on to the end, which
must be that of the uninterrupted run, with no temporary file left.

This tests the order of writes and names, not what a disk keeps when power fails.
"""

import functools
import json
import multiprocessing
import os
import shutil
import signal
import struct
import sys
import time
import warnings

import numpy as np

from tests.support.durability.fake_run import NUM_DRAWS, InPlace, Segments, uninterrupted
from tfbnn.system import atomic

STORES = {"segments": Segments, "in-place": InPlace}
# Which write of which files, and where in it, runs are killed. No run writes fewer files.
POINTS = {
    "before write": ("before write", "", 12),
    "mid-segment": ("writing", "segment-", 5),
    "mid-checkpoint": ("writing", "checkpoint-", 5),
    "after temporary file": ("after write", "", 12),
    "after fsync": ("after fsync", "", 12),
    "after rename": ("after rename", "", 12),
    "mid-merge": ("writing", "model", 1),
    "end of merge": ("after rename", "model", 1),
}
# Kills at random moments per trial.
NUM_KILLS = {"random": 1, "five in a row": 5}
_context = multiprocessing.get_context("fork")


def child(store, pipe, prepare):
    """The life of a run: reports go into the pipe as eight bytes each."""
    prepare()
    store.run(lambda done: os.write(pipe, struct.pack("q", done)))


def run_and_kill(store, prepare=lambda: None, draws=None, seconds=0.0):
    """Starts a run, waits until it has reported some draws as committed and a moment more, kills it.

    Args:
        store: The store it writes.
        prepare: What it does first.
        draws: How many draws it may report; None for a run that ends by itself.
        seconds: How long the moment lasts.

    Returns:
        (exit code, number of draws it had reported).
    """
    read_end, write_end = os.pipe()
    process = _context.Process(target=child, args=(store, write_end, prepare))
    process.start()
    os.close(write_end)
    reported = 0
    with open(read_end, "rb", buffering=0) as pipe:
        while draws is None or reported < draws:
            report = pipe.read(8)
            if not report:
                break
            reported = struct.unpack("q", report)[0]
        if draws is not None:
            time.sleep(seconds)
            process.kill()
        process.join()
        reports = pipe.read()
    return process.exitcode, struct.unpack("q", reports[-8:])[0] if reports else reported


def kill_at(point, path_part, count):
    """Makes this process kill itself when it comes to a point the `count`-th time."""
    reached, blocks = 0, {}

    def arrive(found, path):
        nonlocal reached
        if found == "writing":
            # The second block of a file is its middle.
            blocks[path] = blocks.get(path, 0) + 1
            if blocks[path] != 2:
                return
        elif found == "before write":
            blocks[path] = 0
        if found == point and os.path.basename(path).startswith(path_part):
            reached += 1
            if reached == count:
                os.kill(os.getpid(), signal.SIGKILL)

    atomic._reached, atomic._BLOCK = arrive, 1000


def faults_after_kill(store, reported):
    """Return what is wrong with what a killed run left, None where nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            draws, log_density, done = store.committed()
            model = store.final_model()
    except Exception as error:
        return f"cannot be read: {type(error).__name__}: {error}"
    if not len(draws) == len(log_density) == done:
        return f"{len(draws)} draws, {len(log_density)} densities, a state after {done}"
    expected = uninterrupted()
    if draws.tobytes() != expected[0][:done].tobytes():
        return "other draws"
    if log_density.tobytes() != expected[1][:done].tobytes():
        return "other densities"
    if done < reported:
        return f"{reported} draws were committed, {done} are there"
    if model is not None and np.moveaxis(model, 0, 1).tobytes() != expected[0].tobytes():
        return "another model file"
    if len(store.unfinished_files()) > 1:
        return f"left behind: {store.unfinished_files()}"
    return None


def faults_at_end(store):
    """Return what is wrong after the last run, None where nothing is."""
    code, _ = run_and_kill(store)
    if code != 0:
        return f"the resumed run ended with {code}"
    fault = faults_after_kill(store, NUM_DRAWS)
    if fault is None and store.unfinished_files():
        fault = f"left behind: {store.unfinished_files()}"
    return fault and f"after the end: {fault}"


def trial(store, kills):
    """One trial; `kills` are the arguments of `run_and_kill` for each run.

    Returns:
        (How many runs were killed, the first fault or None).
    """
    num_killed = 0
    for arguments in kills:
        code, reported = run_and_kill(store, **arguments)
        num_killed += code == -signal.SIGKILL
        if code not in (0, -signal.SIGKILL):
            return num_killed, f"the run ended with {code}"
        fault = faults_after_kill(store, reported)
        if fault:
            return num_killed, fault
    return num_killed, faults_at_end(store)


def usual_seconds(store, path):
    """Return the seconds that a whole run takes here, once files and code are in memory."""
    for _ in range(2):
        shutil.rmtree(path, ignore_errors=True)
        start = time.perf_counter()
        run_and_kill(store(path))
        seconds = time.perf_counter() - start
    return seconds


def plan(what, generator, seconds):
    """Arguments of `run_and_kill` for the runs of one trial."""
    if what in NUM_KILLS:
        # One in ten comes before the first commit; the last ones may come after the end.
        draws = np.sort(generator.integers(-NUM_DRAWS // 10, NUM_DRAWS, size=NUM_KILLS[what]))
        return [{"draws": int(n), "seconds": seconds * generator.uniform() / 10} for n in draws]
    point, path_part, most = POINTS[what]
    count = int(generator.integers(1, most + 1))
    return [{"prepare": functools.partial(kill_at, point, path_part, count)}]


def main(what, trials, seed, folder, store="segments"):
    """Makes the trials and prints what came of them."""
    store, num_killed, faults = STORES[store], 0, []
    seconds = usual_seconds(store, os.path.join(folder, "usual")) if what in NUM_KILLS else None
    for number in range(int(trials)):
        generator = np.random.default_rng([int(seed), number])
        path = os.path.join(folder, f"run-{number}")
        killed, fault = trial(store(path), plan(what, generator, seconds))
        num_killed += killed
        if fault:
            faults.append(f"{what} {number}: {fault}")
        shutil.rmtree(path)
    imported = "tensorflow" in sys.modules
    print(json.dumps({"killed": num_killed, "faults": faults, "tensorflow": imported}))


if __name__ == "__main__":
    main(*sys.argv[1:])
