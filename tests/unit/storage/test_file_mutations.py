"""Model files damaged at random: whatever happens, it is a `ModelFileError` of the caller."""

import subprocess
import sys
from collections import Counter

import pytest

import tfbnn
from tests.support import mutated_files
from tfbnn.storage import write_model


@pytest.fixture(scope="module")
def sound(tmp_path_factory, synthetic_ensemble):
    path = tmp_path_factory.mktemp("files") / "sound.h5"
    write_model(synthetic_ensemble(num_results=4, dtype="float32"), path)
    return path


def outcomes(sound, first, last):
    """Dict number -> outcome, "died" where the HDF5 library ended the process that read the file."""
    found = {}
    while first < last:
        done = subprocess.run(
            [sys.executable, "-m", mutated_files.__name__, sound, str(first), str(last)],
            capture_output=True,
            text=True,
            timeout=550,
        )
        lines = done.stdout.splitlines()
        found |= {int(number): text for number, _, text in (s.partition(" ") for s in lines)}
        if done.returncode == 0:
            break
        assert done.returncode < 0, done.stderr
        first = max(found, default=first - 1) + 1
        found[first] = "died"
        first += 1
    return found


def check(sound, first, last, tmp_path):
    found = outcomes(sound, first, last)
    assert sorted(found) == list(range(first, last))
    counts = Counter(found.values())
    assert set(counts) <= {"refused", "accepted", "unchanged", "died"}
    assert counts["refused"] > 0.8 * len(found)
    for number, outcome in found.items():
        if mutated_files.keeps_old_seal(number):
            assert outcome in ("refused", "unchanged"), number
        if outcome == "died":
            path = tmp_path / "fatal.h5"
            mutated_files.mutate(sound.read_bytes(), number, path)
            with pytest.raises(tfbnn.ModelFileError, match=r"fatal\.h5.*foreign files fail"):
                tfbnn.load(path, untrusted=True)
    print(dict(counts))


def test_random_mutations(sound, tmp_path):
    check(sound, 0, 200, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 20_000, 5000))
def test_many_random_mutations(sound, tmp_path, first):
    check(sound, first, first + 5000, tmp_path)


def test_the_seal_finds_every_flipped_bit(sound, tmp_path):
    """Every byte of the file in turn, the seal's own included."""
    data, path = sound.read_bytes(), tmp_path / "flipped.h5"
    for index in range(0, len(data), 67):
        path.write_bytes(data[:index] + bytes([data[index] ^ 4]) + data[index + 1 :])
        with pytest.raises(tfbnn.ModelFileError, match="seal"):
            tfbnn.load(path)
