"""Give the cross sections of SLHA spectra, or of the points of a table.

They are those of all processes of a folder that 'tfbnn slha make' wrote: medians in fb, distances to the
16 % and 84 % quantiles, and trust, 1 inside the training data, 0 at their edge, -1 outside. One row per
point and process, as CSV on standard output unless -o, -w or --json say something else. Spectra that
their own program calls invalid (SPINFO 4) are refused.

examples:
  tfbnn slha eval gauginos/ point.slha
  tfbnn slha eval gauginos/ spectra/ -o scan.csv                # a folder of them
  tfbnn slha eval gauginos/ spectra/ -w with_xsections/         # copies with XSECTION blocks
  tfbnn slha eval gauginos/ --table points.csv --id name --process 1000022,1000023 -o scan.csv
  tfbnn slha eval gauginos/ --table points.csv --error pdf=pdf_rel --error scale=0.05,0.04
"""

import argparse
import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

from tfbnn.cli.console import DONE, print_json, say
from tfbnn.cli.options import JsonOptions, add_fields, argument, comma_list, number
from tfbnn.cli.outputs import TABLE, check_output, written_table
from tfbnn.cli.slha.points import Copies, find_spectra, of_spectra, of_table
from tfbnn.cli.slha.results import Results, citations, columns_of
from tfbnn.data.csv_tables import Writer
from tfbnn.data.numbers import is_number
from tfbnn.diagnostics.wording import counted
from tfbnn.hep.predictor import CrossSectionPredictor
from tfbnn.hep.process import Pids, Process, pid_pair
from tfbnn.hep.xsection_blocks import check_calculations

_MOST_NAMED = 5


def _pids(text: str) -> Pids:
    wanted = "two PDG codes with a comma, such as 1000022,1000023"
    codes = [number(entry, int, wanted) for entry in comma_list(text)]
    if len(codes) != 2:
        raise argparse.ArgumentTypeError(f"expected {wanted}, received {text!r}")
    return pid_pair(codes)


def _error(text: str) -> tuple[str, Any]:
    """(name, number or (down, up) or name of a column)."""
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise argparse.ArgumentTypeError(
            f"expected NAME=X, such as scale=0.05, scale=0.05,0.04 or pdf=COLUMN, received {text!r}"
        )
    parts = value.split(",")
    if len(parts) > 2 or not all(map(is_number, parts)):
        return name, value
    sides = tuple(map(float, parts))
    return name, sides if len(sides) == 2 else sides[0]


class _Options(JsonOptions):
    """What the command takes.

    Attributes:
        folder: Folder of processes.
        spectra: Files in SLHA, or folders, of which all files that end in .slha, .slha1, .slha2,
            .lha or .spc.
        table: A table with the inputs in place of spectra.
        id_column: Column of the table that names its points.
        process: This process only; may be repeated.
        output: Table to write, in the format of its ending.
        write: Write copies of the spectra with XSECTION blocks: to this file where one spectrum is
            named, else to this folder.
        overwrite: Replace files that -w finds there.
        add_errors: Add the errors of other origin that the folder has, in quadrature, and show the
            parts.
        error: A relative error of other origin to be added, in place of one of that name in the folder:
            a number, two for down and up with a comma, or a column of the table.
        skip_bad: Leave out spectra that lack something or are called invalid, and say which.
        trusted: The folder is your own: read its models in this process, which is faster.
    """

    folder: Annotated[str, argument("FOLDER")]
    spectra: Annotated[list[str], argument("SPECTRA", nargs="*")]
    table: Annotated[str | None, {"metavar": "POINTS"}] = None
    id_column: Annotated[str | None, {"flags": ("--id",), "metavar": "COL"}] = None
    process: Annotated[
        list[Pids] | None, {"action": "append", "type": _pids, "metavar": "PID,PID"}
    ] = None
    output: Annotated[str | None, {"flags": ("-o",), "metavar": "OUT.csv"}] = None
    write: Annotated[str | None, {"flags": ("-w", "--write"), "metavar": "PLACE"}] = None
    overwrite: bool = False
    add_errors: bool = False
    error: Annotated[Sequence[Any], {"action": "append", "type": _error, "metavar": "NAME=X"}] = []
    skip_bad: bool = False
    trusted: bool = False


