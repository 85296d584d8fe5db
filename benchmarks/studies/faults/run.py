"""Faults that a run folder has to survive: benchmarks/results/faults.md, in about ten minutes.

Run from a checkout with the package installed: python -m benchmarks faults

The trials are those of tests/durability, more of them. No TensorFlow: a made-up sampler stands in.
"""

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from benchmarks.lib.common import HERE, add_common_options, keep, markdown, output_folder
from benchmarks.lib.store import Store

INTRODUCTION = """\
# Faults that a run folder survives

`python -m benchmarks faults` damages run folders, or kills their writer, and counts failures. The storage
layer is tested with a made-up sampler whose every draw is known. These are failures:

- a file does not open;
- a draw, a density or a state differs in a bit from that of the uninterrupted run;
- a commit that was reported is lost;
- a resumed run does not end as the uninterrupted one;
- more than one temporary file is left, or one that the next start does not remove;
- an error is not the documented one;
- there is no warning although the commit before the last is used.

A commit is what a writer has stored at one time: draws and a checkpoint, of which the last two are kept.
"Last commit" and "commit before" say from which commit the folder is read or continued. "Refused" is an error
that says that the folder is damaged. Kills are SIGKILL. They test the order of writes and names, not what a
disk keeps when power fails. The naive writer changes one file in place. It has to fail, or the tests would be
too weak. Other processes shared the cores, so times are upper limits.
"""
# What the table calls faults whose key says too little.
LABELS = {"read by four while written": "read by four processes while it is written"}
RANDOM, IN_A_ROW, NAIVE = "killed at a random moment", "killed five times", "naive writer, killed"


def main(arguments=None):
    """Makes what trials are missing, and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("faults", options.fresh, folder)
    for name, (trials, count) in plan(options.quick).items():
        if name in store:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as root:
            row = trials(count, root)
        row = {"trials": count, "seconds": round(time.monotonic() - start, 1)} | row
        store.add(name, row)
        print(name, row, flush=True)
    keep("faults.md", table(store.rows), folder)


def plan(quick):
    """Dict name -> (function (number of trials, folder) -> row, number of trials)."""
    from tests.support.durability import damage, filling, killing

    def times(count):
        return max(1, count // 100) if quick else count

    trials = {RANDOM: (functools.partial(killed, "random"), times(300))}
    for point in killing.POINTS:
        trials[f"killed: {point}"] = functools.partial(killed, point), times(20)
    trials[IN_A_ROW] = functools.partial(killed, "five in a row"), times(20)
    trials[NAIVE] = functools.partial(killed, "random", store="in-place"), 20 if quick else 60
    trials[filling.SIZE_LIMIT] = functools.partial(filled, filling.SIZE_LIMIT), times(50)
    trials[filling.FULL_DISK] = functools.partial(filled, filling.FULL_DISK), times(50)
    for kind in damage.KINDS:
        trials[f"truncated: {kind}"] = damaged(damage.truncate, damage.KINDS[kind]), times(200)
    trials["one bit flipped"] = damaged(damage.flip_bit, damage.FILES), times(1000)
    trials["512 bytes zeroed"] = damaged(damage.overwrite_block, damage.FILES), times(100)
    trials["file replaced by another"] = substituted, len(damage.SUBSTITUTIONS)
    trials["read by four while written"] = read_by_four, times(4000)
    return trials


def run(module, *arguments):
    """Run a program of the tests, which forks as this process should not, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.support.durability.{module}", *map(str, arguments)],
        cwd=HERE.parent,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def killed(what, count, root, store="segments"):
    found = run("killing", what, count, 0, root, store)
    return {"failures": len(found["faults"]), "note": f"{found['killed']} kills"}


def filled(what, count, root):
    from tests.support.durability import filling

    if what == filling.FULL_DISK and not filling.may_mount(os.path.join(root, "probe")):
        return {"trials": 0, "failures": 0, "note": "needs the right to mount a file system"}
    return {"failures": len(run("filling", what, count, 0, root)["faults"])}


def damaged(change, names):
    """A function for `plan`: each trial changes one of the files."""
    from tests.support.durability import damage

    def trials(count, root):
        # Files of about 1 MB in all.
        sound = damage.make(os.path.join(root, "sound"), num_parameters=5000)
        copy = os.path.join(root, "copy")
        found = [
            damage.trial(sound, copy, change, names, number, num_parameters=5000)
            for number in range(count)
        ]
        return {"failures": sum(one.startswith("wrong") for one in found), "note": tally(found)}

    return trials


def substituted(count, root):
    from tests.support.durability import damage

    sound, other = (damage.make(os.path.join(root, str(seed)), seed) for seed in range(2))
    found = []
    for name, substitute in damage.SUBSTITUTIONS.items():
        copy = os.path.join(root, "copy")
        shutil.copytree(sound, copy)
        substitute(copy, other)
        found.append((damage.outcome(copy), damage.EXPECTED[name]))
        shutil.rmtree(copy)
    outcomes = [outcome for outcome, _ in found]
    return {"failures": sum(a != b for a, b in found), "note": tally(outcomes)}


def read_by_four(num_draws, root):
    complaints, found = run("readers", os.path.join(root, "run"), num_draws)
    reads = sum(one.get("reads", 0) for one in found)
    failures = sum(len(one["faults"]) for one in found) + bool(complaints)
    return {"trials": reads, "failures": failures, "note": f"reads of up to {num_draws} draws"}


def tally(outcomes):
    """Return how often each outcome came, in words."""
    counts = {name: outcomes.count(name) for name in sorted(set(outcomes))}
    return ", ".join(f"{count} x {name}" for name, count in counts.items())


def table(rows):
    """The page that is kept."""
    lines = [
        (
            LABELS.get(name, name),
            row["failures"],
            row["trials"],
            row.get("note", ""),
            row["seconds"],
        )
        for name, row in rows.items()
    ]
    header = ("fault", "failures", "trials", "kills, outcomes or reads", "time of all trials, s")
    return f"{INTRODUCTION}\n{markdown(header, lines)}"


if __name__ == "__main__":
    main()
