"""Count the classes and functions that a call passes in the package: benchmarks/results/journeys.md, in a minute.

Run from a checkout with the package installed: python -m benchmarks journeys
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
import warnings
from pathlib import Path

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
INTRODUCTION = """\
# Classes and functions that a call passes

A call ends at a function deep in the package: `fit_posterior` and `tfbnn fit` at the first block of
transitions, `predict` at the outputs of the networks, and `load` at the model. Classes and functions are
those of the package that are used between the call and this function. Stack: functions on the call stack at
the end, from the call on and through threads, without comprehensions, lambdas and wrappers. Climbs: calls on
this stack to a room above that of the caller (`tests/architecture/test_rooms.py` has the order of rooms).
"""


class Journey:
    """Records what runs of the package, in all threads, until a function is called.

    Args:
        goal: Name of that function, "module:qualified name".
    """

    def __init__(self, goal):
        self.goal, self.classes, self.functions, self.stack = goal, set(), set(), None
        self._starters = {}

    def __enter__(self):
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    def _look(self, frame, event, _):
        if event != "call" or self.stack is not None:
            return
        if frame.f_code.co_qualname == "Thread.start":
            self._starters[frame.f_locals["self"]] = self._stack_of(frame.f_back)
            return
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname
        if not module.startswith("tfbnn."):
            return
        self.functions.add((module, name))
        owner = name.split(".<locals>")[0].rpartition(".")[0]
        if owner:
            self.classes.add((module, owner))
        if f"{module}:{name}" == self.goal:
            self.stack = self._stack_of(frame)

    def _stack_of(self, frame):
        """Stops from the call to a frame, those of the threads that started this one first."""
        stops = []
        while frame is not None:
            module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname
            if module.startswith("tfbnn.") and not name.rpartition(".")[2].startswith("<"):
                if name.rpartition(".")[2] != "explained":
                    stops.append((module.removeprefix("tfbnn."), name))
            frame = frame.f_back
        return self._starters.get(threading.current_thread(), []) + stops[::-1]


def climbs(stack):
    """Pairs of stops that follow each other, the second in a room above the first."""
    from tests.architecture.test_rooms import FLOOR, room_of

    floors = [FLOOR[room_of(module)] for module, _ in stack]
    return sum(after > before for before, after in zip(floors, floors[1:]))


def journeys(folder):
    """Yields (what is called, goal, function that calls it)."""
    import numpy as np

    import tfbnn
    from tfbnn.cli import main

    x = np.random.default_rng(0).normal(size=(60, 2))
    y = x[:, :1] + 0.1
    first_block = "tfbnn.engine.sampling.chain_group:ChainGroup.advance"
    model, table, file = tfbnn.BayesianMLP([2, 4, 1]), folder / "rows.csv", folder / "m.h5"
    settings = dict(num_chains=2, num_results=8, num_burnin_steps=8, verbose=0)
    np.savetxt(table, np.hstack([x, y]), delimiter=",", header="a,b,y", comments="")
    command = f"fit {table} --target y --layers 2,4,1 --num-chains 2 --num-results 8"
    command += f" --num-burnin-steps 8 --verbose 0 -o {file}"
    yield "model.fit_posterior", first_block, lambda: model.fit_posterior(x, y, **settings)
    yield "tfbnn fit", first_block, lambda: main(command.split())
    yield "model.predict", "tfbnn.posterior.forward:network_outputs", lambda: model.predict(x)
    model.save(file)
    yield "tfbnn.load", "tfbnn.storage.model.contents:from_arrays", lambda: tfbnn.load(file)


def main():
    """Makes each journey and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_common_options(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for what, goal, call in journeys(Path(folder)):
            with Journey(goal) as seen, contextlib.redirect_stdout(io.StringIO()):
                call()
            if seen.stack is None:
                raise SystemExit(f"{what} did not call {goal}: name where it arrives now.")
            print(what, *(f"  {module}:{name}" for module, name in seen.stack), sep="\n")
            print(
                "  classes:", *sorted(".".join(one).removeprefix("tfbnn.") for one in seen.classes)
            )
            rows.append(
                [what, len(seen.classes), len(seen.functions), len(seen.stack), climbs(seen.stack)]
            )
    table = markdown(["call", "classes", "functions", "functions on the stack", "climbs"], rows)
    keep("journeys.md", f"{INTRODUCTION}\n{table}", output_folder(options))


if __name__ == "__main__":
    main()
