"""Damages run folders and says what becomes of them.

A folder that is damaged must be refused by a `RunFolderError`, or give back its last commit, or, with
a `RunFolderWarning`, the one before; to readers and to the next writer alike. Numbers that were never
committed must not come out of it.
"""

import os
import shutil
import warnings

import numpy as np

import tfbnn
from tests.support.run_folders import created_run
from tfbnn.storage.run.folder import RunFolder

GROUP = "lane-000"
# Each holds two generations of checkpoints: the fourth commit, and the third.
NUM_COMMITS, DRAWS_PER_COMMIT = 4, 5
NEWER, OLDER = "checkpoint-a.h5", "checkpoint-b.h5"
SEGMENTS = [f"segment-{index:06d}.h5" for index in range(NUM_COMMITS)]
# File kind -> its names, relative to the run folder.
KINDS = {
    "run.h5": ["run.h5"],
    "segment": [os.path.join(GROUP, name) for name in SEGMENTS],
    "newer checkpoint": [os.path.join(GROUP, NEWER)],
    "older checkpoint": [os.path.join(GROUP, OLDER)],
}
FILES = [name for names in KINDS.values() for name in names]


def committed_draws(seed, count, num_parameters):
    """The first draws of the run of a seed."""
    shape = NUM_COMMITS * DRAWS_PER_COMMIT, 2, num_parameters
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)[:count]


def make(path, seed=0, num_parameters=50):
    """A run with four commits."""
    folder = created_run(path, {"seed": seed}, {"x": np.arange(100.0)}, 1)
    draws = committed_draws(seed, None, num_parameters)
    with folder.writer(0) as writer:
        for stop in range(DRAWS_PER_COMMIT, len(draws) + 1, DRAWS_PER_COMMIT):
            new = draws[stop - DRAWS_PER_COMMIT : stop]
            writer.append(new, {"lp": new.sum(axis=2)})
            writer.commit({"state": draws[stop - 1]}, {"done": stop})
    return folder.path


def flip_bit(path, generator):
    with open(path, "r+b") as file:
        position = int(generator.integers(os.path.getsize(path)))
        file.seek(position)
        byte = file.read(1)[0] ^ (1 << int(generator.integers(8)))
        file.seek(position)
        file.write(bytes([byte]))


def truncate(path, generator):
    os.truncate(path, int(generator.integers(os.path.getsize(path))))


def overwrite_block(path, generator):
    """Zeros a block of 512 bytes, as disks have them; one that holds something."""
    with open(path, "rb") as file:
        content = file.read()
    blocks = [s for s in range(0, len(content), 512) if any(content[s : s + 512])]
    with open(path, "r+b") as file:
        start = int(generator.choice(blocks))
        file.seek(start)
        file.write(bytes(len(content[start : start + 512])))


def outcome(path, seed=0, num_parameters=50):
    """Return what a reader and a writer make of a folder, which the writer changes.

    Returns:
        "refused", "last commit", "commit before", or what is wrong.
    """
    read = _outcome(path, _read, seed, num_parameters)
    written = _outcome(path, _open_writer, seed, num_parameters)
    return read if read == written else f"wrong: {read} for readers, {written} for writers"


def _read(folder, num_parameters):
    found = folder.read(0)
    return found.draws, found.statistics["lp"], found.counters["done"]


def _open_writer(folder, num_parameters):
    """The same of what the writer has left, after checking the state it would go on from."""
    with folder.writer(0) as writer:
        done = writer.checkpoint.counters["done"]
        expected = committed_draws(folder.description["seed"], done, num_parameters)[-1]
        if writer.checkpoint.arrays["state"].tobytes() != expected.tobytes():
            raise AssertionError("another state")
        writer.commit(writer.checkpoint.arrays, writer.checkpoint.counters)
    return _read(folder, num_parameters)


