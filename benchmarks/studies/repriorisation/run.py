"""Repriorised sampling and the collapsed readout: the first figure of Hron et al. 2022, and speed.

    TFBNN_DATA=FOLDER python -m benchmarks repriorisation [--only STUDY ...] [--seconds S]
        [--widths W ...] [--quick --output FOLDER]

Effective draws per gradient of the standard, the repriorised and the collapsed chain against width
and number of rows; milliseconds per step beside the arithmetic; the 20 splits of yacht. Rows are
kept as they finish, so that the script goes on where it was killed; tables and figure are
benchmarks/results/repriorisation.*.

Reference: arXiv:2206.07673.
"""

import argparse
import dataclasses
import itertools

from benchmarks.lib.common import add_common_options, keep, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.repriorisation.chains import METHODS, Case, sample
from benchmarks.studies.repriorisation.figure import figure
from benchmarks.studies.repriorisation.report import report
from benchmarks.studies.repriorisation.speed import measure_speed
from benchmarks.studies.repriorisation.yacht import measure_split

WIDTHS = (512, 256, 64, 16, 1024, 128, 32)
NUMBERS_OF_ROWS = (64, 256, 1024, 2048)
# A chain that makes few effective draws takes longer to show how few.
STANDARD_LONGER = 2.5
NUM_SPLITS = 20


@dataclasses.dataclass(frozen=True)
class Length:
    """Amount of everything that is run; the defaults are those of the committed table."""

    seconds: float = 80.0
    num_burnin_steps: int = 200
    rounds: int = 12
    num_splits: int = NUM_SPLITS
    split_burnin_steps: int = 300
    split_results: int = 200


QUICK = Length(
    seconds=0.2,
    num_burnin_steps=20,
    rounds=2,
    num_splits=1,
    split_burnin_steps=30,
    split_results=20,
)


def studies(quick):
    """Dict study -> Cases whose chains it needs."""
    if quick:
        small = Case("kin8nm", 8, 1, 32)
        return {"widths": [small], "rows": [small], "yacht": []}
    return {
        "widths": [Case("kin8nm", width, 3, 256) for width in WIDTHS],
        "rows": [Case("kin8nm", 256, 3, number) for number in NUMBERS_OF_ROWS],
        "yacht": [Case("yacht", 256, depth, 277) for depth in (1, 3)],
    }


def chains(store, cases, length):
    """Samples what is missing of some cases with every method."""
    for case in cases:
        for method in METHODS:
            key = f"{case.key}, {method}"
            if key in store:
                continue
            seconds = length.seconds * (STANDARD_LONGER if method == "standard" else 1.0)
            store.add(key, sample(case, method, seconds, length.num_burnin_steps))
            row = store.rows[key]
            print(key, row["acceptance"], f"{row['seconds']:.0f} s", flush=True)


def speed(store, cases, length):
    """Times what is missing of the cases."""
    for case in cases:
        key = f"{case.key}, speed"
        if key not in store:
            row = measure_speed(case, length.rounds)
            store.add(key, {**dataclasses.asdict(case), "study": "speed", **row})
            print(key, row["milliseconds"], flush=True)


def splits(store, length):
    """Fits the missing splits of yacht."""
    for split in range(length.num_splits):
        key = f"yacht, split {split}"
        if key not in store:
            row = measure_split(split, length.split_burnin_steps, length.split_results)
            store.add(key, {"study": "splits", "split": split, **row})
            print(key, row, flush=True)


def main(arguments=None):
    names = ["widths", "rows", "yacht", "speed", "splits"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    parser.add_argument("--seconds", type=float, help="processor time of sampling per chain")
    parser.add_argument("--widths", nargs="*", type=int, help="only these")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("repriorisation", fresh=options.fresh, folder=folder)
    length = QUICK if options.quick else Length()
    if options.seconds is not None:
        length = dataclasses.replace(length, seconds=options.seconds)
    plan = studies(options.quick)
    for name, cases in plan.items():
        if name in options.only:
            chosen = [case for case in cases if not options.widths or case.width in options.widths]
            chains(store, chosen, length)
    if "speed" in options.only:
        cases = dict.fromkeys(itertools.chain(*plan.values()))
        speed(store, cases, length)
    if "splits" in options.only:
        splits(store, length)
    keep("repriorisation.md", report(store.rows, plan), folder)
    figure(store.rows, plan, folder / "repriorisation.png")


if __name__ == "__main__":
    main()
