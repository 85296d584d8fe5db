"""Damages a sound model file in random ways and reads it:

    python -m tests.support.mutated_files FILE FIRST LAST

Prints a line "number outcome" for each mutation FIRST .. LAST - 1, where the outcome is "refused",
"accepted", "unchanged" where chance put back what was there, or what else happened. A crash of the HDF5 library ends this process, not the caller.
"""

import os
import sys
import tempfile

import numpy as np

import tfbnn
from tfbnn.storage import seal


def flip_bits(data, generator):
    for index in generator.integers(len(data), size=generator.integers(1, 9)):
        data[index] ^= 1 << generator.integers(8)


def random_block(data, generator):
    start = generator.integers(len(data))
    size = min(generator.integers(1, 65), len(data) - start)
    data[start : start + size] = generator.bytes(size)


def extreme_number(data, generator):
    width = int(generator.choice([1, 2, 4, 8]))
    start = generator.integers(len(data) - width)
    fill = [b"\x00", b"\xff", b"\x7f", b"\x80", b"\x01"][generator.integers(5)]
    data[start : start + width] = fill * width


def move_block(data, generator):
    size = int(generator.integers(1, 513))
    source, target = generator.integers(len(data) - size, size=2)
    data[target : target + size] = data[source : source + size]


def remove_block(data, generator):
    start = generator.integers(len(data))
    del data[start : start + generator.integers(1, 65)]


def insert_block(data, generator):
    start = generator.integers(len(data))
    data[start:start] = generator.bytes(generator.integers(1, 65))


def truncate(data, generator):
    del data[generator.integers(len(data)) :]


CHANGES = (
    flip_bits,
    random_block,
    extreme_number,
    move_block,
    remove_block,
    insert_block,
    truncate,
)


def mutate(sound, number, path):
    """Writes mutation `number`, every fourth with the old seal; returns whether it is one."""
    generator, data = np.random.default_rng(number), bytearray(sound)
    for _ in range(generator.integers(1, 4)):
        if len(data) > 1024:
            CHANGES[generator.integers(len(CHANGES))](data, generator)
    with open(path, "wb") as file:
        file.write(data)
    if not keeps_old_seal(number):
        seal(path)
    return data != sound


def keeps_old_seal(number):
    return number % 4 == 0


def outcome(path):
    """Return what becomes of a file; one that is accepted has to be of use."""
    try:
        model = tfbnn.load(path)
    except tfbnn.ModelFileError:
        return "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    finite = np.isfinite(model.posterior.draws).all()
    return "accepted" if finite else "accepted with weights that are not finite"


def main(path, first, last):
    with open(path, "rb") as file:
        sound = file.read()
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "mutated.h5")
        for number in range(first, last):
            changed = mutate(sound, number, target)
            print(number, outcome(target) if changed else "unchanged", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
