"""Memory of a run whose draws go to a folder: benchmarks/results/memory.md, in a few minutes.

Run from a checkout with the package installed: python -m benchmarks memory

Needs Linux and 2.5 GB of disk; --quick needs 50 MB.
"""

import argparse
from pathlib import Path

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder
from benchmarks.lib.resident import ended_child
from benchmarks.studies.memory.sample import network

# By default glibc serves arrays of up to 32 MB from its heap, and the freed ones leave gaps there.
THRESHOLD = {"MALLOC_MMAP_THRESHOLD_": "4000000"}

INTRODUCTION = """\
# Memory of a run that writes to a folder

One chain of a 5-50-50-50-1 network ({size} weights in float32) is sampled by random walk on {rows} rows, with
`output=` and the default `commit_interval`. Every transition is kept. The table has the resident memory of
the whole process, TensorFlow included, after the block in which the number of draws was reached, and the
largest until then. The second run has the environment variable MALLOC_MMAP_THRESHOLD_=4000000, with which
glibc returns freed arrays of more than 4 MB to the system. Up to 64 MB of draws wait for a commit. While they
are written, they take three times as much memory.

From {settled} draws to {last}, the largest resident memory grew by {growth:.1f} MB, with the variable by
{growth_with:.1f} MB. The draws themselves take {draws:.0f} MB, which a run without a folder needs in addition.
"""


def main(arguments=None):
    """Samples and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    child = [Path(__file__).with_name("sample.py")]
    child += [2000, 0.0] if options.quick else [100_000, 30.0]
    keep("memory.md", table(*(ended_child(child, **also)[0] for also in ({}, THRESHOLD))), folder)


def table(default, with_threshold):
    """The result as Markdown, of both runs."""
    size = network().spec.layout.num_parameters
    settled, growth = zip(*map(growth_of, (default[0], with_threshold[0])))
    last = default[0][-1][0]
    text = INTRODUCTION.format(
        size=size,
        rows=20,
        settled=" and ".join(map(str, settled)),
        last=last,
        growth=growth[0],
        growth_with=growth[1],
        draws=last * size * 4 / 1e6,
    )
    names = "without the variable", "with it"
    body = [
        [name, draws, f"{now:.0f}", f"{most:.0f}"]
        for name, (rows, _) in zip(names, (default, with_threshold))
        for draws, now, most in rows
    ]
    header = ["run", "draws", "resident memory, MB", "largest so far, MB"]
    seconds = " and ".join(f"{seconds:.0f}" for _, seconds in (default, with_threshold))
    return f"{text}\n{markdown(header, body)}\n\nThe runs took {seconds} s."


def growth_of(rows):
    """The number of draws at which at least two fifths were there, and how many MB the rest added."""
    settled = next(row for row in rows if row[0] >= 0.4 * rows[-1][0])
    return settled[0], rows[-1][2] - settled[2]


if __name__ == "__main__":
    main()