def _outcome(path, use, seed, num_parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            draws, log_density, done = use(RunFolder.open(path), num_parameters)
        except tfbnn.RunFolderError:
            return "refused"
        except Exception as error:
            return f"wrong: {type(error).__name__}: {error}"
    expected = committed_draws(seed, done, num_parameters)
    if draws.tobytes() != expected.tobytes():
        return "wrong: other draws"
    if log_density.tobytes() != expected.sum(axis=2).tobytes():
        return "wrong: other densities"
    if done == NUM_COMMITS * DRAWS_PER_COMMIT:
        return "last commit"
    if done != (NUM_COMMITS - 1) * DRAWS_PER_COMMIT:
        return f"wrong: {done} draws"
    warned = any(issubclass(one.category, tfbnn.RunFolderWarning) for one in caught)
    return "commit before" if warned else "wrong: no warning"


def trial(sound, path, change, names, number, num_parameters=50):
    """Copies a sound folder, changes one of the files, and returns the outcome."""
    generator = np.random.default_rng(number)
    shutil.copytree(sound, path)
    change(os.path.join(path, names[generator.integers(len(names))]), generator)
    found = outcome(path, num_parameters=num_parameters)
    shutil.rmtree(path)
    return found


# Files in the place of others: name -> function (folder, folder of another run).


def _swap(path, first, second):
    first, second = (os.path.join(path, GROUP, name) for name in (first, second))
    os.rename(first, f"{first}.old")
    os.rename(second, first)
    os.rename(f"{first}.old", second)


def _copy(source, first, path, second):
    shutil.copy(os.path.join(source, GROUP, first), os.path.join(path, GROUP, second))


SUBSTITUTIONS = {
    "segments swapped": lambda path, other: _swap(path, SEGMENTS[0], SEGMENTS[2]),
    "a segment twice": lambda path, other: _copy(path, SEGMENTS[0], path, SEGMENTS[1]),
    "a segment of another run": lambda path, other: _copy(other, SEGMENTS[1], path, SEGMENTS[1]),
    "last segment of another run": lambda path, other: _copy(other, SEGMENTS[3], path, SEGMENTS[3]),
    "a segment gone": lambda path, other: os.unlink(os.path.join(path, GROUP, SEGMENTS[1])),
    "last segment gone": lambda path, other: os.unlink(os.path.join(path, GROUP, SEGMENTS[3])),
    "a folder for a segment": lambda path, other: (
        os.unlink(os.path.join(path, GROUP, SEGMENTS[1])),
        os.mkdir(os.path.join(path, GROUP, SEGMENTS[1])),
    ),
    "a checkpoint for a segment": lambda path, other: _copy(path, NEWER, path, SEGMENTS[1]),
    "checkpoint of another run": lambda path, other: _copy(other, NEWER, path, NEWER),
    "both checkpoints of another run": lambda path, other: (
        _copy(other, NEWER, path, NEWER),
        _copy(other, OLDER, path, OLDER),
    ),
    "checkpoints swapped": lambda path, other: _swap(path, NEWER, OLDER),
    "both checkpoints gone": lambda path, other: (
        os.unlink(os.path.join(path, GROUP, NEWER)),
        os.unlink(os.path.join(path, GROUP, OLDER)),
    ),
    "a chain group of another run": lambda path, other: (
        shutil.rmtree(os.path.join(path, GROUP)),
        shutil.copytree(os.path.join(other, GROUP), os.path.join(path, GROUP)),
    ),
    "description of another run": lambda path, other: shutil.copy(
        os.path.join(other, "run.h5"), os.path.join(path, "run.h5")
    ),
    "no description": lambda path, other: os.unlink(os.path.join(path, "run.h5")),
}
EXPECTED = dict.fromkeys(SUBSTITUTIONS, "refused") | {
    "last segment of another run": "commit before",
    "last segment gone": "commit before",
    "checkpoint of another run": "commit before",
    "checkpoints swapped": "last commit",
}