add_options = partial(add_fields, owner=_Options)


def run(args: argparse.Namespace) -> int:
    """Reads, predicts in batches, writes."""
    spectra, errors = _check_arguments(args), dict(args.error)
    check_output(args.output, TABLE, [args.folder, args.table, *spectra])
    predictor = CrossSectionPredictor(args.folder, args.process, untrusted=not args.trusted)
    processes = [*predictor.processes.values()]
    copies = _copies(args, spectra, processes)
    if args.table is None:
        batches = of_spectra(predictor, spectra, errors, args.skip_bad)
        if copies is not None:
            # All are read before any is written, lest copies of some stand in the way of a repeat.
            batches = iter([*batches])
    else:
        batches = of_table(predictor, args.table, args.id_column, errors)
    with_others, seconds = bool(args.add_errors or errors), 0.0
    with _table(args, columns_of(with_others)) as write:
        results = Results(processes, with_others, write, copies, args.json)
        for batch in batches:
            began = time.perf_counter()
            sections = predictor.predict(batch.inputs, errors=batch.errors)
            seconds += time.perf_counter() - began
            results.take(batch.names, sections)
        if not results.num_points:
            raise ValueError("No point is left. Repair the spectra.")
    if args.json:
        print_json({"cross_sections": results.records, "cite": citations(processes)})
    _tell(results, processes, seconds, args.write)
    return DONE


def _check_arguments(args: argparse.Namespace) -> list[str]:
    """The spectra, none for a table; refuses options that contradict each other."""
    if (args.table is None) == (not args.spectra):
        raise ValueError("expected SPECTRA or --table POINTS, one of them.")
    if args.table is None:
        for name, value in args.error:
            if isinstance(value, str):
                raise ValueError(
                    f"--error {name}={value} names a column, which spectra do not have. Pass a "
                    "number, or a --table."
                )
        if args.id_column is not None:
            raise ValueError("--id goes with --table: points of spectra are named by their files.")
        return find_spectra(args.spectra)
    if args.write is not None:
        raise ValueError("-w writes copies of spectra, which a table has none of. Use -o.")
    return []


def _copies(
    args: argparse.Namespace, spectra: list[str], processes: Sequence[Process]
) -> Copies | None:
    """Where -w writes, looked at before any work is done."""
    if args.write is None:
        return None
    check_calculations(processes)
    copies = Copies.of(args.write, args.spectra, spectra)
    copies.check(spectra, args.overwrite)
    return copies


@contextlib.contextmanager
def _table(args: argparse.Namespace, columns: Sequence[str]) -> Iterator[Writer | None]:
    """Yields what takes the rows of a table, if there is to be one."""
    if args.output is None and (args.json or args.write is not None):
        yield None
        return
    with written_table(args.output, columns) as write:
        yield write


def _tell(
    results: Results, processes: Sequence[Process], seconds: float, place: str | None
) -> None:
    number = results.num_points * len(processes)
    say(
        f"{counted(number, 'cross section')} of {counted(results.num_points, 'point')}, predicted "
        f"in {seconds:.2f} s, {1000 * seconds / number:.3g} ms each."
    )
    if results.untrusted:
        first, more = results.untrusted[:_MOST_NAMED], len(results.untrusted) - _MOST_NAMED
        say(
            f"Warning: trust is -1, outside the training inputs, at "
            f"{counted(len(results.untrusted), 'point')}: {', '.join(first)}"
            f"{f' and {more} more' if more > 0 else ''}. Do not rely on these cross sections."
        )
    if place is not None:
        say(f"Wrote copies with XSECTION blocks to {place}: {results.num_points} in all.")
    if results.num_strangers:
        say(
            f"Warning: {results.num_strangers} of them also have cross sections of another code for "
            "the same process and energy, which stay. SModelS takes the largest of one order."
        )
    for text in citations(processes):
        say(f"Cite: {text}")
