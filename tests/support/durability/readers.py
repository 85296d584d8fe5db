"""Four processes read a run again and again while a fifth writes it: python -m tests.support.durability.readers FOLDER DRAWS.

Then the model file is written ten times, with the readers still at it. Each read must find the
beginning of the uninterrupted run bit by bit, never less than the read before, and the writer must
not notice. Prints how often each has read, how often there was something new, and what was wrong.
"""

import json
import os
import subprocess
import sys
import time
import warnings

import numpy as np

from tests.support.durability.fake_run import Segments, uninterrupted
from tfbnn.exceptions import RunFolderError

NUM_READERS, NUM_MERGES, PAUSE = 4, 10, 0.02


def write(path, num_draws):
    """The run, with a pause after each commit."""
    store = Segments(path)
    for _ in range(NUM_MERGES):
        # A finished run has nothing left to do but its model file.
        store.run(lambda done: time.sleep(PAUSE), num_draws)


def read(path, num_draws, end):
    """Reads until there is a file of the name `end`."""
    warnings.simplefilter("error")
    store, expected = Segments(path), uninterrupted(num_draws)
    found = {"reads": 0, "changes": 0, "draws": 0, "models": 0, "faults": []}
    while not os.path.exists(end):
        found["reads"] += 1
        try:
            draws, log_density, done = store.committed()
            model = store.final_model()
        except (OSError, RunFolderError, UserWarning, ValueError) as error:
            found["faults"].append(f"{type(error).__name__}: {error}")
            continue
        if done < found["draws"]:
            found["faults"].append(f"{found['draws']} draws, then {done}")
        if (draws.tobytes(), log_density.tobytes()) != tuple(a[:done].tobytes() for a in expected):
            found["faults"].append(f"other draws among the first {done}")
        if model is not None and np.moveaxis(model, 0, 1).tobytes() != expected[0].tobytes():
            found["faults"].append("another model file")
        found["changes"] += done > found["draws"]
        found["draws"] = done
        found["models"] += model is not None
    print(json.dumps(found | {"faults": found["faults"][:5]}))


def observe(path, num_draws):
    """Starts the writer and the readers: (complaints of the writer, what each reader found)."""

    def start(*arguments):
        command = [sys.executable, "-m", __spec__.name, path, str(num_draws), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    end = f"{path}.end"
    readers = [start("read", end) for _ in range(NUM_READERS)]
    writer = start("write")
    complaints = writer.communicate()[1]
    with open(end, "w", encoding="ascii"):
        pass
    answers = [reader.communicate() for reader in readers]
    return complaints, [json.loads(out) if out else {"faults": [err]} for out, err in answers]


def main(path, num_draws, role="observe", *arguments):
    """Plays a role."""
    if role == "observe":
        print(json.dumps(observe(path, int(num_draws))))
    else:
        {"write": write, "read": read}[role](path, int(num_draws), *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
