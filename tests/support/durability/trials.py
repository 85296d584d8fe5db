"""Trials of `killing.py` and `filling.py`, which fork, in a process without TensorFlow."""

import json
import os
import subprocess
import sys


def trials(program, what, count, folder, *options, seed=1):
    """Run some trials of a program and return what came of them."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            program.__name__,
            what,
            str(count),
            str(seed),
            str(folder),
            *options,
        ],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
